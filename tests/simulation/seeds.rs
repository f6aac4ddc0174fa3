//! Runs schedules in parallel: one thread per core, with the seeds in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate::seams;

use crate::chance::Tally;
use crate::schedule;
use crate::store::Broken;

/// How often each fault and action has happened.
pub type Counts = BTreeMap<&'static str, u64>;

/// The result of a run of many schedules.
#[derive(Default)]
pub struct Found {
    pub counts: Counts,
    /// Seeds whose schedules broke a promise, lowest first, with the broken promise.
    pub problems: BTreeMap<u64, Vec<String>>,
}

/// A deliberate bug.
#[derive(Clone, Copy)]
pub struct Wrong {
    pub port: Broken,
    pub engine: &'static str,
}

impl Wrong {
    pub const NOTHING: Wrong = Wrong { port: Broken::Nothing, engine: "" };
}

/// Runs the schedules of these seeds: all of them, or up to the first that breaks a promise.
pub fn run(seeds: Range<u64>, wrong: Wrong, to_the_first: bool) -> Found {
    let next = AtomicU64::new(seeds.start);
    let end = AtomicU64::new(seeds.end);
    let found = Mutex::new(Found::default());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                seams::choose(wrong.engine);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let tally = Rc::new(Tally::default());
                    let problems = schedule::run(seed, wrong.port, &tally);
                    let mut found = found.lock().unwrap();
                    for (what, n) in tally.all() {
                        *found.counts.entry(what).or_default() += n;
                    }
                    if !problems.is_empty() {
                        found.problems.insert(seed, problems);
                        if to_the_first {
                            end.fetch_min(seed, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}
