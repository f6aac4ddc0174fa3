//! The ports that JavaScript implements: models, tools, hooks and the store of users; HTTP, locks and the clock.
//!
//! Each `extern` block here and in `task.rs` declares what Rust calls. The build writes the same declarations in
//! TypeScript into `src/npm/glue.d.ts`. `src/npm/host/ports.ts` implements them, and the compiler reports missing
//! members.

pub(crate) mod hook;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod lock;
pub(crate) mod model;
pub(crate) mod store;
pub(crate) mod tool;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use crate::wasm::ports::hook::JsHook;
use crate::wasm::ports::host::JsNode;
use crate::wasm::ports::lock::JsLocks;
use crate::wasm::ports::model::JsModel;
use crate::wasm::ports::store::JsStore;
use crate::wasm::ports::tool::JsTool;

#[wasm_bindgen]
extern "C" {
    /// All ports of one agent.
    #[wasm_bindgen(typescript_type = "JsPorts")]
    pub type JsPorts;
    /// The agent's own model, or the model that a call brings.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn model(this: &JsPorts) -> JsModel;
    /// The model that answers if the first model fails.
    #[wasm_bindgen(method, getter, js_name = fallbackModel)]
    pub(crate) fn fallback_model(this: &JsPorts) -> Option<JsModel>;
    /// The model that writes summaries. Default: the agent's own model.
    #[wasm_bindgen(method, getter, js_name = compactionModel)]
    pub(crate) fn compaction_model(this: &JsPorts) -> Option<JsModel>;
    /// The model that finds facts to remember. Default: the agent's own model.
    #[wasm_bindgen(method, getter, js_name = memoryModel)]
    pub(crate) fn memory_model(this: &JsPorts) -> Option<JsModel>;
    /// Counts the tokens of a text.
    #[wasm_bindgen(method, getter, js_name = tokenCounter)]
    pub(crate) fn token_counter(this: &JsPorts) -> Option<Function>;
    /// The store, if JavaScript implements it.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn store(this: &JsPorts) -> JsStore;
    /// The tools, in the order of their descriptions in the options.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn tools(this: &JsPorts) -> Vec<JsTool>;
    /// The middleware, in order.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn hooks(this: &JsPorts) -> Vec<JsHook>;
    /// The locks of sessions.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn locks(this: &JsPorts) -> JsLocks;
    /// The locks of a store in localStorage.
    #[wasm_bindgen(method, getter, js_name = storeLocks)]
    pub(crate) fn store_locks(this: &JsPorts) -> JsLocks;
    /// The identity of the agent among the nodes that share a store.
    #[wasm_bindgen(method, getter)]
    pub(crate) fn node(this: &JsPorts) -> JsNode;
}
