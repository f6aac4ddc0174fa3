//! A number that is computed once and kept beside the value from which it was computed.

use std::cell::Cell;

/// A number that is computed once. It is not part of the value that holds it: any two are equal, and it is never
/// written.
#[derive(Clone, Debug, Default)]
pub struct Memo(Cell<Option<u32>>);

impl PartialEq for Memo {
    fn eq(&self, _: &Memo) -> bool {
        true
    }
}

impl Memo {
    /// The number. It is computed on the first call.
    pub fn or_count(&self, count: impl FnOnce() -> u64) -> u64 {
        let known = self.0.get().unwrap_or_else(|| {
            let counted = u32::try_from(count()).unwrap_or(u32::MAX);
            self.0.set(Some(counted));
            counted
        });
        u64::from(known)
    }
}
