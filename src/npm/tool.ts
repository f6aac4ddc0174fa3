// Tools as a user declares them.

import { LockgateError } from "./errors.js";
import { marked } from "./kinds.js";
import { checkedRights } from "./permissions.js";
import { jsonSchema } from "./schema.js";
import type { InferSchema, JsonSchema, StandardSchema, Tool, ToolConfig, ToolContext } from "./types.js";

/** A tool that a model may call. The input of `execute` is inferred from the schema where the schema has types. */
export function tool<S extends StandardSchema<any, any>>(config: ToolConfig<InferSchema<S>, S>): Tool;
export function tool<I = Record<string, unknown>>(config: ToolConfig<I, JsonSchema>): Tool;
export function tool(config: ToolConfig<any>): Tool {
  const { name, description, inputSchema, execute, parallel = true, timeoutMs, presets, readOnly = false } = config ?? ({} as ToolConfig<any>);
  const isRunnable = execute === undefined || typeof execute === "function";
  if (typeof name !== "string" || typeof description !== "string" || !isRunnable) {
    throw new LockgateError("OPTIONS", "a tool needs a name, a description and, unless it is done outside, an execute function", {
      hint: "tool({ name, description, inputSchema, execute(input, context) { … } })",
    });
  }
  if (presets !== undefined && (typeof presets !== "object" || presets === null)) {
    throw new LockgateError("OPTIONS", `presets of tool "${name}" is not an object`, { hint: "presets: { argument: value }" });
  }
  const isTimeout = timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs > 0);
  if (typeof parallel !== "boolean" || !isTimeout) {
    throw new LockgateError("OPTIONS", `parallel or timeoutMs of tool "${name}" cannot be`, {
      hint: "parallel is true or false, timeoutMs a whole number from 1 on",
    });
  }
  const { needsApproval, permission, matches } = checkedRights(config);
  return marked<Tool>(
    { name },
    {
      kind: "tool",
      name,
      description,
      inputSchema: jsonSchema(inputSchema, `tool "${name}"`),
      schema: inputSchema,
      execute: execute?.bind(config) as ((input: unknown, context: ToolContext) => unknown) | undefined,
      presets,
      parallel,
      timeoutMs,
      readOnly,
      needsApproval,
      permission,
      matches,
    },
  );
}
