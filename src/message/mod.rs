//! What is said: messages, the blocks they are made of, and the deltas a model sends.

mod block;
mod delta;
mod edit;
mod lineage;
mod memo;
mod summary;
mod time;

pub use block::{Block, CallState, MediaKind, ResultState, Source, ToolResult, ToolUse};
pub use delta::{Delta, Finish};
pub use edit::{Edit, Edits};
pub use lineage::Lineage;
pub use memo::Memo;
pub use summary::FoundBy;
pub use time::rfc3339;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, or whoever calls.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Reads a role in any case: the reference writes them in capitals.
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

/// What a model call cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the request that the provider had cached.
    pub cached_tokens: u64,
    /// How long it took.
    pub seconds: f64,
}

impl Usage {
    /// Reads a usage, or the part of one that a provider gave.
    pub fn from_json(value: &Value) -> Read<Usage> {
        let fields = Fields::of(value)?;
        Ok(Usage {
            input_tokens: fields.or_default("inputTokens", json::count)?,
            output_tokens: fields.or_default("outputTokens", json::count)?,
            cached_tokens: fields.or_default("cachedTokens", json::count)?,
            seconds: fields.or_default("seconds", json::number)?,
        })
    }

    /// Adds what another model call cost.
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
    /// Minted by us, always; empty only until the driver has stamped it.
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Block>,
    /// The speaker's name, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// What it cost, for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Free for callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// About how many tokens it has, once somebody has counted them.
    #[serde(skip)]
    pub tokens: Memo,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Message {
    /// A message that still wants its id and time.
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

    /// A note of the engine to the model: user role, named `system`, written once.
    pub fn note(text: impl Into<String>) -> Message {
        Message {
            name: Some("system".into()),
            ..Message::draft(Role::User, vec![Block::text(text)])
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
            rest: fields.rest(KNOWN),
        })
    }

    /// Reads what a user says: text, or a message of theirs.
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

    /// Reads a message as a caller writes it: text or blocks, and perhaps an id, a name, metadata.
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

    /// About how many bytes of memory it takes.
    pub fn weight(&self) -> usize {
        std::mem::size_of::<Message>()
            + self.id.len()
            + self.content.iter().map(Block::weight).sum::<usize>()
    }

    /// The tool calls in it, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// The results in it.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}
