//! Builds the engine's agent from plain options and from ports.

use std::rc::Rc;

use js_sys::Function;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::Builder;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::tokens;
use crate::port::Store;
use crate::wasm::agent::options;
use crate::wasm::ports::JsPorts;
use crate::wasm::ports::hook::CustomHook;
use crate::wasm::ports::host::JsHost;
use crate::wasm::ports::lock::JsLock;
use crate::wasm::ports::model::{CallModel, JsModel};
use crate::wasm::ports::store::CustomStore;
use crate::wasm::ports::tool::CustomTool;
use crate::wasm::stores::own_store;
use crate::wasm::values::value;

/// Builds the agent from its options, a JSON object, and its ports.
pub(super) fn build(plain: &str, ports: &JsPorts) -> Result<engine::Agent> {
    let plain = value(plain, ErrorKind::Options, "the options")?;
    let host = JsHost::new(Some(ports.node()));
    let mut builder = Builder::new(options::read(&plain)?).host(Rc::new(host));
    let model = |model: JsModel| Rc::new(CallModel::new(model));
    builder = builder.model(model(ports.model()));
    if let Some(fallback) = ports.fallback_model() {
        builder = builder.fallback_model(model(fallback));
    }
    if let Some(summariser) = ports.compaction_model() {
        builder = builder.compaction_model(model(summariser));
    }
    if let Some(memory) = ports.memory_model() {
        builder = builder.memory_model(model(memory));
    }
    if let Some(counter) = ports.token_counter() {
        builder = builder.token_counter(Rc::new(move |text| counted(&counter, text)));
    }
    builder = builder.store(store(plain.get("store").unwrap_or(&Value::Null), ports)?);
    let specs = plain.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (spec, tool) in specs.iter().zip(ports.tools()) {
        let spec = Rc::new(options::tool_spec(spec)?);
        builder = builder.tool(Rc::new(CustomTool::new(spec, tool)));
    }
    for hook in ports.hooks() {
        builder = builder.hook(Rc::new(CustomHook::new(hook)));
    }
    builder.lock(Rc::new(JsLock::new(ports.locks()))).build()
}

/// The store of a configuration: a store of the browser, or `{ capabilities }` of a store that JavaScript implements.
fn store(config: &Value, ports: &JsPorts) -> Result<Rc<dyn Store>> {
    if let Some(own) = own_store(config, || ports.store_locks())? {
        return Ok(own);
    }
    let capabilities = config.get("capabilities").unwrap_or(&Value::Null);
    Ok(Rc::new(CustomStore::new(ports.store(), options::capabilities(capabilities)?)))
}

/// The tokens of a text by the application's counter, or our estimate if the counter fails.
fn counted(counter: &Function, text: &str) -> u64 {
    let counted = counter.call1(&JsValue::UNDEFINED, &text.into()).ok().and_then(|n| n.as_f64());
    counted.filter(|n| *n >= 0.0).map_or_else(|| tokens::of_text(text), |n| n.ceil() as u64)
}
