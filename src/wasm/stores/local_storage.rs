//! A store in localStorage, for pages without IndexedDB.
//!
//! Every operation holds a lock with the store's name, so only one tab uses the store at a time. A batch is first
//! written as one item, the journal. From then on it is committed. Then the batch is applied, and the journal is
//! removed. An operation that finds a journal applies it first. The journal is first written with padding of the size
//! that the batch adds. So if the storage is full, it refuses the batch before anything is changed.
//!
//! Each tab has its own copy of the items and sees changes of other tabs late. The item `!done` is written last. It
//! tells the lock (in `src/npm/host/lock-port.ts`) which version of the store a tab sees.
//!
//! An item is the record's revision, a line feed, and the bytes: as text if they are UTF-8 (all our records are),
//! otherwise one UTF-16 unit per byte. (Base64 would need a third more space, and the quota is a few megabytes.)

use std::cell::RefCell;

use gloo_storage::{LocalStorage, Storage as _};
use js_sys::{Array, Reflect};
use serde_json::Value;
use wasm_bindgen::prelude::*;
use web_sys::Storage;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Batch, Capabilities, Committed, Held, Lock, Page, Record, Shared, Store};
use crate::store::keys;
use crate::wasm::error::{from_js, name_of};
use crate::wasm::ports::lock::{JsLock, JsLocks};

/// The first character of a value that is text, and of a value that is not.
const TEXT: char = 't';
const BYTES: char = 'b';

/// The records of one name in this origin's localStorage.
pub struct LocalStore {
    /// The prefix of the names of all items.
    prefix: String,
    /// Its requests fail at once if localStorage is forbidden.
    lock: JsLock,
    index: RefCell<Index>,
}

/// The keys in a version of the store. Without it, every list would read the names of all items.
#[derive(Default)]
struct Index {
    version: Option<String>,
    keys: Vec<String>,
}

/// The changes of a batch to items.
struct ItemChanges {
    gone: Vec<String>,
    items: Vec<(String, String)>,
    version: String,
}

impl LocalStore {
    /// The store of this name. The locks must throw if there is no localStorage.
    pub fn new(name: &str, locks: JsLocks) -> LocalStore {
        let prefix = format!("lockgate:{}", keys::part(name));
        LocalStore { prefix, lock: JsLock::new(locks), index: RefCell::default() }
    }

    /// The store of this configuration, `{ name }`.
    pub(crate) fn open(config: &Value, locks: JsLocks) -> Result<LocalStore> {
        let name = config.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let nameless = || Error::new(ErrorKind::Options, "the store has no name");
        Ok(LocalStore::new(name.ok_or_else(nameless)?, locks))
    }

    /// The storage, and the lock on it: no other tab uses the store until the lock is dropped.
    async fn enter(&self) -> Result<(Box<dyn Held>, Storage)> {
        let held = self.lock.acquire(&self.prefix).await?;
        let storage = storage_here()?;
        if let Some(journal) = item(&storage, &self.journal())? {
            self.apply(&storage, &read_journal(&journal)?)?;
        }
        Ok((held, storage))
    }

    fn journal(&self) -> String {
        format!("{}!journal", self.prefix)
    }

    fn version(&self) -> String {
        format!("{}!version", self.prefix)
    }

    fn name(&self, key: &str) -> String {
        format!("{}:{key}", self.prefix)
    }

    fn record(&self, storage: &Storage, key: &str) -> Result<Option<Record>> {
        item(storage, &self.name(key))?.map(|text| from_text(key, &text)).transpose()
    }

    /// Uses the index of keys, which is read again only if the version of the store has changed.
    fn with_keys<T>(&self, storage: &Storage, look: impl FnOnce(&mut Index) -> T) -> Result<T> {
        let version = item(storage, &self.version())?;
        let mut index = self.index.borrow_mut();
        if version.is_none() || index.version != version {
            let prefix = self.name("");
            let keys = Array::new();
            for at in 0..storage.length().map_err(failed)? {
                let name = storage.key(at).map_err(failed)?.unwrap_or_default();
                if let Some(key) = name.strip_prefix(&prefix) {
                    keys.push(&key.into());
                }
            }
            // Keys are ASCII, so JavaScript sorts them in our order. Its sort adds no code to the wasm.
            keys.sort();
            let keys = keys.iter().filter_map(|key| key.as_string()).collect();
            *index = Index { version, keys };
        }
        Ok(look(&mut index))
    }

