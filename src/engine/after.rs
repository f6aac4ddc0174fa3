//! Work after the reply: it never delays a call and never fails one.

use std::collections::HashMap;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::crew::Moving;
use crate::error::Result;
use crate::future::{Local, join_all};
use crate::slot::Slot;
use crate::store::search::{Tail, is_due};
use crate::store::session::Session;

/// Everything of a session's index counts as it is.
const ALL: u64 = u64::MAX;

/// What is to be done once nobody waits.
#[derive(Default)]
pub(super) struct After {
    /// What of the sessions lately used is not in the index. Only a guess: whoever acts on it reads the store.
    tails: HashMap<Slot, Tail>,
    /// The sessions whose index is to grow, and up to which entry it can be trusted.
    due: Vec<(Slot, u64)>,
    /// The children of calls that have ended.
    pub(super) children: Vec<Moving>,
    /// The sessions whose index grows just now: a second hand would do the same work again.
    working: Vec<Slot>,
}

impl After {
    /// An index has a gap from this entry on.
    pub(super) fn mend(&mut self, slot: Slot, trusted: u64) {
        self.due.retain(|(other, _)| *other != slot);
        self.due.push((slot, trusted));
    }
}

impl Inner {
    /// Takes note that something was written to a session.
    pub(super) fn note(&self, session: &Session, n_bytes: usize) {
        let Some(head) = &session.head else { return };
        let mut after = self.after.borrow_mut();
        let After { tails, due, working, .. } = &mut *after;
        let tail = match tails.get_mut(&session.slot) {
            Some(tail) => {
                tail.bytes += n_bytes;
                *tail
            }
            None => {
                if tails.len() >= self.options.cache.sessions {
                    tails.clear();
                }
                let tail = Tail { from: 0, bytes: session.bytes };
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

    /// The next session whose index is to grow: one that has no call, and that nobody works on.
    fn take_due(&self) -> Option<(Working<'_>, u64)> {
        let mut after = self.after.borrow_mut();
        let After { due, working, .. } = &mut *after;
        let is_free =
            |due: &mut (Slot, u64)| self.gate.length(&due.0) == 0 && !working.contains(&due.0);
        let (slot, trusted) = due.extract_if(.., is_free).next()?;
        working.push(slot.clone());
        Some((Working { inner: self, slot }, trusted))
    }
}

/// A session whose index grows, until this is dropped.
struct Working<'a> {
    inner: &'a Inner,
    slot: Slot,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.inner.after.borrow_mut().working.retain(|other| *other != self.slot);
    }
}

impl Agent {
    /// Whether there is work that nobody waits for.
    pub fn has_work(&self) -> bool {
        let after = self.0.after.borrow();
        !after.due.is_empty() || !after.children.is_empty() || self.0.has_to_remember()
    }

    /// Whether memory holds something that no store has: turns that it would not take, or work for later.
    pub fn is_needed(&self) -> bool {
        self.has_work() || !self.0.unsaved.borrow().is_empty()
    }

    /// Does the work that nobody waits for, and moves the children that calls have left to their end.
    pub async fn afterwards(&self) {
        loop {
            let children = std::mem::take(&mut self.0.after.borrow_mut().children);
            let is_last = children.is_empty();
            let mut work = vec![Box::pin(self.tidy_up()) as Local<'_, ()>];
            work.extend(children.into_iter().map(|(_, moving)| moving));
            join_all(work).await;
            if is_last {
                return;
            }
        }
    }

    /// Indexes and remembers, step by step. What fails is tried again when the session has grown; a session that has a
    /// call is left until it has none, since the two would only get in each other's way.
    async fn tidy_up(&self) {
        while let Some((working, trusted)) = self.0.take_due() {
            let left = self.0.sessions.extend_index(&working.slot, trusted).await;
            let mut after = self.0.after.borrow_mut();
            if let Ok(None) = left {
                // What was not trusted is gone; what is there now is ours.
                after.mend(working.slot.clone(), ALL);
            } else if let Some(tail) = after.tails.get_mut(&working.slot) {
                let given_up = Tail { from: tail.from + 64, bytes: 0 };
                *tail = left.ok().flatten().unwrap_or(given_up);
            }
        }
        self.0.remember_what_is_new().await;
    }

    /// Brings the search index of a session up to date, if enough of it is new.
    pub async fn index(&self, slot: &Slot) -> Result<()> {
        while self.0.sessions.extend_index(slot, ALL).await?.is_none() {}
        Ok(())
    }
}
