// Checks the arguments of an agent's methods. Every error says what is wrong and what to write instead.

import { LockgateError } from "../errors.js";
import type { CallOptions, Input, Slot } from "../types.js";
import { modelInternals } from "./internals.js";
import type { ModelInternals } from "./internals.js";
import { jsonSchema } from "./schema.js";

/** Checks a slot: returns it in the form that Rust takes, or throws ID_INVALID. */
export function checkSlot(slot: unknown): { userId: string | null; sessionId?: string } {
  if (slot === undefined) return { userId: null };
  if (typeof slot !== "object" || slot === null || Array.isArray(slot)) {
    throw badId("the slot is not an object", "write it as { userId, sessionId }");
  }
  const { userId, sessionId } = slot as Slot;
  if ("userId" in slot && userId === undefined) {
    throw badId("userId is undefined", "use null for the anonymous user, or leave userId out");
  }
  if (userId !== undefined && userId !== null) checkId("userId", userId);
  if (!("sessionId" in slot)) return { userId: userId ?? null };
  checkId("sessionId", sessionId);
  return { userId: userId ?? null, sessionId };
}

export function checkId(name: string, id: unknown): asserts id is string {
  if (typeof id !== "string") throw badId(`${name} is ${describe(id)}`, `${name} must be a string`);
  if (/\p{Surrogate}/u.test(id)) throw badId(`${name} has half a character`, `${name} must be well-formed text`);
}

/** Throws if the value cannot be an input. Rust checks the rest. */
export function checkInput(input: Input): void {
  const hint = "pass text, a message { content }, or a list of messages";
  if (typeof input !== "string" && (typeof input !== "object" || input === null)) {
    throw new LockgateError("INPUT_INVALID", `the input is ${describe(input)}`, { hint });
  }
}

/** Throws if the value cannot be a list of answers. Rust checks the rest. */
export function checkAnswers(answers: unknown): void {
  if (!Array.isArray(answers) || answers.length === 0) {
    const hint = "confirm(slot, [{ toolCallId, output }]), or { toolCallId, approve: true | false } for an approval";
    throw new LockgateError("INPUT_INVALID", "the answers are not a list with at least one answer", { hint });
  }
}

/** Checks that the members are text. */
export function checkText(member: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(member)) {
    if (typeof value !== "string") throw badInput(`the ${name} is not text`, "pass a string");
  }
  return member;
}

/** Checks how long a shutdown may take, in milliseconds. */
export function checkTimeout(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined || timeoutMs >= 0) return timeoutMs;
  throw badInput("timeoutMs is not a number of milliseconds", "leave timeoutMs out to wait for the next model or tool boundary");
}

/** Checks the page of a list. Members that are undefined are left out. */
export function checkPage(page: Record<string, unknown>): Record<string, unknown> {
  if (typeof page !== "object" || page === null) {
    throw new LockgateError("INPUT_INVALID", "the page is not an object", { hint: "leave the page out for the first page" });
  }
  const { limit } = page as { limit?: unknown };
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
    throw new LockgateError("INPUT_INVALID", "limit is not a whole number of at least 1", { hint: "leave limit out for the default" });
  }
  return Object.fromEntries(Object.entries(page).filter(([, value]) => value !== undefined));
}

/** Checks the options of a call besides its slot: returns them in the form that Rust takes, and the call's own model. */
export function checkCall(context: (Slot & CallOptions) | undefined): { readonly plain: object; readonly model: ModelInternals | undefined } {
  const { signal, callId, overlap, model, outputSchema, generate } = context ?? ({} as CallOptions);
  if (callId !== undefined) checkId("callId", callId);
  if (signal !== undefined && !(typeof signal === "object" && signal !== null && "aborted" in signal)) {
    throw badInput("signal is not an AbortSignal", "use new AbortController().signal");
  }
  const kind = modelInternals(model);
  if (model !== undefined && kind === undefined) throw badInput("model is not a model", "use customModel({ … }) or another model of this package");
  if (generate !== undefined && (typeof generate !== "object" || generate === null)) throw badInput("generate is not an object", "generate: { temperature: 0 }");
  const schema = outputSchema === undefined ? undefined : jsonSchema(outputSchema, "the output");
  // A call with its own model cannot join the turn of another call.
  const joins = overlap === "steer" && kind !== undefined ? "queue" : overlap;
  return { plain: { callId, overlap: joins, generate, outputSchema: schema }, model: kind };
}

/** The number of the first event after `after`. */
export function checkAfter(after = -1): number {
  if (Number.isInteger(after) && after >= -1) return after + 1;
  throw badInput("after is not the number of an event", "pass the seq of the last event that you have");
}

/** Checks the format of an export. */
export function checkFormat<T extends string>(format: T): T {
  if (["lockgate", "agentscope", "markdown"].includes(format)) return format;
  throw badInput("this is not an export format", "use lockgate, agentscope or markdown");
}

/** Checks an exported session. */
export function checkDocument(text: unknown): string {
  if (typeof text === "string") return text;
  throw badInput("the document is not text", "pass the text that exportSession returned");
}

/** What a value is, for error messages. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function badInput(message: string, hint: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint });
}

function badId(message: string, hint: string): LockgateError {
  return new LockgateError("ID_INVALID", message, { hint });
}
