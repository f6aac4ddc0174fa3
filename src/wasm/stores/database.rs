//! An open IndexedDB database, and the ways in which opening it fails.

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
use crate::wasm::error::{JsResult, from_js, name_of};
use crate::wasm::ports::host::sleep;
use crate::wasm::task::{instance, settled};

/// The object store that holds everything.
pub(crate) const RECORDS: &str = "records";

/// How long opening may wait for other pages that block it. Shorter than the engine's timeout for a store, so that the
/// error of the caller names the cause.
const BLOCKED_MS: u64 = 5_000;

/// Waits between attempts if the browser has lost its database. A later attempt often succeeds.
pub(crate) const AGAIN_MS: &[u64] = &[50, 250, 1_000];

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
    ) -> JsResult<IdbTransaction>;
}

/// An open database. It is closed when it is dropped, so that it never blocks another page.
pub(crate) struct Connection {
    database: Database,
    closed: Rc<Cell<bool>>,
    _on_close: Closure<dyn FnMut()>,
}

impl Connection {
    /// Opens a database. Failures that may be temporary are tried again.
    pub(crate) async fn open(name: &str) -> Result<Connection> {
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
        // Another page wants to upgrade or delete the database, or the browser closes it: close our connection, and
        // open a new one when needed.
        let on_close = Closure::<dyn FnMut()>::new(move || {
            flag.set(true);
            handle.close();
        });
        database.set_onversionchange(Some(on_close.as_ref().unchecked_ref()));
        database.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Connection { database, closed, _on_close: on_close }
    }

    /// Whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.get()
    }

    /// A transaction over all records.
    pub(crate) fn begin(&self, mode: &str, durability: &str) -> JsResult<Transaction> {
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
        // Running transactions still complete.
        self.database.close();
    }
}

/// A transaction, and the object store of the records in it.
pub(crate) type Transaction = (IdbTransaction, IdbObjectStore);

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
    // If a policy forbids storage, reading the property may throw.
    let factory = Reflect::get(&js_sys::global(), &"indexedDB".into())?;
    let factory = factory.dyn_into::<IdbFactory>().map_err(|_| Unopened::Absent)?;
    let request: IdbOpenDbRequest = factory.open_with_u32(name, 1)?;
    let upgrading = request.clone();
    let damaged = Rc::new(Cell::new(false));
    let flag = Rc::clone(&damaged);
    let on_upgrade = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
        // Chromium replaces a database that it cannot read by an empty one. Only `dataLoss` shows this.
        let loss = Reflect::get(&event, &"dataLoss".into()).ok().and_then(|it| it.as_string());
        flag.set(loss.as_deref() == Some("total"));
        let database = upgrading.result().ok().and_then(|it| it.dyn_into::<IdbDatabase>().ok());
        if let Some(database) = database {
            // A failure here aborts the upgrade, and so the request fails.
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
            // The database may still be opened, or even created, later. Then the upgrade must complete, and the
            // connection is closed at once.
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
pub(crate) enum TransactionEnd {
    /// It has completed.
    Done,
    /// It was aborted because the page was about to be frozen. Nothing was written. The page is no longer frozen.
    GivenUp,
    /// It failed. As far as the browser knows, nothing was written.
    Threw(JsValue),
}

/// Waits until a transaction has ended. A page that is frozen during a transaction blocks all other pages, until the
/// browser ends the transaction after a minute. So the transaction is aborted before the freeze, and can be tried
/// again.
pub(crate) async fn ended(transaction: &IdbTransaction) -> TransactionEnd {
    let given_up = Rc::new(Cell::new(false));
    let (flag, handle) = (Rc::clone(&given_up), transaction.clone());
    // `abort` throws if the transaction is already committing or was aborted before. Neither blocks other pages.
    let _listening = OnFreeze::new(move || flag.set(flag.get() || handle.abort().is_ok()));
    let ending = Promise::new(&mut |resolve, reject| {
        transaction.set_oncomplete(Some(&resolve));
        transaction.set_onabort(Some(&reject));
    });
    match settled(ending).await {
        Ok(_) => TransactionEnd::Done,
        Err(_) if given_up.get() => TransactionEnd::GivenUp,
        Err(_) => {
            TransactionEnd::Threw(transaction.error().map_or(JsValue::UNDEFINED, JsValue::from))
        }
    }
}

/// Waits while the page is frozen. A frozen page may still get a lock or a message. A transaction that it began then
/// would block other pages.
pub(crate) async fn thawed() {
    while let Some(thawed) = instance(|instance| instance.thawed()).flatten() {
        // This promise never rejects.
        let _ = settled(thawed).await;
    }
}

/// Calls a function when the page is about to be frozen, until this value is dropped. Only pages are frozen.
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

/// Whether the browser has lost the connection, so that a new one may work.
pub(crate) fn is_lost(thrown: &JsValue) -> bool {
    matches!(name_of(thrown).as_str(), "UnknownError" | "InvalidStateError")
}

/// Converts a value that IndexedDB threw.
pub(crate) fn failed(thrown: JsValue) -> Error {
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
        "NotFoundError" => {
            (ErrorKind::StoreCorrupt, "another program created this database; use another name")
        }
        "UnknownError" => (
            ErrorKind::StoreUnavailable,
            "the browser cannot reach its own database: restart it, or free space on the disk; nothing was deleted",
        ),
        _ => (ErrorKind::StoreUnavailable, "try again; if it keeps failing, reload the page"),
    };
    from_js(thrown, kind).within("IndexedDB failed").hint(hint)
}

fn blocked(name: &str) -> Error {
    let message = format!("another page holds the database \"{name}\"");
    Error::new(ErrorKind::StoreBlocked, message).hint("close other tabs of this site and try again")
}

fn absent() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "this environment has no IndexedDB")
        .hint("use memoryStore() instead")
}

/// The error if the browser has replaced a damaged database. Later openings see only the empty database.
fn damaged(name: &str) -> Error {
    let message = format!(
        "the browser found the database \"{name}\" damaged and has put an empty one in its place"
    );
    Error::new(ErrorKind::StoreCorrupt, message)
        .hint("its sessions are lost; import exported sessions, or continue with new ones")
}
