//! A number that is worked out once and remembered beside what it was worked out from.

use std::cell::Cell;

/// A number that is worked out once. It is no part of what holds it: any two are equal, and it is never written.
#[derive(Clone, Debug, Default)]
pub struct Memo(Cell<Option<u32>>);

impl PartialEq for Memo {
    fn eq(&self, _: &Memo) -> bool {
        true
    }
}

impl Memo {
    /// The number; worked out now if nobody has before.
    pub fn or_count(&self, count: impl FnOnce() -> u64) -> u64 {
        let known = self.0.get().unwrap_or_else(|| {
            let counted = u32::try_from(count()).unwrap_or(u32::MAX);
            self.0.set(Some(counted));
            counted
        });
        u64::from(known)
    }
}
