//! Locks that JavaScript keeps: Web Locks where there are any, else one list for this realm.

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::port::{Held, Lock};
use crate::wasm::error::from_js;
use crate::wasm::js::settled;

#[wasm_bindgen]
extern "C" {
    /// A wish for a lock, and the lock itself once `ready` has come; at once where there is none.
    type JsHeld;
    #[wasm_bindgen(method, getter)]
    fn ready(this: &JsHeld) -> Option<Promise>;
    #[wasm_bindgen(method, getter)]
    fn lost(this: &JsHeld) -> Option<Promise>;
    #[wasm_bindgen(method, catch)]
    fn release(this: &JsHeld) -> std::result::Result<(), JsValue>;
}

/// Asks JavaScript for locks, by name.
pub(super) struct JsLock(pub(super) Function);

impl Lock for JsLock {
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>> {
        Box::pin(async move {
            let wish = self.0.call1(&JsValue::NULL, &name.into());
            let wish = wish.map_err(|thrown| from_js(thrown, ErrorKind::Internal))?;
            // Released when dropped, also while it is still only a wish.
            let held = Release(wish.unchecked_into());
            if let Some(ready) = held.0.ready() {
                settled(Ok(ready.into()), ErrorKind::Internal).await?;
            }
            Ok(Box::new(held) as Box<dyn Held>)
        })
    }
}

struct Release(JsHeld);

impl Held for Release {
    fn lost(&self) -> Local<'_, ()> {
        match self.0.lost() {
            Some(lost) => Box::pin(async move {
                let _ = settled(Ok(lost.into()), ErrorKind::Internal).await;
            }),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        // It settles a promise or aborts a wish, which runs nobody's code before we are done.
        let _ = self.0.release();
    }
}
