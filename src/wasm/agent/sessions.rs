//! Sessions: read, change, list, delete, export and import.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine::Format;
use crate::json::{self, Fields};
use crate::message::Message;
use crate::wasm::agent::request::{bad_input, bad_page, right_of};
use crate::wasm::agent::{Agent, done};
use crate::wasm::error::JsResult;
use crate::wasm::task::PolledTask;

#[wasm_bindgen]
impl Agent {
    /// The session's AgentState, as JSON.
    pub fn state(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.state(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Messages of the log, as a JSON list; the page is `{ before, limit, branch }`.
    pub fn history(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            Box::pin(async move {
                let page = Fields::of(&request).and_then(|fields| {
                    let before = fields.optional("before", json::text)?;
                    let branch = fields.optional("branch", json::text)?;
                    Ok((before, branch, fields.optional("limit", json::count)?.unwrap_or(1_000)))
                });
                let (before, branch, limit) = page.map_err(bad_page)?;
                let (branch, before) = (branch.as_deref(), before.as_deref());
                let history = agent.history_of(&slot, branch, before, limit as usize).await;
                history.map(|it| json::to_text(&it))
            })
        })
    }

    /// Deletes the session.
    #[wasm_bindgen(js_name = deleteSession)]
    pub fn delete_session(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| done(agent.delete_session(&slot)))
    }

    /// The agent's tools, as a JSON list; `request` is a slot, or null for the tools of a fresh session.
    pub fn tools(&self, request: &str) -> JsResult<PolledTask> {
        if request == "null" {
            let agent = self.engine().clone();
            let listed = async move { agent.tools(None).await.map(|it| json::to_text(&it).into()) };
            return Ok(PolledTask::new(Box::pin(listed)));
        }
        self.on_slot(request, |agent, slot, _| {
            Box::pin(async move { agent.tools(Some(&slot)).await.map(|it| json::to_text(&it)) })
        })
    }

    /// The open questions of the session, as a JSON list.
    pub fn asks(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.asks(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Renames the session; `request` is a slot and `title`.
    #[wasm_bindgen(js_name = renameSession)]
    pub fn rename_session(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let title = request.get("title").and_then(Value::as_str).unwrap_or_default();
            done(agent.rename_session(&slot, title.to_owned()))
        })
    }

    /// Replaces the state of the session; `request` is a slot and `state`.
    #[wasm_bindgen(js_name = putState)]
    pub fn put_state(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let state = request.get("state").unwrap_or(&Value::Null);
            match agent.with_right(right_of(&request)).put_state(&slot, state) {
                Ok(putting) => done(putting),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }

    /// Appends messages; `request` is a slot and `messages`. The answer is the stored messages.
    pub fn append(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let read = |value: &Value| json::list(value, Message::from_caller);
            let messages =
                Fields::of(&request).and_then(|fields| fields.required("messages", read));
            match messages.map_err(bad_input) {
                Ok(messages) => {
                    let appended = agent.append(&slot, messages);
                    Box::pin(async move { appended.await.map(|messages| json::to_text(&messages)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }

    /// The session as a document; `request` is a slot and `format`.
    #[wasm_bindgen(js_name = exportSession)]
    pub fn export_session(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let reference = request.get("format").and_then(Value::as_str) == Some("agentscope");
            let format = if reference { Format::AgentScope } else { Format::Lockgate };
            Box::pin(async move {
                agent.export_session(&slot, format).await.map(|it| json::to_text(&it))
            })
        })
    }

    /// Creates a session from a document; `request` is a slot and `text`.
    #[wasm_bindgen(js_name = importSession)]
    pub fn import_session(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            let document = request.get("text").and_then(Value::as_str).unwrap_or_default();
            match agent.with_right(right_of(&request)).import_session(&slot, document) {
                Ok(imported) => {
                    Box::pin(async move { imported.await.map(|info| json::to_text(&info)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }

    /// Repairs the session from its readable records. The answer is its entry in the session list.
    #[wasm_bindgen(js_name = repairSession)]
    pub fn repair_session(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            let repaired = agent.repair_session(&slot);
            Box::pin(async move { repaired.await.map(|info| json::to_text(&info)) })
        })
    }

    /// The session's entry in the session list, or null.
    pub fn session(&self, slot: &str) -> JsResult<PolledTask> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.session(&slot).await.map(|info| json::to_text(&info)) })
        })
    }

    /// A user's sessions, as a JSON list; `request` is `{ userId, after, limit }`.
    #[wasm_bindgen(js_name = listSessions)]
    pub fn list_sessions(&self, request: &str) -> JsResult<PolledTask> {
        self.on_user(request, |agent, user, page| {
            Box::pin(async move {
                let infos = agent.list_sessions(user.as_deref(), page).await?;
                Ok(json::to_text(&infos))
            })
        })
    }

    /// The users, as a JSON list; `request` is `{ after, limit }`.
    #[wasm_bindgen(js_name = listUsers)]
    pub fn list_users(&self, request: &str) -> JsResult<PolledTask> {
        self.on_user(request, |agent, _, page| {
            Box::pin(async move { agent.list_users(page).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Deletes everything of a user; `request` is `{ userId }`.
    #[wasm_bindgen(js_name = deleteUser)]
    pub fn delete_user(&self, request: &str) -> JsResult<PolledTask> {
        self.on_user(request, |agent, user, _| done(agent.delete_user(user.as_deref())))
    }
}
