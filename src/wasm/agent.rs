//! An agent as TypeScript builds and asks it.

use std::rc::Rc;

use js_sys::{Array, Function, Reflect};
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::{Builder, CallRequest, Format};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Misread, Read};
use crate::message::Message;
use crate::port::{Page, Store};
use crate::slot::Slot;
use crate::wasm::call::Call;
use crate::wasm::error::to_js;
use crate::wasm::hook::{CustomHook, JsHook};
use crate::wasm::host::JsHost;
use crate::wasm::indexed_db::IndexedDb;
use crate::wasm::js::value;
use crate::wasm::lock::JsLock;
use crate::wasm::model::{CustomModel, JsModel};
use crate::wasm::options;
use crate::wasm::store::{CustomStore, JsStore};
use crate::wasm::task::Task;
use crate::wasm::tool::{CustomTool, JsTool};

type Thrown<T> = std::result::Result<T, JsValue>;

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
    /// `{ userId, sessionId, callId, tag, input }` as JSON: text is checked for cycles before it comes here.
    pub fn call(&self, request: &[u8]) -> Thrown<Call> {
        let begin = || {
            let parsed = serde_json::from_slice(request);
            let request =
                parsed.map_err(|error| bad_input(Misread::new(&format!("JSON ({error})"))))?;
            let request = call_request(&self.0, &request)?;
            self.0.call(request).map(Call::new)
        };
        begin().map_err(|error| to_js(&error))
    }

    /// Stops the session's running call, if it has one; `request` is a slot and `says`, a list of messages.
    pub fn interrupt(&self, request: &str) -> Thrown<bool> {
        let interrupt = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            let says = |value: &Value| json::list(value, Message::from_input);
            let says = Fields::of(&request).and_then(|fields| fields.or_default("says", says));
            Ok(self.0.interrupt(&slot, says.map_err(bad_input)?))
        };
        interrupt().map_err(|error: Error| to_js(&error))
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

    /// Messages of the log, as a JSON list; the page is `{ before, limit }`.
    pub fn history(&self, request: &str) -> Thrown<Task> {
        self.on_slot(request, |agent, slot, request| {
            Box::pin(async move {
                let page = Fields::of(&request).and_then(|fields| {
                    let before = fields.optional("before", json::text)?;
                    Ok((before, fields.optional("limit", json::count)?.unwrap_or(1_000)))
                });
                let (before, limit) = page.map_err(bad_page)?;
                agent
                    .history(&slot, before.as_deref(), limit as usize)
                    .await
                    .map(|it| json::to_text(&it))
            })
        })
    }

    /// Deletes the session.
    #[wasm_bindgen(js_name = deleteSession)]
    pub fn delete_session(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.delete_session(&slot)))
    }

    /// Empties the session's context.
    #[wasm_bindgen(js_name = clearContext)]
    pub fn clear_context(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| done(agent.clear_context(&slot)))
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

    /// The session's line in a list, or null.
    pub fn session(&self, slot: &str) -> Thrown<Task> {
        self.on_slot(slot, |agent, slot, _| {
            Box::pin(async move { agent.session(&slot).await.map(|info| json::to_text(&info)) })
        })
    }

    /// A user's sessions, as a JSON list; `request` is `{ userId, after, limit }`.
    #[wasm_bindgen(js_name = listSessions)]
    pub fn list_sessions(&self, request: &str) -> Thrown<Task> {
        let agent = self.0.clone();
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the page")?;
            let fields = Fields::of(&request).map_err(bad_page)?;
            let user = fields.optional("userId", json::text).map_err(bad_page)?;
            if let Some(user) = &user {
                crate::slot::check("userId", user)?;
            }
            let after = fields.optional("after", json::text).map_err(bad_page)?;
            let limit =
                fields.optional("limit", json::count).map_err(bad_page)?.unwrap_or(100) as usize;
            let page = Page { after, limit: Some(limit), keys_only: false };
            Ok(Task::new(Box::pin(async move {
                let infos = agent.list_sessions(user.as_deref(), page).await?;
                Ok(json::to_text(&infos).into())
            })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}

type Answer = Local<'static, Result<String>>;

/// A change that has nothing to tell but that it is done.
fn done(change: Local<'static, Result<()>>) -> Answer {
    Box::pin(async move { change.await.map(|()| "null".to_owned()) })
}

impl Agent {
    /// Begins a task about one slot; the rest of the request is the task's to read.
    fn on_slot(
        &self,
        request: &str,
        task: impl FnOnce(engine::Agent, Slot, Value) -> Answer,
    ) -> Thrown<Task> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the request")?;
            let slot = slot_of(&self.0, &request)?;
            let answer = task(self.0.clone(), slot, request);
            Ok(Task::new(Box::pin(async move { answer.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }
}

fn build(plain: &str, ports: &JsValue) -> Result<engine::Agent> {
    let plain = value(plain, ErrorKind::Options, "the options")?;
    let mut builder = Builder::new(options::read(&plain)?).host(Rc::new(JsHost));
    let model = CustomModel(port(ports, "model").unchecked_into::<JsModel>());
    builder = builder.model(Rc::new(model));
    builder = builder.store(store(&plain, port(ports, "store"))?);
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

/// IndexedDB is ours; every other store is JavaScript's.
fn store(plain: &Value, custom: JsValue) -> Result<Rc<dyn Store>> {
    let store = plain.get("store");
    if let Some(config) = store.and_then(|store| store.get("indexedDb")) {
        return Ok(Rc::new(IndexedDb::open(config)?));
    }
    let capabilities = store.and_then(|store| store.get("capabilities")).unwrap_or(&Value::Null);
    let capabilities = options::capabilities(capabilities)?;
    Ok(Rc::new(CustomStore { store: custom.unchecked_into::<JsStore>(), capabilities }))
}

fn port(ports: &JsValue, name: &str) -> JsValue {
    Reflect::get(ports, &name.into()).unwrap_or_default()
}

fn call_request(agent: &engine::Agent, request: &Value) -> Result<CallRequest> {
    let slot = slot_of(agent, request)?;
    let fields = Fields::of(request).map_err(bad_input)?;
    let call_id = fields.optional("callId", json::text).map_err(bad_input)?;
    if let Some(call_id) = &call_id {
        crate::slot::check("callId", call_id)?;
    }
    let messages = fields.required("input", input).map_err(bad_input)?;
    let tag = fields.or_default("tag", json::count).map_err(bad_input)? as u32;
    let overlap = fields.optional("overlap", options::overlap).map_err(bad_input)?;
    let overlap = overlap.unwrap_or(agent.options().overlap);
    let output = fields.optional("outputSchema", json::any).map_err(bad_input)?;
    let generate = fields.optional("generate", json::object).map_err(bad_input)?;
    Ok(CallRequest { slot, messages, call_id, output, generate, overlap, tag })
}

/// Text, one message, or several.
fn input(value: &Value) -> Read<Vec<Message>> {
    let messages = match value {
        Value::Array(_) => json::list(value, Message::from_input)?,
        one => vec![Message::from_input(one)?],
    };
    if messages.is_empty() {
        return Err(Misread::new("at least one message"));
    }
    Ok(messages)
}

fn slot_of(agent: &engine::Agent, request: &Value) -> Result<Slot> {
    let wrong = |misread: Misread| {
        misread
            .into_error(ErrorKind::IdInvalid, "the session")
            .hint("sessionId and userId are strings")
    };
    let fields = Fields::of(request).map_err(wrong)?;
    let user = fields.optional("userId", json::text).map_err(wrong)?;
    let session = fields.optional("sessionId", json::text).map_err(wrong)?;
    agent.slot(user.as_deref(), session.as_deref())
}

fn bad_input(misread: Misread) -> Error {
    let hint = "say text, a message { content }, or a list of messages";
    misread.into_error(ErrorKind::InputInvalid, "the input").hint(hint)
}

fn bad_page(misread: Misread) -> Error {
    misread
        .into_error(ErrorKind::InputInvalid, "the page")
        .hint("a page has a cursor as text and a limit as a number")
}
