//! The engine does what `run/` and `policy/` decide, and is the only place that waits.
//!
//! One [`Agent`] serves many sessions. It is immutable and holds no conversation that the store does not have.

mod alter;
mod ask;
mod cache;
mod call;
mod cancel;
mod carry;
mod drive;
mod gate;
mod hooks;
mod options;
mod outbox;
mod outcome;
mod output;
mod turn;
mod work;

pub use cache::{Bounds, Cache};
pub use call::{Call, CallRequest, Overlap};
pub use cancel::{Cancel, Cause};
pub use carry::Format;
pub use gate::{Gate, Ticket};
pub use options::{Builder, Options, Timeouts};
pub use outbox::Outbox;
use outcome::shutting_down;
pub use outcome::{Ended, Failed};

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Message;
use crate::port::{Hook, Host, Lock, Model, Page, Store};
use crate::slot::Slot;
use crate::state::AgentState;
use crate::store::Sessions;
use crate::store::info::SessionInfo;
use crate::tool::Registry;

/// One agent, many sessions, each behind its own gate.
#[derive(Clone)]
pub struct Agent(Rc<Inner>);

struct Inner {
    options: Options,
    model: Rc<dyn Model>,
    host: Rc<dyn Host>,
    lock: Option<Rc<dyn Lock>>,
    tools: Registry,
    hooks: Vec<Rc<dyn Hook>>,
    sessions: Sessions,
    gate: Rc<Gate>,
    cache: RefCell<Cache>,
    cancels: RefCell<HashMap<Slot, Vec<(u64, Cancel)>>>,
    n_calls: Cell<u64>,
    warned: Cell<bool>,
    closing: Cell<bool>,
    running_tools: RefCell<Vec<(Slot, String)>>,
}

impl Agent {
    /// An agent to be set up, with the default options.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(Options::new(name))
    }

    pub(self) fn assemble(
        options: Options,
        model: Rc<dyn Model>,
        store: Rc<dyn Store>,
        host: Rc<dyn Host>,
        lock: Option<Rc<dyn Lock>>,
        tools: Registry,
        hooks: Vec<Rc<dyn Hook>>,
    ) -> Agent {
        let sessions =
            Sessions::new(&options.name, store, Rc::clone(&host), options.timeouts.store)
                .with_template(options.fresh_facts());
        let cache = RefCell::new(Cache::new(options.cache));
        Agent(Rc::new(Inner {
            options,
            model,
            host,
            lock,
            tools,
            hooks,
            sessions,
            gate: Rc::default(),
            cache,
            cancels: RefCell::default(),
            n_calls: Cell::new(0),
            warned: Cell::new(false),
            closing: Cell::new(false),
            running_tools: RefCell::default(),
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

    /// Begins a call. It has its place in the queue at once; it moves whenever it is asked for its next event.
    pub fn call(&self, request: CallRequest) -> Result<Call> {
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
            Overlap::Queue | Overlap::Reject => {}
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

    /// A user's sessions, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let mut infos = self.0.sessions.list_sessions(user, page).await?;
        for info in &mut infos {
            let slot = Slot::new(info.user_id.as_deref(), &info.session_id)?;
            info.running = self.0.gate.length(&slot) > 0;
        }
        Ok(infos)
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

    /// Stops the session's running call, if it has one; the messages are what the user says next.
    pub fn interrupt(&self, slot: &Slot, says: Vec<Message>) -> bool {
        let cancels = self.0.cancels.borrow();
        let running = cancels.get(slot).and_then(|of_slot| of_slot.first());
        let cancel = running.map(|(_, cancel)| cancel.clone());
        drop(cancels);
        if let Some(cancel) = &cancel {
            cancel.ask(Cause::Stopped(says));
        }
        cancel.is_some()
    }

    /// Takes no new calls. Waiting calls end at once, running ones at their next boundary: saved, and marked so that
    /// the next call goes on from there.
    pub fn shut_down(&self) {
        self.0.closing.set(true);
        self.end_calls(1);
    }

    /// Ends what still runs, wherever it is.
    pub fn shut_down_now(&self) {
        self.0.closing.set(true);
        self.end_calls(0);
    }

    /// Ends the calls of every slot but for the first few.
    fn end_calls(&self, n_spared: usize) {
        let cancels = self.0.cancels.borrow();
        let ending: Vec<Cancel> = cancels
            .values()
            .flat_map(|of_slot| of_slot.iter().skip(n_spared))
            .map(|(_, it)| it.clone())
            .collect();
        drop(cancels);
        ending.iter().for_each(|cancel| cancel.ask(Cause::Shutdown));
    }

    /// How many slots have calls now.
    pub fn n_busy(&self) -> usize {
        self.0.gate.n_slots()
    }
}

impl Inner {
    /// Keeps other tabs and agents out of a session.
    async fn hold(&self, slot: &Slot) -> Result<Option<Box<dyn crate::port::Held>>> {
        let Some(lock) = &self.lock else { return Ok(None) };
        let name = self.sessions.keys(slot).lock();
        let timeout = self.options.timeouts.lock;
        match crate::future::race(lock.acquire(&name), self.host.sleep(timeout)).await {
            crate::future::Either::First(held) => held.map(Some),
            crate::future::Either::Second(()) => {
                let message = format!("{slot} was busy in another tab for {timeout} ms");
                Err(Error::new(ErrorKind::Timeout, message)
                    .hint("try again, or raise timeouts.lock"))
            }
        }
    }

    fn register(&self, slot: &Slot, cancel: &Cancel) -> u64 {
        let number = self.n_calls.get() + 1;
        self.n_calls.set(number);
        self.cancels.borrow_mut().entry(slot.clone()).or_default().push((number, cancel.clone()));
        number
    }

    fn unregister(&self, slot: &Slot, number: u64) {
        let mut cancels = self.cancels.borrow_mut();
        if let Some(of_slot) = cancels.get_mut(slot) {
            of_slot.retain(|(other, _)| *other != number);
            if of_slot.is_empty() {
                cancels.remove(slot);
            }
        }
    }
}
