// Subagents: agents to which an agent gives work.

import type { CompactionConfig } from "./compaction.js";
import type { Model } from "./model.js";

/** The options of an agent for subagents. */
export interface SubagentOptions {
  /**
   * The kinds of subagents to which the model may give work. There is also `general-purpose`, which is configured like the agent.
   * A workspace may describe more as `subagents/<name>.md` (front matter: description, tools, maxIterations; then the instructions).
   * Adds `agent_spawn`, `agent_send`, `agent_list`, `task_output`, `task_list`, `task_cancel` and `wait_async_results`.
   * Default: no subagents. [] adds the tools, with `general-purpose` and the kinds of the workspace.
   */
  readonly subagents?: readonly SubagentConfig[];
}

/** A kind of subagent. Each subagent works in a session of its own. Options that are left out are taken from the agent. */
export interface SubagentConfig {
  /** The name by which the model starts it. */
  readonly name: string;
  /** What it is good for. The model sees only this. */
  readonly description: string;
  /** Its instructions. */
  readonly systemPrompt?: string;
  /** The model that answers. */
  readonly model?: Model;
  /** The names of its tools. It may never do more than its parent may. */
  readonly tools?: readonly string[];
  /** The most model requests with tools in one call. */
  readonly maxIterations?: number;
  /** When and how its conversation is compacted. */
  readonly compaction?: boolean | CompactionConfig;
}
