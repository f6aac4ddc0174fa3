//! The calls of an agent that wait or run, and whether the agent takes new calls.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::engine::call::CallHandles;
use crate::engine::call::cancel::{Cancel, Cause};
use crate::engine::call::checkpoints::Checkpoints;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Liveness, Lock};
use crate::slot::Slot;

/// The calls that wait or run, by session, in the order of their arrival.
#[derive(Default)]
pub(in crate::engine) struct RunningCalls {
    cancels: RefCell<HashMap<Slot, Vec<PresentCall>>>,
    /// The tools that run now. A waiting call warns its caller with their names.
    tools: RefCell<Vec<(Slot, String)>>,
    n_calls: Cell<u64>,
    is_closing: Cell<bool>,
}

/// A call that waits or runs: its number, its id, the handle that ends it, and its checkpoints.
#[derive(Clone)]
struct PresentCall(u64, Rc<str>, Cancel, Rc<Checkpoints>);

impl RunningCalls {
    /// Adds a call. Dropping the returned value removes the call.
    pub(in crate::engine) fn add(
        self: &Rc<Self>,
        id: &Rc<str>,
        handles: &CallHandles,
    ) -> RunningCall {
        let CallHandles { slot, cancel, checkpoints, .. } = handles;
        let number = self.next_number();
        self.n_calls.set(number);
        let call = PresentCall(number, Rc::clone(id), cancel.clone(), Rc::clone(checkpoints));
        self.cancels.borrow_mut().entry(slot.clone()).or_default().push(call);
        RunningCall { calls: Rc::clone(self), slot: slot.clone(), number }
    }

    /// Whether one of these calls waits or runs.
    pub(in crate::engine) fn has_any(&self, slot: &Slot, ids: &[&str]) -> bool {
        let cancels = self.cancels.borrow();
        cancels.get(slot).is_some_and(|calls| calls.iter().any(|it| ids.contains(&&*it.1)))
    }

    /// The number of the next call.
    pub(in crate::engine) fn next_number(&self) -> u64 {
        self.n_calls.get() + 1
    }

    /// The running call of a session, or the call that will run first.
    pub(in crate::engine) fn first(&self, slot: &Slot) -> Option<Cancel> {
        let cancels = self.cancels.borrow();
        cancels.get(slot).and_then(|of_slot| of_slot.first()).map(|it| it.2.clone())
    }

    /// Tells every call of a session to end.
    pub(in crate::engine) fn end_all(&self, slot: &Slot, cause: &Cause) {
        let cancels = self.cancels.borrow().get(slot).cloned().unwrap_or_default();
        cancels.iter().for_each(|it| it.2.ask(cause.clone()));
    }

    /// The sessions of a user that have calls.
    pub(in crate::engine) fn slots_of(&self, user: Option<&str>) -> Vec<Slot> {
        let cancels = self.cancels.borrow();
        cancels.keys().filter(|slot| slot.user() == user).cloned().collect()
    }

    /// Takes no new calls. In each session, ends all calls except the first `n_spared`.
    pub(in crate::engine) fn close(&self, n_spared: usize) {
        self.is_closing.set(true);
        let cancels = self.cancels.borrow();
        let ending = cancels.values().flat_map(|of_slot| of_slot.iter().skip(n_spared));
        let ending: Vec<Cancel> = ending.map(|it| it.2.clone()).collect();
        drop(cancels);
        ending.iter().for_each(|cancel| cancel.ask(Cause::Shutdown));
    }

    /// Stores what is new in the answers of all running calls at once.
    pub(in crate::engine) fn checkpoint(&self) {
        let all: Vec<_> = self.cancels.borrow().values().flatten().map(|it| it.3.clone()).collect();
        all.iter().for_each(|checkpoints| checkpoints.force());
    }

    /// Whether no new calls are taken.
    pub(in crate::engine) fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    /// Records that a tool runs, until the returned value is dropped. So a dropped call removes its tools too.
    pub(in crate::engine) fn tool_runs(&self, slot: &Slot, tool: &str) -> RunningTool<'_> {
        let tool = (slot.clone(), tool.to_owned());
        self.tools.borrow_mut().push(tool.clone());
        RunningTool { calls: self, tool }
    }

    /// The names of the tools that run in a session.
    pub(in crate::engine) fn tools_of(&self, slot: &Slot) -> Vec<String> {
        let tools = self.tools.borrow();
        tools.iter().filter(|(of, _)| of == slot).map(|(_, name)| name.clone()).collect()
    }
}

/// The calls of this process, and the lock that calls of other tabs and agents hold.
pub(in crate::engine) struct KnownCalls {
    calls: Rc<RunningCalls>,
    lock: Option<Rc<dyn Lock>>,
}

impl KnownCalls {
    pub(in crate::engine) fn new(
        calls: Rc<RunningCalls>,
        lock: Option<Rc<dyn Lock>>,
    ) -> KnownCalls {
        KnownCalls { calls, lock }
    }
}

impl Liveness for KnownCalls {
    fn is_here(&self, slot: &Slot, call_ids: &[&str]) -> bool {
        self.calls.has_any(slot, call_ids)
    }

    fn is_locked<'a>(&'a self, name: &'a str) -> Local<'a, Result<bool>> {
        match &self.lock {
            Some(lock) => lock.is_held(name),
            None => Box::pin(std::future::ready(Ok(false))),
        }
    }
}

/// A call that waits or runs.
pub(in crate::engine) struct RunningCall {
    calls: Rc<RunningCalls>,
    slot: Slot,
    number: u64,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut cancels = self.calls.cancels.borrow_mut();
        if let Some(of_slot) = cancels.get_mut(&self.slot) {
            of_slot.retain(|it| it.0 != self.number);
            if of_slot.is_empty() {
                cancels.remove(&self.slot);
            }
        }
    }
}

/// A tool that runs.
pub(in crate::engine) struct RunningTool<'a> {
    calls: &'a RunningCalls,
    tool: (Slot, String),
}

impl Drop for RunningTool<'_> {
    fn drop(&mut self) {
        let mut tools = self.calls.tools.borrow_mut();
        if let Some(index) = tools.iter().position(|tool| *tool == self.tool) {
            tools.swap_remove(index);
        }
    }
}
