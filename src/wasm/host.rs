//! Time and chance of whatever runs us: page, worker, edge or Node.

use std::cell::RefCell;
use std::future::poll_fn;

use js_sys::{Date, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::future::Local;
use crate::port::Host;
use crate::wasm::task::Timer;

#[wasm_bindgen]
extern "C" {
    // Taken from the global scope when called, not when loaded: Workers forbid chance and timers at start-up.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(bytes: &Uint8Array);

    /// An agent as other nodes know it. None of it runs anybody's code.
    pub(super) type JsNode;
    #[wasm_bindgen(method, catch)]
    fn name(this: &JsNode) -> std::result::Result<String, JsValue>;
    #[wasm_bindgen(method, catch, js_name = isGone)]
    fn is_gone(this: &JsNode, node: &str) -> std::result::Result<bool, JsValue>;
}

/// Random bytes that are fetched ahead.
const POOLED: usize = 1_024;

thread_local!(static POOL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });

/// The longest time a timer takes; a longer one would fire at once.
const LONGEST: u64 = 2_147_483_647;

/// The host that JavaScript is; the node is whoever shares a store with others.
pub(super) struct JsHost {
    pub(super) node: Option<JsNode>,
}

impl Host for JsHost {
    fn now_ms(&self) -> f64 {
        Date::now()
    }

    fn random(&self, bytes: &mut [u8]) {
        POOL.with(|pool| {
            let mut pool = pool.borrow_mut();
            // Chance is fetched in bulk: a call needs a dozen ids, and each way to JavaScript costs microseconds.
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
pub(super) fn sleep(ms: u64) -> Local<'static, ()> {
    let mut timer = None;
    // The timer begins at the first poll: what is ready at once never makes one.
    Box::pin(poll_fn(move |_| {
        timer.get_or_insert_with(|| Timer::new(ms.min(LONGEST) as f64)).poll()
    }))
}
