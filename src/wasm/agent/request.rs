//! Reads requests from TypeScript.

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine;
use crate::engine::CallRequest;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Read};
use crate::message::Message;
use crate::slot::Slot;
use crate::state::PermissionRight;
use crate::wasm::agent::options;

/// Reads the request of a call.
pub(crate) fn call_request(agent: &engine::Agent, request: &Value) -> Result<CallRequest> {
    let slot = slot_of(agent, request)?;
    let fields = Fields::of(request).map_err(bad_input)?;
    let call_id = fields.optional("callId", json::text).map_err(bad_input)?;
    if let Some(call_id) = &call_id {
        crate::slot::check("callId", call_id)?;
    }
    let resumes = fields.or_default("resumes", json::boolean).map_err(bad_input)?;
    let resends = fields.or_default("resends", json::boolean).map_err(bad_input)?;
    let may_be_silent = resends && fields.value("input").is_none();
    let is_asked = !resumes && !may_be_silent && fields.value("answers").is_none();
    let messages =
        if is_asked { fields.required("input", input).map_err(bad_input)? } else { Vec::new() };
    let tag = fields.or_default("tag", json::count).map_err(bad_input)? as u32;
    let overlap = fields.optional("overlap", options::overlap).map_err(bad_input)?;
    let overlap = overlap.unwrap_or(agent.options().overlap);
    let output = fields.optional("outputSchema", json::any).map_err(bad_input)?;
    let generate = fields.optional("generate", json::object).map_err(bad_input)?;
    let answers = |value: &Value| json::list(value, json::any);
    let answers = fields.or_default("answers", answers).map_err(bad_input)?;
    let attributes = Attributes::default();
    Ok(CallRequest {
        slot,
        messages,
        answers,
        resends,
        from: fields.optional("from", json::text).map_err(bad_input)?,
        right: right_of(request),
        call_id,
        output,
        generate,
        overlap,
        attributes,
        tag,
    })
}

/// Whether the caller of a request may change permissions.
pub(crate) fn right_of(request: &Value) -> PermissionRight {
    match request.get("holdsPermissions") {
        Some(Value::Bool(true)) => PermissionRight::Missing,
        _ => PermissionRight::Given,
    }
}

/// Reads the input: text, one message or several.
fn input(value: &Value) -> Read<Vec<Message>> {
    let messages = match value {
        Value::Array(_) => json::list(value, Message::from_input)?,
        one => vec![Message::from_input(one)?],
    };
    if messages.is_empty() {
        return Err(Misread::new("at least one message"));
    }
    Ok(messages)
}

/// Reads the messages of the user in `says`.
pub(crate) fn says(request: &Value) -> Result<Vec<Message>> {
    let read = |value: &Value| json::list(value, Message::from_input);
    Fields::of(request).and_then(|fields| fields.or_default("says", read)).map_err(bad_input)
}

/// Reads the slot of a request.
pub(crate) fn slot_of(agent: &engine::Agent, request: &Value) -> Result<Slot> {
    let wrong = |misread: Misread| {
        misread
            .into_error(ErrorKind::IdInvalid, "the session")
            .hint("sessionId and userId are strings")
    };
    let fields = Fields::of(request).map_err(wrong)?;
    let user = fields.optional("userId", json::text).map_err(wrong)?;
    let session = fields.optional("sessionId", json::text).map_err(wrong)?;
    agent.slot(user.as_deref(), session.as_deref())
}

/// The error for an input that cannot be read.
pub(crate) fn bad_input(misread: Misread) -> Error {
    let hint = "pass text, a message { content }, or a list of messages";
    misread.into_error(ErrorKind::InputInvalid, "the input").hint(hint)
}

/// The error for a page that cannot be read.
pub(crate) fn bad_page(misread: Misread) -> Error {
    misread
        .into_error(ErrorKind::InputInvalid, "the page")
        .hint("a page has a cursor (a string) and a limit (a number)")
}
