//! A store with chunks behaves like the same store without them, and leaves no other records.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use lockgate::port::{Batch, Page, Store};
use lockgate::store::backend::chunks::Chunks;
use lockgate::store::backend::memory_store::MemoryStore;

use crate::Chance;

const CELL: usize = 64;

/// Keys of which some are prefixes or neighbours of others.
const KEYS: &[&str] = &["a", "a/b", "a/b/c", "a/b.c", "a/b-2a", "a/bb", "a/c", "ab", "b"];
const PREFIXES: &[&str] = &["", "a", "a/", "a/b", "a/b/", "ab", "c"];

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory never waits"),
    }
}

fn batch(chance: &mut Chance, number: usize) -> Batch {
    let values = [0, 1, CELL - 1, CELL, CELL + 1, CELL * 2, CELL * 7 + 3];
    let mut batch = Batch { revision: format!("r{number}"), ..Batch::default() };
    for _ in 0..chance.below(4) {
        let first = if chance.below(8) == 0 { 0 } else { b'{' };
        let mut value = vec![chance.below(256) as u8; chance.pick(&values)];
        value.first_mut().into_iter().for_each(|it| *it = first);
        let key = chance.pick(KEYS).to_owned();
        if batch.put.iter().all(|(other, _)| *other != key) {
            batch.put.push((key, value));
        }
    }
    (0..chance.below(3)).for_each(|_| batch.remove.push(chance.pick(KEYS).to_owned()));
    if chance.below(6) == 0 {
        batch.remove_prefix.push(chance.pick(PREFIXES).to_owned());
    }
    if chance.below(3) == 0 {
        let expected = (number > 0).then(|| format!("r{}", chance.below(number)));
        batch.expect =
            Some((chance.pick(KEYS).to_owned(), expected.filter(|_| chance.below(2) == 0)));
    }
    batch
}

#[test]
fn a_store_with_chunks_behaves_like_a_store_without_chunks() {
    let mut chance = Chance::new("a_store_with_chunks_behaves_like_a_store_without_chunks");
    for _ in 0..400 {
        let (below, plain) = (Rc::new(MemoryStore::new()), MemoryStore::new());
        let chunked = Chunks::new(below.clone(), CELL);
        for number in 0..60 {
            let batch = batch(&mut chance, number);
            let (ours, theirs) = (block_on(chunked.commit(&batch)), block_on(plain.commit(&batch)));
            assert_eq!(ours.unwrap(), theirs.unwrap());
            let keys: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(block_on(chunked.get(&keys)).unwrap(), block_on(plain.get(&keys)).unwrap());
            let prefix = chance.pick(PREFIXES);
            let after = (chance.below(2) == 0).then(|| chance.pick(KEYS).to_owned());
            let limit = (chance.below(2) == 0).then(|| chance.below(4));
            let page = Page { after, limit, keys_only: false };
            assert_eq!(
                block_on(chunked.list(prefix, page.clone())).unwrap(),
                block_on(plain.list(prefix, page)).unwrap()
            );
            check_chunks(&below);
        }
    }
}

/// No cell is too large, and every chunk belongs to a record of its own revision.
fn check_chunks(below: &MemoryStore) {
    let all = block_on(below.list("", Page::default())).unwrap();
    for (key, record) in &all {
        assert!(record.value.len() <= CELL);
        if let Some((owner, name)) = key.split_once("--") {
            let owner = all.iter().find(|(key, _)| key == owner).map(|(_, owner)| owner);
            let owner = owner.unwrap_or_else(|| panic!("{key} belongs to no record"));
            assert!(name.starts_with(&format!("{}.", owner.revision)), "{key} is outdated");
        }
    }
}
