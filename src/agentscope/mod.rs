//! The AgentState document of AgentScope Java 2.x (its key `agent_state`), read and written so that nothing is lost.
//!
//! Members with the same meaning are read into our own types. Members that only AgentScope has stay in the `rest` of
//! the value to which they belong. `rest` also records what we would write differently (`remainder.rs`), so that an
//! export equals the imported document.

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

/// The content of an AgentScope document.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The session id, if the document has one.
    pub session_id: Option<String>,
    /// The user id; `None` is the anonymous user.
    pub user_id: Option<String>,
    /// The messages that the model sees. A message without an id has "".
    pub context: Vec<Message>,
    /// The summary, or "".
    pub summary: String,
    /// All other fields.
    pub facts: Facts,
}

/// Reads a document. A missing member gets its default. The error for a value of the wrong type names its path.
pub fn import(document: &Value) -> Result<Imported, Error> {
    modern(document).and_then(|document| read(&document)).map_err(|misread| {
        let hint = "pass the parsed JSON that AgentScope Java 2.x stores under agent_state";
        misread.into_error(ErrorKind::InputInvalid, "the AgentScope document").hint(hint)
    })
}

/// Writes a session in AgentScope's form. Imported values that were not changed since are written as they were.
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

/// A document that is about to be written.
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
    // Each message restores its own differences, so only the existence of `context` is compared here.
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

/// AgentScope 1.x kept messages and tool groups under other keys. Converts them as AgentScope 2.x does.
fn modern(document: &Value) -> Read<Cow<'_, Value>> {
    let fields = Fields::of(document)?;
    let is_legacy =
        ["memory_messages", "toolkit_activeGroups"].iter().any(|name| fields.value(name).is_some());
    if !is_legacy || fields.value("context").is_some() {
        return Ok(Cow::Borrowed(document));
    }
    // The messages are read from their old place first, so that an error names a path in the caller's document.
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
