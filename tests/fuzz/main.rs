//! Anything at all, thrown at everything that reads what others wrote: nothing may break, and what is read stays so.
//!
//! Each input follows from its number. `INPUTS` says how many there are; `LOCKGATE_SEED` plays a single one. What once
//! broke something has become a story of its own in `tests/native`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod arguments;
mod errors;
mod keys;
mod make;
mod paths;
mod records;
mod rules;
mod sse;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use make::Chance;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Tries every input there is; the one that breaks something is named.
pub fn each(story: &str, mut check: impl FnMut(&mut Chance)) {
    let n_inputs = number("INPUTS").unwrap_or(20_000);
    let seeds = number("LOCKGATE_SEED").map_or(0..n_inputs, |seed| seed..seed + 1);
    for seed in seeds {
        let tried = catch_unwind(AssertUnwindSafe(|| check(&mut Chance::new(seed))));
        if let Err(broken) = tried {
            println!("LOCKGATE_SEED={seed} cargo test --profile fast --test fuzz {story}");
            resume_unwind(broken);
        }
    }
}
