//! Which sessions have text that is not in the search index yet. Indexing is background work after a reply.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::engine::call::gate::Gate;
use crate::error::Result;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::search::{Unindexed, is_due};
use crate::store::session::Session;

/// The whole index can be trusted.
const ALL: u64 = u64::MAX;

/// The sessions with text that is not in the search index yet.
pub(in crate::engine) struct Indexing {
    state: RefCell<IndexingState>,
    max_sessions: usize,
}

#[derive(Default)]
struct IndexingState {
    /// The estimated unindexed part of recently used sessions. Indexing itself reads the store, not this estimate.
    tails: HashMap<Slot, Unindexed>,
    /// The sessions that must be indexed, and the entry up to which their index can be trusted.
    due: Vec<(Slot, u64)>,
    /// The sessions that are being indexed.
    working: Vec<Slot>,
}

impl IndexingState {
    fn index_again(&mut self, slot: Slot, trusted: u64) {
        self.due.retain(|(other, _)| *other != slot);
        self.due.push((slot, trusted));
    }
}

impl Indexing {
    pub(in crate::engine) fn new(max_sessions: usize) -> Indexing {
        Indexing { state: RefCell::default(), max_sessions }
    }

    /// Whether a session must be indexed.
    pub(in crate::engine) fn is_due(&self) -> bool {
        !self.state.borrow().due.is_empty()
    }

    /// Records that the index of a session has a gap: it can be trusted only up to the entry `trusted`.
    pub(in crate::engine) fn index_again(&self, slot: Slot, trusted: u64) {
        self.state.borrow_mut().index_again(slot, trusted);
    }

    /// Records that `n_bytes` were written to a session.
    pub(in crate::engine) fn note_written(&self, session: &Session, n_bytes: usize) {
        let Some(head) = &session.head else { return };
        let mut state = self.state.borrow_mut();
        let IndexingState { tails, due, working } = &mut *state;
        let tail = match tails.get_mut(&session.slot) {
            Some(tail) => {
                tail.bytes += n_bytes;
                *tail
            }
            None => {
                if tails.len() >= self.max_sessions {
                    tails.clear();
                }
                let tail = Unindexed { from: 0, bytes: session.bytes };
                tails.insert(session.slot.clone(), tail);
                tail
            }
        };
        let is_due = is_due(head.next.saturating_sub(tail.from), tail.bytes);
        let is_known =
            due.iter().map(|(slot, _)| slot).chain(&*working).any(|slot| *slot == session.slot);
        if is_due && !is_known {
            due.push((session.slot.clone(), ALL));
        }
    }

    /// Indexes the sessions that are due. A session with a call is left for later, and so is a session whose indexing
    /// failed.
    pub(in crate::engine) async fn run(&self, stored: &Sessions, gate: &Gate) {
        while let Some((working, trusted)) = self.take_due(gate) {
            let left = stored.extend_index(&working.slot, trusted).await;
            let mut state = self.state.borrow_mut();
            if let Ok(None) = left {
                // This step has removed the part that was not trusted. The session may need another step.
                state.index_again(working.slot.clone(), ALL);
            } else if let Some(tail) = state.tails.get_mut(&working.slot) {
                // After a failure, the next attempt waits for more new entries or bytes.
                let postponed = Unindexed { from: tail.from + 64, bytes: 0 };
                *tail = left.ok().flatten().unwrap_or(postponed);
            }
        }
    }

    /// The next due session that has no call and that no other run is indexing.
    fn take_due(&self, gate: &Gate) -> Option<(Working<'_>, u64)> {
        let mut state = self.state.borrow_mut();
        let IndexingState { due, working, .. } = &mut *state;
        let is_free = |due: &mut (Slot, u64)| gate.length(&due.0) == 0 && !working.contains(&due.0);
        let (slot, trusted) = due.extract_if(.., is_free).next()?;
        working.push(slot.clone());
        Some((Working { of: self, slot }, trusted))
    }
}

/// A session that is being indexed, until this value is dropped.
struct Working<'a> {
    of: &'a Indexing,
    slot: Slot,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.of.state.borrow_mut().working.retain(|other| *other != self.slot);
    }
}

/// Brings the search index of a session up to date, if enough of the session is new.
pub(in crate::engine) async fn index_now(stored: &Sessions, slot: &Slot) -> Result<()> {
    while stored.extend_index(slot, ALL).await?.is_none() {}
    Ok(())
}
