// Plan mode, the task list and skills.

import type { Slot } from "./session.js";
import type { SubagentOptions } from "./subagent.js";

/** The options of an agent for long jobs. */
export interface WorkOptions extends SubagentOptions {
  /** Adds `todo_write`, with which the model keeps a task list. The list is in the state, and the model sees it at the end of every request. It is never in the log. Default false. */
  readonly taskList?: boolean;
  /**
   * Adds `plan_enter`, `plan_write` and `plan_exit`. In plan mode every tool that may change something is denied, except `extraTools`.
   * The plan is a file of the workspace: `PLAN.md` in `directory`, which is `plans` by default. Plan mode ends when a person approves
   * `plan_exit`, or with `exitPlanMode`. Without `workspace` the model gets only `read_file` of the workspace's tools. Default false.
   */
  readonly planMode?: boolean | { readonly directory?: string; readonly extraTools?: readonly string[] };
  /** Instructions for particular jobs. The system prompt lists them, and the model reads them with `load_skill`. A workspace may have more of them, as `skills/<name>/SKILL.md`. */
  readonly skills?: readonly Skill[];
}

/** The methods of an agent for plan mode. */
export interface WorkMethods {
  /** Puts a session into plan mode. Creates the session if it does not exist. OPTIONS if the agent has no `planMode`. */
  enterPlanMode(slot: Slot): Promise<void>;
  /** Ends plan mode without asking for approval. PENDING_TOOLS while `plan_exit` waits for an answer: answer it instead. */
  exitPlanMode(slot: Slot): Promise<void>;
}

/** Instructions for a particular job. */
export interface Skill {
  /** The name by which the model loads it. */
  readonly name: string;
  /** What the skill is good for. Until the model loads the skill, it sees only this. */
  readonly description: string;
  /** The instructions. */
  readonly content: string;
  /** Other files of the skill, by path. */
  readonly resources?: Readonly<Record<string, string>>;
  /** Tool groups that are switched on when the skill is loaded, and stay on. A skill of the workspace has none. */
  readonly toolGroups?: readonly string[];
}
