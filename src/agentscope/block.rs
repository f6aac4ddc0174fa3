//! Blocks: text, thinking, tool calls and their results. A type that only AgentScope has (`hint`) is kept unchanged.

use serde_json::{Value, json};

use super::message::text_or_null;
use super::{media, remainder};
use crate::json::{self, Fields, Object, Read};
use crate::message::{Block, CallState, ResultState, ToolResult, ToolUse};

/// The name in the block's metadata under which AgentScope keeps the signature of thinking.
const SIGNATURE: &str = "thoughtSignature";
/// The name in the block's metadata with which AgentScope marks a result that comes later.
const SUSPENDED: &str = "agentscope_suspended";
/// The prefix of AgentScope's own errors. In a result without a state only this prefix shows the error.
const ERROR: &str = "[ERROR]";

/// Reads a list of blocks.
pub(super) fn list(value: &Value) -> Read<Vec<Block>> {
    json::list(value, read)
}

/// Writes a list of blocks.
pub(super) fn write_all(blocks: &[Block]) -> Value {
    blocks.iter().map(|block| Value::Object(write(block))).collect()
}

fn read(value: &Value) -> Read<Block> {
    let fields = Fields::of(value)?;
    let mut block = match fields.required("type", json::text)?.as_str() {
        "text" => Block::Text {
            text: fields.or_default("text", json::text)?,
            provider: fields.optional("provider", json::any)?,
            rest: fields.rest(&["type", "text", "provider", remainder::MEMBER]),
        },
        "thinking" => thinking(&fields)?,
        "tool_use" => Block::ToolUse(tool_use(&fields)?),
        "tool_result" => Block::ToolResult(tool_result(&fields)?),
        kind @ ("image" | "audio" | "video" | "file" | "data") => media::read(kind, &fields)?,
        _ => return json::object(value).map(Block::Other),
    };
    let written = write(&block);
    if let Some(rest) = rest_of(&mut block) {
        remainder::keep(rest, &written, value);
    }
    Ok(block)
}

fn rest_of(block: &mut Block) -> Option<&mut Object> {
    match block {
        Block::Text { rest, .. } | Block::Thinking { rest, .. } | Block::Media { rest, .. } => {
            Some(rest)
        }
        Block::ToolUse(call) => Some(&mut call.rest),
        Block::ToolResult(result) => Some(&mut result.rest),
        Block::Other(_) => None,
    }
}

fn write(block: &Block) -> Object {
    let (mut members, rest) = match block {
        Block::Text { text, provider, rest } => {
            (tagged("text", json!({ "text": text }), provider.as_ref(), rest), rest)
        }
        Block::Thinking { thinking, signature, provider, rest } => {
            let metadata = metadata_with(rest, SIGNATURE, signature.as_ref().map(|it| json!(it)));
            let metadata = if metadata.is_empty() { Value::Null } else { metadata.into() };
            let own = json!({ "thinking": thinking, "metadata": metadata });
            (tagged("thinking", own, provider.as_ref(), rest), rest)
        }
        Block::ToolUse(call) => {
            let metadata = metadata_with(&call.rest, "", None);
            let own = json!({
                "id": text_or_null(&call.id),
                "name": text_or_null(&call.name),
                "input": call.input.as_object().cloned().unwrap_or_default(),
                "content": raw_arguments(call),
                "metadata": metadata,
                "state": call.state,
            });
            let mut members = tagged("tool_use", own, call.provider.as_ref(), &call.rest);
            members.extend(call.awaits.as_ref().map(|why| ("awaits".to_owned(), json!(why))));
            members.extend(call.asked.as_ref().map(|asked| ("asked".to_owned(), asked.clone())));
            (members, &call.rest)
        }
        Block::ToolResult(result) => (result_members(result), &result.rest),
        Block::Media { kind, source, name, rest } => (
            tagged(media::word(*kind), media::members(*kind, source, name.as_ref()), None, rest),
            rest,
        ),
        Block::Other(members) => return members.clone(),
    };
    remainder::restore(&mut members, rest);
    members
}

/// The members of a block. In case of equal names, `kind` wins over our members, and ours win over unknown members.
fn tagged(kind: &str, own: Value, provider: Option<&Value>, rest: &Object) -> Object {
    let mut members = remainder::members(rest);
    if let Value::Object(own) = own {
        members.extend(own);
    }
    members.extend(provider.map(|provider| ("provider".to_owned(), provider.clone())));
    members.insert("type".into(), kind.into());
    members
}

/// The metadata of a block with a member of ours added.
fn metadata_with(rest: &Object, name: &str, own: Option<Value>) -> Object {
    let metadata = rest.get("metadata").and_then(Value::as_object);
    let mut metadata = metadata.cloned().unwrap_or_default();
    metadata.extend(own.map(|value| (name.to_owned(), value)));
    metadata
}

