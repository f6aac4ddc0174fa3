//! Checks and repairs a conversation for a provider's dialect. For applications that use other frameworks.

use std::rc::Rc;

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::model::Dialect;
use crate::model::transcript::{self, WireTurn};
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::values::value;

/// What a provider would refuse in a JSON list of messages, as a JSON list.
#[wasm_bindgen(js_name = checkTranscript)]
pub fn check_transcript(messages: &str, dialect: &str) -> JsResult<String> {
    let check = || {
        let messages = read(messages)?;
        let turns: Vec<WireTurn<'_>> =
            messages.iter().map(|message| WireTurn::of(message)).collect();
        Ok(json::to_text(&transcript::check(&turns, named(dialect)?)))
    };
    check().map_err(|error| to_js(&error))
}

/// A JSON list of messages, repaired so that the provider accepts it.
#[wasm_bindgen(js_name = repairTranscript)]
pub fn repair_transcript(messages: &str, dialect: &str) -> JsResult<String> {
    let repair = || Ok(json::to_text(&transcript::repaired(&read(messages)?, named(dialect)?)));
    repair().map_err(|error| to_js(&error))
}

fn read(messages: &str) -> Result<Vec<Rc<Message>>> {
    let messages = value(messages, ErrorKind::InputInvalid, "the transcript")?;
    let message = |value: &Value| Message::from_json(value).map(Rc::new);
    json::list(&messages, message).map_err(|misread| {
        misread.into_error(ErrorKind::InputInvalid, "the transcript").hint("pass a list of Msg")
    })
}

fn named(dialect: &str) -> Result<Dialect> {
    Dialect::named(dialect).ok_or_else(|| {
        let hint = "use openai, anthropic or gemini";
        crate::error::Error::new(ErrorKind::InputInvalid, "there is no such dialect").hint(hint)
    })
}
