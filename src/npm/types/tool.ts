// Tools: how they are defined, what they are given when they run, and how they are listed.

import type { Block } from "./message.js";
import type { RunContext } from "./middleware.js";
import type { Schema } from "./schema.js";

declare const opaque: unique symbol;

/** How a tool is defined. An input is checked against the JSON Schema, then by the schema's own `validate`; `execute` gets the output of `validate`, with defaults applied. */
export interface ToolConfig<I, S extends Schema = Schema> {
  /** The name by which the model calls the tool: letters, digits, `_` and `-`. */
  readonly name: string;
  /** Tells the model what the tool does. */
  readonly description: string;
  /** The schema of its input: JSON Schema, or any Standard Schema. */
  readonly inputSchema: S;
  /**
   * Runs the tool. Without `execute` the tool runs outside: its calls are suspended, and you hand in the results with `confirm`.
   * The model reads the returned value: a text, a block or blocks unchanged, any other value as JSON. If the result has more than
   * five million characters, its middle is left out and a `warning` event says so. A message that it throws is cut in the same way.
   * It may also be a generator: what it yields is shown as `tool-delta`, and what it returns is the result. When the call is stopped or
   * the deadline passes, its `return` is called.
   * An integer of the input beyond `Number.MAX_SAFE_INTEGER` is a BigInt (up to 64 bits). A BigInt of the result is written with all its digits.
   */
  readonly execute?: (input: I, context: ToolContext) => unknown | Promise<unknown> | AsyncGenerator<string | Block, unknown>;
  /** States that the tool changes nothing. Sessions in mode "explore" or in plan mode may run it. Default false. */
  readonly readOnly?: boolean;
  /** Whether a call needs the approval of a person, unless a rule or the mode "bypass" allows it. Default false. */
  readonly needsApproval?: boolean | ((input: I, context: ToolContext) => boolean | Promise<boolean>);
  /** The tool's own decision about an input. It is asked after the rules that deny or ask, and before the rules that allow. If it throws or takes too long, the call is denied. */
  readonly permission?: (input: I, context: ToolContext) => "allow" | "ask" | "deny" | "pass" | Promise<"allow" | "ask" | "deny" | "pass">;
  /** Whether the content of a rule, as in "tool(content)", matches an input. Without `matches`, a deny or ask rule with content matches every input, and an allow rule with content matches none. */
  readonly matches?: (rule: string, input: I) => boolean;
  /** Whether calls of this tool may run at the same time as other calls. Default true. */
  readonly parallel?: boolean;
  /** The deadline of a call, in place of `timeouts.tool`. */
  readonly timeoutMs?: number;
  /** Arguments that you set. The model does not see them and cannot set them. */
  readonly presets?: Readonly<Record<string, unknown>>;
}

/** What a running tool is given besides its input. */
export interface ToolContext extends RunContext {
  /** The id of this tool call. */
  readonly toolCallId: string;
  /** Sends a `tool-delta` event while the tool runs. With a block, for example an image while it is made, the event has `block` in place of `delta`. Nothing of it is stored, and only the first 20 million characters of a tool call are sent. */
  emit(partial: string | Block): void;
  /** Ends the turn. The result is handed in later with `agent.confirm`. */
  suspend(reason?: string): never;
}

/** A tool, created by `tool()`. */
export interface Tool {
  /** The name by which the model calls the tool. */
  readonly name: string;
  /** Marks the objects that `tool()` makes. An agent takes no others. */
  readonly [opaque]: "tool";
}

/** A tool as `agent.tools` lists it. */
export interface ToolInfo {
  /** The name by which the model calls the tool. */
  readonly name: string;
  /** Tells the model what the tool does. */
  readonly description: string;
  /** The JSON Schema of the input, without the arguments of `presets`. */
  readonly inputSchema: unknown;
  /** Where the tool comes from: "agent" (from `AgentOptions.tools`) or "built-in". */
  readonly source: string;
  /** Whether sessions in mode "explore" or in plan mode may run the tool. Such a tool changes nothing, except perhaps the agent's own notes. */
  readonly readOnly: boolean;
  /** Whether the model is given the tool in this session. */
  readonly active: boolean;
}

/** Tools that are switched on or off together, per session. */
export interface ToolGroup {
  /** The name by which the group is switched. */
  readonly name: string;
  /** Tells the model what the group is for. */
  readonly description: string;
  /** The names of its tools. */
  readonly tools: readonly string[];
  /** Whether the group is on in a fresh session. Default true. */
  readonly active?: boolean;
  /** Who may switch the group: the model and the host, or only the host. Default "model". */
  readonly scope?: "model" | "host";
}
