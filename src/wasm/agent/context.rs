//! The context of a session: empty it, compact it, show the contents of the next request.

use wasm_bindgen::prelude::*;

use crate::json;
use crate::wasm::agent::{Agent, done};
use crate::wasm::error::JsResult;
use crate::wasm::task::PolledTask;

#[wasm_bindgen]
impl Agent {
    /// Empties the session's context.
    #[wasm_bindgen(js_name = clearContext)]
    pub fn clear_context(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| done(agent.clear_context(&slot)))
    }

    /// Summarises the older part of the session's context. The answer is a report.
    pub fn compact(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            let compacted = agent.compact(&slot);
            Box::pin(async move { compacted.await.map(|report| json::to_text(&report)) })
        })
    }

    /// Restores the messages that the session's summary has replaced.
    #[wasm_bindgen(js_name = undoCompaction)]
    pub fn undo_compaction(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| done(agent.undo_compaction(&slot)))
    }

    /// What the session's next request would contain, as JSON.
    pub fn inspect(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.inspect(&slot).await.map(|it| json::to_text(&it)) })
        })
    }
}
