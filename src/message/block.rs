//! The parts of a message.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// What the provider wants back unchanged.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<Value>,
        /// Members we do not know.
        #[serde(flatten)]
        rest: Object,
    },
    /// What a model thought before it spoke.
    Thinking {
        /// The thought.
        thinking: String,
        /// The provider's proof that the thought is its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// What the provider wants back unchanged.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<Value>,
        /// Members we do not know.
        #[serde(flatten)]
        rest: Object,
    },
    /// A model asks for a tool.
    ToolUse(ToolUse),
    /// What the tool answered.
    ToolResult(ToolResult),
    /// A picture, sound, film or file.
    #[serde(untagged)]
    Media {
        /// Which of them.
        #[serde(rename = "type")]
        kind: MediaKind,
        /// Where its bytes are.
        source: Source,
        /// Its name, as the user knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Members we do not know.
        #[serde(flatten)]
        rest: Object,
    },
    /// A kind of block that a newer version knows: kept as it is.
    #[serde(untagged)]
    Other(Object),
}

/// A model's wish to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolUse {
    /// Names this call; its result carries the same.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What the tool is given.
    pub input: Value,
    /// How far it has come.
    pub state: CallState,
    /// Why its result is to come from outside, or why a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// What a person was asked about it: what binds the answer to just this call, and rules that would settle it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// What the provider wants back unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolResult {
    /// The call it answers.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The answer.
    pub output: Vec<Block>,
    /// How it ended.
    pub state: ResultState,
    /// Members we do not know.
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
            /// Reads it from its word.
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
    /// How far a tool call has come.
    CallState {
        "pending" Pending "asked for, nothing decided",
        "asking" Asking "waits for a person",
        "allowed" Allowed "may run",
        "finished" Finished "has its result",
    }
}

words! {
    /// How a tool call ended.
    ResultState {
        "success" Success "it did what was asked",
        "error" Error "it failed; the output says why",
        "denied" Denied "it was not allowed",
        "interrupted" Interrupted "it was stopped",
        "suspended" Suspended "its result comes later",
    }
}

words! {
    /// What kind of file.
    MediaKind {
        "image" Image "a picture",
        "audio" Audio "sound",
        "video" Video "film",
        "file" File "any other file",
    }
}

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Source {
    /// At an address.
    Url {
        /// The address.
        url: String,
        /// Its media type, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// Here.
    Base64 {
        /// Its media type.
        media_type: String,
        /// The bytes.
        data: String,
    },
}

impl Block {
    /// A block of words.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into(), provider: None, rest: Object::new() }
    }

    /// Reads a block; one of an unknown type is kept as it is.
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

    /// About how many bytes of memory it takes; what is inside a tool's input is guessed.
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

    /// What a tool answered, as blocks: text as it is, blocks as they are, anything else as JSON.
    pub fn output(value: &Value) -> Vec<Block> {
        let list = Some(value).filter(|value| value.as_array().is_none_or(|list| !list.is_empty()));
        let blocks = list.and_then(|value| Block::input(value).ok());
        blocks.unwrap_or_else(|| vec![Block::text(json::to_text(value))])
    }

    /// Reads what a caller may say: text, or blocks that are not the engine's to make.
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
    /// The result of a call: words and how it ended.
    pub fn new(call: &ToolUse, state: ResultState, text: impl Into<String>) -> ToolResult {
        let output = vec![Block::text(text)];
        ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            output,
            state,
            rest: Object::new(),
        }
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
