//! The dialect of Anthropic's Messages API.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Object};
use crate::message::{Block, Finish, MediaKind, ResultState, Role, Source, ToolResult};
use crate::model::reply::{Fragment, ReplyDeltas, broken, list_in, number_in, text_in};
use crate::model::request::RenderInput;
use crate::model::transcript::WireTurn;
use crate::model::wire::{
    ToolChoice, add_extra, copy_options, object, omitted, put, result_text, text_part, tool_name,
};
use crate::port::HttpRequest;

/// `max_tokens` if the options do not set it.
const ANSWER: u64 = 8_192;

/// Writes the request.
#[inline(never)]
pub(super) fn render(input: &RenderInput<'_>) -> HttpRequest {
    let generate = input.request.generate;
    let mut body = Object::new();
    put(&mut body, "model", input.options.model.as_str().into());
    put(&mut body, "stream", input.options.streams.into());
    if !input.request.system.is_empty() {
        put(&mut body, "system", vec![cached(text_part(input.request.system))].into());
    }
    let mut messages: Vec<Value> = Vec::new();
    for turn in input.turns {
        write_turn(turn, &mut messages);
    }
    mark_last(&mut messages);
    let tools: Vec<Value> = input.tools().into_iter().map(write_tool).collect();
    if !tools.is_empty() {
        put(&mut body, "tools", tools.into());
        let choice =
            if input.is_closing() { Some(ToolChoice::None) } else { ToolChoice::of(generate) };
        if let Some(choice) = choice {
            put(&mut body, "tool_choice", write_choice(choice).into());
        }
    }
    // `claude-3-haiku` and similar models accept half as many tokens as the others.
    let version = input.options.model.strip_prefix("claude-3-");
    let older = version.is_some_and(|it| it.starts_with(|letter: char| letter.is_alphabetic()));
    put(&mut body, "max_tokens", if older { ANSWER / 2 } else { ANSWER }.into());
    let options = [("temperature", "temperature"), ("topP", "top_p"), ("maxTokens", "max_tokens")];
    copy_options(generate, &options, &mut body);
    write_thinking(generate, &mut body);
    put(&mut body, "messages", messages.into());
    add_extra(generate, &mut body);
    // With thinking on, an answer that calls tools must begin with thinking blocks. Answers of other models have none, so
    // this question is answered without thinking.
    if body.contains_key("thinking") && !begins_with_thought(input) {
        body.remove("thinking");
    }
    HttpRequest {
        path: "/messages".to_owned(),
        headers: &[("content-type", "application/json"), ("anthropic-version", "2023-06-01")],
        key_header: ("x-api-key", ""),
        body: json::to_bytes(&body),
    }
}

