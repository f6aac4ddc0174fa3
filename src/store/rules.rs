//! What every store must do, as one list: a rule for each sentence of the contract.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, join_all};
use crate::port::{Batch, Committed, Page, Record, Store};

/// One rule: a sentence that is true of a good store, and the proof.
pub struct Rule {
    /// The sentence.
    pub name: &'static str,
    /// Proves it on an empty store.
    pub run: for<'a> fn(&'a dyn Store) -> Local<'a, Result<()>>,
}

macro_rules! rules {
    ($($name:literal => $proof:ident),+ $(,)?) => {
        /// Every rule.
        pub const RULES: &[Rule] = &[$(Rule { name: $name, run: |store| Box::pin($proof(store)) }),+];
    };
}

rules! {
    "what was put is read again, byte for byte" => reads_again,
    "a key that was never put is absent" => absent,
    "records come in the order of the keys asked for" => in_the_order_asked,
    "every put carries the revision of its batch" => stamped,
    "a list has the keys of the prefix, in key order" => lists,
    "a list goes on after a key, up to its limit" => pages,
    "a prefix is no pattern" => no_pattern,
    "a commit that expects an absent key creates it once" => creates_once,
    "a commit that expects another revision changes nothing" => conflicts,
    "a commit that expects the revision there is goes through" => compares,
    "a commit that expects a revision of an absent key changes nothing" => never_resurrects,
    "of many commits that expect one revision exactly one goes through" => one_winner,
    "removes come before puts" => removes_first,
    "a prefix is removed with all below it and nothing beside it" => removes_prefixes,
    "a batch without an expectation goes through" => unconditional,
    "large values and empty ones are kept" => sizes,
}

async fn reads_again(store: &dyn Store) -> Result<()> {
    let bytes: Vec<u8> = (0..=255).collect();
    put(store, "r1", &[("a/one", &bytes)]).await?;
    expect(get(store, "a/one").await? == Some(record(&bytes, "r1")), "the bytes differ")
}

async fn absent(store: &dyn Store) -> Result<()> {
    expect(get(store, "a/none").await?.is_none(), "there is a record")
}

async fn in_the_order_asked(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/one", b"1"), ("a/two", b"2")]).await?;
    let keys = ["a/two", "a/none", "a/one", "a/two"].map(str::to_owned);
    let found = store.get(&keys).await?;
    let values: Vec<_> = found.iter().map(|it| it.as_ref().map(|it| it.value.as_slice())).collect();
    expect(values == [Some(&b"2"[..]), None, Some(&b"1"[..]), Some(&b"2"[..])], "another order")
}

async fn stamped(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/one", b"1"), ("a/two", b"2")]).await?;
    put(store, "r2", &[("a/two", b"3")]).await?;
    let revisions = [get(store, "a/one").await?, get(store, "a/two").await?];
    let revisions =
        revisions.map(|record| record.map(|record| record.revision).unwrap_or_default());
    expect(revisions == ["r1", "r2"], "other revisions")
}

async fn lists(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/b", b"2"), ("a/a", b"1"), ("a/b/c", b"3"), ("ab", b"x"), ("b/a", b"y")])
        .await?;
    let listed = store.list("a/", Page::default()).await?;
    let pairs: Vec<_> =
        listed.iter().map(|(key, record)| (key.as_str(), record.value.as_slice())).collect();
    expect(pairs == [("a/a", &b"1"[..]), ("a/b", &b"2"[..]), ("a/b/c", &b"3"[..])], "another list")
}

async fn pages(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/1", b""), ("a/2", b""), ("a/3", b""), ("a/4", b"")]).await?;
    let page = |after: Option<&str>, limit| Page {
        after: after.map(str::to_owned),
        limit,
        keys_only: false,
    };
    let first = names(store, "a/", page(None, Some(2))).await?;
    let then = names(store, "a/", page(Some("a/2"), Some(9))).await?;
    let between = names(store, "a/", page(Some("a/2x"), Some(1))).await?;
    let before = names(store, "a/", page(Some("0"), Some(1))).await?;
    let behind = names(store, "a/", page(Some("b"), None)).await?;
    let all = [first, then, between, before, behind].map(|keys| keys.join(" "));
    expect(all == ["a/1 a/2", "a/3 a/4", "a/3", "a/1", ""], "other pages")
}

async fn no_pattern(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("t.-2a/x", b"1"), ("t.a/x", b"2"), ("t.-5f/x", b"3")]).await?;
    let found = names(store, "t.-2a/", Page::default()).await?;
    expect(found == ["t.-2a/x"], "keys of somebody else")
}

async fn creates_once(store: &dyn Store) -> Result<()> {
    let first = commit(store, "r1", Some(None)).await?;
    let second = commit(store, "r2", Some(None)).await?;
    expect(
        (first, second) == (Committed::Done, Committed::Conflict),
        "it was created twice, or never",
    )?;
    expect(revision(store).await? == Some("r1".into()), "the second has overwritten the first")
}

