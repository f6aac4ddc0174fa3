// The public methods of a store that Rust implements, for callers that use the store without an agent.

import type { CoreStore, CoreTask } from "../core.js";
import { marked } from "../values/internals.js";
import type { OwnStore } from "../values/internals.js";
import { jsonText } from "../values/json.js";
import { storeLocks } from "../host/lock-port.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types.js";
import { loadEngine } from "../runtime/wasm.js";
import type { Instance, Load } from "../runtime/wasm.js";

/** A store that Rust implements. `load` loads the wasm. */
export function ownStore(load: Load, own: OwnStore, name: string, capabilities: StoreCapabilities): Store {
  const direct = new DirectUse(load, own);
  const store: Store = {
    name,
    capabilities,
    get: (keys) => direct.run((core) => core.get(jsonText(keys))) as Promise<(StoredRecord | null)[]>,
    list: (prefix, page = {}) =>
      direct.run((core) => core.list(prefix, jsonText(page))) as Promise<(StoredRecord & { key: string })[]>,
    commit: (batch: Batch) => direct.run((core) => commit(core, batch)) as Promise<"ok" | "conflict">,
    close: async () => direct.close(),
  };
  return marked<Store>(store, { kind: "store", own });
}

/** Sends a batch to Rust: JSON in which `put` lists the keys, and the values of these keys. Rust checks the rest. */
function commit(core: CoreStore, batch: Batch): CoreTask {
  const put: Batch["put"] = Array.isArray(batch?.put) ? batch.put : [];
  const keys = put === batch?.put ? put.map((record) => record?.key) : batch?.put;
  return core.commit(jsonText({ ...batch, put: keys }), put.map((record) => record?.value));
}

/** The handle in the wasm for direct calls of the store's methods. Each agent has its own handle. */
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
      const locks = storeLocks(instance, this.#own);
      const core = instance.enter(() => new instance.core.OpenStore(JSON.stringify(this.#own), locks));
      this.#opened = { instance, core: instance.own(core) };
    }
    const { core } = this.#opened;
    return instance.run(() => use(core));
  }

  /** Frees the handle. The next use opens another one. */
  close(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.instance.free(opened.core);
  }
}
