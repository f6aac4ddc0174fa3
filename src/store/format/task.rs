//! The record of a task that a session has given to a child session.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Read};

/// Prefix of the session ids of child sessions. Lists leave these sessions out.
const CHILD: &str = "agent:";

/// Length of the random part of such an id.
const N_RANDOM: usize = 13;

/// The id of a new child session.
pub fn child_session(agent: &str, random: &str) -> String {
    format!("{CHILD}{agent}:{random}")
}

/// Whether a session is a child session.
pub fn is_child(session: &str) -> bool {
    kind_of(session).is_some()
}

/// The agent of a child session; `None` for other sessions.
pub fn kind_of(session: &str) -> Option<&str> {
    let (kind, random) = session.strip_prefix(CHILD)?.rsplit_once(':')?;
    let is_random = random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (random.len() == N_RANDOM && is_random).then_some(kind)
}

/// A task that was given to a child session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// Its id, which is also the call id in the child session.
    pub id: String,
    /// The session that gave it.
    pub parent: String,
    /// The agent that does it.
    pub agent: String,
    /// The id of the child session.
    pub session: String,
    /// The name of the child in the parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was given, as RFC 3339.
    pub at: String,
    /// How it ended; set when the end was reported to the parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

impl TaskRecord {
    /// Reads a stored task.
    pub fn from_json(value: &Value) -> Read<TaskRecord> {
        let fields = Fields::of(value)?;
        Ok(TaskRecord {
            id: fields.required("id", json::text)?,
            parent: fields.required("parent", json::text)?,
            agent: fields.required("agent", json::text)?,
            session: fields.required("session", json::text)?,
            label: fields.optional("label", json::text)?,
            at: fields.or_default("at", json::text)?,
            ended: fields.optional("ended", json::text)?,
        })
    }
}
