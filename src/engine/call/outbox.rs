//! The events of a call that were not read yet.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::event::Event;

/// The unread events of a call, in order.
#[derive(Default)]
pub struct Outbox {
    unread: RefCell<VecDeque<Event>>,
    unwatched: Cell<bool>,
}

impl Outbox {
    /// Adds an event. Neighbouring deltas of one block are joined, so that many small deltas do not fill the queue.
    pub fn push(&self, event: Event) {
        let mut unread = self.unread.borrow_mut();
        if !unread.back_mut().is_some_and(|last| last.joins(&event)) {
            unread.push_back(event);
        }
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<Event> {
        self.unread.borrow_mut().pop_front()
    }

    /// Takes all events.
    pub fn take(&self) -> VecDeque<Event> {
        self.unread.take()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.unread.borrow().is_empty()
    }

    /// Sets whether events are read before the call ends.
    pub fn watch(&self, is_watched: bool) {
        self.unwatched.set(!is_watched);
    }

    /// Whether the current events will be read before the call ends.
    pub(in crate::engine) fn is_wanted(&self) -> bool {
        !self.is_empty() && !self.unwatched.get()
    }
}
