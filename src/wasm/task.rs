//! Futures that JavaScript polls. Each is a task with a number, and `wake` tells JavaScript which task can continue.
//!
//! `spawn_local` would run futures in microtasks. There a trap is an uncaught exception: it ends a Node process and
//! leaves every promise pending. Here TypeScript calls `poll` and catches the trap.
//!
//! Promises and timers do not call Rust either: JavaScript keeps the result and wakes the task that last asked for it.
//! A Rust closure for each promise would need a finaliser, and would be one more entry point where a trap must be
//! caught.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::Result;
use crate::future::Local;
use crate::wasm::error::{JsResult, to_js};

#[wasm_bindgen]
extern "C" {
    /// The services of TypeScript for an instance of the wasm. Its methods run no code of users before they return.
    #[wasm_bindgen(typescript_type = "JsInstance")]
    pub type JsInstance;
    /// Records that a task can continue.
    #[wasm_bindgen(method, catch)]
    fn wake(this: &JsInstance, task: u32) -> JsResult<()>;
    /// Records the place of a panic.
    #[wasm_bindgen(method, catch)]
    fn report(this: &JsInstance, place: &str) -> JsResult<()>;
    /// A promise that resolves when the page is no longer frozen; none if it is not frozen.
    #[wasm_bindgen(method)]
    pub(crate) fn thawed(this: &JsInstance) -> Option<Promise>;
    /// Waits for a promise.
    #[wasm_bindgen(method)]
    fn wait(this: &JsInstance, promise: &Promise) -> JsWait;
    /// Starts a timer. It ends with the instance, because after a trap nothing would clear it.
    #[wasm_bindgen(method)]
    fn sleep(this: &JsInstance, ms: f64) -> JsWait;

    /// A promise or a timer that JavaScript waits for.
    type JsWait;
    /// 1 if it has resolved, 2 if it has failed. If it is 0, JavaScript wakes this task later.
    #[wasm_bindgen(method)]
    fn poll(this: &JsWait, task: u32) -> u32;
    /// The result, or the thrown value.
    #[wasm_bindgen(method, getter)]
    fn value(this: &JsWait) -> JsValue;
    /// Clears a timer.
    #[wasm_bindgen(method)]
    fn cancel(this: &JsWait);
}

thread_local! {
    static INSTANCE: RefCell<Option<JsInstance>> = const { RefCell::new(None) };
    static LAST: Cell<u32> = const { Cell::new(0) };
    /// The task that is polled now. No Rust code polls with another waker.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// Calls the services of TypeScript for this instance, if they are installed.
pub(crate) fn instance<T>(ask: impl FnOnce(&JsInstance) -> T) -> Option<T> {
    INSTANCE.with(|place| place.borrow().as_ref().map(ask))
}

/// Waits for a promise.
pub(crate) async fn settled(promise: Promise) -> JsResult<JsValue> {
    let Some(wait) = instance(|instance| instance.wait(&promise)) else {
        // No instance is installed: this is a test of the stores alone.
        return JsFuture::from(promise).await;
    };
    poll_fn(|_| match wait.poll(CURRENT.get()) {
        0 => Poll::Pending,
        1 => Poll::Ready(Ok(wait.value())),
        _ => Poll::Ready(Err(wait.value())),
    })
    .await
}

/// A timer that is cleared when it is dropped. A timer that is left running would keep a Node process alive.
pub(crate) struct Timer(Option<JsWait>);

impl Timer {
    pub(crate) fn new(ms: f64) -> Timer {
        Timer(instance(|instance| instance.sleep(ms)))
    }

    pub(crate) fn poll(&self) -> Poll<()> {
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

/// Installs the services of TypeScript for this instance.
#[wasm_bindgen]
pub fn install(instance: JsInstance) {
    INSTANCE.with(|place| *place.borrow_mut() = Some(instance));
    // Only the place is reported: the message of a panic could contain text of a user.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        if let Some(place) = place {
            let _ = self::instance(|instance| instance.report(&place));
        }
    }));
}

/// Panics with this text in its message. For tests of the behaviour after a trap.
#[cfg(feature = "testing")]
#[wasm_bindgen]
#[expect(clippy::panic, reason = "this function exists to panic")]
pub fn trap(says: Option<String>) {
    panic!("a trap was asked for: {}", says.unwrap_or_default());
}

/// Panics in the callback of a timer, where no caller could catch it.
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

/// The waker of a task: it knows only the task's number.
struct Number(u32);

impl Wake for Number {
    fn wake(self: Arc<Self>) {
        // A waker must be `Send`, and JavaScript values are not: so the waker holds a number.
        // An error of `wake` is ignored, because no caller could handle it.
        let _ = instance(|instance| instance.wake(self.0));
    }
}

/// Polls a part of a task.
pub(crate) fn poll<T>(
    (number, waker): (u32, &Waker),
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    CURRENT.set(number);
    poll(&mut Context::from_waker(waker))
}

/// The number and the waker of a new task.
pub(crate) fn numbered() -> (u32, Waker) {
    let number = LAST.get().wrapping_add(1);
    LAST.set(number);
    (number, Waker::from(Arc::new(Number(number))))
}

/// A future with one answer, which TypeScript polls.
#[wasm_bindgen]
pub struct PolledTask {
    number: u32,
    waker: Waker,
    future: Cell<Option<Local<'static, Result<JsValue>>>>,
}

impl PolledTask {
    pub(crate) fn new(future: Local<'static, Result<JsValue>>) -> PolledTask {
        let (number, waker) = numbered();
        PolledTask { number, waker, future: Cell::new(Some(future)) }
    }
}

#[wasm_bindgen]
impl PolledTask {
    /// The number that `wake` is called with.
    #[wasm_bindgen(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Polls the future. Returns the answer, throws the error, or returns `undefined` while the future waits.
    #[wasm_bindgen(unchecked_return_type = "unknown")]
    pub fn poll(&self) -> JsResult<Option<JsValue>> {
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
