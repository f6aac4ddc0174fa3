//! Paths of files: each is refused, or names one file in its owner's folder.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use lockgate::error::ErrorKind;
use lockgate::future::Local;
use lockgate::port::{Host, Page, Store};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::workspace::files::{Files, Workspace};

use crate::each;
use crate::make::Chance;

const PARTS: &[&str] = &[
    "a",
    "notes",
    "a.md",
    ".",
    "..",
    "...",
    "",
    "/",
    "./",
    "../",
    "%2e%2e",
    "%252e%252e",
    "..%2f",
    "\u{2024}\u{2024}",
    "\u{ff0e}.",
    "\\",
    "..\\",
    "~",
    "C:",
    "con",
    "a b",
    "é",
    "e\u{301}",
    "\0",
    "\u{202e}",
    "--",
    "t.a",
    "h.0",
    "*",
    "日本",
];

struct Clock(Cell<u64>);

impl Host for Clock {
    fn now_ms(&self) -> f64 {
        1.79e12
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0.set(self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            *byte = (self.0.get() >> 33) as u8;
        }
    }

    fn sleep(&self, _: u64) -> Local<'static, ()> {
        Box::pin(pending())
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits"),
    }
}

fn path(chance: &mut Chance) -> String {
    let n = if chance.one_in(30) { 80 } else { 1 + chance.below(5) };
    let parts: Vec<String> = (0..n).map(|_| chance.word(PARTS)).collect();
    parts.join(chance.pick(&["/", "/", "/", "//", "/./", "\\", ""]))
}

#[test]
fn a_path_is_refused_or_leads_to_one_file_of_its_owner() {
    let store = Rc::new(MemoryStore::new());
    let host = Rc::new(Clock(Cell::new(1)));
    let shared = Rc::clone(&store) as Rc<dyn Store>;
    let files = Files::new("agent", Workspace::default(), shared, host, 1_000).unwrap();
    let (alice, bob) = (Slot::new(Some("alice"), "s"), Slot::new(Some("bob"), "s"));
    let (alice, bob) = (files.of(&alice.unwrap()).place().to_owned(), bob.unwrap());
    let owner = Slot::new(Some("alice"), "s").unwrap();
    each("a_path_is_refused", |chance| {
        let shelf = files.of(&owner);
        let given = path(chance);
        if let Err(error) = now(shelf.put(&given, "text")) {
            assert_eq!(error.kind(), ErrorKind::PathInvalid, "{given:?}");
            return assert!(now(shelf.read(&given)).is_err(), "{given:?} cannot be written");
        }
        let listed = now(shelf.list("")).unwrap();
        let [name] = &listed[..] else { panic!("{given:?} became {listed:?}") };
        assert!(name.split('/').all(|it| !it.is_empty() && it != "." && it != ".."), "{name:?}");
        for spelling in [&given, name] {
            assert_eq!(now(shelf.read(spelling)).unwrap().unwrap().text, "text", "{given:?}");
        }
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        assert_eq!(now(shelf.list(folder)).unwrap(), listed, "{given:?} is in {folder:?}");
        assert!(now(files.of(&bob).list("")).unwrap().is_empty());
        let keys = now(store.list("", Page::default())).unwrap();
        assert!(keys.iter().all(|(key, _)| key.starts_with(&alice)), "{given:?}: {keys:?}");
        now(shelf.remove(&given)).unwrap();
        assert!(now(store.list("", Page::default())).unwrap().is_empty(), "{given:?} stays");
    });
}
