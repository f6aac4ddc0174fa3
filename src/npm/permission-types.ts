// Permissions: what tools may do, what a person is asked, and how that is answered.

/**
 * Where no rule speaks: "default" asks; "accept_edits" lets files be read and edited; "explore" lets tools only look; "bypass" asks nothing,
 * but for rules that ask and for dangerous paths; "dont_ask" refuses whatever would be asked.
 */
export type PermissionMode = "default" | "accept_edits" | "explore" | "bypass" | "dont_ask";

/** A rule about a tool: all of its calls, or those that its content fits. */
export interface Rule {
  readonly tool_name: string;
  readonly rule_content: string | null;
  readonly behavior: "allow" | "ask" | "deny";
  readonly source: string;
}

/** Short rules are "tool", or "tool(content)" as the tool's `matches` understands it; for the workspace's tools a pattern of paths. */
export interface PermissionOptions {
  /** Default "default". */
  readonly mode?: PermissionMode;
  readonly allow?: readonly (string | Rule)[];
  readonly ask?: readonly (string | Rule)[];
  readonly deny?: readonly (string | Rule)[];
  /** Where "accept_edits" lets files be edited; none is everywhere. */
  readonly workingDirectories?: readonly string[];
}

/** What a session's tools may do, as it is stored. */
export interface PermissionContext {
  readonly mode: PermissionMode;
  readonly allow_rules: readonly Rule[];
  readonly ask_rules: readonly Rule[];
  readonly deny_rules: readonly Rule[];
  readonly working_directories: readonly string[];
}

/** Something that waits for a person, or for a result from outside. */
export interface Ask {
  readonly kind: "approval" | "result";
  readonly toolCallId: string;
  readonly name: string;
  readonly input: unknown;
  readonly reason: string;
  readonly suggestedRules: readonly Rule[];
}

/** What a person says to an ask, or the result of a tool that was done outside. */
export type Answer =
  | {
      readonly toolCallId: string;
      readonly approve: true;
      readonly input?: unknown;
      readonly remember?: readonly Rule[];
      readonly output?: never;
      readonly reason?: string;
    }
  | {
      readonly toolCallId: string;
      readonly approve: false;
      readonly reason?: string;
      readonly remember?: readonly Rule[];
      readonly output?: never;
      readonly input?: never;
    }
  | {
      readonly toolCallId: string;
      readonly output: unknown;
      readonly failed?: boolean;
      readonly approve?: never;
      readonly input?: never;
    };
