//! What the tools of a session may do, as TypeScript changes it.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::json::{Fields, Read};
use crate::state::{PermissionContext, PermissionMode};
use crate::wasm::agent::{Agent, done};
use crate::wasm::task::Task;

#[wasm_bindgen]
impl Agent {
    /// Changes permissions; `request` is a slot and a `mode`, or `permissions` to take the place of all.
    #[wasm_bindgen(js_name = changePermissions)]
    pub fn change_permissions(&self, request: &str) -> std::result::Result<Task, JsValue> {
        self.on_slot(request, |agent, slot, request| match wish(&request) {
            Ok((mode, whole)) => done(agent.change_permissions(&slot, move |context| {
                *context = whole.clone().unwrap_or_else(|| std::mem::take(context));
                context.mode = mode.unwrap_or(context.mode);
            })),
            Err(misread) => {
                let error = misread.into_error(ErrorKind::InputInvalid, "the permissions");
                let hint = "change what getAgentState shows as permission_context";
                Box::pin(std::future::ready(Err(error.hint(hint))))
            }
        })
    }
}

fn wish(request: &Value) -> Read<(Option<PermissionMode>, Option<PermissionContext>)> {
    let fields = Fields::of(request)?;
    let mode = fields.optional("mode", PermissionMode::from_json)?;
    Ok((mode, fields.optional("permissions", PermissionContext::from_json)?))
}
