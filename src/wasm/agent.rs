//! An agent as TypeScript builds and asks it.

use std::rc::Rc;

use js_sys::{Array, Function, Reflect};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::{Builder, Format};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Misread};
use crate::message::Message;
use crate::policy::tokens;
use crate::port::Page;
use crate::slot::Slot;
use crate::wasm::call::Call;
use crate::wasm::error::to_js;
use crate::wasm::hook::{CustomHook, JsHook};
use crate::wasm::host::{JsHost, JsNode};
use crate::wasm::js::value;
use crate::wasm::lock::JsLock;
use crate::wasm::model::{CallModel, JsModel};
use crate::wasm::options;
use crate::wasm::request::{bad_input, bad_page, call_request, says, slot_of};
use crate::wasm::store::open_store;
use crate::wasm::task::Task;
use crate::wasm::tool::{CustomTool, JsTool};

pub(super) type Thrown<T> = std::result::Result<T, JsValue>;

/// An agent.
#[wasm_bindgen]
pub struct Agent(engine::Agent);

#[wasm_bindgen]
impl Agent {
    /// Builds an agent of plain options and of ports written in JavaScript:
    /// `{ model, store, tools, lock }` as `src/npm/host.ts` makes them.
    #[wasm_bindgen(constructor)]
    pub fn new(plain: &str, ports: &JsValue) -> Thrown<Agent> {
        build(plain, ports).map(Agent).map_err(|error| to_js(&error))
    }

    /// Begins a call: it has its place in the queue when this returns. `request` is
    /// `{ userId, sessionId, callId, tag, input }` as JSON, with `answers` in place of an input, or `resumes`, or
    /// `resends`: text is checked for cycles before it comes here.
    pub fn call(&self, request: &[u8]) -> Thrown<Call> {
        let begin = || {
            let parsed = json::foreign(request, json::DEEPEST);
            let request =
                parsed.map_err(|error| bad_input(Misread::new(&format!("JSON ({error})"))))?;
            let request = call_request(&self.0, &request)?;
            self.0.begin(request).map(Call::new)
        };
        begin().map_err(|error| to_js(&error))
    }

