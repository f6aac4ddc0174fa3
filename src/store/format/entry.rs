//! Entries of the log. They are appended and never rewritten; `parent` makes them a tree.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::error::ErrorKind;
use crate::event::Reason;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, CallState, Edits, Message, ToolUse, TurnState};
use crate::state::Facts;
use crate::store::format::view;
use crate::store::format::view::ViewPiece;
use crate::store::keys::EntryRef;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A whole call, or its last part.
    Turn,
    /// A part of a call that was saved before the call ended.
    Step,
    /// A summary, and the part of the view that it replaced.
    Summary,
    /// Messages that were put by hand.
    Put,
    /// An accepted input whose call was cut off.
    Recovered,
}

impl EntryKind {
    fn from_json(value: &Value) -> Read<EntryKind> {
        match value.as_str() {
            Some("turn") => Ok(EntryKind::Turn),
            Some("step") => Ok(EntryKind::Step),
            Some("summary") => Ok(EntryKind::Summary),
            Some("put") => Ok(EntryKind::Put),
            Some("recovered") => Ok(EntryKind::Recovered),
            _ => Err(Misread::new("turn, step, summary, put or recovered")),
        }
    }
}

/// How the call of an entry ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Why it ended, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Value>,
    /// The code of the error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The structured output, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl Outcome {
    /// The call succeeded.
    pub fn ended(reason: Reason) -> Outcome {
        Outcome { reason: Some(json::to_value(&reason)), code: None, message: None, output: None }
    }

    /// Whether it left tool calls open.
    pub fn is_open(&self) -> bool {
        let open = [Reason::Asking, Reason::Suspended];
        open.iter().any(|reason| Some(json::to_value(reason)) == self.reason)
    }

    /// How a question of the call stands. `None`: it is answered.
    pub fn turn_state(&self) -> Option<TurnState> {
        if let Some(code) = &self.code {
            let is_stop = [ErrorKind::Aborted, ErrorKind::ShuttingDown];
            return Some(match is_stop.iter().any(|kind| kind.code() == code) {
                true => TurnState::Interrupted,
                false => TurnState::Failed(code.clone(), self.message.clone().unwrap_or_default()),
            });
        }
        if self.is_open() {
            return Some(TurnState::Open);
        }
        self.is_interrupted().then_some(TurnState::Interrupted)
    }

    fn is_interrupted(&self) -> bool {
        self.reason == Some(json::to_value(&Reason::Interrupted))
    }

    /// Whether a crash or a shutdown has cut off the turn of an entry of this kind, so that a call can continue it.
    pub fn is_cut_off(&self, kind: EntryKind) -> bool {
        let is_shut_down = self.code.as_deref() == Some(ErrorKind::ShuttingDown.code());
        is_shut_down || kind == EntryKind::Recovered && self.is_interrupted()
    }

    /// The call failed.
    pub fn failed(code: &str, message: &str) -> Outcome {
        Outcome {
            reason: None,
            code: Some(code.to_owned()),
            message: Some(message.to_owned()),
            output: None,
        }
    }

    fn from_json(value: &Value) -> Read<Outcome> {
        let fields = Fields::of(value)?;
        Ok(Outcome {
            reason: fields.optional("reason", json::any)?,
            code: fields.optional("code", json::text)?,
            message: fields.optional("message", json::text)?,
            output: fields.optional("output", json::any)?,
        })
    }
}

