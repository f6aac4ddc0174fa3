//! The parts of a message.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Data that the provider needs back unchanged.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<Value>,
        /// Unknown members, kept unchanged.
        #[serde(flatten)]
        rest: Object,
    },
    /// The thinking of a model before its reply.
    Thinking {
        /// The text of the thinking.
        thinking: String,
        /// The provider's signature of the thinking.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// Data that the provider needs back unchanged.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<Value>,
        /// Unknown members, kept unchanged.
        #[serde(flatten)]
        rest: Object,
    },
    /// A tool call of the model.
    ToolUse(ToolUse),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// An image, audio, video or other file.
    #[serde(untagged)]
    Media {
        /// The kind of file.
        #[serde(rename = "type")]
        kind: MediaKind,
        /// The source of its bytes.
        source: Source,
        /// The file name that the user sees.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Unknown members, kept unchanged.
        #[serde(flatten)]
        rest: Object,
    },
    /// A block type of a newer version, kept unchanged.
    #[serde(untagged)]
    Other(Object),
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolUse {
    /// The id of the tool call. Its result has the same id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input for the tool.
    pub input: Value,
    /// The state of the tool call.
    pub state: CallState,
    /// Why its result comes from outside, or why a person must approve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// The question to a person: data that binds the answer to this tool call, and rules that would answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// Data that the provider needs back unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolResult {
    /// The id of the tool call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The output of the tool.
    pub output: Vec<Block>,
    /// How the tool call ended.
    pub state: ResultState,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($word:literal $variant:ident $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $(#[doc = $text] $variant),+ }

        impl $name {
            /// Reads the JSON word.
            pub fn from_json(value: &Value) -> Read<$name> {
                match value.as_str() {
                    $(Some($word) => Ok($name::$variant),)+
                    _ => Err(Misread::new(concat!("one of", $(" ", $word),+))),
                }
            }
        }
    };
}

words! {
    /// The state of a tool call.
    CallState {
        "pending" Pending "the model called the tool; nothing is decided yet",
        "asking" Asking "waits for the answer of a person",
        "allowed" Allowed "may run",
        "finished" Finished "has a result",
    }
}

words! {
    /// How a tool call ended.
    ResultState {
        "success" Success "the tool succeeded",
        "error" Error "the tool failed; the output says why",
        "denied" Denied "the call was not allowed",
        "interrupted" Interrupted "the call was stopped",
        "suspended" Suspended "the result comes later, from outside",
    }
}

words! {
    /// The kind of a file.
    MediaKind {
        "image" Image "an image",
        "audio" Audio "audio",
        "video" Video "video",
        "file" File "any other file",
    }
}

/// The source of a file's bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Source {
    /// A URL.
    Url {
        /// The URL.
        url: String,
        /// Its media type, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// The bytes themselves, in base64.
    Base64 {
        /// Its media type.
        media_type: String,
        /// The bytes.
        data: String,
    },
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into(), provider: None, rest: Object::new() }
    }

    /// Reads a block. A block of an unknown type is kept unchanged.
    pub fn from_json(value: &Value) -> Read<Block> {
        let fields = Fields::of(value)?;
        match fields.required("type", json::text)?.as_str() {
            "text" => Ok(Block::Text {
                text: fields.required("text", json::text)?,
                provider: fields.optional("provider", json::any)?,
                rest: fields.rest(&["type", "text", "provider"]),
            }),
            "thinking" => Ok(Block::Thinking {
                thinking: fields.or_default("thinking", json::text)?,
                signature: fields.optional("signature", json::text)?,
                provider: fields.optional("provider", json::any)?,
                rest: fields.rest(&["type", "thinking", "signature", "provider"]),
            }),
            "tool_use" => ToolUse::read(&fields).map(Block::ToolUse),
            "tool_result" => ToolResult::read(&fields).map(Block::ToolResult),
            "image" | "audio" | "video" | "file" => Ok(Block::Media {
                kind: fields.required("type", MediaKind::from_json)?,
                source: fields.required("source", Source::from_json)?,
                name: fields.optional("name", json::text)?,
                rest: fields.rest(&["type", "source", "name"]),
            }),
            _ => json::object(value).map(Block::Other),
        }
    }

    /// The approximate size in memory in bytes. The size of a tool's input is an estimate.
    pub(super) fn weight(&self) -> usize {
        let words = match self {
            Block::Text { text, .. } => text.len(),
            Block::Thinking { thinking, .. } => thinking.len(),
            Block::ToolUse(_) | Block::Other(_) => 512,
            Block::ToolResult(result) => result.output.iter().map(Block::weight).sum(),
            Block::Media { source: Source::Url { url, .. }, .. } => url.len(),
            Block::Media { source: Source::Base64 { data, .. }, .. } => data.len(),
        };
        std::mem::size_of::<Block>() + words
    }

    /// The text of all text blocks, joined.
    pub fn text_of(blocks: &[Block]) -> String {
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Reads a list of blocks.
    pub fn list(value: &Value) -> Read<Vec<Block>> {
        json::list(value, Block::from_json)
    }

    /// The output of a tool as blocks: a string becomes text, blocks stay unchanged, any other value becomes JSON text.
    pub fn output(value: &Value) -> Vec<Block> {
        let list = Some(value).filter(|value| value.as_array().is_none_or(|list| !list.is_empty()));
        let blocks = list.and_then(|value| Block::input(value).ok());
        blocks.unwrap_or_else(|| vec![Block::text(json::to_text(value))])
    }

    /// Reads the input of a caller: text, or blocks of the types that a caller may send.
    pub fn input(value: &Value) -> Read<Vec<Block>> {
        if let Some(text) = value.as_str() {
            return Ok(vec![Block::text(text)]);
        }
        json::list(value, |item| match Block::from_json(item)? {
            block @ (Block::Text { .. } | Block::Media { .. }) => Ok(block),
            _ => Err(Misread::new("a block of text, image, audio, video or file")),
        })
    }
}

