//! The record of an accepted input. It is kept until its call has ended.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Message;
use crate::state::Facts;
use crate::store::format::entry::messages;
use crate::store::id;
use crate::store::keys::EntryRef;

/// The end of the path of a resend whose answer is not stored yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResendPath {
    /// The last entry; `None` before the first entry of the log.
    pub leaf: Option<EntryRef>,
    /// Number of messages on the path.
    pub messages: u64,
}

impl ResendPath {
    fn from_json(value: &Value) -> Read<ResendPath> {
        let fields = Fields::of(value)?;
        Ok(ResendPath {
            leaf: fields.optional("leaf", EntryRef::from_json)?,
            messages: fields.or_default("messages", json::count)?,
        })
    }
}

/// An accepted input, as it is stored until its call has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The call.
    pub call_id: String,
    /// Whether the caller chose the call id. Then the outcome is kept under that id.
    pub named: bool,
    /// The messages of the input; empty if they are in the log already.
    pub messages: Vec<Rc<Message>>,
    /// Answers to open tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Value>,
    /// The [`digest`](Input::digest) of an input whose messages are in the log already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Whether the call is a resend: it answers the last question again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resends: bool,
    /// The id of the earlier question that the resend answers again; `None` for the last question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether the resend leaves the permissions as they are, and plan mode on: its caller may not change them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub holds_permissions: bool,
    /// The AgentState fields before the question before this one, if they have changed since. The entry of the question keeps
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Facts>,
    /// The path that the resend continues, if it leaves the current path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ResendPath>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Input {
    /// The record of the same input once its messages are in the log.
    pub fn again(&self) -> Input {
        let asked = self.asked.clone().unwrap_or_else(|| self.digest());
        Input {
            messages: Vec::new(),
            answers: Vec::new(),
            asked: Some(asked),
            earlier: None,
            ..self.clone()
        }
    }

    /// A hash of the messages and answers, to compare two inputs.
    pub fn digest(&self) -> String {
        let said: Vec<_> = self.messages.iter().map(|message| &message.content).collect();
        id::digest(&json::to_bytes(&(said, &self.answers)))
    }

    /// Reads a stored input.
    pub fn from_json(value: &Value) -> Read<Input> {
        const KNOWN: &[&str] = &[
            "callId",
            "named",
            "messages",
            "answers",
            "asked",
            "resends",
            "from",
            "holdsPermissions",
            "earlier",
            "path",
            "key",
            "check",
        ];
        let fields = Fields::of(value)?;
        Ok(Input {
            call_id: fields.required("callId", json::text)?,
            named: fields.or_default("named", json::boolean)?,
            messages: fields.required("messages", messages)?,
            answers: fields.or_default("answers", |value| json::list(value, json::any))?,
            asked: fields.optional("asked", json::text)?,
            resends: fields.or_default("resends", json::boolean)?,
            from: fields.optional("from", json::text)?,
            holds_permissions: fields.or_default("holdsPermissions", json::boolean)?,
            earlier: fields.optional("earlier", Facts::from_json)?,
            path: fields.optional("path", ResendPath::from_json)?,
            rest: fields.rest(KNOWN),
        })
    }
}
