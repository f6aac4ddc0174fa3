//! The dialect of OpenAI's chat completions, of compatible providers, and of Ollama's own API.

mod read;
mod turns;

pub(super) use read::read;

use serde_json::Value;

use crate::json::{self, Object};
use crate::model::dialect::Flavour;
use crate::model::openai::turns::{said, write_tool, write_turn};
use crate::model::request::RenderInput;
use crate::model::wire::{ToolChoice, add_extra, copy_options, object, option, put, tool_name};
use crate::port::HttpRequest;

/// Writes the request.
pub(super) fn render(input: &RenderInput<'_>) -> HttpRequest {
    let flavour = input.options.flavour;
    let generate = input.request.generate;
    let mut messages = Vec::new();
    if !input.request.system.is_empty() {
        messages.push(said("system", input.request.system.into()));
    }
    let current = input.current();
    for (index, turn) in input.turns.iter().enumerate() {
        write_turn(turn, flavour, index >= current, &mut messages);
    }
    let mut body = Object::new();
    put(&mut body, "model", input.options.model.as_str().into());
    put(&mut body, "messages", messages.into());
    put(&mut body, "stream", input.options.streams.into());
    let tools: Vec<Value> = input.tools().into_iter().map(write_tool).collect();
    if !tools.is_empty() {
        put(&mut body, "tools", tools.into());
    }
    if flavour == Flavour::Ollama {
        write_ollama(input, &mut body);
    } else {
        write_options(input, &mut body);
    }
    add_extra(generate, &mut body);
    HttpRequest {
        path: if flavour == Flavour::Ollama { "/chat" } else { "/chat/completions" }.to_owned(),
        headers: &[("content-type", "application/json")],
        key_header: ("authorization", "Bearer "),
        body: json::to_bytes(&body),
    }
}

fn write_options(input: &RenderInput<'_>, body: &mut Object) {
    let flavour = input.options.flavour;
    let generate = input.request.generate;
    let limit = if flavour == Flavour::OpenAi { "max_completion_tokens" } else { "max_tokens" };
    let options = [("temperature", "temperature"), ("topP", "top_p"), ("maxTokens", limit)];
    copy_options(generate, &options, body);
    if let Some(effort) = option(generate, "reasoningEffort") {
        let switch = |name: &str, value: &str| object(&mut [(name, value.into())]);
        let off = effort == "none";
        match flavour {
            Flavour::OpenRouter => {
                put(body, "reasoning", object(&mut [("effort", effort.into())]).into())
            }
            Flavour::DashScope => put(body, "enable_thinking", (!off).into()),
            Flavour::Glm => {
                let thinking = switch("type", if off { "disabled" } else { "enabled" });
                put(body, "thinking", thinking.into())
            }
            _ => put(body, "reasoning_effort", effort.into()),
        };
    }
    // Mistral always sends the usage, and refuses unknown members.
    if input.options.streams && flavour != Flavour::Mistral {
        put(body, "stream_options", object(&mut [("include_usage", true.into())]).into());
    }
    let choice = if input.is_closing() { Some(ToolChoice::None) } else { ToolChoice::of(generate) };
    if let Some(choice) = choice.filter(|_| body.contains_key("tools") && flavour != Flavour::Glm) {
        body.insert(
            "tool_choice".into(),
            match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Required => "required".into(),
                ToolChoice::Named(name) => {
                    let function = object(&mut [("name", tool_name(name).into())]);
                    object(&mut [("type", "function".into()), ("function", function.into())])
                }
            },
        );
    }
    if let Some(form) = input.request.form {
        let schema = object(&mut [
            ("name", "answer".into()),
            ("schema", form.clone().into()),
            ("strict", is_strict(form).into()),
        ]);
        let format = object(&mut [("type", "json_schema".into()), ("json_schema", schema.into())]);
        put(body, "response_format", format.into());
    }
}

/// Writes the options of Ollama. Without `truncate` and `shift` it would silently drop messages that do not fit.
fn write_ollama(input: &RenderInput<'_>, body: &mut Object) {
    let mut options = Object::new();
    let names = [("temperature", "temperature"), ("topP", "top_p"), ("maxTokens", "num_predict")];
    copy_options(input.request.generate, &names, &mut options);
    if let Some(window) = input.options.window {
        put(&mut options, "num_ctx", window.into());
    }
    put(body, "options", Value::Object(options).into());
    put(body, "truncate", false.into());
    put(body, "shift", false.into());
    if let Some(effort) = option(input.request.generate, "reasoningEffort") {
        put(body, "think", effort.into());
    }
    if let Some(form) = input.request.form {
        put(body, "format", form.clone().into());
    }
}

/// Whether a schema fits the strict mode of OpenAI: objects are closed, and every property is required.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let closed = match members.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    let n = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
                    n == properties.len()
                        && members.get("additionalProperties") == Some(&false.into())
                }
                None => members.get("type").and_then(Value::as_str) != Some("object"),
            };
            closed && members.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}
