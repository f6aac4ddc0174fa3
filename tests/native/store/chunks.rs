//! Values larger than a cell of the store: cut into chunks, read whole, and removed completely.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::support::*;
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Store};
use lockgate::store::backend::chunks::Chunks;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::backend::rules::rules;
use lockgate::store::workspace::files::{Files, Workspace};

const CELL: usize = 64;

/// A memory store with tiny cells; `race` holds batches applied between the reads of a manifest and its chunks.
#[derive(Default)]
struct Tiny {
    inner: MemoryStore,
    race: RefCell<Vec<Batch>>,
    n_reads: Cell<usize>,
}

impl Store for Tiny {
    fn capabilities(&self) -> Capabilities {
        Capabilities { max_value_bytes: Some(CELL), ..self.inner.capabilities() }
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            self.n_reads.set(self.n_reads.get() + 1);
            if keys.iter().any(|key| key.contains("--")) {
                let meanwhile = self.race.borrow_mut().pop();
                if let Some(batch) = meanwhile {
                    self.inner.commit(&batch).await?;
                }
            }
            self.inner.get(keys).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let too_large = batch.put.iter().any(|(_, value)| value.len() > CELL);
        if too_large {
            let error = Error::new(ErrorKind::Internal, "a value is larger than a cell");
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.commit(batch)
    }
}

fn tiny() -> (Rc<Tiny>, Chunks) {
    let store = Rc::new(Tiny::default());
    (Rc::clone(&store), Chunks::new(store, CELL))
}

fn put(revision: &str, key: &str, value: Vec<u8>) -> Batch {
    let put = vec![(key.to_owned(), value)];
    Batch { revision: revision.to_owned(), put, ..Batch::default() }
}

fn value(store: &dyn Store, key: &str) -> Option<Record> {
    block_on(store.get(&[key.to_owned()])).unwrap().pop().unwrap()
}

fn keys(store: &dyn Store) -> Vec<String> {
    let listed = block_on(store.list("", Page::default())).unwrap();
    listed.into_iter().map(|(key, _)| key).collect()
}

/// The batches that a writer with chunks of its own would have made.
fn replaced(revision: &str, key: &str, value: Vec<u8>, before: &Tiny) -> Batch {
    let other = Rc::new(Tiny::default());
    for (key, record) in block_on(before.inner.list("", Page::default())).unwrap() {
        block_on(other.inner.commit(&put(&record.revision, &key, record.value))).unwrap();
    }
    block_on(Chunks::new(other.clone(), CELL).commit(&put(revision, key, value))).unwrap();
    let records = block_on(other.inner.list("", Page::default())).unwrap();
    let put = records.into_iter().map(|(key, record)| (key, record.value)).collect();
    Batch {
        revision: revision.to_owned(),
        remove_prefix: vec![String::new()],
        put,
        ..Batch::default()
    }
}

#[test]
fn a_store_of_tiny_cells_keeps_every_rule() {
    for rule in rules().unwrap() {
        // In the smallest cells, the values of the rules about sizes would need more chunks than allowed.
        let cell = if rule.name.contains("large") { 4_000 } else { CELL };
        let place: Rc<dyn Store> = if cell == CELL { tiny().0 } else { memory() };
        let (store, beside) = (Chunks::new(Rc::clone(&place), cell), Chunks::new(place, cell));
        let kept = block_on(rule.run(&store, Some(&beside)));
        assert!(kept.is_ok(), "{}: {kept:?}", rule.name);
    }
}

#[test]
fn a_large_value_is_read_and_listed_whole_and_its_chunks_are_not_seen() {
    let (_, store) = tiny();
    let large: Vec<u8> = (0..1_000).map(|n| n as u8).collect();
    for key in ["a/1", "a/2", "a/3", "b"] {
        block_on(store.commit(&put("r1", key, large.clone()))).unwrap();
    }
    assert_eq!(value(&store, "a/2").unwrap().value, large);
    assert_eq!(keys(&store), ["a/1", "a/2", "a/3", "b"]);
    let page = Page { after: Some("a/1".into()), limit: Some(2), keys_only: false };
    let listed = block_on(store.list("a/", page)).unwrap();
    assert!(listed.iter().all(|(_, record)| record.value == large && record.revision == "r1"));
    assert_eq!(listed.len(), 2);
}

#[test]
fn a_value_that_shrinks_or_is_removed_leaves_no_chunk() {
    let (tiny, store) = tiny();
    let remove = Batch { revision: "r9".into(), remove: vec!["a/1".into()], ..Batch::default() };
    let below =
        Batch { revision: "r9".into(), remove_prefix: vec!["a/".into()], ..Batch::default() };
    for then in [put("r2", "a/1", b"small".to_vec()), remove, below] {
        block_on(store.commit(&put("r1", "a/1", vec![7; 500]))).unwrap();
        assert!(keys(&*tiny).len() > 5);
        block_on(store.commit(&then)).unwrap();
        let left: Vec<_> = keys(&*tiny).into_iter().filter(|key| key.contains("--")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn removing_a_prefix_below_a_key_keeps_the_chunks_of_that_key() {
    let (_, store) = tiny();
    block_on(store.commit(&put("r1", "a/b", vec![7; 500]))).unwrap();
    let below =
        Batch { revision: "r2".into(), remove_prefix: vec!["a/b/".into()], ..Batch::default() };
    block_on(store.commit(&below)).unwrap();
    assert_eq!(value(&store, "a/b").unwrap().value, vec![7; 500]);
}

#[test]
fn a_value_that_is_replaced_while_it_is_read_is_the_old_one_or_the_new_one() {
    let (tiny, store) = tiny();
    block_on(store.commit(&put("r1", "a/1", vec![1; 500]))).unwrap();
    let meanwhile = replaced("r2", "a/1", vec![2; 300], &tiny);
    tiny.race.borrow_mut().push(meanwhile);
    let read = value(&store, "a/1").unwrap();
    assert_eq!((read.value, read.revision.as_str()), (vec![2; 300], "r2"));
    let meanwhile = replaced("r3", "a/1", b"small".to_vec(), &tiny);
    tiny.race.borrow_mut().push(meanwhile);
    let page = Page { limit: Some(1), ..Page::default() };
    let listed = block_on(store.list("a/", page)).unwrap();
    assert_eq!(listed[0].1.value, b"small");
}

#[test]
fn a_value_that_looks_like_a_manifest_is_kept_unchanged() {
    let (_, store) = tiny();
    for value_of in [b"\0".to_vec(), b"\x003 300".to_vec(), vec![0; 300]] {
        block_on(store.commit(&put("r1", "a", value_of.clone()))).unwrap();
        assert_eq!(value(&store, "a").unwrap().value, value_of);
    }
}

#[test]
fn a_lost_chunk_is_an_error_and_the_other_chunks_stay() {
    let (tiny, store) = tiny();
    block_on(store.commit(&put("r1", "a", vec![7; 500]))).unwrap();
    let gone =
        Batch { revision: "r2".into(), remove: vec!["a--r1.0003".into()], ..Batch::default() };
    block_on(tiny.commit(&gone)).unwrap();
    let error = block_on(store.get(&["a".to_owned()])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    assert!(error.message().contains("chunks of a"));
    assert_eq!(keys(&*tiny).len(), 8);
}

// S-09
#[test]
fn a_session_fits_into_cells_of_64_bytes() {
    let (tiny, _) = tiny();
    let store: Rc<dyn Store> = tiny.clone();
    let agent = agent_on(&store, ScriptedModel::new(["one", "two", "three"].map(Line::says)));
    for text in ["a", "b", "c"] {
        ask(&agent, "s1", text).unwrap();
    }
    let again = agent_on(&store, ScriptedModel::new([]));
    let told = told(&again, "s1");
    assert_eq!(told.len(), 6);
    assert_eq!(told[5], "assistant: three");
    block_on(again.delete_session(&slot("s1"))).unwrap();
    // Only the tombstone is left, and it is cut into chunks too.
    let left: Vec<_> = keys(&*tiny).into_iter().filter(|key| !key.contains("/head")).collect();
    assert!(left.is_empty(), "{left:?}");
}

// S-09
#[test]
fn an_input_too_large_for_the_store_is_refused_before_the_model_is_asked() {
    let (tiny, _) = tiny();
    let store: Rc<dyn Store> = tiny.clone();
    let model = ScriptedModel::new([Line::says("never said")]);
    let agent = agent_on(&store, model.clone());
    let failed = ask(&agent, "s1", &"x".repeat(CELL * 1_001)).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::StateTooLarge);
    assert!(failed.error.hint_text().unwrap().contains("64000"));
    assert!(model.requests().is_empty());
    assert!(keys(&*tiny).is_empty());
}

#[test]
fn a_store_with_too_small_cells_is_refused() {
    struct Speck(MemoryStore);
    impl Store for Speck {
        fn capabilities(&self) -> Capabilities {
            Capabilities { max_value_bytes: Some(10), ..self.0.capabilities() }
        }
        fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
            self.0.get(keys)
        }
        fn list<'a>(
            &'a self,
            prefix: &'a str,
            page: Page,
        ) -> Local<'a, Result<Vec<(String, Record)>>> {
            self.0.list(prefix, page)
        }
        fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
            self.0.commit(batch)
        }
    }
    let store: Rc<dyn Store> = Rc::new(Speck(MemoryStore::new()));
    let error = builder_on(&store, ScriptedModel::new([])).build().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Options);
    assert!(error.hint_text().unwrap().contains("maxValueBytes"));
}

#[test]
fn a_file_larger_than_a_cell_is_one_file_and_is_removed_whole() {
    let (store, chunks) = tiny();
    let host = Rc::new(HostHandle(TestHost::new()));
    let files = Files::new("helper", Workspace::default(), Rc::new(chunks), host, 1_000).unwrap();
    let files = files.of(&slot("s1"));
    let text = "é".repeat(1_000);
    block_on(files.put("notes/large.md", &text)).unwrap();
    block_on(files.put("notes/small.md", "")).unwrap();
    assert_eq!(block_on(files.read("notes/large.md")).unwrap().unwrap().text, text);
    assert_eq!(block_on(files.list("notes")).unwrap(), ["notes/large.md", "notes/small.md"]);
    block_on(files.remove("notes/large.md")).unwrap();
    block_on(files.remove("notes/small.md")).unwrap();
    assert_eq!(block_on(store.inner.list("", Page::default())).unwrap(), []);
}
