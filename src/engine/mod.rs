//! The engine does what `run/` and `policy/` decide, and is the only place that waits.
//!
//! One [`Agent`] serves many sessions. It is immutable and holds no conversation that the store does not have.
//!
//! A tool that uses what its caller gave, one whose result comes from outside, and a hook:
//!
//! ```
//! # use std::{cell::Cell, future::{pending, ready}, rc::Rc, task::{Context, Poll, Waker}};
//! # use lockgate::{error::Result, future::Local, message::Block, store::memory::MemoryStore};
//! # use lockgate::model::scripted::{Line, ScriptedModel};
//! # use serde_json::{Value, json};
//! # struct Clock(Cell<u8>);
//! # impl lockgate::port::Host for Clock {
//! #     fn now_ms(&self) -> f64 { 0.0 }
//! #     fn random(&self, bytes: &mut [u8]) { bytes.fill_with(|| { self.0.set(self.0.get().wrapping_add(7)); self.0.get() }) }
//! #     fn sleep(&self, _: u64) -> Local<'static, ()> { Box::pin(pending()) }
//! # }
//! # fn block_on<T>(future: impl Future<Output = T>) -> T {
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) { return value; }
//! #     }
//! # }
//! # let model = ScriptedModel::new([
//! #     Line::calls_all(&[("c1", "find", json!({})), ("c2", "sign", json!({}))]),
//! #     Line::says("found and signed"),
//! # ]);
//! use lockgate::engine::{Agent, RuntimeContext};
//! use lockgate::port::{Hook, HookRun, Point, Tool, ToolRun, ToolSpec};
//!
//! struct Orders(&'static str);
//!
//! struct Office(Rc<ToolSpec>);
//!
//! impl Tool for Office {
//!     fn spec(&self) -> &Rc<ToolSpec> {
//!         &self.0
//!     }
//!     fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
//!         let found = run.attributes.of::<Orders>().map_or("nothing", |orders| orders.0);
//!         Box::pin(ready(Ok(vec![Block::text(found)])))
//!     }
//! }
//!
//! struct Watch(Cell<usize>);
//!
//! impl Hook for Watch {
//!     fn name(&self) -> &str {
//!         "watch"
//!     }
//!     fn is_at(&self, point: Point) -> bool {
//!         point == Point::BeforeTool
//!     }
//!     fn at<'a>(&'a self, _: Point, _: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
//!         // The state is the call's own; null changes nothing of what the tool is given.
//!         self.0.set(run.desk.state().map_or(0, |state| state.context.len()));
//!         Box::pin(ready(Ok(Value::Null)))
//!     }
//! }
//!
//! let find = ToolSpec::new("find", "finds an order", json!({ "type": "object" }));
//! let sign = ToolSpec::new("sign", "signs it", json!({ "type": "object" }));
//! let watch = Rc::new(Watch(Cell::new(0)));
//! let agent = Agent::builder()
//!     .name("clerk")
//!     .tool(Rc::new(Office(Rc::new(find))))
//!     .tool(Rc::new(Office(Rc::new(ToolSpec { external: true, ..sign }))))
//!     .hook(Rc::clone(&watch) as Rc<dyn Hook>)
//! #   .model(model)
//! #   .store(Rc::new(MemoryStore::new()))
//! #   .host(Rc::new(Clock(Cell::new(0))))
//!     .build()?;
//!
//! let context = || RuntimeContext::new("alice", "s1").with(Orders("order 17"));
//! let mut call = agent.call("sign my order", context())?;
//! let reply = block_on(call.finish()).map_err(|failed| failed.error)?;
//! assert_eq!(reply.asks[0].name, "sign");
//! assert_eq!(watch.0.get(), 2, "the question, and the answer that calls the tools");
//!
//! let signed = json!({ "toolCallId": "c2", "output": "signed by Alice" });
//! let mut call = agent.confirm(vec![signed], context())?;
//! let reply = block_on(call.finish()).map_err(|failed| failed.error)?;
//! assert_eq!(reply.text, "found and signed");
//!
//! // Nothing runs that could be interrupted, and nothing was cut off that could be gone on with.
//! assert!(!agent.interrupt(call.slot(), Vec::new()));
//! assert!(block_on(agent.resume(context())?.finish()).is_err());
//! # Ok::<(), lockgate::error::Error>(())
//! ```

