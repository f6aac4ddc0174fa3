//! The calls of subagents, for their models, tools and hooks in JavaScript.

use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::wasm::agent::Agent;
use crate::wasm::call::Call;

#[wasm_bindgen]
impl Agent {
    /// The owner of the call with this tag, as JSON: `{ slot, agent, parent }`. `parent` is a tag. None if no child has the tag.
    #[wasm_bindgen(js_name = childOf)]
    pub fn child_of(&self, tag: u32) -> Option<String> {
        let child = self.engine().child(tag)?;
        let (slot, agent, parent) = (&child.slot, &child.task.agent, child.parent_tag);
        Some(json!({ "slot": slot, "agent": agent, "parent": parent }).to_string())
    }

    /// The call with this tag, for reading only: the engine polls it.
    pub fn child(&self, tag: u32) -> Option<Call> {
        self.engine().child(tag).map(|child| Call::of_child(&child))
    }
}
