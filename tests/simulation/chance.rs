//! Repeatable random numbers: everything in a schedule is determined by its seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A stream of numbers that depends only on its seed.
pub struct Chance(Cell<u64>);

impl Chance {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Chance {
        Chance(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mixed = self.0.get();
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`.
    pub fn below(&self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True in this many of a thousand cases.
    pub fn permille(&self, n: u64) -> bool {
        self.below(1_000) < n
    }

    /// A random item.
    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A wait in milliseconds: mostly short, sometimes longer than the deadline of the store.
    pub fn wait(&self) -> u64 {
        match self.below(100) {
            0..50 => self.below(6),
            50..80 => self.below(60),
            80..95 => self.below(1_000),
            _ => self.below(14_000),
        }
    }
}

/// How often each fault and action has happened.
#[derive(Default)]
pub struct Tally(RefCell<BTreeMap<&'static str, u64>>);

impl Tally {
    /// Counts one more occurrence.
    pub fn count(&self, what: &'static str) {
        *self.0.borrow_mut().entry(what).or_default() += 1;
    }

    /// All counts so far.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.borrow().clone()
    }
}
