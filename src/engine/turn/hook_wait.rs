//! Waits for the answer of a hook.
//!
//! A hook is code of the application, so it may never end. Each hook has a deadline, and a call that is told to end does
//! not wait for its hooks.

use std::future::pending;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::cancel::Cause;
use crate::engine::call::scope::CallScope;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::port::{Hook, HookRun, Point};

/// How long a call that was told to end waits for all its `onEnd` hooks.
const MAX_FAREWELL_MS: u64 = 1_000;

/// The answer of a hook within its deadline; `None` if the call is told to end.
pub(in crate::engine) async fn answer_unless_stopped(
    scope: &CallScope<'_>,
    hook: &dyn Hook,
    given: (Point, &str),
    run: HookRun<'_>,
) -> Result<Option<Value>> {
    if scope.is_stopped() {
        return Ok(None);
    }
    match race(scope.cancel.asked(), answer(scope, hook, given, run)).await {
        Either::First(()) => Ok(None),
        Either::Second(answer) => answer.map(Some),
    }
}

/// The answer of a hook within its deadline.
pub(in crate::engine) async fn answer(
    scope: &CallScope<'_>,
    hook: &dyn Hook,
    (point, given): (Point, &str),
    run: HookRun<'_>,
) -> Result<Value> {
    let ms = scope.options.timeouts.hook;
    match race(hook.at(point, given, run), scope.host.sleep(ms)).await {
        Either::First(answer) => answer.map_err(|error| failed(hook, &error)),
        Either::Second(()) => Err(too_slow(hook, point, ms)),
    }
}

/// Ends when the call waits for its `onEnd` hooks no longer: at the next request to end it, or soon if there was one
/// before its outcome was stored.
pub(in crate::engine) fn no_patience<'a>(scope: &CallScope<'a>) -> Local<'a, ()> {
    let CallScope { cancel, host, .. } = *scope;
    let passed = match cancel.cause() {
        None => Box::pin(pending()),
        Some(Cause::Deleted) => host.sleep(0),
        Some(_) => host.sleep(MAX_FAREWELL_MS),
    };
    let asked_again = cancel.asked_again();
    Box::pin(async move {
        let (Either::First(()) | Either::Second(())) = race(asked_again, passed).await;
    })
}

/// The error if a hook throws. It stops the call.
fn failed(hook: &dyn Hook, error: &Error) -> Error {
    let message = format!("the middleware \"{}\" failed: {}", hook.name(), error.message());
    let failed = Error::new(ErrorKind::Middleware, message).hint("the messages so far are stored");
    match error.cause() {
        Some(cause) => failed.with_cause(Rc::clone(cause)),
        None => failed,
    }
}

/// The error if a hook does not answer within its deadline. It stops the call.
fn too_slow(hook: &dyn Hook, point: Point, ms: u64) -> Error {
    let (name, point) = (hook.name(), point.word());
    let message = format!("{point} of the middleware \"{name}\" did not finish within {ms} ms");
    Error::new(ErrorKind::Middleware, message)
        .hint("the messages so far are stored; raise timeouts.hook if the hook needs more time")
}
