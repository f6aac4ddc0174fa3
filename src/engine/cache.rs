//! Sessions kept in memory between calls: bounded, least recently used first.
//!
//! A call takes its session out while it runs, so a session that has a call is never dropped. The store stays the
//! truth: whoever takes a session out still asks the store for the head's revision.

use std::collections::{HashMap, VecDeque};

use crate::slot::Slot;
use crate::store::session::Session;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of their messages.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { sessions: 1_000, bytes: 64 << 20 }
    }
}

/// The sessions that are kept.
#[derive(Default)]
pub struct Cache {
    bounds: Bounds,
    sessions: HashMap<Slot, (u64, Session)>,
    /// Who was put when, oldest first; a session that was taken or put again since has left a stale line.
    order: VecDeque<(u64, Slot)>,
    bytes: usize,
    tick: u64,
}

impl Cache {
    /// An empty one.
    pub fn new(bounds: Bounds) -> Cache {
        Cache { bounds, ..Cache::default() }
    }

    /// Takes a session out.
    pub fn take(&mut self, slot: &Slot) -> Option<Session> {
        let (_, session) = self.sessions.remove(slot)?;
        self.bytes -= session.bytes;
        Some(session)
    }

    /// Puts a session in, and drops those that were used least recently if there are too many.
    pub fn put(&mut self, session: Session) {
        self.take(&session.slot);
        self.tick += 1;
        self.bytes += session.bytes;
        self.order.push_back((self.tick, session.slot.clone()));
        self.sessions.insert(session.slot.clone(), (self.tick, session));
        while self.sessions.len() > self.bounds.sessions || self.bytes > self.bounds.bytes {
            let Some((tick, slot)) = self.order.pop_front() else { return };
            if self.is_current(tick, &slot) {
                self.take(&slot);
            }
        }
        if self.order.len() > 64 + 2 * self.sessions.len() {
            let order = std::mem::take(&mut self.order);
            self.order =
                order.into_iter().filter(|(tick, slot)| self.is_current(*tick, slot)).collect();
        }
    }

    fn is_current(&self, tick: u64, slot: &Slot) -> bool {
        self.sessions.get(slot).is_some_and(|(put, _)| *put == tick)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}
