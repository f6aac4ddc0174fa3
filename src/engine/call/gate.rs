//! Runs one call at a time for each slot, in the order of arrival.
//!
//! The queue of a slot holds the tickets of its calls. The first ticket is admitted. A ticket leaves the queue when it
//! is dropped: if it was the first, the next ticket is admitted. A slot without tickets has no queue.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::seams;
use crate::slot::Slot;

/// The queues of all slots.
#[derive(Default)]
pub struct Gate {
    queues: RefCell<HashMap<Slot, VecDeque<Place>>>,
    last: RefCell<u64>,
}

struct Place {
    number: u64,
    waker: Option<Waker>,
}

/// The place of a call in the queue of its slot. Dropping the ticket gives up the place.
pub struct Ticket {
    gate: Rc<Gate>,
    slot: Slot,
    number: u64,
}

impl Gate {
    /// Takes the last place in the queue of the slot.
    pub fn enter(self: &Rc<Self>, slot: &Slot) -> Ticket {
        let number = {
            let mut last = self.last.borrow_mut();
            *last += 1;
            *last
        };
        self.with(|queues| {
            queues.entry(slot.clone()).or_default().push_back(Place { number, waker: None })
        });
        Ticket { gate: Rc::clone(self), slot: slot.clone(), number }
    }

    /// The number of calls of the slot, including the running one.
    pub fn length(&self, slot: &Slot) -> usize {
        self.with(|queues| queues.get(slot).map_or(0, VecDeque::len))
    }

    /// How many slots have calls.
    pub fn n_slots(&self) -> usize {
        self.with(|queues| queues.len())
    }

    fn with<T>(&self, use_queues: impl FnOnce(&mut HashMap<Slot, VecDeque<Place>>) -> T) -> T {
        use_queues(&mut self.queues.borrow_mut())
    }
}

impl Ticket {
    /// How many calls are before this one.
    pub fn ahead(&self) -> usize {
        self.gate.with(|queues| {
            let queue = queues.get(&self.slot);
            queue
                .and_then(|queue| queue.iter().position(|place| place.number == self.number))
                .unwrap_or(0)
        })
    }

    /// Waits until no call is before this one.
    pub fn admitted(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            self.gate.with(|queues| {
                let Some(queue) = queues.get_mut(&self.slot) else { return Poll::Ready(()) };
                let is_first = queue.front().is_none_or(|place| place.number == self.number);
                if seams::may_enter(is_first) {
                    return Poll::Ready(());
                }
                if let Some(place) = queue.iter_mut().find(|place| place.number == self.number) {
                    place.waker = Some(context.waker().clone());
                }
                Poll::Pending
            })
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let next = self.gate.with(|queues| {
            let queue = queues.get_mut(&self.slot)?;
            let first = queue.front().map(|place| place.number);
            let was_first = first == Some(self.number);
            let is_leaving = seams::leaving(self.number, first);
            queue.retain(|place| !is_leaving(place.number));
            if queue.is_empty() {
                queues.remove(&self.slot);
                return None;
            }
            queue.front_mut().filter(|_| was_first).and_then(|place| place.waker.take())
        });
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
