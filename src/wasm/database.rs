//! An IndexedDB database that is open, and the ways in which it can fail to be.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::{
    EventTarget, IdbDatabase, IdbFactory, IdbObjectStore, IdbOpenDbRequest, IdbTransaction,
};

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, race};
use crate::wasm::error::{from_js, name_of};
use crate::wasm::host::sleep;
use crate::wasm::task::{instance, settled};

/// The object store that holds everything.
pub(super) const RECORDS: &str = "records";

/// How long an opening may wait for other pages that are in its way. Shorter than the engine's patience with a store,
/// so that the caller hears who is in the way.
const BLOCKED_MS: u64 = 5_000;

/// Waits between tries where the browser itself has lost its database: it often finds it again.
pub(super) const AGAIN_MS: &[u64] = &[50, 250, 1_000];

#[wasm_bindgen]
extern "C" {
    // web-sys keeps the options of a transaction behind an unstable flag.
    #[wasm_bindgen(extends = IdbDatabase)]
    type Database;
    #[wasm_bindgen(method, catch)]
    fn transaction(
        this: &Database,
        store: &str,
        mode: &str,
        options: &Object,
    ) -> std::result::Result<IdbTransaction, JsValue>;
}

/// An open database; closed when it is dropped, so that it never stands in another page's way.
pub(super) struct Connection {
    database: Database,
    closed: Rc<Cell<bool>>,
    _on_close: Closure<dyn FnMut()>,
}

impl Connection {
    /// Opens a database; what may pass is tried again.
    pub(super) async fn open(name: &str) -> Result<Connection> {
        let mut waits = AGAIN_MS.iter();
        loop {
            let thrown = match open(name).await {
                Ok(database) => return Ok(Connection::of(database.unchecked_into())),
                Err(Unopened::Blocked) => return Err(blocked(name)),
                Err(Unopened::Absent) => return Err(absent()),
                Err(Unopened::Damaged) => return Err(damaged(name)),
                Err(Unopened::Threw(thrown)) => thrown,
            };
            match waits.next() {
                Some(ms) if is_lost(&thrown) => sleep(*ms).await,
                _ => return Err(failed(thrown)),
            }
        }
    }

    fn of(database: Database) -> Connection {
        let closed = Rc::new(Cell::new(false));
        let (flag, handle) = (Rc::clone(&closed), database.clone().unchecked_into::<IdbDatabase>());
        // Another page wants to upgrade or delete the database, or the browser takes it away: let it, and open it
        // again when needed.
        let on_close = Closure::<dyn FnMut()>::new(move || {
            flag.set(true);
            handle.close();
        });
        database.set_onversionchange(Some(on_close.as_ref().unchecked_ref()));
        database.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Connection { database, closed, _on_close: on_close }
    }

    /// Whether it can still be used.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.get()
    }

    /// A transaction over all records.
    pub(super) fn begin(&self, mode: &str, durability: &str) -> Thrown<Transaction> {
        let options = Object::new();
        // Setting a member of a fresh plain object cannot throw.
        let _ = Reflect::set(&options, &"durability".into(), &durability.into());
        let transaction = self.database.transaction(RECORDS, mode, &options)?;
        let records = transaction.object_store(RECORDS)?;
        Ok((transaction, records))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.database.set_onversionchange(None);
        self.database.set_onclose(None);
        // Transactions that are under way still end.
        self.database.close();
    }
}

/// What IndexedDB answers with, or throws.
pub(super) type Thrown<T> = std::result::Result<T, JsValue>;

/// A transaction and the records it is about.
pub(super) type Transaction = (IdbTransaction, IdbObjectStore);

/// Why a database is not open.
enum Unopened {
    Threw(JsValue),
    Blocked,
    Absent,
    /// The browser has replaced it by an empty one.
    Damaged,
}

impl From<JsValue> for Unopened {
    fn from(thrown: JsValue) -> Unopened {
        Unopened::Threw(thrown)
    }
}

/// Opens a database once, and makes its object store the first time.
async fn open(name: &str) -> std::result::Result<IdbDatabase, Unopened> {
    // Where a policy forbids storage, reading the property may throw already.
    let factory = Reflect::get(&js_sys::global(), &"indexedDB".into())?;
    let factory = factory.dyn_into::<IdbFactory>().map_err(|_| Unopened::Absent)?;
    let request: IdbOpenDbRequest = factory.open_with_u32(name, 1)?;
    let upgrading = request.clone();
    let damaged = Rc::new(Cell::new(false));
    let flag = Rc::clone(&damaged);
    let on_upgrade = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
        // Chromium deletes a database that it cannot read and begins another; only this tells.
        let loss = Reflect::get(&event, &"dataLoss".into()).ok().and_then(|it| it.as_string());
        flag.set(loss.as_deref() == Some("total"));
        let database = upgrading.result().ok().and_then(|it| it.dyn_into::<IdbDatabase>().ok());
        if let Some(database) = database {
            // A failure here aborts the upgrade, and the opening with it.
            let _ = database.create_object_store(RECORDS);
        }
    });
    request.set_onupgradeneeded(Some(on_upgrade.as_ref().unchecked_ref()));
    let opened = Promise::new(&mut |resolve, reject| {
        request.set_onsuccess(Some(&resolve));
        request.set_onerror(Some(&reject));
    });
    match race(settled(opened), sleep(BLOCKED_MS)).await {
        Either::First(Ok(_)) => {
            let database: IdbDatabase = request.result()?.unchecked_into();
            if damaged.get() {
                database.close();
                return Err(Unopened::Damaged);
            }
            Ok(database)
        }
        Either::First(Err(_)) => {
            let error = request.error().ok().flatten();
            Err(Unopened::Threw(error.map_or(JsValue::UNDEFINED, JsValue::from)))
        }
        Either::Second(()) => {
            // It may still be opened later, and even be made: then whole, and closed at once.
            on_upgrade.forget();
            let late = request.clone();
            let on_late = Closure::once_into_js(move || {
                if let Ok(database) = late.result() {
                    database.unchecked_into::<IdbDatabase>().close();
                }
            });
            request.set_onsuccess(Some(on_late.unchecked_ref()));
            request.set_onerror(None);
            Err(Unopened::Blocked)
        }
    }
}

