//! Tracks which messages code outside the engine may already have.

use std::cell::Cell;

/// One conversation in memory. It grows only at its end, so the wasm border sends each new message to JavaScript once.
#[derive(Debug)]
pub struct Lineage {
    id: u64,
    unchanged: Cell<usize>,
}

impl Lineage {
    /// A new lineage.
    pub fn new() -> Lineage {
        thread_local!(static LAST: Cell<u64> = const { Cell::new(0) });
        let id = LAST.get() + 1;
        LAST.set(id);
        Lineage { id, unchanged: Cell::new(usize::MAX) }
    }

    /// The unique id of this lineage.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Records that the message at this index has changed.
    pub fn changed(&self, index: usize) {
        self.unchanged.set(self.unchanged.get().min(index));
    }

    /// How many leading messages have not changed since the last call of this method.
    pub fn take_unchanged(&self) -> usize {
        self.unchanged.replace(usize::MAX)
    }
}

impl Default for Lineage {
    fn default() -> Self {
        Lineage::new()
    }
}
