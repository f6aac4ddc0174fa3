//! Messages, as Anthropic speaks them.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Object};
use crate::message::{Block, Finish, MediaKind, ResultState, Role, Source, ToolResult};
use crate::model::heard::{Fragment, Heard, broken, list_in, number_in, text_in};
use crate::model::provider::Asked;
use crate::model::transcript::Turn;
use crate::model::wire::{
    Choice, add_extra, copy_options, object, omitted, put, result_text, text_part, tool_name,
};
use crate::port::HttpRequest;

/// The length of an answer where nobody says how long.
const ANSWER: u64 = 8_192;

/// The request as it goes out.
#[inline(never)]
pub(super) fn render(asked: &Asked<'_>) -> HttpRequest {
    let generate = asked.request.generate;
    let mut body = Object::new();
    put(&mut body, "model", asked.options.model.as_str().into());
    put(&mut body, "stream", asked.options.streams.into());
    if !asked.request.system.is_empty() {
        put(&mut body, "system", vec![cached(text_part(asked.request.system))].into());
    }
    let mut messages: Vec<Value> = Vec::new();
    for turn in asked.turns {
        write_turn(turn, &mut messages);
    }
    mark_last(&mut messages);
    let tools: Vec<Value> = asked.tools().into_iter().map(write_tool).collect();
    if !tools.is_empty() {
        put(&mut body, "tools", tools.into());
        let choice = if asked.is_closing() { Some(Choice::None) } else { Choice::of(generate) };
        if let Some(choice) = choice {
            put(&mut body, "tool_choice", write_choice(choice).into());
        }
    }
    // `claude-3-haiku` and its like take half of what all others do.
    let version = asked.options.model.strip_prefix("claude-3-");
    let older = version.is_some_and(|it| it.starts_with(|letter: char| letter.is_alphabetic()));
    put(&mut body, "max_tokens", if older { ANSWER / 2 } else { ANSWER }.into());
    let options = [("temperature", "temperature"), ("topP", "top_p"), ("maxTokens", "max_tokens")];
    copy_options(generate, &options, &mut body);
    write_thinking(generate, &mut body);
    put(&mut body, "messages", messages.into());
    add_extra(generate, &mut body);
    // A model that thinks wants its answers to begin with thoughts while tools are being called; those that another
    // model wrote have none, so it answers this question without.
    if body.contains_key("thinking") && !begins_with_thought(asked) {
        body.remove("thinking");
    }
    HttpRequest {
        path: "/messages".to_owned(),
        headers: &[("content-type", "application/json"), ("anthropic-version", "2023-06-01")],
        key_header: ("x-api-key", ""),
        body: json::to_bytes(&body),
    }
}

/// Thinking has its own budget, which the answer's length must hold too. It takes no temperature, and no tool that must
/// be called.
fn write_thinking(generate: &Value, body: &mut Object) {
    if matches!(Choice::of(generate), Some(Choice::Required | Choice::Named(_))) {
        return;
    }
    let budget = match text_in(generate, "reasoningEffort") {
        None | Some("none") => return,
        Some("minimal" | "low") => 2_048,
        Some("medium") => 8_192,
        Some(other) => other.parse().unwrap_or(24_576),
    };
    let thinking = object(&mut [("type", "enabled".into()), ("budget_tokens", budget.into())]);
    put(body, "thinking", thinking.into());
    body.remove("temperature");
    body.remove("top_p");
    let answer = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(ANSWER);
    put(body, "max_tokens", answer.saturating_add(budget).into());
}

fn begins_with_thought(asked: &Asked<'_>) -> bool {
    let turns = asked.turns.get(asked.current()..).unwrap_or_default();
    let answers = turns.iter().filter(|turn| turn.calls().next().is_some());
    answers
        .map(|turn| turn.blocks.first())
        .all(|first| first.is_some_and(|block| matches!(**block, Block::Thinking { .. })))
}

