//! Keeps sessions in memory between calls, up to a limit. The least recently used session is dropped first.
//!
//! A call takes its session out of the cache while it runs, so a session with a running call is never dropped. The
//! cached session may be outdated: a call still asks the store for the revision of the head.

use std::collections::{HashMap, VecDeque};

use crate::engine::options::Bounds;
use crate::slot::Slot;
use crate::store::session::Session;

/// The cached sessions.
#[derive(Default)]
pub struct Cache {
    bounds: Bounds,
    sessions: HashMap<Slot, (u64, Session)>,
    /// When each session was put in, oldest first. An entry is outdated if its session was taken or put in again since.
    order: VecDeque<(u64, Slot)>,
    bytes: usize,
    tick: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(bounds: Bounds) -> Cache {
        Cache { bounds, ..Cache::default() }
    }

    /// Takes a session out of the cache.
    pub fn take(&mut self, slot: &Slot) -> Option<Session> {
        let (_, session) = self.sessions.remove(slot)?;
        self.bytes -= session.bytes;
        Some(session)
    }

    /// Puts a session into the cache, and drops the least recently used sessions above the limit.
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

    /// The number of cached sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}
