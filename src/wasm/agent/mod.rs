//! The agent that TypeScript builds and calls. Its methods are in files by subject.

mod branches;
mod builder;
mod children;
mod context;
mod files;
pub(super) mod options;
mod permissions;
mod plan;
mod request;
mod search;
mod sessions;

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Misread};
use crate::port::Page;
use crate::slot::Slot;
use crate::wasm::agent::request::{bad_input, bad_page, call_request, says, slot_of};
use crate::wasm::call::Call;
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::ports::JsPorts;
use crate::wasm::task::PolledTask;
use crate::wasm::values::value;

/// An agent.
#[wasm_bindgen]
pub struct Agent(engine::Agent);

#[wasm_bindgen]
impl Agent {
    /// Builds an agent from its plain options and from the ports that JavaScript implements.
    #[wasm_bindgen(constructor)]
    pub fn new(plain: &str, ports: &JsPorts) -> JsResult<Agent> {
        builder::build(plain, ports).map(Agent).map_err(|error| to_js(&error))
    }

    /// Begins a call. The call is in the queue when this returns. `request` is
    /// `{ userId, sessionId, callId, tag, input }`. Instead of `input` it may have `answers`, `resumes` or `resends` (with `from`).
    pub fn call(&self, request: &str) -> JsResult<Call> {
        let begin = || {
            let parsed = json::foreign(request.as_bytes(), json::DEEPEST);
            let request =
                parsed.map_err(|error| bad_input(Misread::new(&format!("JSON ({error})"))))?;
            let request = call_request(&self.0, &request)?;
            self.0.begin(request).map(Call::new)
        };
        begin().map_err(|error| to_js(&error))
    }

    /// Stops the session's running call, if it has one; `request` is a slot and `says`, a list of messages.
    pub fn interrupt(&self, request: &str) -> JsResult<bool> {
        let interrupt = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            Ok(self.0.interrupt(&slot, says(&request)?))
        };
        interrupt().map_err(|error: Error| to_js(&error))
    }

    /// The same for a call that another node runs. The answer says whether there was such a call and it has ended.
    #[wasm_bindgen(js_name = interruptElsewhere)]
    pub fn interrupt_elsewhere(&self, request: &str) -> JsResult<PolledTask> {
        self.on_slot(request, |agent, slot, request| {
            Box::pin(async move {
                let says = says(&request)?;
                agent.interrupt_elsewhere(&slot, says).await.map(|told| told.to_string())
            })
        })
    }

    /// Refuses new calls; running calls end at their next boundary.
    #[wasm_bindgen(js_name = shutDown)]
    pub fn shut_down(&self) {
        self.0.shut_down();
    }

    /// Stores what is new in the answers of running calls.
    pub fn checkpoint(&self) {
        self.0.checkpoint();
    }

    /// Ends running calls at once.
    #[wasm_bindgen(js_name = shutDownNow)]
    pub fn shut_down_now(&self) {
        self.0.shut_down_now();
    }

    /// The name under which the session is locked against other tabs.
    #[wasm_bindgen(js_name = lockName)]
    pub fn lock_name(&self, slot: &str) -> JsResult<String> {
        let name = || {
            let request = value(slot, ErrorKind::InputInvalid, "the request")?;
            slot_of(&self.0, &request).map(|slot| self.0.lock_name(&slot))
        };
        name().map_err(|error: Error| to_js(&error))
    }
}

/// A function that begins work on one slot.
type OnSlot<'a> = Box<dyn FnOnce(engine::Agent, Slot, Value) -> JsonAnswer + 'a>;

/// A future answer, as JSON text.
pub(crate) type JsonAnswer = Local<'static, Result<String>>;

/// The answer to a change that returns nothing.
pub(crate) fn done(change: Local<'static, Result<()>>) -> JsonAnswer {
    Box::pin(async move { change.await.map(|()| "null".to_owned()) })
}

impl Agent {
    pub(crate) fn engine(&self) -> &engine::Agent {
        &self.0
    }

    /// Begins a task on the slot of a request. The task reads the rest of the request.
    pub(crate) fn on_slot(
        &self,
        request: &str,
        task: impl FnOnce(engine::Agent, Slot, Value) -> JsonAnswer,
    ) -> JsResult<PolledTask> {
        self.begin_on_slot(request, Box::new(task))
    }

    /// The same with a boxed closure: it is compiled once for all tasks.
    fn begin_on_slot(&self, request: &str, task: OnSlot<'_>) -> JsResult<PolledTask> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            let answer = task(self.0.clone(), slot, request);
            Ok(PolledTask::new(Box::pin(async move { answer.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}

impl Agent {
    /// Begins a task on the user and the page of a request.
    fn on_user(
        &self,
        request: &str,
        task: impl FnOnce(engine::Agent, Option<String>, Page) -> JsonAnswer,
    ) -> JsResult<PolledTask> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the page")?;
            let fields = Fields::of(&request).map_err(bad_page)?;
            let user = fields.optional("userId", json::text).map_err(bad_page)?;
            if let Some(user) = &user {
                crate::slot::check("userId", user)?;
            }
            let after = fields.optional("after", json::text).map_err(bad_page)?;
            let limit = fields.optional("limit", json::count).map_err(bad_page)?.unwrap_or(100);
            let page = Page { after, limit: Some(limit as usize), keys_only: false };
            let answer = task(self.0.clone(), user, page);
            Ok(PolledTask::new(Box::pin(async move { answer.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}
