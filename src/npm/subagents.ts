// Children: what users say of them, and their calls as models, tools and middleware see them.

import { CallHandle } from "./call.js";
import type { CoreAgent } from "./core.js";
import type { ModelKind } from "./kinds.js";
import type { AgentOptions, Slot, SubagentConfig } from "./types.js";
import type { Instance } from "./wasm.js";

/** Who answers for a kind of child, where that is not who answers for the agent. */
export interface ChildModels {
  readonly model: ModelKind | undefined;
  readonly compactionModel: ModelKind | undefined;
}

/** How options are checked. */
interface Checks {
  wrong(message: string, hint: string): Error;
  names(what: string, value: object, known: readonly string[]): void;
  model(name: string, model: unknown): ModelKind;
  compaction(compaction: AgentOptions["compaction"]): { readonly model: ModelKind | undefined; readonly plain?: unknown };
}

const MEMBERS = ["name", "description", "systemPrompt", "model", "tools", "maxIterations", "compaction"] as const satisfies readonly (keyof SubagentConfig)[];

/** The kinds of children as Rust takes them, and their models by name; or OPTIONS. */
export function checkSubagents(subagents: unknown, check: Checks): { readonly plain: unknown; readonly children: ReadonlyMap<string, ChildModels> } {
  const children = new Map<string, ChildModels>();
  if (subagents === undefined) return { plain: undefined, children };
  const hint = 'subagents: [{ name: "researcher", description: "looks things up" }]';
  if (!Array.isArray(subagents)) throw check.wrong("subagents is not a list", hint);
  const plain = subagents.map((each: SubagentConfig, index) => {
    if (typeof each !== "object" || each === null) throw check.wrong(`subagents[${index}] is not an object`, hint);
    check.names(`member of subagents[${index}]`, each, MEMBERS);
    const { model, compaction, ...rest } = each;
    // The name is part of the name of a session.
    if (typeof rest.name !== "string" || !/^[\w-]{1,64}$/.test(rest.name)) throw check.wrong(`subagents[${index}].name is not 1 to 64 letters, digits, _ or -`, hint);
    if (children.has(rest.name)) throw check.wrong(`two subagents are named "${rest.name}"`, "give each a name of its own");
    const { model: compactionModel, plain } = check.compaction(compaction);
    children.set(rest.name, { model: model === undefined ? undefined : check.model(`subagents[${index}].model`, model), compactionModel });
    return { ...rest, compaction: plain ?? compaction };
  });
  return { plain, children };
}

/** The models of the child that a session is of; none if it is no child's, or a child of the workspace's. */
export function modelsOf(sessionId: string, children: ReadonlyMap<string, ChildModels>): ChildModels | undefined {
  const kind = /^agent:([\w-]+):[A-Za-z0-9]{13}$/.exec(sessionId)?.[1];
  return kind === undefined ? undefined : children.get(kind);
}

/** Tags from here on are those of children; Rust gives them. */
export const FIRST_CHILD = 2 ** 31;

/** The calls under way, by the tag that Rust knows them by. That of a child is made when somebody asks for it: only Rust knows which there are. */
export class CallMap extends Map<number, CallHandle> {
  readonly #childOf: (tag: number) => CallHandle | undefined;

  constructor(childOf: (tag: number) => CallHandle | undefined) {
    super();
    this.#childOf = childOf;
  }

  override get(tag: number): CallHandle | undefined {
    return tag < FIRST_CHILD ? super.get(tag) : this.#childOf(tag);
  }
}

/** The call of a child, to be looked at by what runs for it; its attributes are those of the call that began it, while that runs. */
export function childCall({ instance, core }: { readonly instance: Instance; readonly core: CoreAgent }, tag: number, calls: CallMap, children: ReadonlyMap<string, ChildModels>): CallHandle | undefined {
  const known = instance.enter(() => core.childOf(tag));
  if (known === undefined) return undefined;
  const { slot, agent, parent } = JSON.parse(known) as { slot: Slot; agent: string; parent: number };
  const from = calls.get(parent);
  const nothing = (): void => {};
  const attributes = from?.attributes ?? Object.freeze({});
  const call = new CallHandle({ slot, attributes, signal: undefined, outputSchema: undefined, watched: false, onEvents: nothing, onEnd: nothing });
  call.lookAt(instance, () => core.child(tag));
  const own = children.get(agent);
  call.model = own?.model ?? from?.model;
  call.compactionModel = own?.compactionModel;
  return call;
}
