// `statePersistence`: common values of the option `persistence`. It has its own file because `index.ts` only lists exports.

import type { StatePersistence } from "../types/state.js";

const every = (on: boolean): StatePersistence => ({ conversation: on, tasks: on, plan: on, toolGroups: on, skills: on, permissions: on });

/** `AgentOptions.persistence`: everything, nothing, or the conversation alone. */
export const statePersistence: { all(): StatePersistence; none(): StatePersistence; conversationOnly(): StatePersistence } = {
  all: () => every(true),
  none: () => every(false),
  conversationOnly: () => ({ ...every(false), conversation: true }),
};
