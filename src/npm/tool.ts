// Tools: what a user declares, and what their results become.

import { LockgateError } from "./errors.js";
import { marked } from "./kinds.js";
import { jsonSchema } from "./schema.js";
import type { Block, InferSchema, JsonSchema, StandardSchema, Tool, ToolConfig, ToolContext } from "./types.js";

/** A tool that a model may call. The input of `execute` is inferred from the schema where the schema has types. */
export function tool<S extends StandardSchema<any, any>>(config: ToolConfig<InferSchema<S>, S>): Tool;
export function tool<I = Record<string, unknown>>(config: ToolConfig<I, JsonSchema>): Tool;
export function tool(config: ToolConfig<any>): Tool {
  const { name, description, inputSchema, execute, parallel = true, timeoutMs } = config ?? ({} as ToolConfig<any>);
  if (typeof name !== "string" || typeof description !== "string" || typeof execute !== "function") {
    throw new LockgateError("OPTIONS", "a tool needs a name, a description and an execute function", {
      hint: "tool({ name, description, inputSchema, execute(input, context) { … } })",
    });
  }
  const isTimeout = timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs > 0);
  if (typeof parallel !== "boolean" || !isTimeout) {
    throw new LockgateError("OPTIONS", `parallel or timeoutMs of tool "${name}" cannot be`, {
      hint: "parallel is true or false, timeoutMs a whole number from 1 on",
    });
  }
  return marked<Tool>(
    { name },
    {
      kind: "tool",
      name,
      description,
      inputSchema: jsonSchema(inputSchema, `tool "${name}"`),
      schema: inputSchema,
      execute: execute.bind(config) as (input: unknown, context: ToolContext) => unknown,
      parallel,
      timeoutMs,
    },
  );
}

const SHOWN = new Set(["text", "image", "audio", "video", "file"]);

/** What a tool answered, as blocks: text as it is, blocks as they are, anything else as JSON. */
export function toBlocks(answer: unknown): readonly Block[] {
  if (typeof answer === "string") return [{ type: "text", text: answer }];
  if (answer === undefined) return [{ type: "text", text: "Done." }];
  const list: readonly unknown[] = Array.isArray(answer) && answer.length > 0 ? answer : [answer];
  if (list.every(isBlock)) return JSON.parse(JSON.stringify(list)) as Block[];
  return [{ type: "text", text: toText(answer) }];
}

function isBlock(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { type, text, source } = value as { type?: unknown; text?: unknown; source?: unknown };
  if (typeof type !== "string" || !SHOWN.has(type)) return false;
  return type === "text" ? typeof text === "string" : typeof source === "object" && source !== null;
}

/** JSON that loses nothing quietly: a big integer keeps its digits, NaN and Infinity their names. */
function toText(answer: unknown): string {
  const exact = (_: string, value: unknown): unknown => {
    if (typeof value === "bigint") return value.toString();
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  };
  try {
    return JSON.stringify(answer, exact) ?? String(answer);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`The tool's result cannot be written as JSON: ${why}`, { cause });
  }
}