    /// Stops the session's running call, if it has one; `request` is a slot and `says`, a list of messages.
    pub fn interrupt(&self, request: &str) -> Thrown<bool> {
        let interrupt = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            Ok(self.0.interrupt(&slot, says(&request)?))
        };
        interrupt().map_err(|error: Error| to_js(&error))
    }

    /// The same for a call that another node runs; whether one was told and has ended.
    #[wasm_bindgen(js_name = interruptElsewhere)]
    pub fn interrupt_elsewhere(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            Box::pin(async move {
                let says = says(&request)?;
                agent.interrupt_elsewhere(&slot, says).await.map(|told| told.to_string())
            })
        })
    }

    /// Takes no new calls; running ones end at their next boundary.
    #[wasm_bindgen(js_name = shutDown)]
    pub fn shut_down(&self) {
        self.0.shut_down();
    }

    /// Ends what still runs, wherever it is.
    #[wasm_bindgen(js_name = shutDownNow)]
    pub fn shut_down_now(&self) {
        self.0.shut_down_now();
    }

    /// The session's AgentState, as JSON.
    pub fn state(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.state(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Messages of the log, as a JSON list; the page is `{ before, limit, branch }`.
    pub fn history(&self, request: &str) -> Thrown<Task> {
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
    pub fn delete_session(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.delete_session(&slot)))
    }

    /// What waits for an answer in the session, as a JSON list.
    pub fn asks(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.asks(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Empties the session's context.
    #[wasm_bindgen(js_name = clearContext)]
    pub fn clear_context(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.clear_context(&slot)))
    }

    /// Summarises the older part of the session's context; answers with a report.
    pub fn compact(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            let compacted = agent.compact(&slot);
            Box::pin(async move { compacted.await.map(|report| json::to_text(&report)) })
        })
    }

    /// Shows again what the session's summary has replaced.
    #[wasm_bindgen(js_name = undoCompaction)]
    pub fn undo_compaction(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.undo_compaction(&slot)))
    }

    /// What the session's next request would hold, as JSON.
    pub fn inspect(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.inspect(&slot).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Calls the session something else; `request` is a slot and `title`.
    #[wasm_bindgen(js_name = renameSession)]
    pub fn rename_session(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            let title = request.get("title").and_then(Value::as_str).unwrap_or_default();
            done(agent.rename_session(&slot, title.to_owned()))
        })
    }

    /// Puts a state; `request` is a slot and `state`.
    #[wasm_bindgen(js_name = putState)]
    pub fn put_state(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            match agent.put_state(&slot, request.get("state").unwrap_or(&Value::Null)) {
                Ok(putting) => done(putting),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }

    /// Appends messages; `request` is a slot and `messages`. Answers with them as they are stored.
    pub fn append(&self, request: &str) -> Thrown<Task> {
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
    pub fn export_session(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            let reference = request.get("format").and_then(Value::as_str) == Some("agentscope");
            let format = if reference { Format::AgentScope } else { Format::Lockgate };
            Box::pin(async move {
                agent.export_session(&slot, format).await.map(|it| json::to_text(&it))
            })
        })
    }

    /// Makes a session of a document; `request` is a slot and `text`.
    #[wasm_bindgen(js_name = importSession)]
    pub fn import_session(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            let document = request.get("text").and_then(Value::as_str).unwrap_or_default();
            match agent.import_session(&slot, document) {
                Ok(imported) => {
                    Box::pin(async move { imported.await.map(|info| json::to_text(&info)) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        })
    }

    /// Makes the session usable again from what can be read of it; answers with its line in a list.
    #[wasm_bindgen(js_name = repairSession)]
    pub fn repair_session(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            let repaired = agent.repair_session(&slot);
            Box::pin(async move { repaired.await.map(|info| json::to_text(&info)) })
        })
    }

    /// The session's line in a list, or null.
    pub fn session(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.session(&slot).await.map(|info| json::to_text(&info)) })
        })
    }

    /// A user's sessions, as a JSON list; `request` is `{ userId, after, limit }`.
    #[wasm_bindgen(js_name = listSessions)]
    pub fn list_sessions(&self, request: &str) -> Thrown<Task> {
        self.on_user(request, |agent, user, page| {
            Box::pin(async move {
                let infos = agent.list_sessions(user.as_deref(), page).await?;
                Ok(json::to_text(&infos))
            })
        })
    }

    /// The users, as a JSON list; `request` is `{ after, limit }`.
    #[wasm_bindgen(js_name = listUsers)]
    pub fn list_users(&self, request: &str) -> Thrown<Task> {
        self.on_user(request, |agent, _, page| {
            Box::pin(async move { agent.list_users(page).await.map(|it| json::to_text(&it)) })
        })
    }

    /// Deletes all that a user has; `request` is `{ userId }`.
    #[wasm_bindgen(js_name = deleteUser)]
    pub fn delete_user(&self, request: &str) -> Thrown<Task> {
        self.on_user(request, |agent, user, _| done(agent.delete_user(user.as_deref())))
    }

    /// The name under which the session is locked against other tabs.
    #[wasm_bindgen(js_name = lockName)]
    pub fn lock_name(&self, slot: &str) -> Thrown<String> {
        let name = || {
            let request = value(slot, ErrorKind::InputInvalid, "the request")?;
            slot_of(&self.0, &request).map(|slot| self.0.lock_name(&slot))
        };
        name().map_err(|error: Error| to_js(&error))
    }
}

/// What is done about one slot.
type OnSlot<'a> = Box<dyn FnOnce(engine::Agent, Slot, Value) -> Answer + 'a>;

