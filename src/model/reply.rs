//! The deltas of a reply, which are the same for every dialect, and the errors of providers.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::json::halves;
use crate::message::{Delta, Finish};
use crate::model::wire::{JsonPart, object};
use crate::policy::failure::{self, Failure};
use crate::policy::redact::redacted;

/// Collects deltas for the engine, and remembers what later deltas depend on.
#[derive(Debug, Default)]
pub struct ReplyDeltas {
    /// The deltas that have arrived since they were last taken.
    pub deltas: Vec<Delta>,
    /// Why the model ended, once it has said so.
    pub finish: Option<Finish>,
    /// Whether nothing more can come.
    pub is_over: bool,
    /// The model that replies. Its own thoughts and calls are sent back to it later.
    pub model: String,
    /// Whether the last delta belongs to a thought.
    thinking: bool,
    /// Whether the model has refused to answer.
    refused: bool,
}

impl ReplyDeltas {
    /// An empty reply of this model.
    pub fn of(model: &str) -> ReplyDeltas {
        ReplyDeltas { model: model.to_owned(), ..ReplyDeltas::default() }
    }

    /// Appends text.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.thinking = false;
            self.deltas.push(Delta::Text(text.to_owned()));
        }
    }

    /// Appends the text of a refusal.
    pub(super) fn refusal(&mut self, text: &str) {
        self.refused = true;
        self.text(text);
    }

    /// Whether the model has refused to answer.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Appends to a thought. `more` is provider data that must be sent back with it.
    pub(super) fn thought(
        &mut self,
        text: &str,
        signature: Option<&str>,
        more: Vec<(&str, JsonPart<'_>)>,
    ) {
        let (text, signature) = (text.to_owned(), signature.map(str::to_owned));
        self.deltas.push(Delta::Thinking { text, signature });
        let mut kept = more;
        if !self.thinking {
            kept.push(("model", self.model.clone().into()));
        }
        self.thinking = true;
        if !kept.is_empty() {
            self.deltas.push(Delta::Provider(object(&mut kept)));
        }
    }

    /// Appends to a tool call. `kept` is provider data that must be sent back with it.
    pub(super) fn call(
        &mut self,
        index: u64,
        fragment: Fragment<'_>,
        kept: Vec<(&str, JsonPart<'_>)>,
    ) {
        self.thinking = false;
        let mut kept = kept;
        if !kept.is_empty() {
            kept.push(("model", self.model.clone().into()));
        }
        let Fragment { id, name, arguments } = fragment;
        self.deltas.push(Delta::ToolCall {
            index,
            id: id.filter(|id| !id.is_empty()).map(str::to_owned),
            name: name.filter(|name| !name.is_empty()).map(str::to_owned),
            arguments,
            provider: (!kept.is_empty()).then(|| object(&mut kept)),
        });
    }

    /// Adds data that must be sent back to the model with the current text block.
    pub(super) fn sign(&mut self, signature: (&str, JsonPart<'_>)) {
        let model = ("model", self.model.as_str().into());
        self.deltas.push(Delta::Provider(object(&mut [signature, model])));
    }

    /// Ends the current block.
    pub(super) fn end_block(&mut self) {
        self.thinking = false;
        self.deltas.push(Delta::End);
    }

    /// Ends the reply with its finish reason.
    pub(super) fn finished(&mut self, finish: Finish) {
        self.finish = Some(finish);
        self.deltas.push(Delta::Finish(finish));
    }

    /// Reports the usage in tokens.
    pub(super) fn usage(&mut self, input: Option<u64>, output: Option<u64>, cached: Option<u64>) {
        if input.or(output).or(cached).is_some() {
            self.deltas.push(Delta::Usage { input, output, cached });
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Default)]
pub(super) struct Fragment<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) arguments: String,
}

/// A member, or null.
#[inline(never)]
pub(super) fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The text of a member.
#[inline(never)]
pub(super) fn text_in<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    member(value, name).as_str()
}

/// The number of a member.
#[inline(never)]
pub(super) fn number_in(value: &Value, name: &str) -> Option<u64> {
    member(value, name).as_u64()
}

/// The items of a member that is a list.
#[inline(never)]
pub(super) fn list_in<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    member(value, name).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The error for an error response of a provider.
pub(super) fn refusal(failure: Failure<'_>) -> Error {
    let meaning = failure::meaning(failure);
    let kind = meaning.kind.unwrap_or(ErrorKind::ModelFailed);
    let mut message = String::from("the provider ");
    message.push_str(meaning.verdict);
    if failure.status != 200 {
        message.push_str(&format!(" ({})", failure.status));
    }
    if !meaning.sentence.is_empty() {
        message.push_str(": ");
        message.push_str(&redacted(&meaning.sentence));
    }
    let error = Error::new(kind, message).advise(meaning.advice);
    match meaning.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The error for an error object inside a reply with status 200.
pub(super) fn broken(frame: &Value) -> Error {
    let body = halves::without_marks(&frame.to_string());
    refusal(Failure { status: 200, body: &body, ..Failure::default() })
}
