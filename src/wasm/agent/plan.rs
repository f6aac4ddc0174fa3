//! Plan mode: enter and leave it.

use wasm_bindgen::prelude::*;

use crate::wasm::agent::{Agent, done};
use crate::wasm::error::JsResult;
use crate::wasm::task::PolledTask;

#[wasm_bindgen]
impl Agent {
    /// Puts the session into plan mode.
    #[wasm_bindgen(js_name = enterPlanMode)]
    pub fn enter_plan_mode(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| done(agent.enter_plan_mode(&slot)))
    }

    /// Ends the plan mode of the session.
    #[wasm_bindgen(js_name = exitPlanMode)]
    pub fn exit_plan_mode(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| done(agent.exit_plan_mode(&slot)))
    }
}
