//! Plan mode, as the host switches it.

use wasm_bindgen::prelude::*;

use crate::wasm::agent::{Agent, Thrown, done};
use crate::wasm::task::Task;

#[wasm_bindgen]
impl Agent {
    /// Lets the session only plan from now on.
    #[wasm_bindgen(js_name = enterPlanMode)]
    pub fn enter_plan_mode(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.enter_plan_mode(&slot)))
    }

    /// Lets the session act again.
    #[wasm_bindgen(js_name = exitPlanMode)]
    pub fn exit_plan_mode(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.exit_plan_mode(&slot)))
    }
}
