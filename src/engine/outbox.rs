//! Events of a call that nobody has read yet.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::event::Event;

/// A call's unread events, in order.
#[derive(Default)]
pub struct Outbox(RefCell<VecDeque<Event>>);

impl Outbox {
    /// Adds an event; neighbouring deltas are one, so that what waits is bounded by what was said.
    pub fn push(&self, event: Event) {
        let mut unread = self.0.borrow_mut();
        if !unread.back_mut().is_some_and(|last| last.joins(&event)) {
            unread.push_back(event);
        }
    }

    /// Takes the oldest.
    pub fn pop(&self) -> Option<Event> {
        self.0.borrow_mut().pop_front()
    }

    /// Takes all.
    pub fn take(&self) -> VecDeque<Event> {
        self.0.take()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}
