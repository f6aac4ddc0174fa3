//! Random and damaged input for every reader of foreign data. Nothing may panic, and a value that is written and read
//! again stays the same.
//!
//! Each input is determined by its number. `INPUTS` is how many there are; `LOCKGATE_SEED` runs a single one. An input
//! that once broke something has a test of its own in `tests/native`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
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

/// Runs a check on every input, and prints the command that repeats a failing one.
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