mod after;
mod alter;
mod archive;
mod ask;
mod branch;
mod cache;
mod call;
mod cancel;
mod carry;
mod compact;
mod context;
mod crew;
mod drive;
mod early;
mod equip;
mod files;
mod fit;
mod gate;
mod hooks;
mod lease;
mod live;
mod meet;
mod memory;
mod options;
mod outbox;
mod outcome;
mod output;
mod permit;
mod plan;
mod prompt;
mod reminders;
mod running;
mod steer;
mod summarise;
mod turn;
mod unsaved;
mod users;
mod work;

use after::After;
use archive::Shelves;
pub use cache::{Bounds, Cache};
pub use call::{Call, CallRequest, Overlap};
pub use cancel::{Cancel, Cause};
pub use carry::Format;
pub use compact::{ContextReport, Part};
pub use context::{RuntimeContext, Said};
use crew::Crew;
pub use crew::{Child, Subagent};
use equip::Equipment;
pub use gate::{Gate, Ticket};
pub use live::{Live, Shown};
use memory::Remembering;
use options::Models;
pub use options::{Builder, Counter, Durability, Options, Timeouts};
pub use outbox::Outbox;
use outcome::shutting_down;
pub use outcome::{Ended, Failed};
use steer::Steered;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Ask;
use crate::message::Message;
use crate::port::{Hook, Host, Lock, Page};
use crate::run::open;
use crate::slot::Slot;
use crate::state::AgentState;
use crate::store::Sessions;
use crate::store::files::Files;
use crate::store::info::SessionInfo;
use crate::store::session::{Session, Turn};
use crate::tool::Registry;

/// One agent, many sessions, each behind its own gate.
#[derive(Clone)]
pub struct Agent(Rc<Inner>);

struct Inner {
    options: Options,
    models: Models,
    /// By how much our estimates of tokens are off, by model.
    scales: RefCell<HashMap<String, f64>>,
    host: Rc<dyn Host>,
    lock: Option<Rc<dyn Lock>>,
    tools: Registry,
    files: Option<Rc<Files>>,
    memory: Option<Remembering>,
    hooks: Vec<Rc<dyn Hook>>,
    sessions: Rc<Sessions>,
    shelves: Rc<Shelves>,
    after: RefCell<After>,
    gate: Rc<Gate>,
    crew: Crew,
    cache: RefCell<Cache>,
    cancels: RefCell<HashMap<Slot, Vec<(u64, Cancel)>>>,
    n_calls: Cell<u64>,
    warned: Cell<bool>,
    closing: Cell<bool>,
    running_tools: RefCell<Vec<(Slot, String)>>,
    steering: RefCell<HashMap<Slot, Vec<Rc<Steered>>>>,
    unsaved: RefCell<HashMap<Slot, (Session, Turn)>>,
}

impl Agent {
    /// An agent to be set up, with the default options.
    pub fn builder() -> Builder {
        Builder::new(Options::new(""))
    }

    pub(self) fn assemble(
        options: Options,
        models: Models,
        shelves: Rc<Shelves>,
        host: Rc<dyn Host>,
        lock: Option<Rc<dyn Lock>>,
        (tools, files, notebook): Equipment,
        hooks: Vec<Rc<dyn Hook>>,
    ) -> Agent {
        let cache = RefCell::new(Cache::new(options.cache));
        Agent(Rc::new(Inner {
            options,
            models,
            scales: RefCell::default(),
            host,
            lock,
            tools,
            files,
            memory: notebook.map(Remembering::new),
            hooks,
            sessions: Rc::clone(&shelves.sessions),
            shelves,
            after: RefCell::default(),
            gate: Rc::default(),
            crew: Crew::default(),
            cache,
            cancels: RefCell::default(),
            n_calls: Cell::new(0),
            warned: Cell::new(false),
            closing: Cell::new(false),
            running_tools: RefCell::default(),
            steering: RefCell::default(),
            unsaved: RefCell::default(),
        }))
    }

    /// How it is set up.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The slot of these ids, with the agent's defaults for what is absent.
    pub fn slot(&self, user: Option<&str>, session: Option<&str>) -> Result<Slot> {
        let options = &self.0.options;
        if user.is_none() && options.require_user_id {
            return Err(Error::new(ErrorKind::IdInvalid, "userId is missing")
                .hint("this agent requires a userId"));
        }
        let Some(session) = session.or(options.default_session_id.as_deref()) else {
            let hint = "name a sessionId, or give the agent a defaultSessionId";
            return Err(Error::new(ErrorKind::IdInvalid, "sessionId is missing").hint(hint));
        };
        Slot::new(user, session)
    }

