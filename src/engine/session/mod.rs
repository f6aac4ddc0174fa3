//! The sessions of an agent: the gate and the lock, the cache, recovery, and changes outside a call.

pub(in crate::engine) mod branch;
pub(in crate::engine) mod cache;
pub(in crate::engine) mod edit;
pub(in crate::engine) mod indexing;
pub(in crate::engine) mod lease;
pub(in crate::engine) mod lookup;
pub(in crate::engine) mod recovery;
pub(in crate::engine) mod transfer;
pub(in crate::engine) mod unsaved;
pub(in crate::engine) mod users;

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::call::gate::{Gate, Ticket};
use crate::engine::call::outcome::shutting_down;
use crate::engine::call::running::RunningCalls;
use crate::engine::options::Options;
use crate::engine::session::cache::Cache;
use crate::engine::session::indexing::Indexing;
use crate::engine::session::unsaved::UnsavedTurns;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::port::{Held, Host, Lock};
use crate::run::open;
use crate::seams;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::session::{Session, TurnCommit};

/// How often a change outside a call reads the session again because another writer was first.
pub(in crate::engine) const ATTEMPTS: u32 = 8;

/// The sessions of an agent, for its calls and for changes outside a call.
pub(in crate::engine) struct AgentSessions {
    stored: Rc<Sessions>,
    host: Rc<dyn Host>,
    /// Keeps other tabs and agents out of a session. `None`: no other tab or agent uses the store.
    lock: Option<Rc<dyn Lock>>,
    options: Rc<Options>,
    calls: Rc<RunningCalls>,
    gate: Rc<Gate>,
    cache: RefCell<Cache>,
    unsaved: UnsavedTurns,
    indexing: Indexing,
}

/// The right to change a session: the first place in its queue, and its lock. Dropping it releases the lock, then the
/// place.
pub(in crate::engine) struct Exclusive {
    _lock: Option<Box<dyn Held>>,
    _ticket: Ticket,
}

impl AgentSessions {
    pub(in crate::engine) fn new(
        stored: Rc<Sessions>,
        (host, lock): (Rc<dyn Host>, Option<Rc<dyn Lock>>),
        options: Rc<Options>,
        calls: Rc<RunningCalls>,
    ) -> AgentSessions {
        AgentSessions {
            stored,
            host,
            lock,
            calls,
            gate: Rc::default(),
            cache: RefCell::new(Cache::new(options.cache)),
            unsaved: UnsavedTurns::default(),
            indexing: Indexing::new(options.cache.sessions),
            options,
        }
    }

    /// The sessions in another store, which nobody else uses.
    pub(in crate::engine) fn over(&self, stored: Sessions) -> AgentSessions {
        let (options, calls) = (Rc::clone(&self.options), Rc::clone(&self.calls));
        AgentSessions::new(Rc::new(stored), (Rc::clone(&self.host), None), options, calls)
    }

    /// The stored sessions.
    pub(in crate::engine) fn stored(&self) -> &Rc<Sessions> {
        &self.stored
    }

    pub(in crate::engine) fn host(&self) -> &Rc<dyn Host> {
        &self.host
    }

    pub(in crate::engine) fn options(&self) -> &Options {
        &self.options
    }

    /// The time between two checkpoints of a call, in milliseconds; `None`: there are none.
    pub(in crate::engine) fn checkpoint_ms(&self) -> Option<u64> {
        self.options.checkpoints.ms(self.stored.shared())
    }

    /// The calls that wait or run.
    pub(in crate::engine) fn calls(&self) -> &Rc<RunningCalls> {
        &self.calls
    }

    /// The queues of calls.
    pub(in crate::engine) fn gate(&self) -> &Rc<Gate> {
        &self.gate
    }

    /// The sessions with text that is not in the search index yet.
    pub(in crate::engine) fn indexing(&self) -> &Indexing {
        &self.indexing
    }

