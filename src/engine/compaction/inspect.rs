//! The contents of the next request of a session, part by part, for a person to read.

use serde::Serialize;
use serde_json::Value;

use crate::engine::instructions::Instructions;
use crate::engine::models::Models;
use crate::error::Result;
use crate::json;
use crate::message::{Block, Edit, Message};
use crate::store::Sessions;

/// The contents of the next request of a session, part by part.
#[derive(Debug, Serialize)]
pub struct ContextReport {
    /// The model's context window in tokens, if it is known.
    pub window: Option<u64>,
    /// About how many tokens the request has.
    pub tokens: u64,
    /// The parts of the request, in order.
    pub parts: Vec<Part>,
}

/// A part of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The kind of part: system, tools, summary, message or reminder.
    pub kind: &'static str,
    /// The id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The messages that a summary has replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Value>,
    /// The path of the full text, if only a preview is in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted_to: Option<String>,
    /// About how many tokens it has.
    pub tokens: u64,
    /// The text of the part.
    pub text: String,
}

/// The contents of the next request of a session, before middleware changes it.
pub(in crate::engine) async fn inspect(
    stored: &Sessions,
    models: &Models,
    instructions: &Instructions<'_>,
) -> Result<ContextReport> {
    let session = stored.load(instructions.slot(), None).await?;
    let facts = session.facts();
    // A real request leaves out unreadable sources too, so errors are ignored here.
    drop(instructions.read(&facts).await);
    let tools = instructions.tools(&facts);
    let prompt = instructions.written_prompt();
    let plain = |kind, tokens, text: String| Part {
        kind,
        message_id: None,
        replaces: None,
        evicted_to: None,
        tokens,
        text,
    };
    let mut parts = Vec::new();
    if !prompt.is_empty() {
        parts.push(plain("system", models.tokens_of_text(&prompt), prompt));
    }
    if !tools.is_empty() {
        parts.push(plain("tools", models.tokens_of_tools(&tools), json::to_text(&tools)));
    }
    for (index, message) in session.context.iter().enumerate() {
        let is_summary = index == 0 && session.has_summary();
        let edit = session.head.as_ref().and_then(|head| head.edits.of(&message.id));
        let kind = if is_summary { "summary" } else { "message" };
        let replaces = message.metadata.as_ref().and_then(|it| it.get("replaces").cloned());
        parts.push(Part {
            message_id: Some(message.id.clone()),
            replaces: replaces.filter(|_| is_summary),
            evicted_to: match edit {
                Some(Edit::Evicted { path, .. }) if !path.is_empty() => Some(path.clone()),
                _ => None,
            },
            ..plain(kind, models.tokens_of_one(message), words(message))
        });
    }
    if let Some(reminder) = instructions.reminder(&facts) {
        parts.push(plain("reminder", models.tokens_of_one(&reminder), words(&reminder)));
    }
    let tokens = parts.iter().map(|part| part.tokens).sum();
    Ok(ContextReport { window: models.window(models.own(), 0), tokens, parts })
}

/// The text of a message, for a person.
fn words(message: &Message) -> String {
    let block = |block: &Block| match block {
        Block::Text { text, .. } => text.clone(),
        Block::Thinking { thinking, .. } => thinking.clone(),
        Block::ToolUse(call) => format!("{}({})", call.name, call.input),
        Block::ToolResult(result) => Block::text_of(&result.output),
        Block::Media { name, .. } => format!("[{}]", name.as_deref().unwrap_or("file")),
        Block::Other(other) => json::to_text(other),
    };
    message.content.iter().map(block).collect::<Vec<_>>().join("\n")
}
