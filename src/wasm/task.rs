//! Futures as JavaScript drives them: polled from outside, woken through one function.
//!
//! `spawn_local` would run them in a microtask of its own, where a trap is an uncaught exception that ends a Node
//! process and leaves every promise pending. Here TypeScript calls `poll` and catches what comes.
//!
//! For promises and timers nothing of ours is called back, either: JavaScript keeps what has come, and wakes the task that
//! last asked for it. A closure of ours for each would cost it a finaliser, and us a way in that has to be guarded.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::Result;
use crate::future::Local;
use crate::wasm::error::to_js;

#[wasm_bindgen]
extern "C" {
    /// What TypeScript does for an instance. None of it runs anybody's code before it returns.
    pub type JsInstance;
    /// Takes note that a task can go on.
    #[wasm_bindgen(method, catch)]
    fn wake(this: &JsInstance, task: u32) -> std::result::Result<(), JsValue>;
    /// Takes note of the place of a fault of ours.
    #[wasm_bindgen(method, catch)]
    fn report(this: &JsInstance, place: &str) -> std::result::Result<(), JsValue>;
    /// Comes when the page is no longer frozen; none if it is not.
    #[wasm_bindgen(method)]
    pub(super) fn thawed(this: &JsInstance) -> Option<Promise>;
    /// Waits for a promise.
    #[wasm_bindgen(method)]
    fn wait(this: &JsInstance, promise: &Promise) -> JsWait;
    /// Begins a timer, which ends with the instance: after a trap nothing would clear it.
    #[wasm_bindgen(method)]
    fn sleep(this: &JsInstance, ms: f64) -> JsWait;

    /// Something that JavaScript waits for in our place.
    type JsWait;
    /// Whether it has come (1) or failed (2); if it has not yet (0), it will wake this task.
    #[wasm_bindgen(method)]
    fn poll(this: &JsWait, task: u32) -> u32;
    /// What has come, or was thrown.
    #[wasm_bindgen(method, getter)]
    fn value(this: &JsWait) -> JsValue;
    /// Ends a timer.
    #[wasm_bindgen(method)]
    fn cancel(this: &JsWait);
}

thread_local! {
    static INSTANCE: RefCell<Option<JsInstance>> = const { RefCell::new(None) };
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// The task that is polled now. Nothing of ours polls with a waker of its own.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// What TypeScript does for this instance, once it is installed.
pub(super) fn instance<T>(ask: impl FnOnce(&JsInstance) -> T) -> Option<T> {
    INSTANCE.with(|place| place.borrow().as_ref().map(ask))
}

/// Waits for a promise.
pub(super) async fn settled(promise: Promise) -> std::result::Result<JsValue, JsValue> {
    let Some(wait) = instance(|instance| instance.wait(&promise)) else {
        // Nobody polls tasks here: a test of the stores alone.
        return JsFuture::from(promise).await;
    };
    poll_fn(|_| match wait.poll(CURRENT.get()) {
        0 => Poll::Pending,
        1 => Poll::Ready(Ok(wait.value())),
        _ => Poll::Ready(Err(wait.value())),
    })
    .await
}

/// A timer that is cleared when nobody waits for it any more: a Node process would live on for it.
pub(super) struct Timer(Option<JsWait>);

impl Timer {
    pub(super) fn new(ms: f64) -> Timer {
        Timer(instance(|instance| instance.sleep(ms)))
    }

    pub(super) fn poll(&self) -> Poll<()> {
        match &self.0 {
            Some(timer) if timer.poll(CURRENT.get()) > 0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(timer) = &self.0 {
            timer.cancel();
        }
    }
}

/// Tells this instance who serves it.
#[wasm_bindgen]
pub fn install(instance: JsInstance) {
    INSTANCE.with(|place| *place.borrow_mut() = Some(instance));
    // Only the place: the message of a panic could hold what a user said.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        if let Some(place) = place {
            let _ = self::instance(|instance| instance.report(&place));
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
    set_timeout(Closure::once_into_js(|| trap(None)).unchecked_ref());
}

#[cfg(feature = "testing")]
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(then: &js_sys::Function);
}

/// What a future calls when it can go on: the number of its task.
struct Number(u32);

impl Wake for Number {
    fn wake(self: Arc<Self>) {
        // A waker must be `Send`, which nothing of JavaScript's is: so it knows a number, and the rest is here.
        // If taking note throws, there is nobody left to tell.
        let _ = instance(|instance| instance.wake(self.0));
    }
}

/// Polls something as part of a task.
pub(super) fn poll<T>(
    (number, waker): (u32, &Waker),
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    CURRENT.set(number);
    poll(&mut Context::from_waker(waker))
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
        match poll((self.number, &self.waker), |context| future.as_mut().poll(context)) {
            Poll::Ready(Ok(answer)) => Ok(Some(answer)),
            Poll::Ready(Err(error)) => Err(to_js(&error)),
            Poll::Pending => {
                self.future.set(Some(future));
                Ok(None)
            }
        }
    }
}
