//! The engine under chance: several nodes, one store, everything that can go wrong, and what must hold all the same.
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
mod teeth;
mod world;

use crate::seeds::Wrong;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_reordered_whatever_goes_wrong() {
    let n_schedules = number("SCHEDULES").unwrap_or(10_000);
    let single = number("LOCKGATE_SEED");
    let seeds = single.map_or(0..n_schedules, |seed| seed..seed + 1);
    let n_schedules = seeds.end - seeds.start;
    let found = seeds::run(seeds, Wrong::NOTHING, false);
    for (seed, problems) in &found.problems {
        println!("LOCKGATE_SEED={seed} cargo test --profile fast --test simulation nothing");
        problems.iter().for_each(|problem| println!("    {problem}"));
    }
    let (counts, failures) = (found.counts, found.problems.len());
    faults::print(&counts);
    println!("{n_schedules} schedules, {failures} with problems");
    assert_eq!(failures, 0, "schedules in which a promise was broken");
    if single.is_none() && n_schedules >= 10_000 {
        assert_eq!(faults::rare(&counts), None, "what was hardly ever met");
    }
}

#[test]
fn there_are_at_least_twenty_five_kinds_of_fault() {
    let names: std::collections::BTreeSet<_> = faults::FAULTS.iter().map(|it| it.0).collect();
    assert!(names.len() == faults::FAULTS.len() && names.len() >= 25, "{names:?}");
}