/// What the provider is to keep until the next request, up to here.
fn cached(part: Value) -> Value {
    let mut part = part;
    if let Some(members) = part.as_object_mut() {
        put(members, "cache_control", object(&mut [("type", "ephemeral".into())]).into());
    }
    part
}

fn mark_last(messages: &mut [Value]) {
    let parts = messages.last_mut().and_then(|last| last.get_mut("content"));
    if let Some(last) = parts.and_then(Value::as_array_mut).and_then(|parts| parts.last_mut()) {
        *last = cached(last.take());
    }
}

fn write_tool((name, description, schema): (String, &str, Value)) -> Value {
    object(&mut [
        ("name", name.into()),
        ("description", description.into()),
        ("input_schema", schema.into()),
    ])
}

fn write_choice(choice: Choice<'_>) -> Value {
    let of_type = |word: &str| object(&mut [("type", word.into())]);
    match choice {
        Choice::Auto => of_type("auto"),
        Choice::None => of_type("none"),
        Choice::Required => of_type("any"),
        Choice::Named(name) => {
            object(&mut [("type", "tool".into()), ("name", tool_name(name).into())])
        }
    }
}

/// Results and the words after them are one message of the user, results first.
fn write_turn(turn: &Turn<'_>, out: &mut Vec<Value>) {
    let parts: Vec<Value> = turn.blocks.iter().filter_map(|block| write_block(block)).collect();
    let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
    let last = out.last_mut().filter(|last| text_in(last, "role") == Some(role));
    match last.and_then(|last| last.get_mut("content")).and_then(Value::as_array_mut) {
        Some(content) => content.extend(parts),
        None => out.push(object(&mut [("role", role.into()), ("content", parts.into())])),
    }
}

fn write_block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text, .. } => Some(text_part(text)),
        Block::Thinking { thinking, signature, provider, .. } => {
            let redacted = provider.as_ref().and_then(|provider| provider.get("redacted"));
            Some(match redacted {
                Some(data) => object(&mut [
                    ("type", "redacted_thinking".into()),
                    ("data", data.clone().into()),
                ]),
                None => object(&mut [
                    ("type", "thinking".into()),
                    ("thinking", thinking.as_str().into()),
                    ("signature", signature.as_deref()?.into()),
                ]),
            })
        }
        Block::ToolUse(call) => Some(object(&mut [
            ("type", "tool_use".into()),
            ("id", call.id.as_str().into()),
            ("name", tool_name(&call.name).into()),
            ("input", call.input.clone().into()),
        ])),
        Block::ToolResult(result) => Some(write_result(result)),
        Block::Media { kind, source, name, .. } => Some(write_file(*kind, source, name.as_deref())),
        Block::Other(_) => None,
    }
}

fn write_result(result: &ToolResult) -> Value {
    let files = result.output.iter().filter(|block| matches!(block, Block::Media { .. }));
    let files: Vec<Value> = files.filter_map(write_block).collect();
    let mut content = Vec::new();
    if files.is_empty() || !Block::text_of(&result.output).trim().is_empty() {
        content.push(text_part(&result_text(result)));
    }
    content.extend(files);
    let mut written = vec![
        ("type", "tool_result".into()),
        ("tool_use_id", result.id.as_str().into()),
        ("content", content.into()),
    ];
    if result.state != ResultState::Success {
        written.push(("is_error", true.into()));
    }
    object(&mut written)
}

fn write_file(kind: MediaKind, source: &Source, name: Option<&str>) -> Value {
    let word = match kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio | MediaKind::Video => return text_part(&omitted(kind, name)),
    };
    let source = match source {
        Source::Url { url, .. } => {
            object(&mut [("type", "url".into()), ("url", url.as_str().into())])
        }
        Source::Base64 { media_type, data } => object(&mut [
            ("type", "base64".into()),
            ("media_type", media_type.as_str().into()),
            ("data", data.as_str().into()),
        ]),
    };
    object(&mut [("type", word.into()), ("source", source.into())])
}

