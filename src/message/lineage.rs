//! What of a conversation somebody outside may already have.

use std::cell::Cell;

/// One conversation held in memory. It only grows at its end, so a border that hands it to somebody outside pays
/// for what is new, and once.
#[derive(Debug)]
pub struct Lineage {
    id: u64,
    unchanged: Cell<usize>,
}

impl Lineage {
    /// A lineage of its own.
    pub fn new() -> Lineage {
        thread_local!(static LAST: Cell<u64> = const { Cell::new(0) });
        let id = LAST.get() + 1;
        LAST.set(id);
        Lineage { id, unchanged: Cell::new(usize::MAX) }
    }

    /// Tells it from all others.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Says that the message of this number is not what it was.
    pub fn changed(&self, index: usize) {
        self.unchanged.set(self.unchanged.get().min(index));
    }

    /// How many messages are what they were when this was last asked.
    pub fn take_unchanged(&self) -> usize {
        self.unchanged.replace(usize::MAX)
    }
}

impl Default for Lineage {
    fn default() -> Self {
        Lineage::new()
    }
}
