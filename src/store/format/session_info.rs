//! A session as the session list shows it.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Read};
use crate::store::format::head::Head;

/// A session as the session list shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Cursor for the next page.
    pub cursor: String,
    /// The session id.
    pub session_id: String,
    /// The user id; null is the anonymous user.
    pub user_id: Option<String>,
    /// Its title.
    pub title: String,
    /// The last text, as one line.
    pub summary: String,
    /// Number of messages.
    pub messages: u64,
    /// RFC 3339.
    pub updated_at: String,
    /// RFC 3339.
    pub created_at: String,
    /// Whether a call runs now.
    pub running: bool,
    /// Whether tool calls wait for an answer.
    pub asking: bool,
    /// Whether a crash, a shutdown or a lost owner has cut off the last turn.
    pub interrupted: bool,
    /// The call that was open when the line was written.
    #[serde(skip)]
    pub open: Option<String>,
    /// Number of other branches.
    pub branches: u64,
}

impl SessionInfo {
    /// The info of a session whose head is known.
    pub fn of(head: &Head) -> SessionInfo {
        let (card, interrupted) = (head.card.clone(), head.is_cut_off());
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
            interrupted,
            open: None,
            branches: card.branches,
        }
    }

    /// Reads a record of the session list. The caller sets the cursor, which comes from the key.
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
            interrupted: fields.or_default("interrupted", json::boolean)?,
            open: fields.optional("open", json::text)?,
            branches: fields.or_default("branches", json::count)?,
        })
    }
}
