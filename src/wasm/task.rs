//! Futures as JavaScript drives them: polled from outside, woken through one function.
//!
//! `spawn_local` would run them in a microtask of its own, where a trap is an uncaught exception that ends a Node
//! process and leaves every promise pending. Here TypeScript calls `poll` and catches what comes.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use wasm_bindgen::prelude::*;

use crate::error::Result;
use crate::future::Local;
use crate::wasm::error::to_js;

#[wasm_bindgen]
extern "C" {
    /// What TypeScript does for an instance. None of it runs anybody's code before it returns.
    #[derive(Clone)]
    pub type JsInstance;
    /// Takes note that a task can go on.
    #[wasm_bindgen(method, catch)]
    fn wake(this: &JsInstance, task: u32) -> std::result::Result<(), JsValue>;
    /// Takes note of the place of a fault of ours.
    #[wasm_bindgen(method, catch)]
    fn report(this: &JsInstance, place: &str) -> std::result::Result<(), JsValue>;
    /// Comes when the page is no longer frozen; none if it is not.
    #[wasm_bindgen(method)]
    pub(super) fn thawed(this: &JsInstance) -> Option<js_sys::Promise>;
    /// Begins a timer, which ends with the instance: after a trap nothing would clear it.
    #[wasm_bindgen(method, js_name = setTimer)]
    pub(super) fn set_timer(this: &JsInstance, then: &js_sys::Function, ms: f64) -> JsValue;
    #[wasm_bindgen(method, js_name = clearTimer)]
    pub(super) fn clear_timer(this: &JsInstance, timer: &JsValue);
}

thread_local! {
    static INSTANCE: RefCell<Option<JsInstance>> = const { RefCell::new(None) };
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// What TypeScript does for this instance, once it is installed.
pub(super) fn instance() -> Option<JsInstance> {
    INSTANCE.with(|place| place.borrow().clone())
}

/// Tells this instance who serves it.
#[wasm_bindgen]
pub fn install(instance: JsInstance) {
    INSTANCE.with(|place| *place.borrow_mut() = Some(instance));
    // Only the place: the message of a panic could hold what a user said.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        if let (Some(place), Some(instance)) = (place, self::instance()) {
            let _ = instance.report(&place);
        }
    }));
}

/// Traps, as a fault of ours would, with what somebody said in its message: for tests of what happens then.
#[cfg(feature = "testing")]
#[wasm_bindgen]
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn trap(says: Option<String>) {
    panic!("a trap was asked for: {}", says.unwrap_or_default());
}

/// Traps in the callback of a timer, where nobody could catch it.
#[cfg(feature = "testing")]
#[wasm_bindgen(js_name = trapLater)]
pub fn trap_later() {
    if let Some(instance) = instance() {
        let then = Closure::once_into_js(|| trap(None));
        instance.set_timer(then.unchecked_ref(), 0.0);
    }
}

/// What a future calls when it can go on: the number of its task.
struct Number(u32);

impl Wake for Number {
    fn wake(self: Arc<Self>) {
        // A waker must be `Send`, which nothing of JavaScript's is: so it knows a number, and the rest is here.
        if let Some(instance) = instance() {
            // If taking note throws, there is nobody left to tell.
            let _ = instance.wake(self.0);
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
