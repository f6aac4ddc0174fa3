//! Calls that join the running call of their session. Their messages become part of its turn, and they get its reply.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::engine::call::cancel::Cancel;
use crate::engine::call::outbox::Outbox;
use crate::engine::call::outcome::{Ended, Failed};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::event::{Event, Reply};
use crate::slot::Slot;
use crate::store::format::input::Input;

/// A call with `overlap: "steer"`. It joins the running call if possible; otherwise it waits in the queue.
pub(in crate::engine) struct JoiningCall {
    input: Input,
    outbox: Rc<Outbox>,
    cancel: Cancel,
    /// The number of the next log entry when a call first tried to take this one in. If that attempt was stored
    /// although it reported an error, its entry has this number or a higher one.
    tried_at: Cell<Option<u64>>,
    state: RefCell<JoinState>,
    waker: Cell<Option<Waker>>,
}

/// The progress of a joining call.
enum JoinState {
    /// No call has taken it in.
    Waiting,
    /// It has joined the running call. The handle ends the running call.
    Joined(Cancel),
    /// The call that took it in has ended.
    Ended(Ended),
}

impl JoiningCall {
    pub(in crate::engine) fn new(
        input: Input,
        outbox: Rc<Outbox>,
        cancel: Cancel,
    ) -> Rc<JoiningCall> {
        let (state, waker) = (RefCell::new(JoinState::Waiting), Cell::default());
        Rc::new(JoiningCall { input, outbox, cancel, tried_at: Cell::new(None), state, waker })
    }

    /// Its input.
    pub(in crate::engine) fn input(&self) -> &Input {
        &self.input
    }

    /// Whether it was told to end.
    pub(in crate::engine) fn is_cancelled(&self) -> bool {
        self.cancel.cause().is_some()
    }

    /// The number of the next log entry when a call first tried to take this one in.
    pub(in crate::engine) fn tried_at(&self) -> Option<u64> {
        self.tried_at.get()
    }

    /// Records the number of the next log entry, because a call tries to take this one in.
    pub(in crate::engine) fn try_at(&self, next_entry: Option<u64>) {
        self.tried_at.set(next_entry);
    }

    /// Waits for the end of the call that took it in.
    pub(in crate::engine) fn ended(&self) -> impl Future<Output = Ended> + '_ {
        poll_fn(|context| match &*self.state.borrow() {
            JoinState::Ended(ended) => Poll::Ready(ended.clone()),
            JoinState::Waiting | JoinState::Joined(_) => {
                self.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
    }

    /// While it is joined: the handle that ends the running call.
    pub(in crate::engine) fn holder(&self) -> Option<Cancel> {
        match &*self.state.borrow() {
            JoinState::Joined(holder) => Some(holder.clone()),
            JoinState::Waiting | JoinState::Ended(_) => None,
        }
    }

    fn set(&self, state: JoinState) {
        self.state.replace(state);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The joining calls of an agent that no call has taken in yet.
#[derive(Default)]
pub(in crate::engine) struct JoinQueue(RefCell<HashMap<Slot, Vec<Rc<JoiningCall>>>>);

impl JoinQueue {
    pub(in crate::engine) fn push(&self, slot: &Slot, call: &Rc<JoiningCall>) {
        self.0.borrow_mut().entry(slot.clone()).or_default().push(Rc::clone(call));
    }

    /// Removes a call that no longer wants to join.
    pub(in crate::engine) fn remove(&self, slot: &Slot, call: &Rc<JoiningCall>) {
        let mut queue = self.0.borrow_mut();
        if let Some(waiting) = queue.get_mut(slot) {
            waiting.retain(|other| !Rc::ptr_eq(other, call));
            if waiting.is_empty() {
                queue.remove(slot);
            }
        }
    }

    /// Takes all calls of a session.
    pub(in crate::engine) fn take(&self, slot: &Slot) -> Vec<Rc<JoiningCall>> {
        self.0.borrow_mut().remove(slot).unwrap_or_default()
    }
}

/// The calls that have joined a running call. They end with it, even if it is dropped.
#[derive(Default)]
pub(in crate::engine) struct JoinedCalls(RefCell<Vec<Rc<JoiningCall>>>);

impl JoinedCalls {
    /// Adds a call whose input is stored.
    pub(in crate::engine) fn add(&self, call: &Rc<JoiningCall>, holder: &Cancel) {
        call.outbox.push(Event::Accepted { messages: call.input.messages.clone() });
        call.set(JoinState::Joined(holder.clone()));
        self.0.borrow_mut().push(Rc::clone(call));
    }

    /// Their inputs without the messages, because the messages are part of the turn.
    pub(in crate::engine) fn inputs(&self) -> Vec<Input> {
        self.0.borrow().iter().map(|call| call.input.again()).collect()
    }

    /// Whether a call of this id is among them.
    pub(in crate::engine) fn has(&self, call_id: &str) -> bool {
        self.0.borrow().iter().any(|call| call.input.call_id == *call_id)
    }

    /// Ends them with the outcome of the running call.
    pub(in crate::engine) fn end(&self, ended: &Ended) {
        for call in self.0.take() {
            let own = |reply: &Rc<Reply>| {
                let call_id = call.input.call_id.as_str().into();
                Rc::new(Reply { call_id, ..(**reply).clone() })
            };
            let ended = ended.as_ref().map(own).map_err(Failed::clone);
            call.set(JoinState::Ended(ended));
        }
    }
}

impl Drop for JoinedCalls {
    fn drop(&mut self) {
        let message = "the running call that this call had joined was dropped";
        let hint = "the input is stored; the next call of the session recovers it";
        let error = Error::new(ErrorKind::Superseded, message).hint(hint);
        self.end(&Err(error.into()));
    }
}
