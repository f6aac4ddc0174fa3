// The usual choices of what a resend rolls back and a save keeps.

import type { StatePersistence } from "./branch-types.js";

const every = (on: boolean): StatePersistence => ({ conversation: on, tasks: on, plan: on, toolGroups: on, skills: on, permissions: on });

/** `AgentOptions.persistence`: everything, nothing, or the conversation alone. */
export const statePersistence: { all(): StatePersistence; none(): StatePersistence; conversationOnly(): StatePersistence } = {
  all: () => every(true),
  none: () => every(false),
  conversationOnly: () => ({ ...every(false), conversation: true }),
};
