//! Cancel: asked once, seen everywhere.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::message::Message;

/// Why a call is to end before its time.
#[derive(Clone, Debug)]
pub enum Cause {
    /// Somebody stopped it; the messages are what the user says next.
    Stopped(Vec<Message>),
    /// The caller's signal fired.
    Aborted,
    /// Its time is over.
    TimedOut,
    /// The agent shuts down.
    Shutdown,
    /// Its session is being deleted.
    Deleted,
    /// Somebody else has taken the session over, because we did not answer.
    Robbed,
}

/// A wish to end one call. The first cause stays.
#[derive(Clone, Default)]
pub struct Cancel(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    cause: Option<Cause>,
    wakers: Vec<Waker>,
}

impl Cancel {
    /// Asks for the end. Later wishes change nothing, but for a deletion: nothing may be saved after it.
    pub fn ask(&self, cause: Cause) {
        let wakers = self.with(|state| {
            if state.cause.is_none() || matches!(cause, Cause::Deleted) {
                state.cause = Some(cause);
            }
            std::mem::take(&mut state.wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Why the call is to end, if it is.
    pub fn cause(&self) -> Option<Cause> {
        self.with(|state| state.cause.clone())
    }

    /// Waits until somebody asks.
    pub fn asked(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            self.with(|state| {
                if state.cause.is_some() {
                    return Poll::Ready(());
                }
                if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    state.wakers.push(context.waker().clone());
                }
                Poll::Pending
            })
        })
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut State) -> T) -> T {
        use_state(&mut self.0.borrow_mut())
    }
}
