//! Tests in a real browser: its stores against the store rules, and their failures.

#![cfg(target_arch = "wasm32")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test that meets something unexpected is to fail there"
)]

use std::cell::Cell;
use std::rc::Rc;

use lockgate::error::ErrorKind;
use lockgate::port::{Batch, Committed, Page, Store};
use lockgate::store::backend::chunks::Chunks;
use lockgate::store::backend::rules::rules;
use lockgate::wasm::{IndexedDb, JsLocks, LocalStore};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

thread_local!(static LAST: Cell<u32> = const { Cell::new(0) });

/// A name that no other test uses.
fn name() -> String {
    LAST.set(LAST.get() + 1);
    format!("test-{}-{}", js_sys::Date::now(), LAST.get())
}

/// A database that no other test uses.
fn fresh() -> (String, IndexedDb) {
    let name = name();
    let database = IndexedDb::new(&name, "relaxed");
    (name, database)
}

/// Runs every rule on two stores over the same records.
async fn keeps_every_rule<S: Store>(make: impl Fn() -> (S, S)) {
    for rule in rules().unwrap() {
        let (store, beside) = make();
        if let Err(error) = rule.run(&store, Some(&beside)).await {
            panic!("{}: {error}", rule.name);
        }
    }
}

fn one(revision: &str) -> Batch {
    let put = vec![("head".to_owned(), b"1".to_vec())];
    Batch { revision: revision.to_owned(), put, ..Batch::default() }
}

#[wasm_bindgen_test]
async fn indexed_db_keeps_every_rule_strict_and_relaxed() {
    for durability in ["strict", "relaxed"] {
        keeps_every_rule(|| {
            let name = name();
            (IndexedDb::new(&name, durability), IndexedDb::new(&name, durability))
        })
        .await;
    }
}

#[wasm_bindgen_test]
async fn local_storage_keeps_every_rule() {
    // A single tab needs no lock: its operations never wait.
    let locks = || {
        let held = "{ ready: Promise.resolve(), lost: undefined, release() {} }";
        let made = js_sys::eval(&format!("({{ acquire: () => ({held}) }})")).unwrap();
        made.unchecked_into::<JsLocks>()
    };
    keeps_every_rule(|| {
        let name = name();
        (LocalStore::new(&name, locks()), LocalStore::new(&name, locks()))
    })
    .await;
}

#[wasm_bindgen_test]
async fn chunks_above_indexed_db_keep_every_rule() {
    keeps_every_rule(|| {
        let (name, store) = fresh();
        let beside = IndexedDb::new(&name, "relaxed");
        (Chunks::new(Rc::new(store), 1_000), Chunks::new(Rc::new(beside), 1_000))
    })
    .await;
}

#[wasm_bindgen_test]
async fn two_handles_of_one_database_see_each_other() {
    let (name, one_tab) = fresh();
    let other_tab = IndexedDb::new(&name, "strict");
    one_tab.commit(&one("r1")).await.unwrap();
    let expecting = Batch { expect: Some(("head".into(), Some("r1".into()))), ..one("r2") };
    assert_eq!(other_tab.commit(&expecting).await.unwrap(), Committed::Done);
    assert_eq!(one_tab.commit(&expecting).await.unwrap(), Committed::Conflict);
}

#[wasm_bindgen_test]
async fn a_database_that_was_deleted_is_opened_again() {
    let (name, store) = fresh();
    store.commit(&one("r1")).await.unwrap();
    delete(&name).await;
    assert!(store.list("", Page::default()).await.unwrap().is_empty());
    assert_eq!(store.commit(&one("r2")).await.unwrap(), Committed::Done);
}

// B-14
#[wasm_bindgen_test]
async fn a_database_of_a_newer_version_is_a_typed_error() {
    let (name, store) = fresh();
    open(&name, 7).await;
    let error = store.commit(&one("r1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StateVersion);
    assert!(error.hint_text().is_some());
}

fn factory() -> web_sys::IdbFactory {
    js_sys::Reflect::get(&js_sys::global(), &"indexedDB".into()).unwrap().unchecked_into()
}

/// Deletes a database without the store, as another tab would.
async fn delete(name: &str) {
    done(&factory().delete_database(name).unwrap()).await;
}

async fn open(name: &str, version: u32) {
    let request = factory().open_with_u32(name, version).unwrap();
    done(&request).await;
    let database: web_sys::IdbDatabase = request.result().unwrap().unchecked_into();
    database.close();
}

async fn done(request: &web_sys::IdbOpenDbRequest) {
    let promise = js_sys::Promise::new(&mut |resolve, reject| {
        request.set_onsuccess(Some(&resolve));
        request.set_onerror(Some(&reject));
    });
    JsFuture::from(promise).await.unwrap();
}
