//! A call as TypeScript pulls it.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::{Cancel, Cause, Outbox};
use crate::error::ErrorKind;
use crate::event::Event;
use crate::json;
use crate::message::Message;
use crate::wasm::error::to_js;
use crate::wasm::task::numbered;

/// A call under way. Stopping and emitting go through handles of their own, never through the call that is polled.
#[wasm_bindgen]
pub struct Call {
    number: u32,
    waker: Waker,
    id: String,
    call: Cell<Option<engine::Call>>,
    cancel: Cancel,
    outbox: Rc<Outbox>,
    cause: Cell<JsValue>,
}

impl Call {
    pub(super) fn new(call: engine::Call) -> Call {
        let (number, waker) = numbered();
        let (id, cancel, outbox) = (call.id().to_string(), call.cancel(), call.outbox());
        Call {
            number,
            waker,
            id,
            call: Cell::new(Some(call)),
            cancel,
            outbox,
            cause: Cell::default(),
        }
    }
}

#[wasm_bindgen]
impl Call {
    /// What `wake` is called with.
    #[wasm_bindgen(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The call's id.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.id.clone()
    }

    /// Goes on. Answers with the events that have come as one JSON list, or `undefined` while it waits; the last
    /// list ends in `call-end` or `error`. A call that nobody watches has only that last event to tell.
    pub fn poll(&self, watched: bool) -> Option<String> {
        let mut call = self.call.take()?;
        match call.poll_batch(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(events) => {
                if let Some(Err(failed)) = call.ended() {
                    self.cause.set(to_js(&failed.error));
                }
                let over = call.ended().is_some();
                self.call.set(Some(call));
                if watched {
                    return Some(json::to_text(&events));
                }
                over.then(|| events.back().map(|last| json::to_text(&[last]))).flatten()
            }
            Poll::Pending => {
                self.call.set(Some(call));
                None
            }
        }
    }

    /// The error it failed with, `cause` and all, once it has.
    pub fn failure(&self) -> JsValue {
        self.cause.take()
    }

    /// Interrupts it; the messages (a JSON list) are what the user says next.
    pub fn stop(&self, says: &str) -> std::result::Result<(), JsValue> {
        let says: Value = serde_json::from_str(says).unwrap_or_default();
        let says = json::list(&says, Message::from_input).map_err(|misread| {
            to_js(
                &misread
                    .into_error(ErrorKind::InputInvalid, "the message")
                    .hint("say text, a message { content }, or a list of messages"),
            )
        })?;
        self.cancel.ask(Cause::Stopped(says));
        Ok(())
    }

    /// Ends it because its signal fired.
    pub fn abort(&self) {
        self.cancel.ask(Cause::Aborted);
    }

    /// Shows something of a tool that runs.
    pub fn emit(&self, tool_call_id: String, delta: String) {
        self.outbox.push(Event::ToolDelta { tool_call_id, delta });
    }
}
