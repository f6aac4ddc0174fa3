// Call objects for the calls of subagents, which Rust starts. Models, tools and middleware of a subagent use them.

import { CallHandle } from "../call/call.js";
import type { CoreAgent } from "../core.js";
import type { Instance } from "../runtime/wasm.js";
import type { Slot } from "../types.js";
import type { ChildModels } from "./options.js";

/** Rust numbers the calls of subagents from this tag on. */
export const FIRST_CHILD_TAG = 2 ** 31;

/** The running calls by tag, the number that Rust uses for a call. The call of a subagent is made when it is looked up, because only Rust knows which exist. */
export class CallMap extends Map<number, CallHandle> {
  readonly #childOf: (tag: number) => CallHandle | undefined;

  constructor(childOf: (tag: number) => CallHandle | undefined) {
    super();
    this.#childOf = childOf;
  }

  override get(tag: number): CallHandle | undefined {
    return tag < FIRST_CHILD_TAG ? super.get(tag) : this.#childOf(tag);
  }
}

/** The call of a subagent. It has the attributes of the call that started it, as long as that call runs. */
export function childCall({ instance, core }: { readonly instance: Instance; readonly core: CoreAgent }, tag: number, calls: CallMap, children: ReadonlyMap<string, ChildModels>): CallHandle | undefined {
  const known = instance.enter(() => core.childOf(tag));
  if (known === undefined) return undefined;
  const { slot, agent, parent } = JSON.parse(known) as { slot: Slot; agent: string; parent: number };
  const from = calls.get(parent);
  const nothing = (): void => {};
  const attributes = from?.attributes ?? Object.freeze({});
  const call = new CallHandle({ slot, attributes, signal: undefined, outputSchema: undefined, validateMs: 0, watched: false, settleAfter: () => undefined, onEvents: nothing, onEnd: nothing });
  call.observe(instance, () => core.child(tag));
  const own = children.get(agent);
  call.model = own?.model ?? from?.model;
  call.compactionModel = own?.compactionModel;
  return call;
}
