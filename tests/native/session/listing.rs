//! The cost of a list of sessions depends only on its page.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::*;
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::model::scripted::ScriptedModel;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Store};
use lockgate::store::backend::memory_store::MemoryStore;

/// A store that counts its operations.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    asked: RefCell<Vec<String>>,
}

impl Store for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.asked.borrow_mut().push(format!("get {}", keys.len()));
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        let what = prefix.rsplit('/').nth(1).unwrap_or_default();
        self.asked.borrow_mut().push(format!("list {what} {}", page.limit.unwrap_or_default()));
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        self.inner.commit(batch)
    }
}

#[test]
fn ten_thousand_sessions_are_listed_by_page_without_reading_one() {
    let counting = Rc::new(Counting::default());
    let store: Rc<dyn Store> = counting.clone();
    let agent = agent_on(&store, ScriptedModel::new([]));
    for n in 0..10_000 {
        block_on(agent.append(&slot(&format!("s{n}")), said("hello"))).unwrap();
    }
    counting.asked.borrow_mut().clear();
    let (mut after, mut seen) = (None, BTreeSet::new());
    loop {
        let page = Page { after: after.take(), limit: Some(250), keys_only: false };
        let infos = block_on(agent.list_sessions(Some("alice"), page)).unwrap();
        seen.extend(infos.iter().map(|info| info.session_id.clone()));
        after = infos.last().filter(|_| infos.len() == 250).map(|info| info.cursor.clone());
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 10_000);
    assert_eq!(*counting.asked.borrow(), vec!["list index 250".to_owned(); 41]);
}
