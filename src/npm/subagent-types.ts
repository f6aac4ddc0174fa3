// Agents that an agent gives work to.

import type { CompactionConfig } from "./context-types.js";
import type { Model } from "./model-types.js";

/** The part of an agent's options that is about children. */
export interface SubagentOptions {
  /**
   * The kinds of agents that the model may give work to, besides `general-purpose`, which is as the agent itself is, and those that a workspace
   * describes as `subagents/<name>.md` (front matter: description, tools, maxIterations; then the instructions). Adds `agent_spawn`, `agent_send`,
   * `agent_list`, `task_output`, `task_list`, `task_cancel` and `wait_async_results`. Not given: none of this; [] is enough to have it.
   */
  readonly subagents?: readonly SubagentConfig[];
}

/** A kind of agent that works for another, in a session of its own. What is left out is as it is for the agent itself. */
export interface SubagentConfig {
  /** What the model calls it. */
  readonly name: string;
  /** What it is good for: all that the model sees of it. */
  readonly description: string;
  readonly systemPrompt?: string;
  readonly model?: Model;
  /** The tools that it has, by name. It may never do more than its parent may. */
  readonly tools?: readonly string[];
  readonly maxIterations?: number;
  readonly compaction?: boolean | CompactionConfig;
}
