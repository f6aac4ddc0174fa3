// Permissions: what tools may do, which approvals are asked for, and how they are answered.

/**
 * What happens to a tool call that no rule matches. "default" asks for approval, if the agent has the option `permissions` or the session has a rule that asks or denies. "accept_edits" also allows reading and editing
 * files. "explore" allows only tools that change nothing. "bypass" asks only if an ask rule matches or the path is dangerous.
 * "dont_ask" denies every call for which approval would be needed.
 */
export type PermissionMode = "default" | "accept_edits" | "explore" | "bypass" | "dont_ask";

/** A rule about the calls of a tool: all of them, or those that match `rule_content`. */
export interface Rule {
  /** The name of the tool. */
  readonly tool_name: string;
  /** Which inputs the rule matches, as `matches` of the tool understands it. Null matches every input. */
  readonly rule_content: string | null;
  /** What happens to a call that the rule matches. */
  readonly behavior: "allow" | "ask" | "deny";
  /** Where the rule comes from, for people: "options" for AgentOptions, "suggested" for a rule of an ask, or your own word. */
  readonly source: string;
}

/** What tools may do. A rule can be written as "tool" or "tool(content)". The content is what `matches` of the tool understands; for the tools of the workspace it is a path pattern. */
export interface PermissionOptions {
  /** What happens to calls that no rule matches. Default "default". */
  readonly mode?: PermissionMode;
  /** Calls that run without a question, unless a rule of `deny` or `ask` matches. Default: none. */
  readonly allow?: readonly (string | Rule)[];
  /** Calls that always need approval, unless a rule of `deny` matches. Default: none. */
  readonly ask?: readonly (string | Rule)[];
  /** Calls that never run. Default: none. */
  readonly deny?: readonly (string | Rule)[];
  /** The folders in which "accept_edits" allows edits. Default: everywhere. */
  readonly workingDirectories?: readonly string[];
}

/** What the tools of a session may do, as the session stores it. */
export interface PermissionContext {
  /** What happens to calls that no rule matches. */
  readonly mode: PermissionMode;
  /** Calls that run without a question. A rule here only removes questions: it never makes another call ask. */
  readonly allow_rules: readonly Rule[];
  /** Calls that need approval. */
  readonly ask_rules: readonly Rule[];
  /** Calls that never run. */
  readonly deny_rules: readonly Rule[];
  /** The folders in which "accept_edits" allows edits. Empty: everywhere. */
  readonly working_directories: readonly string[];
}

/** An open question: a tool call that waits for the approval of a person, or for a result from outside. */
export interface Ask {
  /** What is needed: an approval or denial, or the result of the tool call. */
  readonly kind: "approval" | "result";
  /** The id of the tool call. */
  readonly toolCallId: string;
  /** The name of the tool. */
  readonly name: string;
  /** The arguments that the model gave. */
  readonly input: unknown;
  /** Why approval is needed, or the reason that the tool passed to `suspend`. "" if there is none. */
  readonly reason: string;
  /** Rules that would answer such questions from now on: pass them as `remember`. Empty if no rule can. */
  readonly suggestedRules: readonly Rule[];
}

/** The answer to an ask: an approval, a denial, or the result of a tool that ran outside. */
export type Answer =
  /** An approval: the tool runs. It is refused with NOT_ASKING if the question is older than 24 hours, or if the tool has changed. */
  | {
      /** The tool call of the ask. */
      readonly toolCallId: string;
      /** True: the tool runs. */
      readonly approve: true;
      /** Replaces the arguments. It must match the tool's schema. Default: the arguments that the model gave. */
      readonly input?: unknown;
      /** Rules about this tool that the session keeps. Default: none. */
      readonly remember?: readonly Rule[];
      /** Not in an approval. */
      readonly output?: never;
      /** Ignored in an approval. */
      readonly reason?: string;
    }
  /** A denial: the tool does not run, and the model reads that. */
  | {
      /** The tool call of the ask. */
      readonly toolCallId: string;
      /** False: the tool does not run. */
      readonly approve: false;
      /** Why, for the model. Default: only that the call was not allowed. */
      readonly reason?: string;
      /** Rules about this tool that the session keeps. Default: none. */
      readonly remember?: readonly Rule[];
      /** Not in a denial. */
      readonly output?: never;
      /** Not in a denial. */
      readonly input?: never;
    }
  /** The result of a tool call, for an ask of the kind "result". */
  | {
      /** The tool call of the ask. */
      readonly toolCallId: string;
      /** The result: a text, blocks, or any other value, which the model reads as JSON. */
      readonly output: unknown;
      /** Whether the tool failed. Default false. */
      readonly failed?: boolean;
      /** Not together with `output`. */
      readonly approve?: never;
      /** Not together with `output`. */
      readonly input?: never;
    };
