//! Messages: `Msg` in AgentScope.

use serde_json::{Value, json};

use super::{block, remainder, time};
use crate::json::{self, Fields, Object, Read};
use crate::message::{Memo, Message, Role, Usage, unmarked};

/// AgentScope keeps a second copy of the usage here. We keep one copy.
const USAGE: &str = "_chat_usage";

/// Reads a list of messages.
pub(super) fn list(value: &Value) -> Read<Vec<Message>> {
    json::list(value, read)
}

fn read(value: &Value) -> Read<Message> {
    // `at` is our name for the time. A member `at` of AgentScope would mean something else.
    const KNOWN: &[&str] = &[
        "id",
        "name",
        "role",
        "content",
        "metadata",
        "timestamp",
        "usage",
        "at",
        remainder::MEMBER,
    ];
    let fields = Fields::of(value)?;
    let mut metadata = fields.or_default("metadata", json::object)?;
    let copy = metadata.get(USAGE).and_then(|copy| usage(copy).ok());
    if copy.is_some() {
        metadata.remove(USAGE);
    }
    let timestamp = fields.or_default("timestamp", json::text)?;
    let mut message = Message {
        id: fields.or_default("id", json::text)?,
        role: fields.optional("role", Role::from_json)?.unwrap_or(Role::User),
        content: fields.or_default("content", block::list)?,
        name: fields.optional("name", json::text)?,
        at: time::to_rfc3339(&timestamp).unwrap_or(timestamp),
        usage: fields.optional("usage", usage)?.or(copy),
        metadata: (!metadata.is_empty()).then_some(metadata),
        tokens: Memo::default(),
        rest: unmarked(fields.rest(KNOWN)),
    };
    let written = members(&message);
    remainder::keep(&mut message.rest, &written, value);
    Ok(message)
}

/// Writes a message in AgentScope's form.
pub(super) fn write(message: &Message) -> Value {
    Value::Object(members(message))
}

fn members(message: &Message) -> Object {
    let usage = message.usage.as_ref().map(usage_members);
    let mut metadata = message.metadata.clone().unwrap_or_default();
    if let Some(usage) = &usage {
        metadata.insert(USAGE.into(), usage.clone());
    }
    let mut members = remainder::members(&message.rest);
    members.insert("id".into(), text_or_null(&message.id));
    members.insert("name".into(), json!(message.name));
    members.insert("role".into(), role(message.role).into());
    members.insert("content".into(), block::write_all(&message.content));
    members.insert("metadata".into(), Value::Object(metadata));
    members.insert(
        "timestamp".into(),
        time::to_timestamp(&message.at).map_or_else(|| text_or_null(&message.at), Value::from),
    );
    members.insert("usage".into(), json!(usage));
    remainder::restore(&mut members, &message.rest);
    members
}

/// An empty text is written as null. AgentScope makes a value for null when it reads the document.
pub(super) fn text_or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "USER",
        Role::Assistant => "ASSISTANT",
        Role::System => "SYSTEM",
        Role::Tool => "TOOL",
    }
}

fn usage(value: &Value) -> Read<Usage> {
    let fields = Fields::of(value)?;
    Ok(Usage {
        input_tokens: fields.or_default("inputTokens", json::count)?,
        output_tokens: fields.or_default("outputTokens", json::count)?,
        cached_tokens: fields.or_default("cachedTokens", json::count)?,
        seconds: fields.or_default("time", json::number)?,
    })
}

fn usage_members(usage: &Usage) -> Value {
    json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "time": usage.seconds,
        "totalTokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
