//! A call that TypeScript polls.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::{Cancel, Cause, Live, Outbox, Shown};
use crate::error::ErrorKind;
use crate::event::Event;
use crate::json;
use crate::message::{Block, Message};
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::task::{numbered, poll};

/// A running call. `stop` and `emit` use separate handles, because the call itself may be borrowed by `poll`.
#[wasm_bindgen]
pub struct Call {
    number: u32,
    waker: Waker,
    id: String,
    call: Cell<Option<engine::Call>>,
    cancel: Cancel,
    outbox: Rc<Outbox>,
    live: Rc<Live>,
    cause: Cell<JsValue>,
}

impl Call {
    pub(crate) fn new(call: engine::Call) -> Call {
        let (number, waker) = numbered();
        let (id, cancel, outbox) = (call.id().to_string(), call.cancel(), call.outbox());
        let live = call.live();
        Call {
            number,
            waker,
            id,
            call: Cell::new(Some(call)),
            cancel,
            outbox,
            live,
            cause: Cell::default(),
        }
    }

    pub(crate) fn of_child(child: &engine::Child) -> Call {
        let (number, waker) = numbered();
        let (cancel, outbox) = (child.cancel.clone(), Rc::clone(&child.outbox));
        let (id, live) = (child.task.id.clone(), Rc::clone(&child.live));
        let (call, cause) = (Cell::new(None), Cell::default());
        Call { number, waker, id, call, cancel, outbox, live, cause }
    }
}

#[wasm_bindgen]
impl Call {
    /// The number that `wake` is called with.
    #[wasm_bindgen(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The call's id.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        self.id.clone()
    }

    /// Polls the call. Returns the new events as one JSON list, or `undefined` while the call waits. The last list ends
    /// with `call-end` or `error`. A call that is not watched returns only that last event; earlier events stay unread.
    pub fn poll(&self, watched: bool) -> Option<String> {
        let mut call = self.call.take()?;
        self.outbox.watch(watched);
        let shown = poll((self.number, &self.waker), |context| {
            if watched {
                return call.poll_batch(context).map(|events| json::to_text(&events));
            }
            let last = |()| self.outbox.take().pop_back().map(|last| json::to_text(&[last]));
            call.poll_end(context).map(last).map(Option::unwrap_or_default)
        });
        if let Some(Err(failed)) = call.ended() {
            self.cause.set(to_js(&failed.error));
        }
        self.call.set(Some(call));
        match shown {
            Poll::Ready(events) => Some(events),
            Poll::Pending => None,
        }
    }

    /// The error of a failed call, with its `cause`.
    #[wasm_bindgen(unchecked_return_type = "unknown")]
    pub fn failure(&self) -> JsValue {
        self.cause.take()
    }

    /// Interrupts the call; `says` is a JSON list of the user's next messages.
    pub fn stop(&self, says: &str) -> JsResult<()> {
        let says = json::foreign(says.as_bytes(), json::DEEPEST).unwrap_or_default();
        let says = json::list(&says, Message::from_input).map_err(|misread| {
            to_js(
                &misread
                    .into_error(ErrorKind::InputInvalid, "the message")
                    .hint("pass text, a message { content }, or a list of messages"),
            )
        })?;
        self.cancel.ask(Cause::Stopped(says));
        Ok(())
    }

    /// Ends the call because its abort signal fired.
    pub fn abort(&self) {
        self.cancel.ask(Cause::Aborted);
    }

    /// Adds a warning to the events.
    pub fn warn(&self, code: String, message: String) {
        self.outbox.push(Event::Warning { code, message });
    }

    /// Adds partial output of a running tool to the events.
    pub fn emit(&self, tool_call_id: String, delta: String) {
        self.outbox.push(Event::ToolDelta { tool_call_id, delta });
    }

    /// Adds a block that a running tool shows to the events. `block` is JSON.
    #[wasm_bindgen(js_name = emitBlock)]
    pub fn emit_block(&self, tool_call_id: String, block: &str) -> JsResult<()> {
        let block = json::foreign(block.as_bytes(), json::DEEPEST).unwrap_or_default();
        let block = Block::from_json(&block).map_err(|misread| {
            to_js(
                &misread
                    .into_error(ErrorKind::InputInvalid, "the block")
                    .hint("pass text, or a block such as { type: \"image\", source }"),
            )
        })?;
        self.outbox.push(Event::ToolBlock { tool_call_id, block });
        Ok(())
    }

    /// The AgentState without its messages, as JSON; only while a tool or hook runs.
    pub fn state(&self) -> Option<String> {
        self.live.without_messages().map(|state| json::to_text(&state))
    }

    /// The lineage of its messages, and how many of them have not changed since JavaScript last read them.
    pub fn shown(&self) -> Option<Vec<f64>> {
        let Shown { context, lineage, .. } = self.live.shown()?;
        let unchanged = lineage.take_unchanged().min(context.len());
        Some(vec![lineage.id() as f64, unchanged as f64])
    }

    /// The messages after the first `known` ones, as a JSON list.
    pub fn added(&self, known: usize) -> String {
        let shown = self.live.shown();
        let added = shown.as_ref().and_then(|shown| shown.context.get(known..));
        json::to_text(&added.unwrap_or_default())
    }
}