async fn conflicts(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("head", b"1"), ("kept", b"1")]).await?;
    let batch = Batch {
        expect: Some(("head".into(), Some("r0".into()))),
        revision: "r2".into(),
        remove: vec!["kept".into()],
        remove_prefix: vec!["ke".into()],
        put: vec![("head".into(), b"2".to_vec()), ("new".into(), b"2".to_vec())],
    };
    expect(store.commit(&batch).await? == Committed::Conflict, "it went through")?;
    let left = names(store, "", Page::default()).await?;
    expect(
        left == ["head", "kept"] && revision(store).await? == Some("r1".into()),
        "something changed",
    )
}

async fn compares(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("head", b"1")]).await?;
    expect(commit(store, "r2", Some(Some("r1"))).await? == Committed::Done, "it was refused")?;
    expect(revision(store).await? == Some("r2".into()), "it was not applied")
}

async fn never_resurrects(store: &dyn Store) -> Result<()> {
    expect(commit(store, "r2", Some(Some("r1"))).await? == Committed::Conflict, "it went through")?;
    expect(revision(store).await?.is_none(), "the record is back")
}

async fn one_winner(store: &dyn Store) -> Result<()> {
    put(store, "r0", &[("head", b"0")]).await?;
    let revisions: Vec<String> = (1..=8).map(|n| format!("r{n}")).collect();
    let writers = revisions.iter().map(|revision| {
        Box::pin(commit(store, revision, Some(Some("r0")))) as Local<'_, Result<Committed>>
    });
    let outcomes: Vec<_> = join_all(writers.collect()).await.into_iter().collect::<Result<_>>()?;
    let winners: Vec<_> =
        outcomes.iter().zip(&revisions).filter(|(it, _)| **it == Committed::Done).collect();
    expect(winners.len() == 1, "not exactly one went through")?;
    let winner = winners.first().map(|(_, revision)| (*revision).clone());
    expect(revision(store).await? == winner, "another than the winner is stored")
}

async fn removes_first(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/one", b"1"), ("a/two", b"2")]).await?;
    let batch = Batch {
        revision: "r2".into(),
        remove: vec!["a/one".into(), "a/none".into()],
        remove_prefix: vec!["a/".into()],
        put: vec![("a/one".into(), b"3".to_vec())],
        expect: None,
    };
    store.commit(&batch).await?;
    expect(get(store, "a/one").await? == Some(record(b"3", "r2")), "the put was removed")?;
    expect(get(store, "a/two").await?.is_none(), "the remove was not applied")
}

async fn removes_prefixes(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("a/b/1", b""), ("a/b/c/2", b""), ("a/b", b""), ("a/bb", b""), ("a", b"")])
        .await?;
    let batch =
        Batch { revision: "r2".into(), remove_prefix: vec!["a/b/".into()], ..Batch::default() };
    store.commit(&batch).await?;
    expect(names(store, "", Page::default()).await? == ["a", "a/b", "a/bb"], "other keys are left")
}

async fn unconditional(store: &dyn Store) -> Result<()> {
    put(store, "r1", &[("head", b"1")]).await?;
    expect(commit(store, "r2", None).await? == Committed::Done, "it was refused")?;
    expect(revision(store).await? == Some("r2".into()), "it was not applied")
}

async fn sizes(store: &dyn Store) -> Result<()> {
    let large = vec![7; 100_000];
    put(store, "r1", &[("a/large", &large), ("a/empty", b"")]).await?;
    let kept = get(store, "a/large").await? == Some(record(&large, "r1"));
    expect(kept && get(store, "a/empty").await? == Some(record(b"", "r1")), "a value was changed")
}

async fn put(store: &dyn Store, revision: &str, records: &[(&str, &[u8])]) -> Result<()> {
    let put = records.iter().map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect();
    let batch = Batch { revision: revision.to_owned(), put, ..Batch::default() };
    expect(
        store.commit(&batch).await? == Committed::Done,
        "a batch without expectation was refused",
    )
}

/// Puts the head, if it is as expected.
async fn commit(
    store: &dyn Store,
    revision: &str,
    expected: Option<Option<&str>>,
) -> Result<Committed> {
    let batch = Batch {
        expect: expected.map(|expected| ("head".to_owned(), expected.map(str::to_owned))),
        revision: revision.to_owned(),
        put: vec![("head".to_owned(), b"h".to_vec())],
        ..Batch::default()
    };
    store.commit(&batch).await
}

async fn get(store: &dyn Store, key: &str) -> Result<Option<Record>> {
    Ok(store.get(&[key.to_owned()]).await?.pop().flatten())
}

async fn revision(store: &dyn Store) -> Result<Option<String>> {
    Ok(get(store, "head").await?.map(|record| record.revision))
}

async fn names(store: &dyn Store, prefix: &str, page: Page) -> Result<Vec<String>> {
    Ok(store.list(prefix, page).await?.into_iter().map(|(key, _)| key).collect())
}

fn record(value: &[u8], revision: &str) -> Record {
    Record { value: value.to_vec(), revision: revision.to_owned() }
}

fn expect(holds: bool, complaint: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(ErrorKind::StoreCorrupt, complaint)) }
}