pub(super) type Answer = Local<'static, Result<String>>;

/// A change that has nothing to tell but that it is done.
pub(super) fn done(change: Local<'static, Result<()>>) -> Answer {
    Box::pin(async move { change.await.map(|()| "null".to_owned()) })
}

impl Agent {
    pub(super) fn engine(&self) -> &engine::Agent {
        &self.0
    }

    /// Begins a task about one slot; the rest of the request is the task's to read.
    pub(super) fn on_slot(
        &self,
        request: &str,
        task: impl FnOnce(engine::Agent, Slot, Value) -> Answer,
    ) -> Thrown<Task> {
        self.begin_on_slot(request, Box::new(task))
    }

    /// The same, once for all tasks: compiled for each of them it is larger than most.
    fn begin_on_slot(&self, request: &str, task: OnSlot<'_>) -> Thrown<Task> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            let answer = task(self.0.clone(), slot, request);
            Ok(Task::new(Box::pin(async move { answer.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}

impl Agent {
    /// Begins a task about one user, or a page of a list.
    fn on_user(
        &self,
        request: &str,
        task: impl FnOnce(engine::Agent, Option<String>, Page) -> Answer,
    ) -> Thrown<Task> {
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
            Ok(Task::new(Box::pin(async move { answer.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}

fn build(plain: &str, ports: &JsValue) -> Result<engine::Agent> {
    let plain = value(plain, ErrorKind::Options, "the options")?;
    let node = Some(port(ports, "node").unchecked_into::<JsNode>());
    let mut builder = Builder::new(options::read(&plain)?).host(Rc::new(JsHost { node }));
    let model = |name| port(ports, name).dyn_into::<js_sys::Object>().ok();
    let model =
        |name| model(name).map(|it| Rc::new(CallModel::new(it.unchecked_into::<JsModel>())));
    if let Some(own) = model("model") {
        builder = builder.model(own);
    }
    if let Some(fallback) = model("fallbackModel") {
        builder = builder.fallback_model(fallback);
    }
    if let Some(summariser) = model("compactionModel") {
        builder = builder.compaction_model(summariser);
    }
    if let Some(memory) = model("memoryModel") {
        builder = builder.memory_model(memory);
    }
    if let Ok(counter) = port(ports, "tokenCounter").dyn_into::<Function>() {
        builder = builder.token_counter(Rc::new(move |text| counted(&counter, text)));
    }
    builder = builder.store(open_store(plain.get("store"), ports)?);
    let specs = plain.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let tools: Vec<JsValue> =
        port(ports, "tools").dyn_into::<Array>().map(|tools| tools.to_vec()).unwrap_or_default();
    for (spec, tool) in specs.iter().zip(tools) {
        let spec = Rc::new(options::tool_spec(spec)?);
        builder = builder.tool(Rc::new(CustomTool { spec, tool: tool.unchecked_into::<JsTool>() }));
    }
    let hooks = port(ports, "hooks").dyn_into::<Array>().map(|hooks| hooks.to_vec());
    for hook in hooks.unwrap_or_default() {
        builder = builder.hook(Rc::new(CustomHook::new(hook.unchecked_into::<JsHook>())));
    }
    if let Ok(lock) = port(ports, "lock").dyn_into::<Function>() {
        builder = builder.lock(Rc::new(JsLock(lock)));
    }
    builder.build()
}

/// What a user's own counter says; where it fails, our estimate.
fn counted(counter: &Function, text: &str) -> u64 {
    let counted = counter.call1(&JsValue::UNDEFINED, &text.into()).ok().and_then(|n| n.as_f64());
    counted.filter(|n| *n >= 0.0).map_or_else(|| tokens::of_text(text), |n| n.ceil() as u64)
}

/// One of the ports that TypeScript hands over.
pub(super) fn port(ports: &JsValue, name: &str) -> JsValue {
    Reflect::get(ports, &name.into()).unwrap_or_default()
}
