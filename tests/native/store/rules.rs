//! The memory store against the store rules, and stores with one flaw against the same rules.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::store::flaws::{FLAWS, Flawed};
use crate::support::*;
use lockgate::error::Result;
use lockgate::port::Store;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::backend::rules::{StoreRule, rules};

/// Flaws that only JavaScript can have: Rust's ownership prevents them.
const ONLY_IN_JAVASCRIPT: &[&str] =
    &["keeps the bytes it is given", "hands out the bytes it keeps"];

/// Runs a rule on two stores over shared records, both with the same flaw.
fn prove(rule: &StoreRule, flaw: &'static str) -> Result<()> {
    let place = Rc::new(MemoryStore::new());
    let (store, beside) = (Flawed::new(&place, flaw), Flawed::new(&place, flaw));
    assert_eq!(rule.skip(store.capabilities(), true), None);
    block_on(rule.run(&store, Some(&beside)))
}

#[test]
fn r16_s_01_s_15_the_memory_store_keeps_every_rule() {
    for rule in rules().unwrap() {
        let kept = prove(&rule, "");
        assert!(kept.is_ok(), "{}: {kept:?}", rule.name);
    }
}

#[test]
fn every_rule_fails_on_a_store_that_breaks_it() {
    for rule in rules().unwrap() {
        assert!(!rule.broken.is_empty(), "the rule lists no flaw: {}", rule.name);
        let here = rule.broken.iter().filter(|flaw| !ONLY_IN_JAVASCRIPT.contains(&flaw.as_str()));
        for flaw in here {
            let flaw = FLAWS.iter().find(|it| *it == flaw).unwrap_or_else(|| panic!("{flaw}"));
            assert!(prove(&rule, flaw).is_err(), "a store that {flaw} keeps: {}", rule.name);
        }
    }
}

#[test]
fn every_flaw_is_listed_by_a_rule() {
    let rules = rules().unwrap();
    let named: BTreeSet<_> = rules.iter().flat_map(|rule| &rule.broken).collect();
    let known = FLAWS.iter().chain(ONLY_IN_JAVASCRIPT).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(named, known.iter().collect());
}

#[test]
fn a_rule_is_skipped_only_for_a_capability_it_names() {
    let rules = rules().unwrap();
    let store = MemoryStore::new();
    let skipped: Vec<_> =
        rules.iter().filter_map(|rule| rule.skip(store.capabilities(), false)).collect();
    assert_eq!(skipped, ["needs shared", "needs shared"]);
}
