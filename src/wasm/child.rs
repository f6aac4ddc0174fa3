//! A child's call, as the models, tools and hooks that it has in JavaScript see it.

use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::wasm::agent::Agent;
use crate::wasm::call::Call;

#[wasm_bindgen]
impl Agent {
    /// Whose call that is, as JSON: `{ slot, agent, parent }`, the last by its tag; nothing if no child has this tag.
    #[wasm_bindgen(js_name = childOf)]
    pub fn child_of(&self, tag: u32) -> Option<String> {
        let child = self.engine().child(tag)?;
        let (slot, agent, parent) = (&child.slot, &child.task.agent, child.parent_tag);
        Some(json!({ "slot": slot, "agent": agent, "parent": parent }).to_string())
    }

    /// The call itself, to be looked at: others move it.
    pub fn child(&self, tag: u32) -> Option<Call> {
        self.engine().child(tag).map(|child| Call::of_child(&child))
    }
}