    /// Takes a place in the queue at once, then waits for the first place and for the lock.
    pub(in crate::engine) fn exclusive(
        self: &Rc<Self>,
        slot: &Slot,
    ) -> Local<'static, Result<Exclusive>> {
        let (sessions, slot, ticket) = (Rc::clone(self), slot.clone(), self.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let lock = sessions.lock(&slot).await?;
            Ok(Exclusive { _lock: lock, _ticket: ticket })
        })
    }

    /// Waits for the lock that keeps other tabs and agents out of a session.
    pub(in crate::engine) async fn lock(&self, slot: &Slot) -> Result<Option<Box<dyn Held>>> {
        let Some(lock) = seams::shared_lock(self.lock.as_ref()) else { return Ok(None) };
        let name = self.stored.keys(slot).lock();
        let timeout = self.options.timeouts.lock;
        match race(lock.acquire(&name), self.host.sleep(timeout)).await {
            Either::First(held) => held.map(Some),
            Either::Second(()) => Err(busy_elsewhere(slot, timeout)),
        }
    }

    /// Loads and recovers an existing session for a change outside a call. The caller must hold its [`Exclusive`].
    pub(in crate::engine) async fn open_for_change(&self, slot: &Slot) -> Result<Session> {
        if self.calls.is_closing() {
            return Err(shutting_down());
        }
        self.take_cached(slot);
        for _ in 0..ATTEMPTS {
            self.save_unsaved(slot).await?;
            let mut session = lease::open(self, slot, None, None).await?;
            if !recovery::recover(self, &mut session).await? {
                continue;
            }
            if session.head.is_none() {
                return Err(no_such(slot));
            }
            return Ok(session);
        }
        Err(changes_too_fast(slot))
    }

    /// Takes a session out of the cache.
    pub(in crate::engine) fn take_cached(&self, slot: &Slot) -> Option<Session> {
        self.cache.borrow_mut().take(slot)
    }

    /// Puts a session into the cache.
    pub(in crate::engine) fn keep_cached(&self, session: Session) {
        self.cache.borrow_mut().put(session);
    }

    /// Keeps a turn whose save has failed, if a later save may succeed.
    pub(in crate::engine) fn keep_unsaved(
        &self,
        session: Session,
        turn: TurnCommit,
        failed: ErrorKind,
    ) {
        self.unsaved.keep(session, turn, failed);
    }

    /// Saves the unsaved turn of a session, if there is one. The caller must have the right to change the session, and
    /// must not have read it yet.
    pub(in crate::engine) async fn save_unsaved(&self, slot: &Slot) -> Result<()> {
        self.unsaved.save(&self.stored, slot).await
    }

    /// Drops the unsaved turn of a session.
    pub(in crate::engine) fn drop_unsaved(&self, slot: &Slot) {
        self.unsaved.remove(slot);
    }

    /// Whether there are unsaved turns.
    pub(in crate::engine) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Records that `n_bytes` were written to a session, so that it may be indexed.
    pub(in crate::engine) fn note_written(&self, session: &Session, n_bytes: usize) {
        self.indexing.note_written(session, n_bytes);
    }
}

/// Fails if the session has open tool calls.
pub(in crate::engine) fn refuse_if_pending(session: &Session) -> Result<()> {
    if open::open_calls(&session.context).is_empty() {
        return Ok(());
    }
    let message = format!("{} has tool calls that wait for an answer", session.slot);
    Err(Error::new(ErrorKind::PendingTools, message)
        .hint("answer them with confirm, or send a new message, which closes them"))
}

pub(in crate::engine) fn no_such(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}"))
}

pub(in crate::engine) fn changes_too_fast(slot: &Slot) -> Error {
    let message = format!("other writers change {slot} faster than this change can be stored");
    Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again")
}

/// The error if the lock or lease of a session was not free within the timeout.
pub(in crate::engine) fn busy_elsewhere(slot: &Slot, timeout_ms: u64) -> Error {
    let message =
        format!("{slot} was still in use by another tab or process after {timeout_ms} ms");
    Error::new(ErrorKind::Timeout, message)
        .hint("nothing was stored; try again, or raise timeouts.lock")
}