impl ToolUse {
    fn read(fields: &Fields<'_>) -> Read<ToolUse> {
        Ok(ToolUse {
            id: fields.required("id", json::text)?,
            name: fields.required("name", json::text)?,
            input: fields.or_default("input", json::any)?,
            state: fields.optional("state", CallState::from_json)?.unwrap_or(CallState::Pending),
            awaits: fields.optional("awaits", json::text)?,
            asked: fields.optional("asked", json::any)?,
            provider: fields.optional("provider", json::any)?,
            rest: fields
                .rest(&["type", "id", "name", "input", "state", "awaits", "asked", "provider"]),
        })
    }
}

impl ToolResult {
    /// The result of a tool call: a text and a state. The middle of a text that is too long is left out.
    pub fn new(call: &ToolUse, state: ResultState, text: impl Into<String>) -> ToolResult {
        ToolResult::of(call, state, vec![Block::text(text)])
    }

    /// The result of a tool call: an output and a state. The middle of an output that is too long is left out.
    pub fn of(call: &ToolUse, state: ResultState, output: Vec<Block>) -> ToolResult {
        let (id, name) = (call.id.clone(), call.name.clone());
        ToolResult { id, name, output, state, rest: Object::new() }.shortened()
    }

    fn read(fields: &Fields<'_>) -> Read<ToolResult> {
        Ok(ToolResult {
            id: fields.required("id", json::text)?,
            name: fields.or_default("name", json::text)?,
            output: fields.or_default("output", Block::list)?,
            state: fields
                .optional("state", ResultState::from_json)?
                .unwrap_or(ResultState::Success),
            rest: fields.rest(&["type", "id", "name", "output", "state"]),
        })
    }
}

impl Source {
    fn from_json(value: &Value) -> Read<Source> {
        let fields = Fields::of(value)?;
        match fields.required("type", json::text)?.as_str() {
            "url" => Ok(Source::Url {
                url: fields.required("url", json::text)?,
                media_type: fields.optional("mediaType", json::text)?,
            }),
            "base64" => Ok(Source::Base64 {
                media_type: fields.required("mediaType", json::text)?,
                data: fields.required("data", json::text)?,
            }),
            _ => Err(Misread::new("a source of type url or base64")),
        }
    }
}