    fn page(&self, storage: &Storage, prefix: &str, page: &Page) -> Result<Vec<(String, Record)>> {
        let found: Vec<String> = self.with_keys(storage, |index| {
            let after = page.after.as_deref();
            let below = index.below(prefix).iter();
            let behind = below.filter(|key| after.is_none_or(|after| key.as_str() > after));
            behind.take(page.limit.unwrap_or(usize::MAX)).cloned().collect()
        })?;
        let mut records = Vec::with_capacity(found.len());
        for key in found {
            if let Some(record) = self.record(storage, &key)? {
                records.push((key, record));
            }
        }
        Ok(records)
    }

    fn write(&self, storage: &Storage, batch: &Batch) -> Result<Committed> {
        if let Some((key, expected)) = &batch.expect
            && self.record(storage, key)?.map(|record| record.revision) != *expected
        {
            return Ok(Committed::Conflict);
        }
        let mut gone = batch.remove.clone();
        self.with_keys(storage, |index| {
            gone.extend(batch.remove_prefix.iter().flat_map(|it| index.below(it)).cloned());
        })?;
        let items = batch.put.iter();
        let items = items.map(|(key, value)| (key.clone(), to_text(&batch.revision, value)));
        let version = next_version(item(storage, &self.version())?.as_deref());
        let changes = ItemChanges { gone, items: items.collect(), version };
        let journal = changes.to_text();
        // Trailing blanks reserve the space that the items will take; JSON allows them.
        let room = self.growth(storage, &changes)?;
        set(storage, &self.journal(), &format!("{journal}{}", " ".repeat(room)))?;
        set(storage, &self.journal(), &journal)?;
        // The batch is committed. If another page takes the space now, the next operation continues from the journal.
        let _ = self.apply(storage, &changes);
        Ok(Committed::Done)
    }

    /// How many UTF-16 units the items will take in addition to the present ones.
    fn growth(&self, storage: &Storage, changes: &ItemChanges) -> Result<usize> {
        let mut room = 2 * (self.version().len() + changes.version.len());
        for (key, text) in &changes.items {
            let name = self.name(key);
            let before = item(storage, &name)?.map_or(0, |old| name.len() + units(&old));
            room += (name.len() + units(text)).saturating_sub(before);
        }
        Ok(room)
    }

    /// Applies a committed batch and removes its journal. Applying it twice does no harm.
    fn apply(&self, storage: &Storage, changes: &ItemChanges) -> Result<()> {
        for key in &changes.gone {
            storage.remove_item(&self.name(key)).map_err(failed)?;
        }
        for (key, text) in &changes.items {
            set(storage, &self.name(key), text)?;
        }
        let version = item(storage, &self.version())?;
        set(storage, &self.version(), &changes.version)?;
        storage.remove_item(&self.journal()).map_err(failed)?;
        set(storage, &format!("{}!done", self.prefix), &changes.version)?;
        self.index.borrow_mut().take(version.as_ref(), changes);
        Ok(())
    }
}

impl Index {
    /// The keys of a prefix, in order.
    fn below(&self, prefix: &str) -> &[String] {
        let start = self.keys.partition_point(|key| key.as_str() < prefix);
        let behind = self.keys.get(start..).unwrap_or_default();
        let n = behind.partition_point(|key| key.starts_with(prefix));
        behind.get(..n).unwrap_or_default()
    }

    /// Updates the index after a batch, if the index was up to date before.
    fn take(&mut self, version: Option<&String>, changes: &ItemChanges) {
        if self.version.as_ref() != version {
            return;
        }
        self.version = Some(changes.version.clone());
        for key in &changes.gone {
            if let Ok(at) = self.keys.binary_search(key) {
                self.keys.remove(at);
            }
        }
        for (key, _) in &changes.items {
            if let Err(at) = self.keys.binary_search(key) {
                self.keys.insert(at, key.clone());
            }
        }
    }
}

