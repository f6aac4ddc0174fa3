//! The deltas that a model sends while it replies.

use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};

/// One piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of a thinking block.
    Thinking {
        /// The text.
        text: String,
        /// The provider's signature, once it has arrived.
        signature: Option<String>,
    },
    /// More of a tool call.
    ToolCall {
        /// The number of the tool call in this reply, as the provider counts.
        index: u64,
        /// The provider's id, if it sent one.
        id: Option<String>,
        /// The name of the tool, once it is known.
        name: Option<String>,
        /// More of the arguments, as JSON text.
        arguments: String,
        /// Data that the provider needs back unchanged.
        provider: Option<Value>,
    },
    /// Data that the provider needs back unchanged with the current text or thinking block. Only our dialects send it.
    Provider(Value),
    /// The current block ends. What follows is a new block, even of the same type. Only our dialects send it.
    End,
    /// Half a character was replaced in a text: its other half never came. Only our dialects send it.
    Replaced,
    /// The usage. A number given here replaces an earlier one.
    Usage {
        /// Tokens of the request.
        input: Option<u64>,
        /// Tokens of the reply.
        output: Option<u64>,
        /// Tokens of the request that the provider read from its cache.
        cached: Option<u64>,
    },
    /// Why the reply ended.
    Finish(Finish),
}

/// Why a model ended its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The reply is complete.
    Stop,
    /// The model wants tools to be called.
    ToolCalls,
    /// The reply reached the token limit.
    Length,
    /// A filter of the provider stopped the reply.
    Filter,
}

impl Finish {
    /// The word in JSON.
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
    /// Reads a delta that a model written in JavaScript yields.
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

    /// Whether a client that reads the stream sees something of this delta.
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
