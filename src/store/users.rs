//! The users of an agent: found by their keys, and removed with everything that is theirs.

use serde::Serialize;

use crate::error::Result;
use crate::port::{Batch, Page};
use crate::store::Sessions;
use crate::store::id;
use crate::store::info::SessionInfo;
use crate::store::key;
use crate::store::records::read;

/// Keys counted at a time.
const PAGE: usize = 500;

/// A user's line in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// Who; null is the anonymous user.
    pub user_id: Option<String>,
    /// How many sessions they have.
    pub sessions: usize,
    /// When one of them last changed.
    pub updated_at: String,
    /// Where the next page begins.
    pub cursor: String,
}

impl Sessions {
    /// The users that have sessions, in the order of their keys.
    pub async fn list_users(&self, page: Page) -> Result<Vec<UserInfo>> {
        let prefix = key::agent(&self.agent);
        let mut users = Vec::new();
        let mut after = page.after.map(|cursor| behind(&prefix, &cursor));
        while page.limit.is_none_or(|limit| users.len() < limit) {
            let first = Page { after: after.take(), limit: Some(1), keys_only: true };
            let found = self.records.list(&prefix, first).await?;
            let below = found.first().and_then(|(key, _)| key.strip_prefix(&prefix));
            let Some(user) = below.and_then(|key| key.split('/').next()) else { break };
            after = Some(behind(&prefix, user));
            users.extend(self.user(&prefix, user).await?);
        }
        Ok(users)
    }

    /// Removes every record of a user, of whatever kind.
    pub async fn remove_user(&self, user: Option<&str>) -> Result<()> {
        let revision = id::mint(&*self.records.host);
        let remove_prefix = vec![key::partition(&self.agent, user)];
        let batch = Batch { revision, remove_prefix, ..Batch::default() };
        self.records.commit(&batch).await.map(|_| ())
    }

    /// The line of a user; none for one whose sessions are all deleted.
    async fn user(&self, prefix: &str, user: &str) -> Result<Option<UserInfo>> {
        let index = key::index(&format!("{prefix}{user}/"));
        let newest = Page { limit: Some(1), ..Page::default() };
        let newest = self.records.list(&index, newest).await?;
        let Some((first, record)) = newest.into_iter().next() else { return Ok(None) };
        let info = read(&record, SessionInfo::from_json, "a line of the session list")?;
        let (mut sessions, mut after) = (1, first);
        loop {
            let page = Page { after: Some(after), limit: Some(PAGE), keys_only: true };
            let keys = self.records.list(&index, page).await?;
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

/// Behind every key of a user, and before those of the next: `0` comes right after `/`.
fn behind(prefix: &str, user: &str) -> String {
    format!("{prefix}{user}0")
}
