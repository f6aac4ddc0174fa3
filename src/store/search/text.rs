//! What of a message can be searched for, as one text.

use serde_json::Value;

use crate::message::{Block, Message};

/// The tools that read the log. What they were asked and what they found is there already, where it was said.
const READERS: &[&str] = &["session_list", "session_history", "session_search"];

/// The words of a message: what was said, what tools were given and what they answered. Not what was only thought.
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

/// The words in a tool's input; written as JSON they would have escapes in them.
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
