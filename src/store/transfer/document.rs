//! The document of an exported session, version 2: the whole log, the head and the branches, and what people want to read.

use std::rc::Rc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::Message;
use crate::state::AgentState;
use crate::store::format::entry::Entry;
use crate::store::format::head::{Head, HeadRecord};
use crate::store::keys::EntryRef;
use crate::store::transfer::check::check;
use crate::store::transfer::{SessionCopy, WholeSession};

/// The members of a head that belong to its slot. A document does not have them.
const OF_SLOT: [&str; 7] = ["epoch", "session_id", "user_id", "index", "open", "log", "inputs"];

/// The members of a state that a document does not have: those of the last commit, and the messages.
const OF_COMMIT: [&str; 4] = ["format", "version", "revision", "context"];

/// A session as a document. `history` and `state` are for readers; an import takes the AgentState fields from `state`, and
/// everything else from the members behind it.
#[derive(Serialize)]
pub struct Document<'a> {
    lockgate: u64,
    title: &'a str,
    history: &'a [Rc<Message>],
    state: Value,
    head: Value,
    branches: Vec<Value>,
    entries: &'a [(EntryRef, Entry)],
}

impl<'a> Document<'a> {
    /// The version that this version writes.
    pub const VERSION: u64 = 2;

    /// The document of a session.
    pub fn of(session: &'a WholeSession) -> Self {
        let WholeSession { copy, history, state } = session;
        let mut state = json::by_text(&AgentState { context: Vec::new(), ..state.clone() });
        if let Some(members) = state.as_object_mut() {
            OF_COMMIT.iter().for_each(|name| drop(members.remove(*name)));
        }
        let mut head = portable(&copy.head);
        head.remove("facts");
        Document {
            lockgate: Self::VERSION,
            title: &copy.head.card.title,
            history,
            state,
            head: head.into(),
            branches: copy.branches.iter().map(|branch| portable(branch).into()).collect(),
            entries: &copy.entries,
        }
    }
}

/// A head without the members that belong to its slot.
fn portable(head: &Head) -> Object {
    let Value::Object(mut members) = json::by_text(head) else { return Map::new() };
    OF_SLOT.iter().for_each(|name| drop(members.remove(*name)));
    if let Some(Value::Object(card)) = members.get_mut("card") {
        card.remove("updated");
    }
    members
}

impl SessionCopy {
    /// Reads a document of version 2. Its parts fit together.
    pub fn from_json(document: &Value) -> Read<SessionCopy> {
        let fields = Fields::of(document)?;
        let state = fields.required("state", json::object)?;
        let mut copy = SessionCopy {
            head: fields.required("head", head)?,
            entries: fields.required("entries", |value| json::list(value, entry))?,
            branches: fields.or_default("branches", |value| json::list(value, head))?,
        };
        copy.head.facts =
            AgentState::facts_of(&Value::Object(state)).map_err(|it| it.under("state"))?;
        if let Some(title) = fields.optional("title", json::text)? {
            copy.head.card.title = title;
        }
        check(&copy)?;
        Ok(copy)
    }
}

fn head(value: &Value) -> Read<Head> {
    let mut members = json::object(value)?;
    for name in OF_SLOT {
        members.insert(name.to_owned(), Value::Null);
    }
    for name in ["epoch", "session_id", "index"] {
        members.insert(name.to_owned(), "".into());
    }
    match Head::from_json(&Value::Object(members))? {
        HeadRecord::Live(head) => Ok(*head),
        HeadRecord::Tombstone => Err(Misread::new("the head of a session")),
    }
}

fn entry(value: &Value) -> Read<(EntryRef, Entry)> {
    match value.as_array().map(Vec::as_slice) {
        Some([name, entry]) => {
            let name = EntryRef::from_json(name).map_err(|it| it.under("[0]"))?;
            Ok((name, Entry::from_json(entry).map_err(|it| it.under("[1]"))?))
        }
        _ => Err(Misread::new("an entry, [name, entry]")),
    }
}
