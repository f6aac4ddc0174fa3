// How an agent works on long jobs: its plan, its list of tasks, and its skills.

import type { Slot } from "./types.js";

import type { SubagentOptions } from "./subagent-types.js";

export type { SubagentConfig } from "./subagent-types.js";

/** The part of an agent's options that is about long jobs. */
export interface WorkOptions extends SubagentOptions {
  /** Adds `todo_write`, the agent's own list of tasks: kept in the state, shown to the model at the end of every request, never in the log. Default false. */
  readonly taskList?: boolean;
  /**
   * Adds `plan_enter`, `plan_write` and `plan_exit`: while a session plans, tools that may change things are denied at once; the plan is a file of the
   * workspace (`plans/PLAN.md`, unless `directory` says otherwise), and only a person's approval of `plan_exit`, or `exitPlanMode`, ends it.
   * `extraTools` may run all the same. Without `workspace` the model has `read_file` of its tools. Default false.
   */
  readonly planMode?: boolean | { readonly directory?: string; readonly extraTools?: readonly string[] };
  /** Instructions for particular jobs: listed in the system prompt, read by the model with `load_skill`. A workspace may have more, as `skills/<name>/SKILL.md`. */
  readonly skills?: readonly Skill[];
}

/** The part of an agent that is about long jobs. */
export interface WorkMethods {
  /** Lets a session only plan from now on; makes the session if it is not there. OPTIONS without `planMode`. */
  enterPlanMode(slot: Slot): Promise<void>;
  /** Lets a session act again; nobody is asked. PENDING_TOOLS while `plan_exit` waits for an answer: answer it. */
  exitPlanMode(slot: Slot): Promise<void>;
}

/** Instructions for a particular job. */
export interface Skill {
  readonly name: string;
  /** What it is good for: all that the model sees until it loads the skill. */
  readonly description: string;
  /** The instructions. */
  readonly content: string;
  /** Other files of it, by path. */
  readonly resources?: Readonly<Record<string, string>>;
  /** Groups of tools that go on when it is loaded, and stay on. A skill of the workspace has none. */
  readonly toolGroups?: readonly string[];
}
