// `tool`: checks the declaration of a tool.

import { LockgateError } from "../errors.js";
import { marked } from "../values/internals.js";
import { checkToolPermission } from "./permissions.js";
import { jsonSchema } from "../values/schema.js";
import type { ConvertibleSchema, InferSchema, JsonSchema, StandardSchema, Tool, ToolConfig, ToolContext } from "../types.js";

/** Declares a tool that a model may call. The type of the input of `execute` is inferred from the schema if the schema has types. */
export function tool<S extends StandardSchema<any, any>>(config: ToolConfig<InferSchema<S>, S>): Tool;
export function tool<I = Record<string, unknown>>(config: { readonly inputSchema: ConvertibleSchema } & ToolConfig<I, JsonSchema>): Tool;
export function tool(config: ToolConfig<any>): Tool {
  const { name, description, inputSchema, execute, parallel = true, timeoutMs, presets, readOnly = false } = config ?? ({} as ToolConfig<any>);
  const isRunnable = execute === undefined || typeof execute === "function";
  if (typeof name !== "string" || typeof description !== "string" || !isRunnable) {
    throw new LockgateError("OPTIONS", "a tool needs a name and a description, and execute must be a function or absent", {
      hint: "tool({ name, description, inputSchema, execute(input, context) { … } })",
    });
  }
  if (presets !== undefined && (typeof presets !== "object" || presets === null)) {
    throw new LockgateError("OPTIONS", `presets of tool "${name}" is not an object`, { hint: "presets: { argument: value }" });
  }
  const isTimeout = timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs > 0);
  if (typeof parallel !== "boolean" || !isTimeout) {
    throw new LockgateError("OPTIONS", `parallel or timeoutMs of tool "${name}" has the wrong type`, {
      hint: "parallel is true or false, timeoutMs is a whole number of at least 1",
    });
  }
  const { needsApproval, permission, matches } = checkToolPermission(config);
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