/// How a transaction ended.
pub(super) enum Ended {
    /// It is on its way to the disk.
    Done,
    /// The page was about to be frozen, and has been thawed since: nothing of it was done.
    GivenUp,
    /// Nothing of it was done, as far as the browser knows.
    Threw(JsValue),
}

/// Waits until a transaction has ended. A page that is frozen in the middle of one would block every other until the
/// browser loses patience with it, which takes a minute: so the transaction is given up before, and can be begun again.
pub(super) async fn ended(transaction: &IdbTransaction) -> Ended {
    let given_up = Rc::new(Cell::new(false));
    let (flag, handle) = (Rc::clone(&given_up), transaction.clone());
    // One that is being committed cannot be aborted any more, and blocks nobody; nor can one twice.
    let _listening = OnFreeze::new(move || flag.set(flag.get() || handle.abort().is_ok()));
    let ending = Promise::new(&mut |resolve, reject| {
        transaction.set_oncomplete(Some(&resolve));
        transaction.set_onabort(Some(&reject));
    });
    match settled(ending).await {
        Ok(_) => Ended::Done,
        Err(_) if given_up.get() => Ended::GivenUp,
        Err(_) => Ended::Threw(transaction.error().map_or(JsValue::UNDEFINED, JsValue::from)),
    }
}

/// Waits while the page is frozen. It may be granted a lock or hear a message meanwhile, and what it began then would
/// block others like what it was in the middle of.
pub(super) async fn thawed() {
    while let Some(thawed) = instance(|instance| instance.thawed()).flatten() {
        // It never rejects.
        let _ = settled(thawed).await;
    }
}

/// Something that is done when the page is about to be frozen, while this is kept; nothing but a page ever is.
struct OnFreeze {
    page: Option<EventTarget>,
    listener: Closure<dyn FnMut()>,
}

impl OnFreeze {
    fn new(freeze: impl FnMut() + 'static) -> OnFreeze {
        let listener = Closure::<dyn FnMut()>::new(freeze);
        let page = Reflect::get(&js_sys::global(), &"document".into()).unwrap_or_default();
        let page = page.dyn_into::<EventTarget>().ok();
        if let Some(page) = &page {
            // Cannot throw: the event has a name, and the listener is a function.
            let _ =
                page.add_event_listener_with_callback("freeze", listener.as_ref().unchecked_ref());
        }
        OnFreeze { page, listener }
    }
}

impl Drop for OnFreeze {
    fn drop(&mut self) {
        if let Some(page) = &self.page {
            let listener = self.listener.as_ref().unchecked_ref();
            let _ = page.remove_event_listener_with_callback("freeze", listener);
        }
    }
}

/// Whether the browser has lost the connection, and another may do.
pub(super) fn is_lost(thrown: &JsValue) -> bool {
    matches!(name_of(thrown).as_str(), "UnknownError" | "InvalidStateError")
}

/// What IndexedDB threw, as callers branch on it.
pub(super) fn failed(thrown: JsValue) -> Error {
    if thrown.is_undefined() {
        return Error::new(ErrorKind::StoreUnavailable, "the browser ended the transaction")
            .hint("it may have cleared the site's data; try again");
    }
    let (kind, hint) = match name_of(&thrown).as_str() {
        "QuotaExceededError" => {
            (ErrorKind::StoreQuota, "delete sessions, or free space on the disk")
        }
        "VersionError" => {
            (ErrorKind::StateVersion, "a newer version of this page has used the database: reload")
        }
        "SecurityError" => {
            (ErrorKind::StoreUnavailable, "the browser forbids storage here; use memoryStore()")
        }
        "NotFoundError" => (ErrorKind::StoreCorrupt, "another program made it; use another name"),
        "UnknownError" => (
            ErrorKind::StoreUnavailable,
            "the browser cannot reach its own database: restart it, or free space on the disk; nothing was deleted",
        ),
        _ => (ErrorKind::StoreUnavailable, "try again; reload the page if it stays so"),
    };
    from_js(thrown, kind).within("IndexedDB failed").hint(hint)
}

fn blocked(name: &str) -> Error {
    let message = format!("another page holds the database \"{name}\"");
    Error::new(ErrorKind::StoreBlocked, message).hint("close other tabs of this site and try again")
}

fn absent() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "there is no IndexedDB here")
        .hint("use memoryStore() instead")
}

/// Said once, by the opening that found it: nobody else will ever know.
fn damaged(name: &str) -> Error {
    let message = format!(
        "the browser found the database \"{name}\" damaged and has put an empty one in its place"
    );
    Error::new(ErrorKind::StoreCorrupt, message)
        .hint("what was kept there is lost; import what was exported, or go on with new sessions")
}