/// Thinking has a budget of its own, which is part of `max_tokens`. With thinking, `temperature` and forced tools are not
/// allowed.
fn write_thinking(generate: &Value, body: &mut Object) {
    if matches!(ToolChoice::of(generate), Some(ToolChoice::Required | ToolChoice::Named(_))) {
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

fn begins_with_thought(input: &RenderInput<'_>) -> bool {
    let turns = input.turns.get(input.current()..).unwrap_or_default();
    let answers = turns.iter().filter(|turn| turn.calls().next().is_some());
    answers
        .map(|turn| turn.blocks.first())
        .all(|first| first.is_some_and(|block| matches!(**block, Block::Thinking { .. })))
}

/// The mark up to which the provider caches the request.
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

fn write_choice(choice: ToolChoice<'_>) -> Value {
    let of_type = |word: &str| object(&mut [("type", word.into())]);
    match choice {
        ToolChoice::Auto => of_type("auto"),
        ToolChoice::None => of_type("none"),
        ToolChoice::Required => of_type("any"),
        ToolChoice::Named(name) => {
            object(&mut [("type", "tool".into()), ("name", tool_name(name).into())])
        }
    }
}

/// Tool results and the text after them are one user message, results first.
fn write_turn(turn: &WireTurn<'_>, out: &mut Vec<Value>) {
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

/// Reads one event of a reply, or a whole reply.
#[inline(never)]
pub(super) fn read(frame: &Value, reply: &mut ReplyDeltas) -> Result<()> {
    let part = |name: &str| frame.get(name).unwrap_or(&Value::Null);
    match text_in(frame, "type").unwrap_or_default() {
        "message_start" => read_usage(part("message"), reply),
        "content_block_start" => {
            read_block(number_in(frame, "index"), part("content_block"), reply)
        }
        "content_block_delta" => read_delta(number_in(frame, "index"), part("delta"), reply),
        "content_block_stop" => reply.end_block(),
        "message_delta" => {
            read_usage(frame, reply);
            return read_finish(part("delta"), reply);
        }
        "message_stop" => reply.is_over = reply.finish.is_some(),
        "message" => {
            for (index, block) in list_in(frame, "content").iter().enumerate() {
                read_block(Some(index as u64), block, reply);
                reply.end_block();
            }
            read_usage(frame, reply);
            return read_finish(frame, reply);
        }
        "error" => return Err(broken(frame)),
        // Gateways send errors in other forms.
        _ if !part("error").is_null() => return Err(broken(frame)),
        _ => {}
    }
    Ok(())
}

fn read_block(index: Option<u64>, block: &Value, reply: &mut ReplyDeltas) {
    match text_in(block, "type").unwrap_or_default() {
        "text" => reply.text(text_in(block, "text").unwrap_or_default()),
        "thinking" => {
            let text = text_in(block, "thinking").unwrap_or_default();
            reply.thought(
                text,
                text_in(block, "signature").filter(|it| !it.is_empty()),
                Vec::new(),
            );
        }
        "redacted_thinking" => {
            let data = block.get("data").cloned().unwrap_or_default();
            reply.thought("", None, vec![("redacted", data.into())]);
        }
        "tool_use" => {
            let whole = block.get("input").and_then(Value::as_object).filter(|it| !it.is_empty());
            let arguments = whole.map(json::to_text).unwrap_or_default();
            let fragment =
                Fragment { id: text_in(block, "id"), name: text_in(block, "name"), arguments };
            reply.call(index.unwrap_or_default(), fragment, Vec::new());
        }
        _ => {}
    }
}

fn read_delta(index: Option<u64>, delta: &Value, reply: &mut ReplyDeltas) {
    match text_in(delta, "type").unwrap_or_default() {
        "text_delta" => reply.text(text_in(delta, "text").unwrap_or_default()),
        "thinking_delta" => {
            reply.thought(text_in(delta, "thinking").unwrap_or_default(), None, Vec::new());
        }
        "signature_delta" => reply.thought("", text_in(delta, "signature"), Vec::new()),
        "input_json_delta" => {
            let arguments = text_in(delta, "partial_json").unwrap_or_default().to_owned();
            reply.call(
                index.unwrap_or_default(),
                Fragment { arguments, ..Fragment::default() },
                Vec::new(),
            );
        }
        _ => {}
    }
}

/// Tokens that were read from the cache or written to it count as input.
fn read_usage(holder: &Value, reply: &mut ReplyDeltas) {
    let Some(usage) = holder.get("usage") else { return };
    let cached = number_in(usage, "cache_read_input_tokens");
    let written = number_in(usage, "cache_creation_input_tokens");
    let input = number_in(usage, "input_tokens")
        .map(|input| input + cached.unwrap_or_default() + written.unwrap_or_default());
    // Some gateways send an input of 0 in the last event.
    reply.usage(input.filter(|input| *input > 0), number_in(usage, "output_tokens"), cached);
}

fn read_finish(holder: &Value, reply: &mut ReplyDeltas) -> Result<()> {
    let finish = match text_in(holder, "stop_reason") {
        None => return Ok(()),
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens") => Finish::Length,
        Some("refusal") => Finish::Filter,
        Some("model_context_window_exceeded") => {
            let message = "the answer has reached the end of the model's context window";
            return Err(Error::new(ErrorKind::ModelContextOverflow, message)
                .hint("turn compaction on, or start a new session"));
        }
        Some(_) => Finish::Stop,
    };
    reply.finished(finish);
    Ok(())
}
