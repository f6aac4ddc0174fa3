//! Time and randomness of the host: page, worker, edge or Node.

use std::cell::RefCell;
use std::future::poll_fn;

use js_sys::{Date, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::future::Local;
use crate::port::Host;
use crate::wasm::error::JsResult;
use crate::wasm::task::Timer;

#[wasm_bindgen]
extern "C" {
    // Read from the global scope when called, not when loaded: Workers forbid randomness and timers at start-up.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &Uint8Array);

    /// The identity of an agent among the nodes that share a store. Its methods run no code of users.
    pub type JsNode;
    #[wasm_bindgen(method, catch)]
    fn name(this: &JsNode) -> JsResult<String>;
    #[wasm_bindgen(method, catch, js_name = isGone)]
    fn is_gone(this: &JsNode, node: &str) -> JsResult<bool>;
}

/// How many random bytes are fetched in advance.
const POOLED: usize = 1_024;

thread_local!(static POOL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });

/// The longest time of a timer in milliseconds. A timer with a longer time fires at once.
const LONGEST: u64 = 2_147_483_647;

/// The JavaScript host: page, worker, edge or Node.
pub(crate) struct JsHost {
    /// The node that shares a store with others.
    node: Option<JsNode>,
}

impl JsHost {
    pub(crate) fn new(node: Option<JsNode>) -> JsHost {
        JsHost { node }
    }
}

impl Host for JsHost {
    fn now_ms(&self) -> f64 {
        Date::now()
    }

    fn random(&self, bytes: &mut [u8]) {
        POOL.with(|pool| {
            let mut pool = pool.borrow_mut();
            // Random bytes are fetched in bulk: a call needs a dozen ids, and each crossing costs time.
            if pool.len() < bytes.len() {
                let filled = Uint8Array::new_with_length((POOLED + bytes.len()) as u32);
                get_random_values(&filled);
                *pool = filled.to_vec();
            }
            let kept = pool.len() - bytes.len();
            bytes.copy_from_slice(&pool.split_off(kept));
        });
    }

    fn node(&self) -> String {
        self.node.as_ref().and_then(|node| node.name().ok()).unwrap_or_default()
    }

    fn is_gone(&self, node: &str) -> bool {
        self.node.as_ref().and_then(|own| own.is_gone(node).ok()).unwrap_or_default()
    }

    fn sleep(&self, ms: u64) -> Local<'static, ()> {
        sleep(ms)
    }
}

/// Waits.
pub(crate) fn sleep(ms: u64) -> Local<'static, ()> {
    let mut timer = None;
    // The timer is created at the first poll. So no timer is created if the other future of a `race` is ready at once.
    Box::pin(poll_fn(move |_| {
        timer.get_or_insert_with(|| Timer::new(ms.min(LONGEST) as f64)).poll()
    }))
}
