//! What a call was asked, as it waits in the store until the call has ended.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Message;
use crate::store::entry::messages;
use crate::store::id;

/// An accepted input, as it is stored until its call has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The call.
    pub call_id: String,
    /// Whether its caller named the call, so that its outcome must be found again.
    pub named: bool,
    /// What was said; nothing, if it is in the log already.
    pub messages: Vec<Rc<Message>>,
    /// What was answered to open tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Value>,
    /// What was said that is not among the messages, as [`digest`](Input::digest) tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Whether the last question is to be answered again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resends: bool,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Input {
    /// The same call on an input that the log has already.
    pub fn again(&self) -> Input {
        let asked = self.asked.clone().unwrap_or_else(|| self.digest());
        Input { messages: Vec::new(), answers: Vec::new(), asked: Some(asked), ..self.clone() }
    }

    /// Tells what was said from all else.
    pub fn digest(&self) -> String {
        let said: Vec<_> = self.messages.iter().map(|message| &message.content).collect();
        id::digest(&json::to_bytes(&(said, &self.answers)))
    }

    /// Reads a stored input.
    pub fn from_json(value: &Value) -> Read<Input> {
        let fields = Fields::of(value)?;
        Ok(Input {
            call_id: fields.required("callId", json::text)?,
            named: fields.or_default("named", json::boolean)?,
            messages: fields.required("messages", messages)?,
            answers: fields.or_default("answers", |value| json::list(value, json::any))?,
            asked: fields.optional("asked", json::text)?,
            resends: fields.or_default("resends", json::boolean)?,
            rest: fields.rest(&["callId", "named", "messages", "answers", "asked", "resends"]),
        })
    }
}
