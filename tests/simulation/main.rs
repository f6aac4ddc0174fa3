//! The engine under chance: two nodes, one store, everything that can go wrong, and what must hold all the same.
//!
//! The checker reads what callers saw (`history.rs`) and the records that are left (`check.rs`).
//! Every schedule follows from its seed. `SCHEDULES` says how many there are; `LOCKGATE_SEED` plays a single one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod chance;
mod check;
mod client;
mod history;
mod lock;
mod model;
mod records;
mod schedule;
mod store;
mod world;

use std::rc::Rc;

use crate::chance::Tally;
use crate::store::Broken;

/// Everything that is to go wrong, or to get in the way, often enough to matter.
const FAULTS: &[&str] = &[
    "store delay",
    "store error",
    "store applied error",
    "store hang",
    "store late commit",
    "conflict",
    "crash",
    "lock stolen",
    "clock leap",
    "call dropped",
    "stop",
    "abort",
    "deletion",
    "model early error",
    "model late error",
    "model hang",
    "model empty answer",
    "tool error",
    "tool hang",
    "clear",
    "put",
    "rename",
    "interrupt",
    "joined",
    "confirm",
    "approval",
    "step",
    "summary",
    "summary trouble",
    "resend",
    "switch",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_reordered_whatever_goes_wrong() {
    let tally = Rc::new(Tally::default());
    let n_schedules = number("SCHEDULES").unwrap_or(2_000);
    let single = number("LOCKGATE_SEED");
    let seeds = single.map_or(0..n_schedules, |seed| seed..seed + 1);
    let n_schedules = seeds.end - seeds.start;
    let mut failures = 0;
    for seed in seeds {
        let problems = schedule::run(seed, Broken::Nothing, &tally);
        if !problems.is_empty() {
            failures += 1;
            println!("LOCKGATE_SEED={seed} cargo test --profile fast --test simulation nothing");
            problems.iter().for_each(|problem| println!("    {problem}"));
        }
    }
    let counts = tally.all();
    let is_fault = |it: &(&&str, &u64)| FAULTS.contains(it.0);
    let (faults, others): (Vec<_>, Vec<_>) = counts.iter().partition(is_fault);
    println!("{n_schedules} schedules, {failures} with problems: {others:?}; faults: {faults:?}");
    assert_eq!(failures, 0, "schedules in which a promise was broken");
    if single.is_none() && n_schedules >= 2_000 {
        let rare = |fault: &&&str| counts.get(**fault).copied().unwrap_or_default() < 100;
        assert_eq!(FAULTS.iter().find(rare), None, "a fault that was hardly ever met");
    }
}

/// What may be wrong with a port; each must show within the schedules of a default run.
const TEETH: &[Broken] = &[
    Broken::IgnoresExpect,
    Broken::IgnoresExpectAndLocks,
    Broken::LosesAcknowledged,
    Broken::AppliesHalf,
    Broken::ReadsStaleHeads,
    Broken::DropsRemoves,
    Broken::DropsPrefixRemoves,
    Broken::PutsBeforeRemoves,
    Broken::ListsTooLittle,
    Broken::OneRevision,
    Broken::LosesIndexLines,
    Broken::KeepsLocksOfTheDead,
];

#[test]
fn a_broken_store_or_lock_does_not_go_unseen() {
    let tally = Rc::new(Tally::default());
    for broken in TEETH {
        let caught = (0..2_000).find_map(|seed| {
            let problems = schedule::run(seed, *broken, &tally);
            problems.into_iter().next().map(|problem| (seed, problem))
        });
        let Some((seed, problem)) = caught else { panic!("{broken:?} is not seen") };
        println!("{broken:?} is seen with seed {seed}: {problem}");
    }
}
