//! The searchable text of a message.

use serde_json::Value;

use crate::message::{Block, Message};

/// The tools that read the log. Their input and results are not indexed, because they repeat other messages.
const READERS: &[&str] = &["session_list", "session_history", "session_search"];

/// The text, tool inputs and tool results of a message. Thinking is left out.
pub fn searchable(message: &Message) -> String {
    let mut text = String::new();
    message.content.iter().for_each(|block| add_block(block, &mut text));
    text
}

fn add_block(block: &Block, text: &mut String) {
    match block {
        Block::Text { text: words, .. } => add(words, text),
        Block::ToolUse(call) if !is_reader(&call.name) => {
            add(&call.name, text);
            add_leaves(&call.input, text);
        }
        Block::ToolResult(result) if !is_reader(&result.name) => {
            result.output.iter().for_each(|block| add_block(block, text));
        }
        Block::Media { name: Some(name), .. } => add(name, text),
        _ => {}
    }
}

fn is_reader(name: &str) -> bool {
    READERS.contains(&name)
}

/// The texts in the input of a tool, without JSON escapes.
fn add_leaves(value: &Value, text: &mut String) {
    match value {
        Value::String(words) => add(words, text),
        Value::Number(number) => add(&number.to_string(), text),
        Value::Array(list) => list.iter().for_each(|item| add_leaves(item, text)),
        Value::Object(members) => members.values().for_each(|item| add_leaves(item, text)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn add(words: &str, text: &mut String) {
    if !text.is_empty() && !words.is_empty() {
        text.push('\n');
    }
    text.push_str(words);
}
