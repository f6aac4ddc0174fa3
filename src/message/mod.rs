//! Messages, the blocks they consist of, and the deltas that a model sends.

mod block;
mod delta;
mod edit;
mod length;
mod lineage;
mod memo;
mod note;
mod summary;
mod time;
mod turn;

pub use block::{Block, CallState, MediaKind, ResultState, Source, ToolResult, ToolUse};
pub use delta::{Delta, Finish};
pub use edit::{EVICTED, Edit, Edits};
pub use length::{MAX_TOOL_TEXT, note, shortened};
pub use lineage::Lineage;
pub use memo::Memo;
pub use note::Note;
pub use summary::FoundBy;
pub use time::rfc3339;
pub use turn::{TurnState, unmarked};

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or the code that calls the agent.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Reads a role in upper or lower case: AgentScope writes roles in upper case.
    pub fn from_json(value: &Value) -> Read<Role> {
        match value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("user") => Ok(Role::User),
            Some("assistant") => Ok(Role::Assistant),
            Some("system") => Ok(Role::System),
            Some("tool") => Ok(Role::Tool),
            _ => Err(Misread::new("user, assistant, system or tool")),
        }
    }
}

/// The tokens and the time that a model request used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// Tokens of the request that the provider read from its cache.
    pub cached_tokens: u64,
    /// The duration in seconds.
    pub seconds: f64,
}

impl Usage {
    /// Reads a usage. A provider may give only a part of it.
    pub fn from_json(value: &Value) -> Read<Usage> {
        let fields = Fields::of(value)?;
        Ok(Usage {
            input_tokens: fields.or_default("inputTokens", json::count)?,
            output_tokens: fields.or_default("outputTokens", json::count)?,
            cached_tokens: fields.or_default("cachedTokens", json::count)?,
            seconds: fields.or_default("seconds", json::number)?,
        })
    }

    /// Adds the usage of another model request.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.seconds += other.seconds;
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// The id. A caller may choose it for an input; otherwise the driver sets it. Until then it is empty.
    pub id: String,
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub content: Vec<Block>,
    /// The author's name, if there are several authors with this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The time, in RFC 3339 and UTC.
    pub at: String,
    /// The usage, for a reply of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Data of the caller. The engine writes its own only into messages that it makes itself, such as summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The estimated number of tokens, once counted.
    #[serde(skip)]
    pub tokens: Memo,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

impl Message {
    /// A message that has no id and no time yet.
    pub fn draft(role: Role, content: Vec<Block>) -> Message {
        let at = String::new();
        Message {
            id: String::new(),
            role,
            content,
            name: None,
            at,
            usage: None,
            metadata: None,
            tokens: Memo::default(),
            rest: Object::new(),
        }
    }

    /// Reads a stored message.
    pub fn from_json(value: &Value) -> Read<Message> {
        const KNOWN: &[&str] = &["id", "role", "content", "name", "at", "usage", "metadata"];
        let fields = Fields::of(value)?;
        Ok(Message {
            id: fields.required("id", json::text)?,
            role: fields.required("role", Role::from_json)?,
            content: fields.required("content", Block::list)?,
            name: fields.optional("name", json::text)?,
            at: fields.or_default("at", json::text)?,
            usage: fields.optional("usage", Usage::from_json)?,
            metadata: fields.optional("metadata", json::object)?,
            tokens: Memo::default(),
            rest: turn::unmarked(fields.rest(KNOWN)),
        })
    }

    /// Reads the input of a user: text, or a message with the role `user`.
    pub fn from_input(value: &Value) -> Read<Message> {
        if let Some(text) = value.as_str() {
            return Ok(Message::draft(Role::User, vec![Block::text(text)]));
        }
        let message = Message::from_caller(value)?;
        if message.role == Role::User {
            Ok(message)
        } else {
            Err(Misread::new("a message of the user"))
        }
    }

    /// Reads a message of a caller: text or blocks, with an optional id, name and metadata.
    pub fn from_caller(value: &Value) -> Read<Message> {
        let fields = Fields::of(value)?;
        let role = fields.optional("role", Role::from_json)?.unwrap_or(Role::User);
        if !matches!(role, Role::User | Role::Assistant) {
            return Err(Misread::new("a message of the user or of the assistant"));
        }
        Ok(Message {
            id: fields.or_default("id", json::text)?,
            name: fields.optional("name", json::text)?,
            metadata: fields.optional("metadata", json::object)?,
            ..Message::draft(role, fields.required("content", Block::input)?)
        })
    }

    /// The text of all text blocks, joined.
    pub fn text(&self) -> String {
        Block::text_of(&self.content)
    }

    /// The approximate size in memory in bytes.
    pub fn weight(&self) -> usize {
        std::mem::size_of::<Message>()
            + self.id.len()
            + self.content.iter().map(Block::weight).sum::<usize>()
    }

    /// The tool calls of the message, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results of the message.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}
