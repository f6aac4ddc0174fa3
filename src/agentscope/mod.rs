//! The AgentState document of AgentScope Java 2.x (its key `agent_state`), read and written so that nothing is lost.
//!
//! What means the same is ours under our names. What AgentScope alone knows stays in the `rest` of the value it belongs
//! to, and what we would write differently is remembered there (`remainder.rs`), so that a document comes back as it was.

mod block;
mod facts;
mod media;
mod message;
mod permission;
mod remainder;
mod time;

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::error::Error;
use crate::error::ErrorKind;
use crate::json::{self, Fields, Object, Read};
use crate::message::Message;
use crate::slot::Slot;
use crate::state::Facts;

/// What a document of AgentScope says.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Which conversation, if it says so.
    pub session_id: Option<String>,
    /// Whose; `None` is the anonymous user.
    pub user_id: Option<String>,
    /// What the model is shown; a message that came without an id has "".
    pub context: Vec<Message>,
    /// The running summary, or "".
    pub summary: String,
    /// Everything else.
    pub facts: Facts,
}

/// Reads a document. A key that is missing has its default; a value of the wrong type is an error that names its place.
pub fn import(document: &Value) -> Result<Imported, Error> {
    modern(document).and_then(|document| read(&document)).map_err(|misread| {
        let hint = "give the JSON that AgentScope Java 2.x stores under agent_state, parsed";
        misread.into_error(ErrorKind::InputInvalid, "the AgentScope document").hint(hint)
    })
}

/// Writes a session as AgentScope stores it; what was imported is given back as it was, unless it has changed since.
pub fn export(slot: &Slot, context: &[Rc<Message>], summary: &str, facts: &Facts) -> Value {
    let whole = Whole {
        session_id: json!(slot.session()),
        user_id: json!(slot.user()),
        context: context.iter().map(|message| message::write(message)).collect(),
        summary,
        facts,
    };
    Value::Object(whole.write())
}

/// A document about to be written.
struct Whole<'a> {
    session_id: Value,
    user_id: Value,
    context: Vec<Value>,
    summary: &'a str,
    facts: &'a Facts,
}

impl Whole<'_> {
    fn write(self) -> Object {
        let mut whole = facts::write(self.facts);
        whole.insert("session_id".into(), self.session_id);
        whole.insert("user_id".into(), self.user_id);
        whole.insert("context".into(), Value::Array(self.context));
        whole.insert("summary".into(), self.summary.into());
        remainder::restore(&mut whole, &self.facts.rest);
        whole
    }
}

fn read(document: &Value) -> Read<Imported> {
    let fields = Fields::of(document)?;
    let mut imported = Imported {
        session_id: fields.optional("session_id", json::text)?,
        user_id: fields.optional("user_id", json::text)?,
        context: fields.or_default("context", message::list)?,
        summary: fields.or_default("summary", json::text)?,
        facts: facts::read(&fields)?,
    };
    // Each message has kept what is its own, so of the context only its being there is left to compare.
    let mut original = fields.rest(&["context"]);
    match document.get("context") {
        Some(Value::Array(_)) => original.insert("context".into(), json!([])),
        Some(other) => original.insert("context".into(), other.clone()),
        None => None,
    };
    let whole = Whole {
        session_id: json!(imported.session_id),
        user_id: json!(imported.user_id),
        context: Vec::new(),
        summary: &imported.summary,
        facts: &imported.facts,
    };
    let written = whole.write();
    remainder::keep(&mut imported.facts.rest, &written, &Value::Object(original));
    Ok(imported)
}

/// A session of AgentScope 1.x had its messages and tool groups under keys of their own; this is what 2.x makes of them.
fn modern(document: &Value) -> Read<Cow<'_, Value>> {
    let fields = Fields::of(document)?;
    let is_legacy =
        ["memory_messages", "toolkit_activeGroups"].iter().any(|name| fields.value(name).is_some());
    if !is_legacy || fields.value("context").is_some() {
        return Ok(Cow::Borrowed(document));
    }
    // Read where it stands first, so that an error names a place that the caller can find.
    fields.optional("memory_messages", message::list)?;
    let groups = fields.optional("toolkit_activeGroups", |value| {
        Fields::of(value)?.or_default("activeGroups", json::texts)
    })?;
    let mut modern = fields.rest(&["memory_messages", "toolkit_activeGroups", "context"]);
    let messages = fields.value("memory_messages").cloned().unwrap_or_else(|| json!([]));
    modern.insert("context".into(), messages);
    if let Some(groups) = groups {
        let mut tools = fields.or_default("tool_context", json::object)?;
        tools.entry("activated_groups").or_insert_with(|| json!(groups));
        modern.insert("tool_context".into(), Value::Object(tools));
    }
    Ok(Cow::Owned(Value::Object(modern)))
}
