//! Permissions of a session: change the mode, or replace them.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::json::{Fields, Read};
use crate::state::{PermissionContext, PermissionMode};
use crate::wasm::agent::{Agent, done};
use crate::wasm::error::JsResult;
use crate::wasm::task::PolledTask;

#[wasm_bindgen]
impl Agent {
    /// Changes permissions; `request` is a slot and a `mode`, or `permissions` that replace all.
    #[wasm_bindgen(js_name = changePermissions)]
    pub fn change_permissions(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| match change(&request) {
            Ok((mode, whole)) => done(agent.change_permissions(&slot, move |context| {
                *context = whole.clone().unwrap_or_else(|| std::mem::take(context));
                context.mode = mode.unwrap_or(context.mode);
            })),
            Err(misread) => {
                let error = misread.into_error(ErrorKind::InputInvalid, "the permissions");
                let hint = "pass the permission_context from getAgentState, with your changes";
                Box::pin(std::future::ready(Err(error.hint(hint))))
            }
        })
    }
}

/// What the request sets: the mode, or all permissions.
fn change(request: &Value) -> Read<(Option<PermissionMode>, Option<PermissionContext>)> {
    let fields = Fields::of(request)?;
    let mode = fields.optional("mode", PermissionMode::from_json)?;
    Ok((mode, fields.optional("permissions", PermissionContext::from_json)?))
}
