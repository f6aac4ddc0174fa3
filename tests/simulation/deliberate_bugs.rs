//! Tests of the checker: it finds every deliberate bug, in a port or in the engine.

use lockgate::seams;

use crate::seeds::{self, Wrong};
use crate::store::Broken;

/// The deliberate bugs of ports. Each must be found within the schedules of a default run.
const PORTS: &[Broken] = &[
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
fn every_deliberate_bug_of_a_store_or_lock_is_found() {
    for port in PORTS {
        let found = seeds::run(0..2_000, Wrong { port: *port, engine: "" }, true);
        let first = found.problems.first_key_value();
        let Some((seed, problems)) = first else { panic!("{port:?} is not found") };
        println!("{port:?} is found with seed {seed}: {}", problems[0]);
    }
}

#[test]
fn every_deliberate_bug_of_the_engine_is_found_within_ten_thousand_seeds() {
    let mut unseen = Vec::new();
    println!("{:<20} {:>6}  what it does, and what was seen of it", "mutant", "seeds");
    for (engine, what) in seams::BUGS {
        let found = seeds::run(0..10_000, Wrong { port: Broken::Nothing, engine }, true);
        let Some((seed, problems)) = found.problems.first_key_value() else {
            println!("{engine:<20}      -  {what}");
            unseen.push(engine);
            continue;
        };
        println!("{engine:<20} {:>6}  {what}: {}", seed + 1, problems[0]);
    }
    assert!(seams::BUGS.len() >= 15);
    assert_eq!(unseen, Vec::<&&str>::new(), "bugs that were not found");
}
