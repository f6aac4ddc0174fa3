//! What is heard of an answer, whichever dialect it is in.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::message::{Delta, Finish};
use crate::model::wire::{Part, object};
use crate::policy::failure::{self, Failure};
use crate::policy::redact::redacted;

/// Deltas on their way out, and what must be known of those that are gone.
#[derive(Debug, Default)]
pub struct Heard {
    /// What has come since it was last taken.
    pub deltas: Vec<Delta>,
    /// Why the model ended, once it has said so.
    pub finish: Option<Finish>,
    /// Whether nothing more can come.
    pub is_over: bool,
    /// The model that is asked: thoughts and calls of its own are shown to it again.
    pub model: String,
    /// Whether a thought is being heard.
    thinking: bool,
}

impl Heard {
    /// An answer of this model.
    pub fn of(model: &str) -> Heard {
        Heard { model: model.to_owned(), ..Heard::default() }
    }

    /// More words.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.thinking = false;
            self.deltas.push(Delta::Text(text.to_owned()));
        }
    }

    /// More of a thought; `more` is what the model wants to see again with it, besides its own name.
    pub(super) fn thought(
        &mut self,
        text: &str,
        signature: Option<&str>,
        more: Vec<(&str, Part<'_>)>,
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

    /// More of a tool call; `kept` is what the model wants to see again with it.
    pub(super) fn call(&mut self, index: u64, fragment: Fragment<'_>, kept: Vec<(&str, Part<'_>)>) {
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

    /// What the model wants to see again with the words at hand.
    pub(super) fn sign(&mut self, signature: (&str, Part<'_>)) {
        let model = ("model", self.model.as_str().into());
        self.deltas.push(Delta::Provider(object(&mut [signature, model])));
    }

    /// The block at hand ends.
    pub(super) fn end_block(&mut self) {
        self.thinking = false;
        self.deltas.push(Delta::End);
    }

    /// The model has said why it ended.
    pub(super) fn finished(&mut self, finish: Finish) {
        self.finish = Some(finish);
        self.deltas.push(Delta::Finish(finish));
    }

    /// What it cost, by the names that a dialect has for it.
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

/// What a refusal of the provider becomes.
pub(super) fn refusal(failure: Failure<'_>) -> Error {
    let meaning = failure::meaning(failure);
    let kind = meaning.kind.unwrap_or(ErrorKind::ModelFailed);
    let mut message = String::from("the provider ");
    message.push_str(match kind {
        ErrorKind::ModelAuth => "refuses the key",
        ErrorKind::ModelRateLimit => "wants fewer requests",
        ErrorKind::ModelOverloaded => "is overloaded",
        ErrorKind::ModelContextOverflow => "finds the request too large",
        ErrorKind::ModelRefused => "has filtered the answer",
        _ => "refuses the request",
    });
    if failure.status != 200 {
        message.push_str(&format!(" ({})", failure.status));
    }
    if !meaning.sentence.is_empty() {
        message.push_str(": ");
        message.push_str(&redacted(&meaning.sentence));
    }
    let error = Error::new(kind, message).advise(meaning.advice);
    match hint(kind) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// An error object inside an answer that began well.
pub(super) fn broken(frame: &Value) -> Error {
    refusal(Failure { status: 200, body: &frame.to_string(), ..Failure::default() })
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::ModelAuth => Some("check apiKey, and that the account may use this model"),
        ErrorKind::ModelRateLimit | ErrorKind::ModelOverloaded => {
            Some("try again later, or give a fallbackModel")
        }
        ErrorKind::ModelContextOverflow => Some("turn compaction on, or begin a new session"),
        ErrorKind::ModelBadRequest => Some("check model, baseUrl and generate"),
        ErrorKind::ModelRefused => Some("say it in other words"),
        _ => None,
    }
}
