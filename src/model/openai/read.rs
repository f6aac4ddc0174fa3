//! An answer as chat completions send it, in pieces or whole.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Finish;
use crate::model::heard::{Fragment, Heard, broken, list_in, number_in, text_in};

/// The calls that have been heard of, for fragments without a number.
#[derive(Debug, Default)]
pub(in crate::model) struct Calls {
    ids: Vec<String>,
    pub(in crate::model) n: u64,
    refused: bool,
}

impl Calls {
    /// The number of a fragment's call: its own, that of its id, or that of the latest.
    fn number(&mut self, call: &Value) -> u64 {
        if let Some(index) = number_in(call, "index") {
            self.n = self.n.max(index + 1);
            return index;
        }
        let id = text_in(call, "id").filter(|id| !id.is_empty());
        let names_tool = call.get("function").and_then(|it| text_in(it, "name")).is_some();
        match id {
            Some(id) => match self.ids.iter().position(|known| known == id) {
                Some(known) => known as u64,
                None => {
                    self.ids.resize(self.n as usize, String::new());
                    self.ids.push(id.to_owned());
                    self.next()
                }
            },
            // Without an id, a name begins a call; without either, the latest goes on.
            None if names_tool || self.n == 0 => self.next(),
            None => self.n - 1,
        }
    }

    pub(in crate::model) fn next(&mut self) -> u64 {
        self.n += 1;
        self.n - 1
    }
}

/// Reads one frame of an answer, or a whole one.
pub(in crate::model) fn read(frame: &Value, calls: &mut Calls, heard: &mut Heard) -> Result<()> {
    let is_error = frame.get("error").is_some_and(|error| !error.is_null());
    if is_error || text_in(frame, "object") == Some("error") {
        return Err(broken(frame));
    }
    let choice = list_in(frame, "choices").first().unwrap_or(frame);
    let message = choice.get("delta").or_else(|| choice.get("message"));
    if let Some(message) = message.filter(|message| message.is_object()) {
        read_message(message, calls, heard);
    } else if frame.get("choices").is_none()
        && frame.get("usage").is_none()
        && text_in(frame, "code").is_some()
    {
        // DashScope's own form of an error.
        return Err(broken(frame));
    }
    let usage = frame.get("usage").or_else(|| choice.get("usage")).unwrap_or(&Value::Null);
    read_usage(usage, heard);
    if frame.get("done") == Some(&Value::Bool(true)) {
        heard.usage(number_in(frame, "prompt_eval_count"), number_in(frame, "eval_count"), None);
    }
    let reason = text_in(choice, "finish_reason").or_else(|| text_in(frame, "done_reason"));
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => read_finish(reason, calls, heard),
        None => Ok(()),
    }
}

fn read_message(message: &Value, calls: &mut Calls, heard: &mut Heard) {
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
        heard.thought(text, None, kept);
    }
    match message.get("content") {
        Some(Value::String(text)) => heard.text(text),
        // Mistral's: parts of text and of thought.
        Some(Value::Array(parts)) => {
            for part in parts {
                for thought in list_in(part, "thinking") {
                    heard.thought(text_in(thought, "text").unwrap_or_default(), None, Vec::new());
                }
                heard.text(text_in(part, "text").unwrap_or_default());
            }
        }
        _ => {}
    }
    if let Some(refusal) = text_in(message, "refusal").filter(|it| !it.is_empty()) {
        calls.refused = true;
        heard.text(refusal);
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
        heard.call(calls.number(call), fragment, extra.into_iter().collect());
    }
}

fn read_usage(usage: &Value, heard: &mut Heard) {
    let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
    let cached = number_in(details, "cached_tokens");
    let cached = cached.or_else(|| number_in(usage, "prompt_cache_hit_tokens"));
    let cached = cached.or_else(|| number_in(usage, "cached_tokens"));
    heard.usage(number_in(usage, "prompt_tokens"), number_in(usage, "completion_tokens"), cached);
}

fn read_finish(reason: &str, calls: &Calls, heard: &mut Heard) -> Result<()> {
    let finish = match reason {
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "sensitive" => Finish::Filter,
        "model_context_window_exceeded" => {
            let message = "the answer has reached the end of the model's window";
            return Err(Error::new(ErrorKind::ModelContextOverflow, message)
                .hint("turn compaction on, or begin a new session"));
        }
        "error" | "network_error" | "insufficient_system_resource" => {
            let message = "the provider could not go on with the answer";
            return Err(Error::new(ErrorKind::ModelOverloaded, message).hint("try again later"));
        }
        _ if calls.refused => Finish::Filter,
        _ if calls.n > 0 => Finish::ToolCalls,
        _ => Finish::Stop,
    };
    heard.finished(finish);
    Ok(())
}
