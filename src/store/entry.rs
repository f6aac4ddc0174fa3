//! Entries of the log: appended, never rewritten, a tree by `parent`.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::event::Reason;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, CallState, Edits, Message, ToolUse};
use crate::store::head::{self, Piece};

/// Names an entry: `seq` orders, the id identifies, so two writers never share a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryRef {
    /// The place in the log.
    pub seq: u64,
    /// Who it is.
    pub id: String,
}

impl fmt::Display for EntryRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = String::with_capacity(40);
        json::pad(&mut name, self.seq, 12);
        name.push('.');
        name.push_str(&self.id);
        out.write_str(&name)
    }
}

impl Serialize for EntryRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl EntryRef {
    /// Reads `<seq>.<id>`.
    pub fn from_json(value: &Value) -> Read<EntryRef> {
        let parts = value.as_str().and_then(|text| text.split_once('.'));
        let read = parts
            .and_then(|(seq, id)| Some(EntryRef { seq: seq.parse().ok()?, id: id.to_owned() }));
        read.ok_or_else(|| Misread::new("an entry's name, <seq>.<id>"))
    }
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A whole call.
    Turn,
    /// A part of a call that was saved on the way.
    Step,
    /// A summary and what it replaced.
    Summary,
    /// Messages that somebody put there.
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
    /// Why it ended, if it ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Value>,
    /// The code of the error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The error's sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The answer in the form that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl Outcome {
    /// The call ended well.
    pub fn ended(reason: Reason) -> Outcome {
        Outcome { reason: Some(json::to_value(&reason)), code: None, message: None, output: None }
    }

    /// Whether it left tool calls open.
    pub fn is_open(&self) -> bool {
        let open = [Reason::Asking, Reason::Suspended];
        open.iter().any(|reason| Some(json::to_value(reason)) == self.reason)
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

/// A later fact about a tool call in an earlier message: the log is never rewritten.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Later {
    /// The message.
    pub message: String,
    /// The tool call in it.
    pub call: String,
    /// How far the call is now.
    pub state: CallState,
    /// Why its result is to come from outside, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// What a person was asked about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// What it is given instead, if a person has changed that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Later {
    /// That a call has come so far; of which message is still to be said.
    pub fn new(call: &str, state: CallState) -> Later {
        Later {
            message: String::new(),
            call: call.to_owned(),
            state,
            awaits: None,
            asked: None,
            input: None,
            rest: Object::new(),
        }
    }

    /// What has become of the tool calls of some messages since.
    pub fn since(then: &[Rc<Message>], now: &[Rc<Message>]) -> Vec<Later> {
        let mut changes = Vec::new();
        for (then, now) in then.iter().zip(now) {
            let calls = then.tool_uses().zip(now.tool_uses());
            for (then, call) in calls.filter(|(then, now)| then != now) {
                let ToolUse { id, state, awaits, asked, input, .. } = call.clone();
                let input = Some(input).filter(|input| *input != then.input);
                let message = now.id.clone();
                changes.push(Later { message, awaits, asked, input, ..Later::new(&id, state) });
            }
        }
        changes
    }

    /// The call as it is from now on.
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

    /// Makes it so in the latest messages first; `false` if its message is not among them.
    pub fn apply_to(&self, messages: &mut [Rc<Message>]) -> bool {
        let message = messages.iter_mut().rev().find(|message| message.id == self.message);
        message.map(|message| self.apply(message)).is_some()
    }

    fn from_json(value: &Value) -> Read<Later> {
        let fields = Fields::of(value)?;
        Ok(Later {
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
    /// Who it is; the key has its number too.
    pub id: String,
    /// The entry before it on its path.
    pub parent: Option<EntryRef>,
    /// What it is about.
    pub kind: EntryKind,
    /// The call that wrote it.
    pub call_id: String,
    /// What was said.
    pub messages: Vec<Rc<Message>>,
    /// Later facts about earlier messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Later>,
    /// How the call ended, in its last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The part of the view that a summary stands for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Piece>,
    /// How messages of that part were shown.
    #[serde(skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Entry {
    /// An entry that somebody put there by hand, still without messages.
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
            rest: Object::new(),
        }
    }

    /// Reads a stored entry.
    pub fn from_json(value: &Value) -> Read<Entry> {
        const KNOWN: &[&str] = &[
            "id", "parent", "kind", "callId", "messages", "changes", "outcome", "replaced", "edits",
        ];
        let fields = Fields::of(value)?;
        Ok(Entry {
            id: fields.required("id", json::text)?,
            parent: fields.optional("parent", EntryRef::from_json)?,
            kind: fields.required("kind", EntryKind::from_json)?,
            call_id: fields.or_default("callId", json::text)?,
            messages: fields.required("messages", messages)?,
            changes: fields.or_default("changes", |value| json::list(value, Later::from_json))?,
            outcome: fields.optional("outcome", Outcome::from_json)?,
            replaced: fields.or_default("replaced", head::pieces)?,
            edits: fields.or_default("edits", Edits::from_json)?,
            rest: fields.rest(KNOWN),
        })
    }
}

/// Reads messages that will be shared.
pub(super) fn messages(value: &Value) -> Read<Vec<Rc<Message>>> {
    json::list(value, |item| Message::from_json(item).map(Rc::new))
}