/// The unknown members, with the remaining metadata.
fn rest_with(fields: &Fields<'_>, known: &[&str], metadata: Object) -> Object {
    let mut rest = remainder::members(&fields.rest(known));
    rest.remove("metadata");
    if !metadata.is_empty() {
        rest.insert("metadata".into(), Value::Object(metadata));
    }
    rest
}

fn thinking(fields: &Fields<'_>) -> Read<Block> {
    let mut metadata = fields.or_default("metadata", json::object)?;
    let beside = fields.optional("signature", json::text)?;
    let inside = metadata.get(SIGNATURE).and_then(Value::as_str).map(str::to_owned);
    if inside.is_some() {
        metadata.remove(SIGNATURE);
    }
    Ok(Block::Thinking {
        thinking: fields.or_default("thinking", json::text)?,
        signature: inside.or(beside),
        provider: fields.optional("provider", json::any)?,
        rest: rest_with(fields, &["type", "thinking", "signature", "provider"], metadata),
    })
}

fn tool_use(fields: &Fields<'_>) -> Read<ToolUse> {
    const KNOWN: &[&str] =
        &["type", "id", "name", "input", "content", "state", "awaits", "asked", "provider"];
    let metadata = fields.or_default("metadata", json::object)?;
    let input = fields.or_default("input", json::object)?;
    let raw = fields.optional("content", json::text)?;
    let mut call = ToolUse {
        id: fields.or_default("id", json::text)?,
        name: fields.or_default("name", json::text)?,
        input: Value::Object(input),
        state: fields.optional("state", call_state)?.unwrap_or(CallState::Pending),
        awaits: fields.optional("awaits", json::text)?,
        asked: fields.optional("asked", json::any)?,
        provider: fields.optional("provider", json::any)?,
        rest: rest_with(fields, KNOWN, metadata),
    };
    let Some((raw, said)) = raw.and_then(|raw| parsed(&raw).map(|said| (raw, said))) else {
        return Ok(call);
    };
    // Only we write arguments that are not an object, and only there: AgentScope's `input` cannot hold them.
    let plain = call.input.to_string();
    if plain == "{}" && !said.is_object() {
        call.input = said;
    } else if call.input == said && plain != raw {
        call.rest.insert("content".into(), raw.into());
    }
    Ok(call)
}

/// The arguments as the model wrote them, or the current ones if these differ.
fn raw_arguments(call: &ToolUse) -> String {
    let raw = call.rest.get("content").and_then(Value::as_str);
    let still_fits = raw.filter(|raw| parsed(raw).as_ref() == Some(&call.input));
    still_fits.map_or_else(|| call.input.to_string(), str::to_owned)
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn tool_result(fields: &Fields<'_>) -> Read<ToolResult> {
    const KNOWN: &[&str] = &["type", "id", "name", "output", "state"];
    let mut metadata = fields.or_default("metadata", json::object)?;
    let output = fields.or_default("output", list)?;
    let is_marked = metadata.get(SUSPENDED) == Some(&Value::Bool(true));
    let state = match fields.optional("state", result_state)? {
        Some(state) => state,
        None if is_marked => ResultState::Suspended,
        None if is_error(&output) => ResultState::Error,
        None => ResultState::Success,
    };
    if is_marked && state == ResultState::Suspended {
        metadata.remove(SUSPENDED);
    }
    Ok(ToolResult {
        id: fields.or_default("id", json::text)?,
        name: fields.or_default("name", json::text)?,
        output,
        state,
        rest: rest_with(fields, KNOWN, metadata),
    })
}

fn result_members(result: &ToolResult) -> Object {
    let is_suspended = result.state == ResultState::Suspended;
    let state = if is_suspended { json!("running") } else { json!(result.state) };
    let own = json!({
        "id": text_or_null(&result.id),
        "name": text_or_null(&result.name),
        "output": write_all(&result.output),
        "metadata": metadata_with(&result.rest, SUSPENDED, is_suspended.then_some(Value::Bool(true))),
        "state": state,
    });
    tagged("tool_result", own, None, &result.rest)
}

fn is_error(output: &[Block]) -> bool {
    output.iter().any(|block| matches!(block, Block::Text { text, .. } if text.starts_with(ERROR)))
}

fn call_state(value: &Value) -> Read<CallState> {
    match lower(value) {
        // The call was handed over and has no result yet. This is the nearest of our states.
        Value::String(word) if word == "submitted" => Ok(CallState::Allowed),
        word => CallState::from_json(&word),
    }
}

fn result_state(value: &Value) -> Read<ResultState> {
    match lower(value) {
        Value::String(word) if word == "running" => Ok(ResultState::Suspended),
        word => ResultState::from_json(&word),
    }
}

/// A word in lower case: AgentScope reads most of its words in any case.
pub(super) fn lower(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |word| word.to_ascii_lowercase().into())
}