/// A later change of a tool call in an earlier message. The log is never rewritten, so the change is stored apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallUpdate {
    /// The message.
    pub message: String,
    /// The tool call in it.
    pub call: String,
    /// The new state of the tool call.
    pub state: CallState,
    /// Why the result comes from outside, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// The question that a person was asked about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// The new input, if a person has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl CallUpdate {
    /// The new state of a tool call; the message is filled in later.
    pub fn new(call: &str, state: CallState) -> CallUpdate {
        CallUpdate {
            message: String::new(),
            call: call.to_owned(),
            state,
            awaits: None,
            asked: None,
            input: None,
            rest: Object::new(),
        }
    }

    /// The changes of tool calls between two versions of the same messages.
    pub fn since(then: &[Rc<Message>], now: &[Rc<Message>]) -> Vec<CallUpdate> {
        let mut changes = Vec::new();
        for (then, now) in then.iter().zip(now) {
            let calls = then.tool_uses().zip(now.tool_uses());
            for (then, call) in calls.filter(|(then, now)| then != now) {
                let ToolUse { id, state, awaits, asked, input, .. } = call.clone();
                let input = Some(input).filter(|input| *input != then.input);
                let message = now.id.clone();
                changes.push(CallUpdate {
                    message,
                    awaits,
                    asked,
                    input,
                    ..CallUpdate::new(&id, state)
                });
            }
        }
        changes
    }

    /// Applies the change to a message.
    pub fn apply(&self, message: &mut Rc<Message>) {
        for block in &mut Rc::make_mut(message).content {
            if let Block::ToolUse(call) = block
                && call.id == self.call
            {
                call.state = self.state;
                call.awaits = self.awaits.clone();
                call.asked = self.asked.clone();
                if let Some(input) = &self.input {
                    call.input = input.clone();
                }
            }
        }
    }

    /// Applies the change to its message, which is searched from the end. `false`: the message is not among them.
    pub fn apply_to(&self, messages: &mut [Rc<Message>]) -> bool {
        let message = messages.iter_mut().rev().find(|message| message.id == self.message);
        message.map(|message| self.apply(message)).is_some()
    }

    fn from_json(value: &Value) -> Read<CallUpdate> {
        let fields = Fields::of(value)?;
        Ok(CallUpdate {
            message: fields.required("message", json::text)?,
            call: fields.required("call", json::text)?,
            state: fields.required("state", CallState::from_json)?,
            awaits: fields.optional("awaits", json::text)?,
            asked: fields.optional("asked", json::any)?,
            input: fields.optional("input", json::any)?,
            rest: fields.rest(&["message", "call", "state", "awaits", "asked", "input"]),
        })
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its id. The key contains its number too.
    pub id: String,
    /// The entry before it on its path.
    pub parent: Option<EntryRef>,
    /// Its kind.
    pub kind: EntryKind,
    /// The call that wrote it.
    pub call_id: String,
    /// Its messages.
    pub messages: Vec<Rc<Message>>,
    /// Later changes of tool calls in earlier messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CallUpdate>,
    /// How the call ended, in its last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The part of the view that a summary stands for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ViewPiece>,
    /// How messages of that part were shown to the model.
    #[serde(skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
    /// Whether a summary entry stands for the whole view before it. Other summaries stand for its beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub revises: bool,
    /// The AgentState fields before the question before this entry, if they differ from the fields before this entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Facts>,
    /// Ids of the messages of its question, if other messages of the user follow them directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// Whether an older version has copied it from another session of the same user.
    #[serde(skip)]
    pub is_copied: bool,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Entry {
    /// An entry of the kind `put`, still without messages.
    pub fn put(name: &EntryRef, parent: Option<EntryRef>) -> Entry {
        Entry {
            id: name.id.clone(),
            parent,
            kind: EntryKind::Put,
            call_id: String::new(),
            messages: Vec::new(),
            changes: Vec::new(),
            outcome: None,
            replaced: Vec::new(),
            edits: Edits::default(),
            revises: false,
            earlier: None,
            asked: Vec::new(),
            is_copied: false,
            rest: Object::new(),
        }
    }

    /// A view without this summary, which has this name: what it replaced is shown again.
    pub(in crate::store) fn undone(&self, view: &[ViewPiece], name: &EntryRef) -> Vec<ViewPiece> {
        match self.revises {
            true => view::unrevised(view, &self.replaced, &(name.clone(), self.messages.len())),
            false => view::join(&self.replaced, view.get(1..).unwrap_or_default()),
        }
    }

    /// Whether it ends a turn that a provider has rejected for its content.
    pub(in crate::store) fn is_rejected(&self) -> bool {
        let code = self.outcome.as_ref().and_then(|outcome| outcome.code.as_deref());
        ErrorKind::ALL.iter().any(|kind| kind.is_for_content() && Some(kind.code()) == code)
    }

    /// Whether it is a summary of messages that are unknown, because it was imported without them.
    pub(in crate::store) fn hides_unknown(&self) -> bool {
        let replaces = self.messages.first().and_then(|message| message.replaces());
        let says_none = replaces.is_some_and(|it| it.get("messages") == Some(&0.into()));
        self.replaced.is_empty() && !self.revises && !says_none
    }

    /// Reads a stored entry.
    pub fn from_json(value: &Value) -> Read<Entry> {
        const KNOWN: &[&str] = &[
            "id", "parent", "kind", "callId", "messages", "changes", "outcome", "replaced",
            "edits", "revises", "earlier", "asked", "key", "check",
        ];
        let fields = Fields::of(value)?;
        Ok(Entry {
            id: fields.required("id", json::text)?,
            parent: fields.optional("parent", EntryRef::from_json)?,
            kind: fields.required("kind", EntryKind::from_json)?,
            call_id: fields.or_default("callId", json::text)?,
            messages: fields.required("messages", messages)?,
            changes: fields
                .or_default("changes", |value| json::list(value, CallUpdate::from_json))?,
            outcome: fields.optional("outcome", Outcome::from_json)?,
            replaced: fields.or_default("replaced", view::pieces)?,
            edits: fields.or_default("edits", Edits::from_json)?,
            revises: fields.or_default("revises", json::boolean)?,
            earlier: fields.optional("earlier", Facts::from_json)?,
            asked: fields.or_default("asked", json::texts)?,
            is_copied: false,
            rest: fields.rest(KNOWN),
        })
    }
}

/// Reads a list of messages.
pub(in crate::store) fn messages(value: &Value) -> Read<Vec<Rc<Message>>> {
    json::list(value, |item| Message::from_json(item).map(Rc::new))
}
