//! Branches of a session: list, switch, fork.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::json;
use crate::wasm::agent::request::{right_of, slot_of};
use crate::wasm::agent::{Agent, done};
use crate::wasm::error::JsResult;
use crate::wasm::task::PolledTask;

#[wasm_bindgen]
impl Agent {
    /// The session's branches, as a JSON list.
    pub fn branches(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.branches(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Makes another branch current; `request` is a slot, `branch`, and `holdsPermissions` if the caller may not change
    /// permissions.
    #[wasm_bindgen(js_name = switchBranch)]
    pub fn switch_branch(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let branch = request.get("branch").and_then(Value::as_str).unwrap_or_default();
            done(agent.with_right(right_of(&request)).switch_branch(&slot, branch.to_owned()))
        })
    }

    /// Copies another session into this one; `request` is a slot, the other slot as `from`, and `upTo`.
    pub fn fork(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, to, request| {
            let up_to = request.get("upTo").and_then(Value::as_str).map(str::to_owned);
            match slot_of(&agent, request.get("from").unwrap_or(&Value::Null)) {
                Ok(from) => {
                    let forked = agent.with_right(right_of(&request)).fork(&from, &to, up_to);
                    Box::pin(async move { forked.await.map(|info| json::to_text(&info)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }
}