    /// Says something in a session. The call has its place in the queue at once; it moves whenever it is asked for its
    /// next event, or for its end.
    pub fn call(&self, input: impl Into<Said>, context: RuntimeContext) -> Result<Call> {
        self.begin(CallRequest { messages: input.into().0, ..self.request(context)? })
    }

    /// Answers what a call has asked, or hands in results of suspended tools, and goes on; a subset is enough. An
    /// answer is JSON: `{ toolCallId, output }` or `{ toolCallId, approve, input?, reason?, remember? }`.
    pub fn confirm(&self, answers: Vec<Value>, context: RuntimeContext) -> Result<Call> {
        if answers.is_empty() {
            return Err(open::not_asking("there is no answer"));
        }
        self.begin(CallRequest { answers, ..self.request(context)? })
    }

    /// Goes on with what a shutdown, a crash or a failure cut off.
    pub fn resume(&self, context: RuntimeContext) -> Result<Call> {
        self.begin(self.request(context)?)
    }

    /// A request that says nothing yet.
    fn request(&self, context: RuntimeContext) -> Result<CallRequest> {
        let RuntimeContext { user, session, call_id, output, generate, overlap, attributes } =
            context;
        Ok(CallRequest {
            slot: self.slot(user.as_deref(), session.as_deref())?,
            messages: Vec::new(),
            answers: Vec::new(),
            resends: false,
            call_id,
            output,
            generate,
            overlap: overlap.unwrap_or(self.0.options.overlap),
            attributes,
            tag: 0,
        })
    }

    /// Begins a call that is put together by hand.
    pub fn begin(&self, request: CallRequest) -> Result<Call> {
        if self.0.closing.get() {
            return Err(shutting_down());
        }
        let busy = self.0.gate.length(&request.slot) > 0;
        match request.overlap {
            Overlap::Reject if busy => {
                let message = format!("{} has a call already", request.slot);
                return Err(
                    Error::new(ErrorKind::Busy, message).hint("try again when it has ended")
                );
            }
            Overlap::Interrupt => drop(self.interrupt(&request.slot, Vec::new())),
            Overlap::Queue | Overlap::Reject | Overlap::Steer => {}
        }
        let waiting = self.0.gate.length(&request.slot).saturating_sub(1);
        if waiting >= self.0.options.queue_limit {
            let message = format!("{waiting} calls wait for {}", request.slot);
            return Err(Error::new(ErrorKind::Busy, message)
                .hint("wait for some of them, or raise queueLimit"));
        }
        Call::begin(Rc::clone(&self.0), request)
    }

    /// The session as it is stored; of one that is not there, a fresh state of version 0.
    pub async fn state(&self, slot: &Slot) -> Result<AgentState> {
        Ok(self.0.sessions.load(slot, None).await?.state())
    }

    /// What waits for an answer in a session.
    pub async fn asks(&self, slot: &Slot) -> Result<Vec<Ask>> {
        let mut asks = open::asks(&self.0.sessions.load(slot, None).await?.context);
        if !asks.is_empty() {
            // What was answered is spent, also while its call still runs or when that was cut off.
            let inputs = self.0.sessions.inputs(slot).await?;
            let answers = || inputs.iter().flat_map(|input| &input.answers);
            asks.retain(|ask| !answers().any(|answer| open::is_about(answer, ask)));
        }
        Ok(asks)
    }

    /// A user's sessions, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let mut infos = self.0.sessions.list_sessions(user, page).await?;
        for info in &mut infos {
            let slot = Slot::new(info.user_id.as_deref(), &info.session_id)?;
            info.running = self.0.gate.length(&slot) > 0;
        }
        Ok(infos)
    }

    /// The name under which the session is locked against other tabs.
    pub fn lock_name(&self, slot: &Slot) -> String {
        self.0.sessions.keys(slot).lock()
    }

    /// The newest messages of the log before a message, oldest first, whole.
    pub async fn history(
        &self,
        slot: &Slot,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.0.sessions.history(slot, before, limit).await
    }

    /// How many slots have calls now.
    pub fn n_busy(&self) -> usize {
        self.0.gate.n_slots()
    }
}
