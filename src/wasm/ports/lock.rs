//! Locks that JavaScript implements: Web Locks if the host has them, otherwise a list in this realm.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Held, Lock};
use crate::wasm::error::{JsResult, from_js};
use crate::wasm::values::settled;

#[wasm_bindgen]
extern "C" {
    /// Locks by name, as `src/npm/host/lock-port.ts` makes them.
    #[wasm_bindgen(typescript_type = "JsLocks")]
    pub type JsLocks;
    /// Requests the lock with this name.
    #[wasm_bindgen(method, catch)]
    fn acquire(this: &JsLocks, name: &str) -> JsResult<JsHeld>;

    /// Resolves to whether anybody holds the lock with this name now.
    #[wasm_bindgen(method, catch, js_name = isHeld)]
    fn is_held(this: &JsLocks, name: &str) -> JsResult<Promise>;

    /// A request for a lock. The lock is held once `ready` has resolved, or at once if there is no `ready`.
    type JsHeld;
    #[wasm_bindgen(method, getter)]
    fn ready(this: &JsHeld) -> Option<Promise>;
    /// Resolves if another holder has taken the lock from us.
    #[wasm_bindgen(method, getter)]
    fn lost(this: &JsHeld) -> Option<Promise>;
    /// Releases the lock, or withdraws the request.
    #[wasm_bindgen(method, catch)]
    fn release(this: &JsHeld) -> JsResult<()>;
}

/// Requests locks from JavaScript, by name.
pub(crate) struct JsLock(JsLocks);

impl JsLock {
    pub(crate) fn new(locks: JsLocks) -> JsLock {
        JsLock(locks)
    }
}

impl Lock for JsLock {
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>> {
        Box::pin(async move {
            let asked = self.0.acquire(name);
            let asked = asked.map_err(|thrown| from_js(thrown, ErrorKind::Internal))?;
            // Dropping it releases the lock, and withdraws a request that is not granted yet.
            let held = HeldByJs(asked);
            if let Some(ready) = held.0.ready() {
                settled(Ok(ready.into()), ErrorKind::Internal).await?;
            }
            Ok(Box::new(held) as Box<dyn Held>)
        })
    }

    fn is_held<'a>(&'a self, name: &'a str) -> Local<'a, Result<bool>> {
        Box::pin(async move {
            let held = settled(self.0.is_held(name).map(Into::into), ErrorKind::Internal).await?;
            Ok(held.is_truthy())
        })
    }
}

struct HeldByJs(JsHeld);

impl Held for HeldByJs {
    fn lost(&self) -> Local<'_, ()> {
        match self.0.lost() {
            Some(lost) => Box::pin(async move {
                let _ = settled(Ok(lost.into()), ErrorKind::Internal).await;
            }),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Drop for HeldByJs {
    fn drop(&mut self) {
        // This resolves a promise or aborts a request. No code of users runs before this method returns.
        let _ = self.0.release();
    }
}
