//! Futures as JavaScript drives them: polled from outside, woken through one function.
//!
//! `spawn_local` would run them in a microtask of its own, where a trap is an uncaught exception that ends a Node
//! process and leaves every promise pending. Here TypeScript calls `poll` and catches what comes.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Function;
use wasm_bindgen::prelude::*;

use crate::error::Result;
use crate::future::Local;
use crate::wasm::error::to_js;

thread_local! {
    static WAKE: RefCell<Option<Function>> = const { RefCell::new(None) };
    static REPORT: RefCell<Option<Function>> = const { RefCell::new(None) };
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Tells this instance whom to call when a task can go on, and where a fault of ours is to be reported. Both
/// functions must only take note.
#[wasm_bindgen]
pub fn install(wake: Function, report: Function) {
    WAKE.with(|place| *place.borrow_mut() = Some(wake));
    REPORT.with(|place| *place.borrow_mut() = Some(report));
    // Only the place: the message of a panic could hold what a user said.
    std::panic::set_hook(Box::new(|info| {
        let place =
            info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        if let Some(report) = REPORT.with(|report| report.borrow().clone()) {
            let _ = report.call1(&JsValue::NULL, &place.into());
        }
    }));
}

/// Traps, as a fault of ours would: for tests of what happens then.
#[cfg(feature = "testing")]
#[wasm_bindgen]
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn trap() {
    panic!("a trap was asked for");
}

/// What a future calls when it can go on: the number of its task.
struct Number(u32);

impl Wake for Number {
    fn wake(self: Arc<Self>) {
        // A waker must be `Send`, which a JavaScript function is not: so it knows a number, and the function is here.
        let wake = WAKE.with(|place| place.borrow().clone());
        if let Some(wake) = wake {
            // It only takes note of the number; if it throws, there is nobody left to tell.
            let _ = wake.call1(&JsValue::NULL, &JsValue::from(self.0));
        }
    }
}

/// A number for a new task, and the waker that calls it.
pub(super) fn numbered() -> (u32, Waker) {
    let number = LAST.get().wrapping_add(1);
    LAST.set(number);
    (number, Waker::from(Arc::new(Number(number))))
}

/// Something under way that ends in one answer.
#[wasm_bindgen]
pub struct Task {
    number: u32,
    waker: Waker,
    future: Cell<Option<Local<'static, Result<JsValue>>>>,
}

impl Task {
    pub(super) fn new(future: Local<'static, Result<JsValue>>) -> Task {
        let (number, waker) = numbered();
        Task { number, waker, future: Cell::new(Some(future)) }
    }
}

#[wasm_bindgen]
impl Task {
    /// What `wake` is called with.
    #[wasm_bindgen(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Goes on; answers, throws, or says `undefined` while it waits.
    pub fn poll(&self) -> std::result::Result<Option<JsValue>, JsValue> {
        let Some(mut future) = self.future.take() else { return Ok(None) };
        match future.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(Ok(answer)) => Ok(Some(answer)),
            Poll::Ready(Err(error)) => Err(to_js(&error)),
            Poll::Pending => {
                self.future.set(Some(future));
                Ok(None)
            }
        }
    }
}
