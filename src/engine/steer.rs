//! Calls that join the call that runs: their words become part of its turn, and its reply is theirs.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::engine::cancel::Cancel;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{Ended, Failed};
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reply};
use crate::future::rarely;
use crate::store::input::Input;
use crate::store::session::Session;

/// A call that would rather join than wait.
pub(super) struct Steered {
    pub(super) input: Input,
    pub(super) outbox: Rc<Outbox>,
    pub(super) cancel: Cancel,
    /// The number of the next entry when somebody first tried to take it in: it may be stored from there on.
    pub(super) tried: Cell<Option<u64>>,
    place: RefCell<Place>,
    waker: Cell<Option<Waker>>,
}

/// How far it has come.
enum Place {
    /// Nobody has taken it in.
    Waiting,
    /// It is part of the call that this ends.
    Joined(Cancel),
    /// The call that took it in has ended.
    Ended(Ended),
}

impl Steered {
    pub(super) fn new(input: Input, outbox: Rc<Outbox>, cancel: Cancel) -> Rc<Steered> {
        let (place, waker) = (RefCell::new(Place::Waiting), Cell::default());
        Rc::new(Steered { input, outbox, cancel, tried: Cell::new(None), place, waker })
    }

    /// Waits for the end of the call that took it in.
    pub(super) fn ended(&self) -> impl Future<Output = Ended> + '_ {
        poll_fn(|context| match &*self.place.borrow() {
            Place::Ended(ended) => Poll::Ready(ended.clone()),
            _ => {
                self.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
    }

    /// What ends the call that took it in, while that runs.
    pub(super) fn holder(&self) -> Option<Cancel> {
        match &*self.place.borrow() {
            Place::Joined(holder) => Some(holder.clone()),
            _ => None,
        }
    }

    fn moves(&self, place: Place) {
        self.place.replace(place);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The calls that a call has taken in. They end with it, also if it is dropped.
#[derive(Default)]
pub(super) struct Joined(RefCell<Vec<Rc<Steered>>>);

impl Joined {
    /// Their inputs; the log has what was said.
    pub(super) fn inputs(&self) -> Vec<Input> {
        self.0.borrow().iter().map(|steered| steered.input.again()).collect()
    }

    /// Whether a call of this id is among them.
    fn has(&self, call_id: &str) -> bool {
        self.0.borrow().iter().any(|steered| steered.input.call_id == *call_id)
    }

    /// Ends them as the call has ended.
    pub(super) fn end(&self, ended: &Ended) {
        for steered in self.0.take() {
            let own = |reply: &Rc<Reply>| {
                let call_id = steered.input.call_id.as_str().into();
                Rc::new(Reply { call_id, ..(**reply).clone() })
            };
            let ended = ended.as_ref().map(own).map_err(Failed::clone);
            steered.moves(Place::Ended(ended));
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let message = "the call that this one had joined was given up";
        let hint = "the input is stored; the next call of the session finds it";
        let error = Error::new(ErrorKind::Superseded, message).hint(hint);
        self.end(&Err(error.into()));
    }
}

impl Turn<'_> {
    /// Takes in the calls that would join, before the model is asked.
    pub(super) async fn take_in(&self, session: &mut Session) -> Result<()> {
        let waiting = self.agent.steering.borrow_mut().remove(self.slot).unwrap_or_default();
        if waiting.is_empty() { Ok(()) } else { rarely(self.join(session, waiting)).await }
    }

    async fn join(&self, session: &mut Session, waiting: Vec<Rc<Steered>>) -> Result<()> {
        for steered in waiting {
            if steered.cancel.cause().is_some() {
                continue;
            }
            // One that cannot be accepted now, or was made before, takes its turn in the queue.
            if !self.is_new(session, &steered.input).await {
                continue;
            }
            steered.tried.set(session.head.as_ref().map(|head| head.next));
            if !self.agent.sessions.accept(session, &steered.input).await.unwrap_or(false) {
                continue;
            }
            let messages = steered.input.messages.clone();
            steered.outbox.push(Event::Accepted { messages: messages.clone() });
            steered.moves(Place::Joined(self.cancel.clone()));
            self.joined.0.borrow_mut().push(Rc::clone(&steered));
            session.context_mut().extend(messages.iter().cloned());
            let shown = self.live.show(session);
            let hooked = self.hook_call(messages.clone()).await?;
            drop(shown);
            let n_before = session.context.len() - messages.len();
            session.context_mut().truncate(n_before);
            session.context_mut().extend(hooked);
        }
        Ok(())
    }

    /// Whether no call of this id has ended before, or is part of this one.
    async fn is_new(&self, session: &Session, input: &Input) -> bool {
        let made = || self.agent.sessions.outcome(session, &input.call_id);
        let is_part = self.input.call_id == input.call_id || self.joined.has(&input.call_id);
        !input.named || (!is_part && made().await.is_ok_and(|made| made.is_none()))
    }
}
