//! A session's line in a list.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Read};
use crate::store::head::Head;

/// A session's line in a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Where the next page begins.
    pub cursor: String,
    /// Which.
    pub session_id: String,
    /// Whose; null is the anonymous user.
    pub user_id: Option<String>,
    /// What it is called.
    pub title: String,
    /// The last thing said.
    pub summary: String,
    /// Messages in its log.
    pub messages: u64,
    /// RFC 3339.
    pub updated_at: String,
    /// RFC 3339.
    pub created_at: String,
    /// Whether a call runs now.
    pub running: bool,
    /// Whether a person must answer first.
    pub asking: bool,
    /// Other branches.
    pub branches: u64,
}

impl SessionInfo {
    /// The line of a session in hand; nobody pages on from it.
    pub fn of(head: &Head) -> SessionInfo {
        let card = head.card.clone();
        SessionInfo {
            cursor: head.index.rsplit('/').next().unwrap_or_default().to_owned(),
            session_id: head.session_id.clone(),
            user_id: head.user_id.clone(),
            title: card.title,
            summary: card.line,
            messages: card.messages,
            updated_at: card.updated,
            created_at: card.created,
            running: false,
            asking: card.asking,
            branches: card.branches,
        }
    }

    /// Reads a line of a list; its cursor is its key.
    pub fn from_json(value: &Value) -> Read<SessionInfo> {
        let fields = Fields::of(value)?;
        Ok(SessionInfo {
            cursor: String::new(),
            session_id: fields.required("sessionId", json::text)?,
            user_id: fields.optional("userId", json::text)?,
            title: fields.or_default("title", json::text)?,
            summary: fields.or_default("summary", json::text)?,
            messages: fields.or_default("messages", json::count)?,
            updated_at: fields.or_default("updatedAt", json::text)?,
            created_at: fields.or_default("createdAt", json::text)?,
            running: false,
            asking: fields.or_default("asking", json::boolean)?,
            branches: fields.or_default("branches", json::count)?,
        })
    }
}
