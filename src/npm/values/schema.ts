// Turns schemas of any library into JSON Schema, and validates values with them.

import { LockgateError } from "../errors.js";
import type { JsonSchema, Schema } from "../types.js";

/** The JSON Schema of a user's schema. `what` names the schema in errors. */
export function jsonSchema(schema: Schema, what: string): JsonSchema {
  const standard = (schema as { "~standard"?: unknown } | null | undefined)?.["~standard"];
  if (standard === undefined) return plain(schema, what);
  const convert = (standard as { jsonSchema?: { input?: unknown } }).jsonSchema?.input;
  if (typeof convert !== "function") {
    throw new LockgateError("OPTIONS", `the schema of ${what} cannot be turned into JSON Schema`, {
      hint: "use Zod 4.2, Valibot 1.2, ArkType 2.1 or later, or write plain JSON Schema",
    });
  }
  try {
    return plain((convert as (options: { target: string }) => unknown)({ target: "draft-2020-12" }), what);
  } catch (cause) {
    if (LockgateError.isInstance(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LockgateError("OPTIONS", `the schema of ${what} cannot be turned into JSON Schema: ${why}`, {
      hint: "leave out what JSON Schema cannot express, or write plain JSON Schema",
      cause,
    });
  }
}

function plain(schema: unknown, what: string): JsonSchema {
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) {
    try {
      return JSON.parse(JSON.stringify(schema)) as JsonSchema;
    } catch {
      // Not JSON: the error below says so.
    }
  }
  throw new LockgateError("OPTIONS", `the schema of ${what} is not JSON Schema`, {
    hint: 'write { type: "object", properties: { … } }',
  });
}

/** The input after the schema's `validate`, with defaults applied. Without `validate`, the input stays the same. */
export async function validated(schema: Schema, input: unknown): Promise<unknown> {
  const validate = (schema as { "~standard"?: { validate?: (value: unknown) => unknown } })["~standard"]?.validate;
  if (validate === undefined) return input;
  const result = (await validate(input)) as {
    value?: unknown;
    issues?: readonly { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] }[];
  };
  if (result.issues === undefined) return result.value;
  const lines = result.issues.map(({ message, path }) => {
    const steps = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
    return steps.length === 0 ? message : `${steps.join(".")}: ${message}`;
  });
  throw new Error(`The arguments are not valid. Correct them and call the tool again.\n${lines.join("\n")}`);
}
