//! The session list of a user.

use crate::error::{ErrorKind, Result};
use crate::future::rarely;
use crate::port::Page;
use crate::slot::Slot;
use crate::store::format::head::{Head, HeadRecord};
use crate::store::format::session_info::SessionInfo;
use crate::store::keys::{self, SlotKeys};
use crate::store::operations::sessions::Sessions;
use crate::store::records::read;

impl Sessions {
    /// The info of one session, if it exists.
    pub async fn info(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        let (session, open) = self.read_open(slot).await?;
        let Some(head) = &session.head else { return Ok(None) };
        let mut info = SessionInfo::of(head);
        info.messages = open.count(head);
        info.summary = open.last_line().unwrap_or(info.summary);
        // The next call closes the questions of a turn that was cut off.
        info.asking &= !open.is_cut_off();
        info.interrupted = open.is_cut_off() || info.interrupted && !open.is_live();
        info.running = open.is_live() || self.running_elsewhere(&session).is_some();
        Ok(Some(info))
    }

    /// The sessions of a user, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let prefix = self.index(user);
        let after = page.after.map(|cursor| format!("{prefix}{cursor}"));
        let mut infos = Vec::new();
        for (key, record) in self.records().list_lines(&prefix, Page { after, ..page }).await? {
            let cursor = key.strip_prefix(&prefix).unwrap_or_default();
            let read = read(&key, &record, SessionInfo::from_json, "a line of the session list");
            let info = match read {
                Ok(info) if is_line_of(&info, user, cursor) => Some(info),
                _ => self.line_of_head(user, cursor).await?,
            };
            let info = match info {
                Some(info) => self.refreshed(info).await?,
                None => None,
            };
            infos.extend(info.map(|info| SessionInfo { cursor: cursor.to_owned(), ..info }));
        }
        Ok(infos)
    }

    /// The line of a session whose call was open when the line was written.
    async fn refreshed(&self, info: SessionInfo) -> Result<Option<SessionInfo>> {
        if info.open.is_none() {
            return Ok(Some(info));
        }
        let slot = Slot::new(info.user_id.as_deref(), &info.session_id)?;
        match rarely(self.info(&slot)).await {
            // The line is still true if the session cannot be read; loading the session reports the error.
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => Ok(Some(info)),
            read => read,
        }
    }

    /// Makes an unreadable record of the list again, from the head of its session. The next change of the session
    /// stores it. If the head is unreadable too, the list leaves the session out, and loading the session reports the
    /// error.
    async fn line_of_head(&self, user: Option<&str>, line: &str) -> Result<Option<SessionInfo>> {
        let Some(key) = keys::head_of_line(&keys::partition(self.agent(), user), line) else {
            return Ok(None);
        };
        let record = match self.records().get(key.clone()).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => return Ok(None),
            record => record?,
        };
        let Some(record) = record else { return Ok(None) };
        Ok(match read(&key, &record, Head::from_json, "a head") {
            Ok(HeadRecord::Live(head)) => Some(SessionInfo::of(&head)),
            _ => None,
        })
    }

    /// Prefix of the session list of a user.
    pub(in crate::store) fn index(&self, user: Option<&str>) -> String {
        keys::index(&keys::partition(self.agent(), user))
    }

    /// The keys of a session in the session list. Needed only if its head, which contains the key, cannot be read.
    pub(in crate::store) async fn old_lines(
        &self,
        slot: &Slot,
        keys: &SlotKeys,
    ) -> Result<Vec<String>> {
        let page = Page { keys_only: true, ..Page::default() };
        let lines = self.records().list(&self.index(slot.user()), page).await?;
        Ok(lines.into_iter().map(|(key, _)| key).filter(|key| keys.owns_line(key)).collect())
    }
}

/// Whether the line under this key is the line of its session.
pub(in crate::store) fn is_line_of(info: &SessionInfo, user: Option<&str>, line: &str) -> bool {
    let session = line.split_once('.').map(|(_, session)| session);
    info.user_id.as_deref() == user && session == Some(&keys::part(&info.session_id))
}
