// A store that Rust keeps: its public face, for whoever calls its methods without an agent.

import type { CoreStore } from "./core.js";
import { marked } from "./kinds.js";
import type { OwnStore } from "./kinds.js";
import { storeLock } from "./lock-port.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "./types.js";
import { loadEngine } from "./wasm.js";
import type { Instance, Load } from "./wasm.js";

/** A store of ours, over one way of loading the wasm. */
export function ownStore(load: Load, own: OwnStore, name: string, capabilities: StoreCapabilities): Store {
  const direct = new DirectUse(load, own);
  const store: Store = {
    name,
    capabilities,
    get: (keys) => direct.run((core) => core.get([...keys])) as Promise<(StoredRecord | null)[]>,
    list: (prefix, page = {}) =>
      direct.run((core) => core.list(prefix, page.after, page.limit)) as Promise<(StoredRecord & { key: string })[]>,
    commit: (batch: Batch) => direct.run((core) => core.commit(batch)) as Promise<"ok" | "conflict">,
    close: async () => direct.close(),
  };
  return marked<Store>(store, { kind: "store", own });
}

/** An agent has its own handle in the wasm; whoever calls the store's methods directly gets one here. */
class DirectUse {
  readonly #load: Load;
  readonly #own: OwnStore;
  #opened: { readonly instance: Instance; readonly core: CoreStore } | undefined;

  constructor(load: Load, own: OwnStore) {
    this.#load = load;
    this.#own = own;
  }

  async run(use: (core: CoreStore) => ReturnType<CoreStore["get"]>): Promise<unknown> {
    const instance = (await loadEngine(this.#load)).instance();
    if (this.#opened?.instance !== instance) {
      const ports = { storeLock: storeLock(instance, this.#own) };
      const core = instance.enter(() => new instance.core.OpenStore(JSON.stringify(this.#own), ports));
      this.#opened = { instance, core: instance.own(core) };
    }
    const { core } = this.#opened;
    return instance.run(() => use(core));
  }

  /** Lets go of the handle; whoever uses the store again gets another. */
  close(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.instance.free(opened.core);
  }
}