/// Reads one event of an answer, or a whole one.
#[inline(never)]
pub(super) fn read(frame: &Value, heard: &mut Heard) -> Result<()> {
    let part = |name: &str| frame.get(name).unwrap_or(&Value::Null);
    match text_in(frame, "type").unwrap_or_default() {
        "message_start" => read_usage(part("message"), heard),
        "content_block_start" => {
            read_block(number_in(frame, "index"), part("content_block"), heard)
        }
        "content_block_delta" => read_delta(number_in(frame, "index"), part("delta"), heard),
        "content_block_stop" => heard.end_block(),
        "message_delta" => {
            read_usage(frame, heard);
            return read_finish(part("delta"), heard);
        }
        "message_stop" => heard.is_over = heard.finish.is_some(),
        "message" => {
            for (index, block) in list_in(frame, "content").iter().enumerate() {
                read_block(Some(index as u64), block, heard);
                heard.end_block();
            }
            read_usage(frame, heard);
            return read_finish(frame, heard);
        }
        "error" => return Err(broken(frame)),
        // Gateways answer with errors of their own.
        _ if !part("error").is_null() => return Err(broken(frame)),
        _ => {}
    }
    Ok(())
}

fn read_block(index: Option<u64>, block: &Value, heard: &mut Heard) {
    match text_in(block, "type").unwrap_or_default() {
        "text" => heard.text(text_in(block, "text").unwrap_or_default()),
        "thinking" => {
            let text = text_in(block, "thinking").unwrap_or_default();
            heard.thought(
                text,
                text_in(block, "signature").filter(|it| !it.is_empty()),
                Vec::new(),
            );
        }
        "redacted_thinking" => {
            let data = block.get("data").cloned().unwrap_or_default();
            heard.thought("", None, vec![("redacted", data.into())]);
        }
        "tool_use" => {
            let whole = block.get("input").and_then(Value::as_object).filter(|it| !it.is_empty());
            let arguments = whole.map(json::to_text).unwrap_or_default();
            let fragment =
                Fragment { id: text_in(block, "id"), name: text_in(block, "name"), arguments };
            heard.call(index.unwrap_or_default(), fragment, Vec::new());
        }
        _ => {}
    }
}

fn read_delta(index: Option<u64>, delta: &Value, heard: &mut Heard) {
    match text_in(delta, "type").unwrap_or_default() {
        "text_delta" => heard.text(text_in(delta, "text").unwrap_or_default()),
        "thinking_delta" => {
            heard.thought(text_in(delta, "thinking").unwrap_or_default(), None, Vec::new());
        }
        "signature_delta" => heard.thought("", text_in(delta, "signature"), Vec::new()),
        "input_json_delta" => {
            let arguments = text_in(delta, "partial_json").unwrap_or_default().to_owned();
            heard.call(
                index.unwrap_or_default(),
                Fragment { arguments, ..Fragment::default() },
                Vec::new(),
            );
        }
        _ => {}
    }
}

/// What was read from the cache or written to it counts as input too.
fn read_usage(holder: &Value, heard: &mut Heard) {
    let Some(usage) = holder.get("usage") else { return };
    let cached = number_in(usage, "cache_read_input_tokens");
    let written = number_in(usage, "cache_creation_input_tokens");
    let input = number_in(usage, "input_tokens")
        .map(|input| input + cached.unwrap_or_default() + written.unwrap_or_default());
    // The last event repeats the input of some gateways as nothing.
    heard.usage(input.filter(|input| *input > 0), number_in(usage, "output_tokens"), cached);
}

fn read_finish(holder: &Value, heard: &mut Heard) -> Result<()> {
    let finish = match text_in(holder, "stop_reason") {
        None => return Ok(()),
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens") => Finish::Length,
        Some("refusal") => Finish::Filter,
        Some("model_context_window_exceeded") => {
            let message = "the answer has reached the end of the model's window";
            return Err(Error::new(ErrorKind::ModelContextOverflow, message)
                .hint("turn compaction on, or begin a new session"));
        }
        Some(_) => Finish::Stop,
    };
    heard.finished(finish);
    Ok(())
}
