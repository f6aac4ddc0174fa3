//! Splits values that are larger than a store accepts into chunks. It works above any store.
//!
//! The record under the key becomes a small manifest. The chunks are stored under `<key>--<revision>.<n>`. Our own keys
//! never contain `--`. So a chunk is never mistaken for a record, it sorts directly after its record, and every prefix
//! that contains the record contains the chunk. A chunk's key contains the revision. So a reader that reads a value while
//! it is replaced finds chunks missing and reads again; it never joins chunks of two values.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Batch, Capabilities, Committed, Page, Record, Store};

/// Separates a key from the name of a chunk.
const MARK: &str = "--";

/// Appended to a key, it sorts after every chunk of that key and before every other key.
const BEHIND_CHUNKS: &str = "--~";

/// First byte of a manifest. JSON never begins with it. A value that does is stored in chunks even if it is short.
const MANIFEST: u8 = 0;

/// Smallest chunk size: a manifest fits, and a chunk is larger than its key.
pub const SMALLEST: usize = 64;

/// Most chunks of a value: some stores limit the keys of one batch.
const MOST_CHUNKS: usize = 1_000;

/// Longest key that a store accepts, in bytes.
const LONGEST_KEY: usize = 512;

/// How often a value is read again if it is replaced while it is read.
const ATTEMPTS: u32 = 5;

/// A store that accepts values of any size, on top of a store with a limit.
pub struct Chunks {
    store: Rc<dyn Store>,
    max_bytes: usize,
}

/// The contents of a manifest. The revision is that of its record.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Manifest {
    n_chunks: usize,
    n_bytes: usize,
}

/// The store itself if it accepts values of any size, otherwise the store with chunks on top.
pub fn above(store: Rc<dyn Store>) -> Rc<dyn Store> {
    match store.capabilities().max_value_bytes {
        Some(max_bytes) => Rc::new(Chunks::new(store, max_bytes)),
        None => store,
    }
}

impl Chunks {
    /// Chunks of at most `max_bytes` bytes on top of a store.
    pub fn new(store: Rc<dyn Store>, max_bytes: usize) -> Chunks {
        Chunks { store, max_bytes: max_bytes.max(SMALLEST) }
    }

    /// Reads whole values. A value that is replaced meanwhile is read again.
    async fn read(&self, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let mut whole: Vec<Option<Record>> = vec![None; keys.len()];
        let mut left: Vec<usize> = (0..keys.len()).collect();
        for _ in 0..ATTEMPTS {
            let names: Vec<String> = left.iter().filter_map(|at| keys.get(*at).cloned()).collect();
            let found = self.store.get(&names).await?;
            let pairs = names.iter().zip(&found);
            let named: Vec<_> = pairs.filter_map(|(key, it)| Some((key, it.as_ref()?))).collect();
            let chunks = self.fetch(&named, HashMap::new()).await?;
            let mut incomplete = Vec::new();
            for ((at, key), record) in left.into_iter().zip(&names).zip(found) {
                let Some(mut record) = record else { continue };
                if !join(key, &mut record, &chunks)? {
                    incomplete.push(at);
                } else if let Some(place) = whole.get_mut(at) {
                    *place = Some(record);
                }
            }
            if incomplete.is_empty() {
                return Ok(whole);
            }
            left = incomplete;
        }
        let key = left.first().and_then(|at| keys.get(*at));
        Err(incomplete_chunks(key.map_or("", String::as_str)))
    }

    /// The chunks of these records. Chunks in `at_hand` are not read again.
    async fn fetch(
        &self,
        records: &[(&String, &Record)],
        at_hand: HashMap<String, Vec<u8>>,
    ) -> Result<HashMap<String, Vec<u8>>> {
        let mut wanted = Vec::new();
        for (key, record) in records {
            if let Some(manifest) = manifest_of(key, record)? {
                wanted.extend((0..manifest.n_chunks).map(|n| chunk_key(key, &record.revision, n)));
            }
        }
        wanted.retain(|key| !at_hand.contains_key(key));
        let mut chunks = at_hand;
        if !wanted.is_empty() {
            let found = self.store.get(&wanted).await?;
            let found = wanted.into_iter().zip(found);
            chunks.extend(found.filter_map(|(key, record)| Some((key, record?.value))));
        }
        Ok(chunks)
    }

    async fn page(&self, prefix: &str, page: Page) -> Result<Vec<(String, Record)>> {
        let limit = page.limit.unwrap_or(usize::MAX);
        let mut after = page.after.map(|after| after + BEHIND_CHUNKS);
        let mut records: Vec<(String, Record)> = Vec::new();
        let mut chunks = HashMap::new();
        while records.len() < limit {
            let asked = page.limit.map(|limit| limit - records.len());
            let part = Page { after: after.take(), limit: asked, keys_only: page.keys_only };
            let found = self.store.list(prefix, part).await?;
            let full = asked == Some(found.len());
            after = found.last().map(|(key, _)| key.clone());
            for (key, record) in found {
                if is_chunk(&key) {
                    chunks.insert(key, record.value);
                } else {
                    records.push((key, record));
                }
            }
            if !full {
                break;
            }
        }
        if page.keys_only { Ok(records) } else { self.whole(records, chunks).await }
    }

