// The state of a session: everything that makes it restartable, except its log.

import type { Msg } from "./message.js";
import type { PermissionContext } from "./permission.js";

/** The state of a session: everything that makes it restartable, except its log. */
export interface AgentState {
  /** The version of this document. It is 1. */
  readonly format: number;
  /** The number of changes that were stored. 0 if the session is not stored. */
  readonly version: number;
  /** The id of the last stored change: `putAgentState` compares it. "" if the session is not stored. */
  readonly revision: string;
  /** The id of the session. */
  readonly session_id: string;
  /** The id of the user. Null is the anonymous user. */
  readonly user_id: string | null;
  /** The messages that the model sees. If there is a summary, the first one contains it. */
  readonly context: readonly Msg[];
  /** The text of the summary at the beginning of the context. "" if there is none. */
  readonly summary: string;
  /** What the tools of the session may do. */
  readonly permission_context: PermissionContext;
  /** Whether plan mode is on, and where the plan is. */
  readonly plan_mode_context: PlanModeContext;
  /** The model's task list, in order. */
  readonly tasks_context: { readonly tasks: readonly Task[] };
  /** Which tools and skills are on. */
  readonly tool_context: {
    /** The names of the tool groups that are on. */
    readonly activated_groups: readonly string[];
    /** The names of the skills that the model has loaded. */
    readonly activated_skills: readonly string[];
  };
  /** Whether a shutdown cut the last call off: `resume` continues it. */
  readonly shutdown_interrupted: boolean;
}

/** Whether a session is in plan mode, and the path of its plan. */
export interface PlanModeContext {
  /** Whether plan mode is on. */
  readonly plan_active: boolean;
  /** The path of the plan in the workspace. Null before the first plan. */
  readonly current_plan_file: string | null;
}

/** A task of the agent's task list. */
export interface Task {
  /** The id of the task. It stays as long as the subject is the same. */
  readonly id: string;
  /** What is to be done. */
  readonly subject: string;
  /** How far it is. At most one task is "in_progress". */
  readonly state: "pending" | "in_progress" | "completed";
  /** Absent if the model gave none. */
  readonly priority?: "high" | "medium" | "low";
}

/**
 * How the parts of a session are kept. true: a call saves the part, and a resend or a switch of branches rolls it back. "keep": a call saves the part, it
 * belongs to the session, and nothing rolls it back. false: a call does not save the part. Default: "keep" for permissions, true for all other parts.
 */
export interface StatePersistence {
  /** The messages. False: the next call does not see those of this call; the log keeps them. Default true. */
  readonly conversation?: boolean;
  /** The task list. Default true. */
  readonly tasks?: boolean | "keep";
  /** Plan mode, and the path of the plan. Default true. */
  readonly plan?: boolean | "keep";
  /** Which tool groups are on. Default true. */
  readonly toolGroups?: boolean | "keep";
  /** Which skills are loaded. Default true. */
  readonly skills?: boolean | "keep";
  /** What the tools may do, with the rules that answers added. Default "keep": a resend does not take back what a person has allowed. */
  readonly permissions?: boolean | "keep";
}
