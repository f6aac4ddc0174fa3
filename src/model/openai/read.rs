//! Reads a reply of chat completions, streamed or whole.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Finish;
use crate::model::calls::CallNumbers;
use crate::model::reply::{Fragment, ReplyDeltas, broken, list_in, number_in, text_in};

/// Reads one frame of a reply, or a whole reply.
pub(in crate::model) fn read(
    frame: &Value,
    calls: &mut CallNumbers,
    reply: &mut ReplyDeltas,
) -> Result<()> {
    let is_error = frame.get("error").is_some_and(|error| !error.is_null());
    if is_error || text_in(frame, "object") == Some("error") {
        return Err(broken(frame));
    }
    let choice = list_in(frame, "choices").first().unwrap_or(frame);
    let message = choice.get("delta").or_else(|| choice.get("message"));
    if let Some(message) = message.filter(|message| message.is_object()) {
        read_message(message, calls, reply);
    } else if frame.get("choices").is_none()
        && frame.get("usage").is_none()
        && text_in(frame, "code").is_some()
    {
        // DashScope sends errors in its own form.
        return Err(broken(frame));
    }
    let usage = frame.get("usage").or_else(|| choice.get("usage")).unwrap_or(&Value::Null);
    read_usage(usage, reply);
    if frame.get("done") == Some(&Value::Bool(true)) {
        reply.usage(number_in(frame, "prompt_eval_count"), number_in(frame, "eval_count"), None);
    }
    let reason = text_in(choice, "finish_reason").or_else(|| text_in(frame, "done_reason"));
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => read_finish(reason, calls, reply),
        None => Ok(()),
    }
}

fn read_message(message: &Value, calls: &mut CallNumbers, reply: &mut ReplyDeltas) {
    let details = list_in(message, "reasoning_details");
    let fields = ["reasoning_content", "reasoning", "thinking"];
    let thought = fields.iter().find_map(|field| {
        text_in(message, field).filter(|it| !it.is_empty()).map(|text| (*field, text))
    });
    if thought.is_some() || !details.is_empty() {
        let (field, text) = thought.unwrap_or(("", ""));
        let mut kept = Vec::new();
        if details.is_empty() {
            kept.push(("field", field.into()));
        } else {
            kept.push(("details", details.to_vec().into()));
        }
        reply.thought(text, None, kept);
    }
    match message.get("content") {
        Some(Value::String(text)) => reply.text(text),
        // Mistral sends a list of text and thinking parts.
        Some(Value::Array(parts)) => {
            for part in parts {
                for thought in list_in(part, "thinking") {
                    reply.thought(text_in(thought, "text").unwrap_or_default(), None, Vec::new());
                }
                reply.text(text_in(part, "text").unwrap_or_default());
            }
        }
        _ => {}
    }
    if let Some(refusal) = text_in(message, "refusal").filter(|it| !it.is_empty()) {
        reply.refusal(refusal);
    }
    for call in list_in(message, "tool_calls") {
        let function = call.get("function").unwrap_or(&Value::Null);
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(whole @ Value::Object(_)) => whole.to_string(),
            _ => String::new(),
        };
        let extra = call.get("extra_content").map(|it| ("extra_content", it.clone().into()));
        let fragment =
            Fragment { id: text_in(call, "id"), name: text_in(function, "name"), arguments };
        reply.call(calls.number(call), fragment, extra.into_iter().collect());
    }
}

fn read_usage(usage: &Value, reply: &mut ReplyDeltas) {
    let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
    let cached = number_in(details, "cached_tokens");
    let cached = cached.or_else(|| number_in(usage, "prompt_cache_hit_tokens"));
    let cached = cached.or_else(|| number_in(usage, "cached_tokens"));
    reply.usage(number_in(usage, "prompt_tokens"), number_in(usage, "completion_tokens"), cached);
}

fn read_finish(reason: &str, calls: &CallNumbers, reply: &mut ReplyDeltas) -> Result<()> {
    let finish = match reason {
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "sensitive" => Finish::Filter,
        "model_context_window_exceeded" => {
            let message = "the answer has reached the end of the model's context window";
            return Err(Error::new(ErrorKind::ModelContextOverflow, message)
                .hint("turn compaction on, or start a new session"));
        }
        "error" | "network_error" | "insufficient_system_resource" => {
            let message = "the provider could not go on with the answer";
            return Err(Error::new(ErrorKind::ModelOverloaded, message).hint("try again later"));
        }
        _ if reply.is_refused() => Finish::Filter,
        _ if calls.are_there() => Finish::ToolCalls,
        _ => Finish::Stop,
    };
    reply.finished(finish);
    Ok(())
}