impl Store for LocalStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::whole(Shared::Origin)
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            let (_held, storage) = self.enter().await?;
            keys.iter().map(|key| self.record(&storage, key)).collect()
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            let (_held, storage) = self.enter().await?;
            self.page(&storage, prefix, &page)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            let (_held, storage) = self.enter().await?;
            self.write(&storage, batch)
        })
    }
}

impl ItemChanges {
    fn to_text(&self) -> String {
        json::to_text(&(&self.gone, &self.items, &self.version))
    }
}

/// The next version. It is never the same twice, even if the storage was cleared in between.
fn next_version(version: Option<&str>) -> String {
    let n = version.and_then(|version| version.get(..12)?.parse::<u64>().ok()).unwrap_or(0);
    let random = (js_sys::Math::random() * f64::from(u32::MAX)) as u32;
    format!("{:012}.{random:08x}", n + 1)
}

fn read_journal(text: &str) -> Result<ItemChanges> {
    let wrong = || {
        Error::new(ErrorKind::StoreCorrupt, "the journal of the localStorage store cannot be read")
            .hint("another program has changed the store's items; they are left unchanged")
    };
    let value = json::parse(text.as_bytes(), "the journal")?;
    let pair = |item: &Value| {
        let [key, text] = item.as_array()?.as_slice() else { return None };
        Some((key.as_str()?.to_owned(), text.as_str()?.to_owned()))
    };
    let read = || {
        let [gone, items, version] = value.as_array()?.as_slice() else { return None };
        let items: Option<Vec<_>> = items.as_array()?.iter().map(pair).collect();
        let version = version.as_str()?.to_owned();
        Some(ItemChanges { gone: json::texts(gone).ok()?, items: items?, version })
    };
    read().ok_or_else(wrong)
}

/// A record as one item.
fn to_text(revision: &str, value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => format!("{revision}\n{TEXT}{text}"),
        Err(_) => {
            let letters: String = value.iter().copied().map(char::from).collect();
            format!("{revision}\n{BYTES}{letters}")
        }
    }
}

fn from_text(key: &str, text: &str) -> Result<Record> {
    let wrong = || {
        Error::new(ErrorKind::StoreCorrupt, format!("the item of {key} is not a lockgate record"))
            .hint("another program has changed it; it is left unchanged")
    };
    let (revision, rest) = text.split_once('\n').ok_or_else(wrong)?;
    let mut letters = rest.chars();
    let value = match letters.next() {
        Some(TEXT) => letters.as_str().as_bytes().to_vec(),
        Some(BYTES) => {
            let bytes: std::result::Result<Vec<u8>, _> = letters.map(u8::try_from).collect();
            bytes.map_err(|_| wrong())?
        }
        _ => return Err(wrong()),
    };
    Ok(Record { value, revision: revision.to_owned() })
}

/// The length of a text in UTF-16 units, which the quota counts.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The storage of this page. A page that is closing loses it, also while it waits for the lock.
fn storage_here() -> Result<Storage> {
    let found = Reflect::get(&js_sys::global(), &"localStorage".into()).map_err(failed)?;
    if found.is_null() || found.is_undefined() {
        let message = "there is no localStorage here any more";
        return Err(Error::new(ErrorKind::StoreUnavailable, message)
            .hint("the page is being closed; open it again"));
    }
    // `raw` would trap without the check above. Nothing runs in between.
    Ok(LocalStorage::raw())
}

fn item(storage: &Storage, name: &str) -> Result<Option<String>> {
    storage.get_item(name).map_err(failed)
}

fn set(storage: &Storage, name: &str, text: &str) -> Result<()> {
    storage.set_item(name, text).map_err(failed)
}

fn failed(thrown: JsValue) -> Error {
    let (kind, hint) = match name_of(&thrown).as_str() {
        "QuotaExceededError" => (
            ErrorKind::StoreQuota,
            "delete sessions, or use indexedDbStore(), which has much more space",
        ),
        _ => (ErrorKind::StoreUnavailable, "use indexedDbStore() instead"),
    };
    from_js(thrown, kind).within("localStorage failed").hint(hint)
}
