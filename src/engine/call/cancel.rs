//! The request to end a call early, and its cause.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::message::Message;

/// Why a call ends early.
#[derive(Clone, Debug)]
pub enum Cause {
    /// The call was stopped. The messages are the next input of the user.
    Stopped(Vec<Message>),
    /// The caller's `AbortSignal` was aborted.
    Aborted,
    /// The timeout of the call has passed.
    TimedOut,
    /// The agent shuts down.
    Shutdown,
    /// Its session is being deleted.
    Deleted,
    /// Another tab or process has taken over the session, because this one did not respond.
    TakenOver,
}

/// A request to end one call. The first cause is kept.
#[derive(Clone, Default)]
pub struct Cancel(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    cause: Option<Cause>,
    n_requests: u32,
    wakers: Vec<Waker>,
}

impl Cancel {
    /// Requests the end of the call. A later request changes the cause only if it is a deletion, because nothing may be
    /// saved after it.
    pub fn ask(&self, cause: Cause) {
        let wakers = self.with(|state| {
            if state.cause.is_none() || matches!(cause, Cause::Deleted) {
                state.cause = Some(cause);
            }
            state.n_requests += 1;
            std::mem::take(&mut state.wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The cause, if the end of the call was requested.
    pub fn cause(&self) -> Option<Cause> {
        self.with(|state| state.cause.clone())
    }

    /// Waits until the end of the call is requested.
    pub fn asked(&self) -> impl Future<Output = ()> + '_ {
        self.until(|state| state.cause.is_some())
    }

    /// Waits for the next request, whether or not there was one before.
    pub(in crate::engine) fn asked_again(&self) -> impl Future<Output = ()> + '_ {
        let n_known = self.with(|state| state.n_requests);
        self.until(move |state| state.n_requests != n_known)
    }

    fn until(&self, is_met: impl Fn(&State) -> bool) -> impl Future<Output = ()> {
        poll_fn(move |context| {
            self.with(|state| {
                if is_met(state) {
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
