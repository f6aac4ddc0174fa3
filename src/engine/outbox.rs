//! Events of a call that nobody has read yet.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::event::Event;

/// A call's unread events, in order.
#[derive(Default)]
pub struct Outbox {
    unread: RefCell<VecDeque<Event>>,
    unwatched: Cell<bool>,
}

impl Outbox {
    /// Adds an event; neighbouring deltas are one, so that what waits is bounded by what was said.
    pub fn push(&self, event: Event) {
        let mut unread = self.unread.borrow_mut();
        if !unread.back_mut().is_some_and(|last| last.joins(&event)) {
            unread.push_back(event);
        }
    }

    /// Takes the oldest.
    pub fn pop(&self) -> Option<Event> {
        self.unread.borrow_mut().pop_front()
    }

    /// Takes all.
    pub fn take(&self) -> VecDeque<Event> {
        self.unread.take()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.unread.borrow().is_empty()
    }

    /// Says whether anybody looks at events before the last one.
    pub fn watch(&self, is_watched: bool) {
        self.unwatched.set(!is_watched);
    }

    /// Whether somebody would look at what there is now.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_empty() && !self.unwatched.get()
    }
}
