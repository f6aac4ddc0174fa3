//! What a model sends while it answers.

use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More words.
    Text(String),
    /// More of a thought.
    Thinking {
        /// The words.
        text: String,
        /// The provider's proof, once it has come.
        signature: Option<String>,
    },
    /// More of a tool call.
    ToolCall {
        /// The protocol's number of the call in this answer.
        index: u64,
        /// The provider's id, if it sent one.
        id: Option<String>,
        /// The tool, once it is known.
        name: Option<String>,
        /// More of the arguments, as JSON text.
        arguments: String,
        /// What the provider wants back unchanged.
        provider: Option<Value>,
    },
    /// What the provider wants back unchanged with the words or the thought at hand. Only our own dialects send this.
    Provider(Value),
    /// The block at hand ends: what follows is another one, even of the same kind. Only our own dialects send this.
    End,
    /// What it cost; the members given replace earlier ones.
    Usage {
        /// Tokens of the request.
        input: Option<u64>,
        /// Tokens of the answer.
        output: Option<u64>,
        /// Tokens of the request that the provider had cached.
        cached: Option<u64>,
    },
    /// Why the model ended.
    Finish(Finish),
}

/// Why a model ended its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// It ran out of tokens.
    Length,
    /// A filter stopped it.
    Filter,
}

impl Finish {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool-calls",
            Finish::Length => "length",
            Finish::Filter => "filter",
        }
    }

    fn from_json(value: &Value) -> Read<Finish> {
        let all = [Finish::Stop, Finish::ToolCalls, Finish::Length, Finish::Filter];
        let found = all.into_iter().find(|finish| Some(finish.word()) == value.as_str());
        found.ok_or_else(|| Misread::new("stop, tool-calls, length or filter"))
    }
}

impl Delta {
    /// Reads a delta as a model written in JavaScript yields it.
    pub fn from_json(value: &Value) -> Read<Delta> {
        let fields = Fields::of(value)?;
        match fields.required("type", json::text)?.as_str() {
            "text" => fields.required("text", json::text).map(Delta::Text),
            "thinking" => Ok(Delta::Thinking {
                text: fields.or_default("text", json::text)?,
                signature: fields.optional("signature", json::text)?,
            }),
            "tool-call" => Ok(Delta::ToolCall {
                index: fields.or_default("index", json::count)?,
                id: fields.optional("id", json::text)?,
                name: fields.optional("name", json::text)?,
                arguments: fields.or_default("arguments", json::text)?,
                provider: fields.optional("provider", json::any)?,
            }),
            "usage" => fields.required("usage", usage),
            "finish" => fields.required("reason", Finish::from_json).map(Delta::Finish),
            _ => Err(Misread::new("a delta of type text, thinking, tool-call, usage or finish")),
        }
    }

    /// Whether the reader of a stream sees something of it.
    pub fn is_visible(&self) -> bool {
        matches!(self, Delta::Text(_) | Delta::Thinking { .. } | Delta::ToolCall { .. })
    }
}

fn usage(value: &Value) -> Read<Delta> {
    let fields = Fields::of(value)?;
    Ok(Delta::Usage {
        input: fields.optional("inputTokens", json::count)?,
        output: fields.optional("outputTokens", json::count)?,
        cached: fields.optional("cachedTokens", json::count)?,
    })
}
