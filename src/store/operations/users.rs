//! The users of an agent: listing them, and removing one with all records.

use serde::Serialize;

use crate::error::Result;
use crate::port::{Batch, Page};
use crate::store::format::session_info::SessionInfo;
use crate::store::keys;
use crate::store::operations::sessions::Sessions;
use crate::store::records::read;

/// Keys counted at a time.
const PAGE: usize = 500;

/// A user in the list of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The user id; null is the anonymous user.
    pub user_id: Option<String>,
    /// Number of sessions.
    pub sessions: usize,
    /// When a session of the user last changed.
    pub updated_at: String,
    /// Cursor for the next page.
    pub cursor: String,
}

impl Sessions {
    /// The users that have sessions, in the order of their keys.
    pub async fn list_users(&self, page: Page) -> Result<Vec<UserInfo>> {
        let prefix = keys::agent(self.agent());
        let mut users = Vec::new();
        let mut after = page.after.map(|cursor| behind(&prefix, &cursor));
        while page.limit.is_none_or(|limit| users.len() < limit) {
            let first = Page { after: after.take(), limit: Some(1), keys_only: true };
            let found = self.records().list(&prefix, first).await?;
            let below = found.first().and_then(|(key, _)| key.strip_prefix(&prefix));
            let Some(user) = below.and_then(|key| key.split('/').next()) else { break };
            after = Some(behind(&prefix, user));
            users.extend(self.user(&prefix, user).await?);
        }
        Ok(users)
    }

    /// Removes every record of a user.
    pub async fn remove_user(&self, user: Option<&str>) -> Result<()> {
        let revision = self.records().random_id();
        let remove_prefix = vec![keys::partition(self.agent(), user)];
        let batch = Batch { revision, remove_prefix, ..Batch::default() };
        self.records().commit(&batch).await.map(|_| ())
    }

    /// The info of a user; `None` if all sessions are deleted.
    async fn user(&self, prefix: &str, user: &str) -> Result<Option<UserInfo>> {
        let index = keys::index(&format!("{prefix}{user}/"));
        let newest = Page { limit: Some(1), ..Page::default() };
        let newest = self.records().list(&index, newest).await?;
        let Some((first, record)) = newest.into_iter().next() else { return Ok(None) };
        let info = read(&first, &record, SessionInfo::from_json, "a line of the session list")?;
        let (mut sessions, mut after) = (1, first);
        loop {
            let page = Page { after: Some(after), limit: Some(PAGE), keys_only: true };
            let keys = self.records().list(&index, page).await?;
            sessions += keys.len();
            match keys.into_iter().nth(PAGE - 1) {
                Some((last, _)) => after = last,
                None => break,
            }
        }
        let (user_id, updated_at, cursor) = (info.user_id, info.updated_at, user.to_owned());
        Ok(Some(UserInfo { user_id, sessions, updated_at, cursor }))
    }
}

/// A key after every key of a user and before the keys of the next: `0` follows `/` in ASCII.
fn behind(prefix: &str, user: &str) -> String {
    format!("{prefix}{user}0")
}