    /// The values of listed records, joined. A record that was replaced meanwhile is read again; one that was removed is left out.
    async fn whole(
        &self,
        records: Vec<(String, Record)>,
        at_hand: HashMap<String, Vec<u8>>,
    ) -> Result<Vec<(String, Record)>> {
        let named: Vec<_> = records.iter().map(|(key, record)| (key, record)).collect();
        let chunks = self.fetch(&named, at_hand).await?;
        let mut joined = Vec::with_capacity(records.len());
        for (key, mut record) in records {
            if join(&key, &mut record, &chunks)? {
                joined.push((key, record));
            } else if let [Some(record)] =
                self.read(std::slice::from_ref(&key)).await?.as_mut_slice()
            {
                joined.push((key, record.clone()));
            }
        }
        Ok(joined)
    }

    async fn write(&self, batch: &Batch) -> Result<Committed> {
        let mut cut = Batch { put: Vec::new(), ..batch.clone() };
        for prefix in &cut.remove_prefix {
            // Such a prefix could contain the chunks of a record without the record.
            if prefix.ends_with('-') {
                let message = format!("the prefix {prefix} ends inside a part of a key");
                return Err(Error::new(ErrorKind::Internal, message));
            }
        }
        for (key, value) in &batch.put {
            self.put(&mut cut, key, value)?;
        }
        cut.remove_prefix.extend(self.outdated(batch).await?);
        self.store.commit(&cut).await
    }

    /// Prefixes of the chunks that the batch makes outdated. Only chunks that exist are removed: some databases lock an
    /// empty range when it is removed, and two new sessions would wait for each other.
    async fn outdated(&self, batch: &Batch) -> Result<Vec<String>> {
        let keys: Vec<String> =
            batch.put.iter().map(|(key, _)| key).chain(&batch.remove).cloned().collect();
        let found = self.store.get(&keys).await?;
        let mut prefixes = Vec::new();
        for (key, record) in keys.into_iter().zip(found) {
            // Even a manifest that cannot be read has chunks.
            if record.is_some_and(|record| record.value.first() == Some(&MANIFEST)) {
                prefixes.push(key + MARK);
            }
        }
        Ok(prefixes)
    }

    /// Puts a value, in chunks if it is too large.
    fn put(&self, batch: &mut Batch, key: &str, value: &[u8]) -> Result<()> {
        if is_chunk(key) {
            return Err(Error::new(ErrorKind::Internal, format!("the key {key} has {MARK} in it")));
        }
        if value.len() <= self.max_bytes && value.first() != Some(&MANIFEST) {
            batch.put.push((key.to_owned(), value.to_vec()));
            return Ok(());
        }
        let chunks: Vec<&[u8]> = value.chunks(self.max_bytes).collect();
        let last = chunk_key(key, &batch.revision, chunks.len());
        if chunks.len() > MOST_CHUNKS || last.len() > LONGEST_KEY {
            let most = self.max_bytes.saturating_mul(MOST_CHUNKS);
            let message = format!("a record of {} bytes is too large for the store", value.len());
            return Err(Error::new(ErrorKind::StateTooLarge, message).hint(format!(
                "send a smaller input: in this store a record has at most {most} bytes"
            )));
        }
        for (n, chunk) in chunks.iter().enumerate() {
            batch.put.push((chunk_key(key, &batch.revision, n), chunk.to_vec()));
        }
        let manifest = Manifest { n_chunks: chunks.len(), n_bytes: value.len() };
        batch.put.push((key.to_owned(), manifest.to_bytes()));
        Ok(())
    }
}

impl Store for Chunks {
    fn capabilities(&self) -> Capabilities {
        Capabilities { max_value_bytes: None, ..self.store.capabilities() }
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(self.read(keys))
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(self.page(prefix, page))
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(self.write(batch))
    }
}

impl Manifest {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![MANIFEST];
        bytes.extend(format!("{} {}", self.n_chunks, self.n_bytes).into_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Manifest> {
        let (n_chunks, n_bytes) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        let n_chunks = n_chunks.parse().ok().filter(|n| *n <= MOST_CHUNKS)?;
        Some(Manifest { n_chunks, n_bytes: n_bytes.parse().ok()? })
    }
}

/// The manifest in a record, if its value is stored in chunks.
fn manifest_of(key: &str, record: &Record) -> Result<Option<Manifest>> {
    match record.value.split_first() {
        Some((&MANIFEST, rest)) => {
            let manifest = Manifest::from_bytes(rest);
            manifest.map(Some).ok_or_else(|| incomplete_chunks(key))
        }
        _ => Ok(None),
    }
}

/// Joins the chunks of a record. `false`: a chunk is missing.
fn join(key: &str, record: &mut Record, chunks: &HashMap<String, Vec<u8>>) -> Result<bool> {
    let Some(manifest) = manifest_of(key, record)? else { return Ok(true) };
    let mut value = Vec::new();
    for n in 0..manifest.n_chunks {
        let Some(chunk) = chunks.get(&chunk_key(key, &record.revision, n)) else {
            return Ok(false);
        };
        value.extend_from_slice(chunk);
    }
    if value.len() != manifest.n_bytes {
        return Err(incomplete_chunks(key));
    }
    record.value = value;
    Ok(true)
}

/// Compares bytes: a text search would add code to the wasm.
fn is_chunk(key: &str) -> bool {
    key.as_bytes().windows(MARK.len()).any(|pair| pair == MARK.as_bytes())
}

fn chunk_key(key: &str, revision: &str, n: usize) -> String {
    format!("{key}{MARK}{revision}.{n:04}")
}

fn incomplete_chunks(key: &str) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("the chunks of {key} are incomplete"))
        .hint("the records are unchanged; restore the store from a backup")
}
