//! The simulation: the engine on several nodes over one store, with random faults, and the promises that must hold.
//!
//! The checker uses what callers saw (`history.rs`) and the stored records (`check.rs`).
//! Every schedule is determined by its seed. `SCHEDULES` is the number of schedules; `LOCKGATE_SEED` runs a single one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod chance;
mod check;
mod client;
mod copy;
mod deliberate_bugs;
mod directed;
mod faults;
mod history;
mod lock;
mod model;
mod providers;
mod records;
mod replay;
mod schedule;
mod seeds;
mod store;
mod world;

use crate::seeds::Wrong;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn no_fault_loses_doubles_or_reorders_an_acknowledged_turn() {
    let n_schedules = number("SCHEDULES").unwrap_or(10_000);
    let single = number("LOCKGATE_SEED");
    let seeds = single.map_or(0..n_schedules, |seed| seed..seed + 1);
    let n_schedules = seeds.end - seeds.start;
    let found = seeds::run(seeds, Wrong::NOTHING, false);
    for (seed, problems) in &found.problems {
        println!("LOCKGATE_SEED={seed} cargo test --profile fast --test simulation no_fault");
        problems.iter().for_each(|problem| println!("    {problem}"));
    }
    let (counts, failures) = (found.counts, found.problems.len());
    faults::print(&counts);
    println!("{n_schedules} schedules, {failures} with problems");
    assert_eq!(failures, 0, "schedules that broke a promise");
    if single.is_none() && n_schedules >= 10_000 {
        assert_eq!(faults::rare(&counts), None, "a fault or action that happened too rarely");
    }
}

#[test]
fn there_are_at_least_twenty_five_kinds_of_fault() {
    let names: std::collections::BTreeSet<_> = faults::FAULTS.iter().map(|it| it.0).collect();
    assert!(names.len() == faults::FAULTS.len() && names.len() >= 25, "{names:?}");
}
