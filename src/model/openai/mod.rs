//! Chat completions, as OpenAI and all who are compatible with it speak them; and Ollama's own form of them.

mod read;
mod turns;

pub(super) use read::{Calls, read};

use serde_json::Value;

use crate::json::{self, Object};
use crate::model::openai::turns::{said, write_tool, write_turn};
use crate::model::provider::Asked;
use crate::model::wire::{Choice, add_extra, copy_options, object, option, put, tool_name};
use crate::port::HttpRequest;

/// What is special about a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Nothing that is known: any compatible server.
    Compatible,
    /// OpenAI itself.
    OpenAi,
    /// Mistral: ids of nine letters, an answer between results and words.
    Mistral,
    /// OpenRouter: reasoning is asked for in a form of its own.
    OpenRouter,
    /// DashScope: thinking is switched on by a flag.
    DashScope,
    /// Zhipu's GLM: thinking is an object, and tools are never forced.
    Glm,
    /// Ollama's own form, in lines of JSON.
    Ollama,
}

impl Flavour {
    /// The flavour of this name; an unknown one is nothing special.
    pub fn named(name: &str) -> Flavour {
        match name {
            "openai" => Flavour::OpenAi,
            "mistral" => Flavour::Mistral,
            "openrouter" => Flavour::OpenRouter,
            "dashscope" => Flavour::DashScope,
            "glm" => Flavour::Glm,
            "ollama" => Flavour::Ollama,
            _ => Flavour::Compatible,
        }
    }
}

/// The request as it goes out.
pub(super) fn render(asked: &Asked<'_>) -> HttpRequest {
    let flavour = asked.options.flavour;
    let generate = asked.request.generate;
    let mut messages = Vec::new();
    if !asked.request.system.is_empty() {
        messages.push(said("system", asked.request.system.into()));
    }
    let current = asked.current();
    for (index, turn) in asked.turns.iter().enumerate() {
        write_turn(turn, flavour, index >= current, &mut messages);
    }
    let mut body = Object::new();
    put(&mut body, "model", asked.options.model.as_str().into());
    put(&mut body, "messages", messages.into());
    put(&mut body, "stream", asked.options.streams.into());
    let tools: Vec<Value> = asked.tools().into_iter().map(write_tool).collect();
    if !tools.is_empty() {
        put(&mut body, "tools", tools.into());
    }
    if flavour == Flavour::Ollama {
        write_ollama(asked, &mut body);
    } else {
        write_options(asked, &mut body);
    }
    add_extra(generate, &mut body);
    HttpRequest {
        path: if flavour == Flavour::Ollama { "/chat" } else { "/chat/completions" }.to_owned(),
        headers: &[("content-type", "application/json")],
        key_header: ("authorization", "Bearer "),
        body: json::to_bytes(&body),
    }
}

fn write_options(asked: &Asked<'_>, body: &mut Object) {
    let flavour = asked.options.flavour;
    let generate = asked.request.generate;
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
    // Mistral counts without being asked to, and refuses what it does not know.
    if asked.options.streams && flavour != Flavour::Mistral {
        put(body, "stream_options", object(&mut [("include_usage", true.into())]).into());
    }
    let choice = if asked.is_closing() { Some(Choice::None) } else { Choice::of(generate) };
    if let Some(choice) = choice.filter(|_| body.contains_key("tools") && flavour != Flavour::Glm) {
        body.insert(
            "tool_choice".into(),
            match choice {
                Choice::Auto => "auto".into(),
                Choice::None => "none".into(),
                Choice::Required => "required".into(),
                Choice::Named(name) => {
                    let function = object(&mut [("name", tool_name(name).into())]);
                    object(&mut [("type", "function".into()), ("function", function.into())])
                }
            },
        );
    }
    if let Some(form) = asked.request.form {
        let schema = object(&mut [
            ("name", "answer".into()),
            ("schema", form.clone().into()),
            ("strict", is_strict(form).into()),
        ]);
        let format = object(&mut [("type", "json_schema".into()), ("json_schema", schema.into())]);
        put(body, "response_format", format.into());
    }
}

/// Ollama drops what does not fit without a word unless it is told not to.
fn write_ollama(asked: &Asked<'_>, body: &mut Object) {
    let mut options = Object::new();
    let names = [("temperature", "temperature"), ("topP", "top_p"), ("maxTokens", "num_predict")];
    copy_options(asked.request.generate, &names, &mut options);
    if let Some(window) = asked.options.window {
        put(&mut options, "num_ctx", window.into());
    }
    put(body, "options", Value::Object(options).into());
    put(body, "truncate", false.into());
    put(body, "shift", false.into());
    if let Some(effort) = option(asked.request.generate, "reasoningEffort") {
        put(body, "think", effort.into());
    }
    if let Some(form) = asked.request.form {
        put(body, "format", form.clone().into());
    }
}

/// Whether a schema is one that OpenAI keeps to by the letter: objects are closed, and everything is required.
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
