//! Writes a conversation as the messages of chat completions.

use serde_json::Value;

use crate::message::{Block, MediaKind, Role, Source, ToolUse};
use crate::model::dialect::Flavour;
use crate::model::reply::{list_in, text_in};
use crate::model::transcript::WireTurn;
use crate::model::wire::{data_url, object, omitted, result_text, set, text_part, tool_name};

pub(super) fn write_tool((name, description, schema): (String, &str, Value)) -> Value {
    let function = object(&mut [
        ("name", name.into()),
        ("description", description.into()),
        ("parameters", schema.into()),
    ]);
    object(&mut [("type", "function".into()), ("function", function.into())])
}

pub(super) fn said(role: &str, content: Value) -> Value {
    object(&mut [("role", role.into()), ("content", content.into())])
}

pub(super) fn write_turn(
    turn: &WireTurn<'_>,
    flavour: Flavour,
    is_current: bool,
    out: &mut Vec<Value>,
) {
    match turn.role {
        Role::Tool => {
            for result in turn.results() {
                let mut message = said("tool", result_text(result).into());
                let id = if flavour == Flavour::Ollama { "tool_name" } else { "tool_call_id" };
                let value = if flavour == Flavour::Ollama { &result.name } else { &result.id };
                set(&mut message, id, value.as_str().into());
                out.push(message);
            }
        }
        Role::Assistant => out.push(write_answer(turn, flavour, is_current)),
        Role::User | Role::System => out.push(write_question(turn, flavour)),
    }
}

fn write_answer(turn: &WireTurn<'_>, flavour: Flavour, is_current: bool) -> Value {
    let texts = turn.blocks.iter().filter_map(|block| match &**block {
        Block::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    let calls: Vec<Value> = turn.calls().map(|call| write_call(call, flavour)).collect();
    // Beside tool calls some servers refuse an empty text, others a missing one. OpenAI itself sends null.
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = said("assistant", content);
    // Thoughts are sent back only until the current question is answered: some providers require them there, and refuse
    // those of earlier questions.
    if is_current && !calls.is_empty() {
        write_thoughts(turn, &mut message);
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls.into());
    }
    message
}

fn write_thoughts(turn: &WireTurn<'_>, message: &mut Value) {
    for block in &turn.blocks {
        let Block::Thinking { thinking, provider: Some(provider), .. } = &**block else { continue };
        if let Some(field) = text_in(provider, "field") {
            set(message, field, thinking.as_str().into());
        }
        let details = list_in(provider, "details");
        if !details.is_empty() {
            set(message, "reasoning_details", joined(details).into());
        }
    }
}

/// Joins pieces of reasoning that were streamed.
fn joined(details: &[Value]) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for detail in details {
        let same = |last: &&mut Value| {
            ["type", "index"].iter().all(|name| last.get(name) == detail.get(name))
        };
        let Some(last) = whole.last_mut().filter(same) else {
            whole.push(detail.clone());
            continue;
        };
        for (name, value) in detail.as_object().into_iter().flatten() {
            let growing = matches!(name.as_str(), "text" | "summary" | "data");
            match (last.get_mut(name), value.as_str()) {
                (Some(Value::String(text)), Some(more)) if growing => text.push_str(more),
                _ if value.is_null() => {}
                _ => set(last, name, value.clone().into()),
            }
        }
    }
    whole
}

fn write_call(call: &ToolUse, flavour: Flavour) -> Value {
    let is_text = flavour != Flavour::Ollama;
    let arguments = if is_text { call.input.to_string().into() } else { call.input.clone() };
    let function =
        object(&mut [("name", tool_name(&call.name).into()), ("arguments", arguments.into())]);
    let mut written = object(&mut [("function", function.into())]);
    if is_text {
        set(&mut written, "id", call.id.as_str().into());
        set(&mut written, "type", "function".into());
    }
    if let Some(extra) = call.provider.as_ref().and_then(|provider| provider.get("extra_content")) {
        set(&mut written, "extra_content", extra.clone().into());
    }
    written
}

fn write_question(turn: &WireTurn<'_>, flavour: Flavour) -> Value {
    let has_files = turn.blocks.iter().any(|block| matches!(**block, Block::Media { .. }));
    let texts = || {
        let texts = turn.blocks.iter().filter_map(|block| match &**block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    };
    // A message with text only is sent as plain text: old chat templates accept nothing else.
    if !has_files {
        return said("user", texts().into());
    }
    if flavour == Flavour::Ollama {
        let images = turn.blocks.iter().filter_map(|block| match &**block {
            Block::Media { source: Source::Base64 { data, .. }, .. } => Some(data.as_str().into()),
            _ => None,
        });
        let images: Vec<Value> = images.collect();
        let mut message = said("user", texts().into());
        set(&mut message, "images", images.into());
        return message;
    }
    said("user", turn.blocks.iter().filter_map(|block| write_part(block)).collect())
}

fn write_part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text, .. } => Some(text_part(text)),
        Block::Media { kind: MediaKind::Image, source, .. } => {
            let url = object(&mut [("url", data_url(source).into())]);
            Some(object(&mut [("type", "image_url".into()), ("image_url", url.into())]))
        }
        Block::Media {
            kind: MediaKind::Audio,
            source: Source::Base64 { media_type, data },
            ..
        } => {
            let format = media_type.rsplit('/').next().unwrap_or_default();
            let format = if format == "mpeg" { "mp3" } else { format.trim_start_matches("x-") };
            let audio = object(&mut [("data", data.as_str().into()), ("format", format.into())]);
            Some(object(&mut [("type", "input_audio".into()), ("input_audio", audio.into())]))
        }
        Block::Media {
            kind: MediaKind::File,
            source: source @ Source::Base64 { .. },
            name,
            ..
        } => {
            let name = name.as_deref().unwrap_or("file");
            let file =
                object(&mut [("filename", name.into()), ("file_data", data_url(source).into())]);
            Some(object(&mut [("type", "file".into()), ("file", file.into())]))
        }
        Block::Media { kind, name, .. } => Some(text_part(&omitted(*kind, name.as_deref()))),
        _ => None,
    }
}
