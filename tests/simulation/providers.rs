//! Checks every request like the providers do: renders it for every dialect and reads it strictly.

use std::rc::Rc;

use lockgate::message::{Block, Message, Role};
use lockgate::model::Dialect;
use lockgate::model::Flavour;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::render;
use lockgate::port::{Lineage, Request, ToolSpec};
use lockgate::slot::Slot;
use serde_json::{Value, json};

#[path = "../dialects/wire.rs"]
mod wire;

type Reads = fn(&Value) -> Result<(), String>;

thread_local! {
    static READERS: Vec<(ProviderOptions, Reads)> = readers();
}

fn readers() -> Vec<(ProviderOptions, Reads)> {
    let mistral = ProviderOptions {
        flavour: Flavour::Mistral,
        ..ProviderOptions::new(Dialect::OpenAi, "mistral")
    };
    vec![
        (ProviderOptions::new(Dialect::OpenAi, "openai"), |body| wire::openai(body, false)),
        (mistral, |body| wire::openai(body, true)),
        (ProviderOptions::new(Dialect::Anthropic, "anthropic"), wire::anthropic),
        (ProviderOptions::new(Dialect::Gemini, "gemini"), wire::gemini),
    ]
}

/// The providers that would refuse a request, with the reasons.
pub fn refused(request: Request<'_>) -> Result<(), String> {
    READERS.with(|readers| {
        for (options, reads) in readers {
            let (model, dialect) = (&options.model, options.dialect);
            let refuses = |why: String| format!("{model} ({dialect:?}) refuses: {why}");
            let rendered = render(options, &request);
            let rendered = rendered.map_err(|error| refuses(error.message().to_owned()))?;
            let body = serde_json::from_slice(&rendered.body).map_err(|it| refuses(it.to_string()));
            reads(&body?).map_err(refuses)?;
        }
        Ok(())
    })
}

/// The same for a request with these messages and a new question.
pub fn refused_after(slot: &Slot, messages: &[Rc<Message>]) -> Result<(), String> {
    let question = Message::draft(Role::User, vec![Block::text("and now?")]);
    let messages: Vec<_> = messages.iter().cloned().chain([Rc::new(question)]).collect();
    let tools = [Rc::new(ToolSpec::new("quick", "", json!({ "type": "object" })))];
    let (lineage, generate) = (Lineage::new(), json!({}));
    refused(Request {
        slot,
        tag: 0,
        system: "",
        messages: &messages,
        lineage: &lineage,
        tools: &tools,
        generate: &generate,
        form: None,
    })
}
