// What a caller may do: the right that each route needs, and what a route may not do without the right "permissions".

import { LockgateError } from "../errors.js";
import { METHODS, STREAMS } from "../protocol/methods.js";
import type { MethodName, Right, StreamName } from "../protocol/methods.js";
import type { Agent, Answer, Rule } from "../types.js";
import { HOLDS_PERMISSIONS } from "../values/internals.js";
import type { Holding } from "../values/internals.js";
import type { Asked } from "./routes.js";

const RIGHTS: readonly Right[] = ["talk", "manage", "permissions"];

/** The rights of a caller for whom `authenticate` names none. */
const DEFAULT: readonly Right[] = ["talk", "manage"];

/** The rights of a caller. Throws OPTIONS if `authenticate` returned something else. */
export function rightsOf(rights: unknown): readonly Right[] {
  if (rights === undefined) return DEFAULT;
  if (Array.isArray(rights) && rights.every((right) => RIGHTS.includes(right as Right))) return rights as Right[];
  const hint = `rights is a list of ${RIGHTS.join(", ")}`;
  throw new LockgateError("OPTIONS", "authenticate returned rights that do not exist", { hint });
}

/** Throws FORBIDDEN if the caller may not use this route. */
export function checkRight(name: MethodName | StreamName, rights: readonly Right[]): void {
  const [, , right] = { ...METHODS, ...STREAMS }[name];
  if (!rights.includes(right)) throw forbidden(`this caller lacks the right "${right}"`, right);
}

/**
 * Throws FORBIDDEN if an answer would remember a rule that goes beyond its question, and the caller may not change permissions.
 * A caller who may answer a question may also remember the rule that the question suggests, and rules that make more calls ask or
 * be denied. The engine refuses rules about other tools than that of the question.
 */
export async function checkRemembered(agent: Agent, { slot, args, rights }: Asked): Promise<void> {
  const { answers } = args;
  if (rights.includes("permissions") || !Array.isArray(answers)) return;
  const given = answers.filter((answer: unknown): answer is Answer => typeof answer === "object" && answer !== null && "remember" in answer);
  if (given.length === 0) return;
  const asks = new Map((await agent.asks(slot)).map((ask) => [ask.toolCallId, ask]));
  for (const { toolCallId, approve, remember } of given as { toolCallId?: unknown; approve?: unknown; remember?: unknown }[]) {
    if (!Array.isArray(remember)) continue;
    const ask = asks.get(toolCallId as string);
    // An answer without its question is refused by the engine.
    if (ask === undefined) continue;
    const suggested = ask.kind === "approval" && approve === true ? ask.suggestedRules : [];
    for (const rule of remember as unknown[]) {
      if (suggested.some((other) => isSame(rule, other)) || isStricter(rule, ask.name)) continue;
      throw forbidden("a remembered rule goes beyond the question: only its suggestedRules may be remembered", "permissions");
    }
  }
}

function isSame(rule: unknown, { tool_name, rule_content, behavior }: Rule): boolean {
  const { tool_name: tool, rule_content: content, behavior: does } = (rule ?? {}) as Partial<Rule>;
  return tool === tool_name && (content ?? null) === rule_content && does === behavior;
}

function isStricter(rule: unknown, tool: string): boolean {
  const { tool_name, behavior } = (rule ?? {}) as Partial<Rule>;
  return tool_name === tool && (behavior === "deny" || behavior === "ask");
}

/** The mark for the agent that the caller may not change permissions, if that is so. */
export function heldBy({ rights }: Pick<Asked, "rights">): Holding {
  return rights.includes("permissions") ? {} : { [HOLDS_PERMISSIONS]: true };
}

/** The error for a caller without this right. */
export function forbidden(why: string, right: Right): LockgateError {
  return new LockgateError("FORBIDDEN", why, { hint: `authenticate gives rights: add "${right}" for callers who may do this` });
}
