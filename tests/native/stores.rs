//! The memory store against the list of rules, and stores made wrong in one point against the same list.

use std::rc::Rc;

use crate::support::*;
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Store};
use lockgate::store::memory::MemoryStore;
use lockgate::store::rules::RULES;

#[test]
fn the_memory_store_keeps_every_rule() {
    for rule in RULES {
        let kept = block_on((rule.run)(&MemoryStore::new()));
        assert!(kept.is_ok(), "{}: {kept:?}", rule.name);
    }
}

/// A memory store that is wrong in one point.
struct Broken(Rc<MemoryStore>, &'static str);

impl Store for Broken {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            let mut found = self.0.get(keys).await?;
            match self.1 {
                "forgets revisions" => {
                    found.iter_mut().flatten().for_each(|it| it.revision.clear())
                }
                "reads in its own order" => found.reverse(),
                "cuts values" => found.iter_mut().flatten().for_each(|it| it.value.truncate(99)),
                _ => {}
            }
            Ok(found)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            let page = match self.1 {
                "ignores limits" => Page { limit: None, ..page },
                "lists from the start" => Page { after: None, ..page },
                _ => page,
            };
            let prefix =
                if self.1 == "lists too much" { prefix.trim_end_matches('/') } else { prefix };
            let mut found = self.0.list(prefix, page).await?;
            if self.1 == "lists backwards" {
                found.reverse();
            }
            Ok(found)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            let mut batch = batch.clone();
            match self.1 {
                "ignores expectations" => batch.expect = None,
                "creates what it should find"
                    if batch.expect.as_ref().is_some_and(|it| it.1.is_some()) =>
                {
                    let key = batch.expect.as_ref().map(|it| it.0.clone()).unwrap();
                    if self.0.get(&[key]).await?[0].is_none() {
                        batch.expect = None;
                    }
                }
                "never removes" => batch.remove_prefix.clear(),
                "removes last" => {
                    let gone = Batch { put: Vec::new(), expect: None, ..batch.clone() };
                    let outcome = self.0.commit(&batch).await?;
                    self.0.commit(&gone).await?;
                    return Ok(outcome);
                }
                "applies half of a refused batch" => {
                    let outcome = self.0.commit(&batch).await?;
                    let half = Batch { expect: None, put: Vec::new(), ..batch };
                    if outcome == Committed::Conflict {
                        self.0.commit(&half).await?;
                    }
                    return Ok(outcome);
                }
                _ => {}
            }
            self.0.commit(&batch).await
        })
    }
}

#[test]
fn every_wrong_store_breaks_a_rule() {
    for flaw in [
        "forgets revisions",
        "reads in its own order",
        "cuts values",
        "ignores limits",
        "lists from the start",
        "lists too much",
        "lists backwards",
        "ignores expectations",
        "creates what it should find",
        "never removes",
        "removes last",
        "applies half of a refused batch",
    ] {
        let broken = |rule: &&lockgate::store::rules::Rule| {
            block_on((rule.run)(&Broken(Rc::new(MemoryStore::new()), flaw))).is_err()
        };
        assert!(RULES.iter().any(|rule| broken(&rule)), "a store that {flaw} passes");
    }
}
