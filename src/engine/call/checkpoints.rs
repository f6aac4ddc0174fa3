//! Checkpoints: while a call runs, what is new in its answer is stored, piece by piece. The call never waits for this.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::engine::stamp::{now, stamped};
use crate::error::Error;
use crate::message::{Message, Role};
use crate::port::Host;
use crate::run::Assembly;
use crate::store::format::partial::PartialPiece;
use crate::store::keys::SlotKeys;
use crate::store::{AnsweredInput, Sessions};

/// The answer of a running call, as far as the log does not have it, and how much of it is stored.
pub(in crate::engine) struct Checkpoints {
    /// The time between two pieces; `None`: no pieces are stored.
    every_ms: Option<u64>,
    state: RefCell<CheckpointState>,
}

#[derive(Default)]
struct CheckpointState {
    /// When the model was asked first, or when the last piece was made.
    since: Option<f64>,
    /// The answers, one for each input: that of the call, and those of the calls that have joined it. Empty while no piece
    /// may be stored.
    answers: Vec<GivenAnswer>,
    /// The reply that the model is sending.
    growing: Option<Rc<RefCell<Assembly>>>,
    /// The keys of the pieces that may be stored and that no commit has removed.
    pieces: Vec<String>,
    n_pieces: u64,
    is_due: bool,
    is_writing: bool,
    has_warned: bool,
    waker: Option<Waker>,
}

/// What follows an input.
struct GivenAnswer {
    input: AnsweredInput,
    messages: Vec<Rc<Message>>,
    stored: Vec<Rc<Message>>,
}

/// A piece that is being stored, and the answer up to its end.
struct DuePiece {
    input: AnsweredInput,
    key: String,
    piece: PartialPiece,
    answer: Vec<Rc<Message>>,
}

impl Checkpoints {
    pub(in crate::engine) fn new(every_ms: Option<u64>) -> Checkpoints {
        Checkpoints { every_ms, state: RefCell::default() }
    }

    /// The next messages answer this input. Its record has this revision.
    pub(in crate::engine) fn answer(&self, call_id: &str, revision: Option<String>) {
        let Some(revision) = revision.filter(|_| self.every_ms.is_some()) else { return };
        let input = AnsweredInput { call_id: call_id.to_owned(), revision };
        let answer = GivenAnswer { input, messages: Vec::new(), stored: Vec::new() };
        self.with(|state| state.answers.push(answer));
    }

    /// A call has joined this one: the next messages answer its input.
    pub(in crate::engine) fn join(&self, call_id: &str, revision: Option<String>) {
        if !self.with(|state| state.answers.is_empty()) {
            self.answer(call_id, revision);
        }
    }

    /// Stores no pieces until the next [`answer`](Checkpoints::answer), because a commit takes over the messages. Returns
    /// the keys of the pieces that this commit must remove.
    pub(in crate::engine) fn close(&self) -> Vec<String> {
        self.with(|state| {
            state.answers.clear();
            std::mem::take(&mut state.pieces)
        })
    }

    /// The model is asked, and sends this reply.
    pub(in crate::engine) fn ask(&self, now_ms: f64, reply: &Rc<RefCell<Assembly>>) {
        if self.every_ms.is_some() {
            self.with(|state| {
                state.since.get_or_insert(now_ms);
                state.growing = Some(Rc::clone(reply));
            });
        }
    }

    /// A message was added to the session. Only answers and results of tools are stored in pieces.
    pub(in crate::engine) fn append(&self, message: &Rc<Message>) {
        self.with(|state| {
            if message.role == Role::Assistant {
                state.growing = None;
            }
            let is_answer = matches!(message.role, Role::Assistant | Role::Tool);
            let last = state.answers.last_mut().filter(|_| is_answer);
            last.into_iter().for_each(|last| last.messages.push(Rc::clone(message)));
        });
    }

    /// The answer has grown: makes a piece if it is time for one.
    pub(in crate::engine) fn grow(&self, now_ms: f64) {
        let Some(every_ms) = self.every_ms else { return };
        self.with(|state| {
            // A clock may go back.
            let is_time = |since: f64| (now_ms - since).abs() >= every_ms as f64;
            state.is_due |= !state.is_writing && state.since.is_some_and(is_time);
        });
    }

    /// Makes a piece at once, because the process or the page may end.
    pub(in crate::engine) fn force(&self) {
        let waker = self.with(|state| {
            state.is_due = true;
            state.waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }

    /// Stores the pieces that are due, one at a time. Never returns: drop the future to stop.
    pub(in crate::engine) async fn keep(
        &self,
        (stored, keys): (&Sessions, &SlotKeys),
        host: &dyn Host,
        warn: impl Fn(&Error),
    ) -> Infallible {
        loop {
            let due = poll_fn(|context| self.poll_due(context, (keys, host))).await;
            let piece = (due.key.as_str(), &due.piece);
            let put = Box::pin(stored.put_piece(keys, &due.input, piece)).await;
            if let Err(error) = &put
                && !self.with(|state| std::mem::replace(&mut state.has_warned, true))
            {
                warn(error);
            }
            self.with(|state| state.put(&due, put.ok()));
        }
    }

    fn poll_due(
        &self,
        context: &Context<'_>,
        (keys, host): (&SlotKeys, &dyn Host),
    ) -> Poll<DuePiece> {
        self.with(|state| {
            if let Some(piece) = state.is_due.then(|| state.next_piece(keys, host)).flatten() {
                state.since = Some(host.now_ms());
                state.is_writing = true;
                return Poll::Ready(piece);
            }
            if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                state.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
    }

    fn with<T>(&self, use_state: impl FnOnce(&mut CheckpointState) -> T) -> T {
        use_state(&mut self.state.borrow_mut())
    }
}

impl CheckpointState {
    /// The next piece: what is new in the first answer that has something new.
    fn next_piece(&mut self, keys: &SlotKeys, host: &dyn Host) -> Option<DuePiece> {
        self.is_due = false;
        let n_before_last = self.answers.len().saturating_sub(1);
        for (index, given) in self.answers.iter().enumerate() {
            let is_last = index == n_before_last;
            let growing = self.growing.as_ref().filter(|_| is_last);
            let growing = growing.and_then(|reply| reply.borrow().said());
            let growing = growing.map(|reply| stamped(reply, host, &now(host)));
            let answer: Vec<_> = given.messages.iter().cloned().chain(growing).collect();
            if let Some(piece) = PartialPiece::between(&given.stored, &answer) {
                self.n_pieces += 1;
                // What answers a later input is stored right after this piece.
                self.is_due = !is_last;
                let input = given.input.clone();
                let key = keys.piece(&input.call_id, self.n_pieces);
                self.pieces.push(key.clone());
                return Some(DuePiece { input, key, piece, answer });
            }
        }
        None
    }

    /// Records the end of a write. What a failed write had is part of the next piece.
    fn put(&mut self, due: &DuePiece, put: Option<bool>) {
        self.is_writing = false;
        let Some(given) = self.answers.iter_mut().find(|given| given.input == due.input) else {
            return;
        };
        match put {
            Some(true) => given.stored.clone_from(&due.answer),
            // The input was logged by another node, or its session is gone.
            Some(false) => self.answers.clear(),
            // It may have been stored all the same, so the next piece replaces the same part.
            None => _ = due.piece.cut(&mut given.stored),
        }
    }
}
