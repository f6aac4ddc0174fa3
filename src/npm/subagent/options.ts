// Checks the option `subagents`, and finds the models of a subagent.

import type { AgentOptions, SubagentConfig } from "../types.js";
import type { ModelInternals } from "../values/internals.js";

/** The models of a subagent, where they differ from the agent's. */
export interface ChildModels {
  readonly model: ModelInternals | undefined;
  readonly compactionModel: ModelInternals | undefined;
}

/** Functions of `agent/options.ts`. They are passed in because that file imports this one. */
interface Checks {
  wrong(message: string, hint: string): Error;
  names(what: string, value: object, known: readonly string[]): void;
  model(name: string, model: unknown): ModelInternals;
  compaction(compaction: AgentOptions["compaction"]): { readonly model: ModelInternals | undefined; readonly plain?: unknown };
}

const MEMBERS = ["name", "description", "systemPrompt", "model", "tools", "maxIterations", "compaction"] as const satisfies readonly (keyof SubagentConfig)[];

/** Checks the option: returns the subagents as Rust takes them, and their models by name. Throws OPTIONS. */
export function checkSubagents(subagents: unknown, check: Checks): { readonly plain: unknown; readonly children: ReadonlyMap<string, ChildModels> } {
  const children = new Map<string, ChildModels>();
  if (subagents === undefined) return { plain: undefined, children };
  const hint = 'subagents: [{ name: "researcher", description: "looks things up" }]';
  if (!Array.isArray(subagents)) throw check.wrong("subagents is not a list", hint);
  const plain = subagents.map((each: SubagentConfig, index) => {
    if (typeof each !== "object" || each === null) throw check.wrong(`subagents[${index}] is not an object`, hint);
    check.names(`member of subagents[${index}]`, each, MEMBERS);
    const { model, compaction, ...rest } = each;
    // The name becomes part of session ids.
    if (typeof rest.name !== "string" || !/^[\w-]{1,64}$/.test(rest.name)) throw check.wrong(`subagents[${index}].name is not 1 to 64 letters, digits, _ or -`, hint);
    if (children.has(rest.name)) throw check.wrong(`two subagents are named "${rest.name}"`, "give each subagent a different name");
    const { model: compactionModel, plain } = check.compaction(compaction);
    children.set(rest.name, { model: model === undefined ? undefined : check.model(`subagents[${index}].model`, model), compactionModel });
    return { ...rest, compaction: plain ?? compaction };
  });
  return { plain, children };
}

/** The models of the subagent that owns a session. Undefined for other sessions, and for subagents defined by workspace files. */
export function modelsOf(sessionId: string, children: ReadonlyMap<string, ChildModels>): ChildModels | undefined {
  const name = /^agent:([\w-]+):[A-Za-z0-9]{13}$/.exec(sessionId)?.[1];
  return name === undefined ? undefined : children.get(name);
}
