//! Which calls there are, so that they can be told to end.

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::message::Message;
use crate::slot::Slot;

impl Agent {
    /// Stops the session's running call, if it has one; the messages are what the user says next.
    pub fn interrupt(&self, slot: &Slot, says: Vec<Message>) -> bool {
        let cancels = self.0.cancels.borrow();
        let running = cancels.get(slot).and_then(|of_slot| of_slot.first());
        let cancel = running.map(|(_, cancel)| cancel.clone());
        drop(cancels);
        if let Some(cancel) = &cancel {
            cancel.ask(Cause::Stopped(says));
        }
        cancel.is_some()
    }

    /// Takes no new calls. Waiting calls end at once, running ones at their next boundary: saved, and marked so that
    /// the next call goes on from there.
    pub fn shut_down(&self) {
        self.0.closing.set(true);
        self.end_calls(1);
    }

    /// Ends what still runs, wherever it is.
    pub fn shut_down_now(&self) {
        self.0.closing.set(true);
        self.end_calls(0);
        self.0.stop_remembering();
    }

    /// Ends the calls of every slot but for the first few.
    fn end_calls(&self, n_spared: usize) {
        let cancels = self.0.cancels.borrow();
        let ending: Vec<Cancel> = cancels
            .values()
            .flat_map(|of_slot| of_slot.iter().skip(n_spared))
            .map(|(_, it)| it.clone())
            .collect();
        drop(cancels);
        ending.iter().for_each(|cancel| cancel.ask(Cause::Shutdown));
    }
}

impl Inner {
    pub(super) fn register(&self, slot: &Slot, cancel: &Cancel) -> u64 {
        let number = self.n_calls.get() + 1;
        self.n_calls.set(number);
        self.cancels.borrow_mut().entry(slot.clone()).or_default().push((number, cancel.clone()));
        number
    }

    pub(super) fn unregister(&self, slot: &Slot, number: u64) {
        let mut cancels = self.cancels.borrow_mut();
        if let Some(of_slot) = cancels.get_mut(slot) {
            of_slot.retain(|(other, _)| *other != number);
            if of_slot.is_empty() {
                cancels.remove(slot);
            }
        }
    }
}
