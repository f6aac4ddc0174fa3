//! A call as TypeScript pulls it.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::engine;
use crate::engine::{Cancel, Cause, Live, Outbox, Shown};
use crate::error::ErrorKind;
use crate::event::Event;
use crate::json;
use crate::message::Message;
use crate::wasm::error::to_js;
use crate::wasm::task::{numbered, poll};

/// A call under way. Stopping and emitting go through handles of their own, never through the call that is polled.
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
    pub(super) fn new(call: engine::Call) -> Call {
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

    pub(super) fn of_child(child: &engine::Child) -> Call {
        let (number, waker) = numbered();
        let (cancel, outbox) = (child.cancel.clone(), Rc::clone(&child.outbox));
        let (id, live) = (child.task.id.clone(), Rc::clone(&child.live));
        let (call, cause) = (Cell::new(None), Cell::default());
        Call { number, waker, id, call, cancel, outbox, live, cause }
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
    /// list ends in `call-end` or `error`. A call that nobody watches has only that last event to tell; what came
    /// before it waits for whoever may watch later.
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

    /// The error it failed with, `cause` and all, once it has.
    pub fn failure(&self) -> JsValue {
        self.cause.take()
    }

    /// Interrupts it; the messages (a JSON list) are what the user says next.
    pub fn stop(&self, says: &str) -> std::result::Result<(), JsValue> {
        let says = json::foreign(says.as_bytes(), json::DEEPEST).unwrap_or_default();
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

    /// Tells whoever watches it something that does not end it.
    pub fn warn(&self, code: String, message: String) {
        self.outbox.push(Event::Warning { code, message });
    }

    /// Shows something of a tool that runs.
    pub fn emit(&self, tool_call_id: String, delta: String) {
        self.outbox.push(Event::ToolDelta { tool_call_id, delta });
    }

    /// The AgentState but for its messages, as JSON; nothing where no tool or hook runs.
    pub fn state(&self) -> Option<String> {
        self.live.without_messages().map(|state| json::to_text(&state))
    }

    /// Of its messages: their lineage, and how many JavaScript may still have as they are.
    pub fn shown(&self) -> Option<Vec<f64>> {
        let Shown { context, lineage, .. } = self.live.shown()?;
        let unchanged = lineage.take_unchanged().min(context.len());
        Some(vec![lineage.id() as f64, unchanged as f64])
    }

    /// Its messages behind the known ones, as a JSON list.
    pub fn added(&self, known: usize) -> String {
        let shown = self.live.shown();
        let added = shown.as_ref().and_then(|shown| shown.context.get(known..));
        json::to_text(&added.unwrap_or_default())
    }
}
