//! Looking at sessions without changing them: a user's list, and what was said.

use std::rc::Rc;

use crate::error::Result;
use crate::message::Message;
use crate::port::Page;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::entry::{EntryKind, EntryRef, Later};
use crate::store::head::{Head, HeadRecord};
use crate::store::info::SessionInfo;
use crate::store::key::{self, SlotKeys};
use crate::store::records::read;
use crate::store::sessions::ATTEMPTS;
use crate::store::view::Entries;

impl Sessions {
    /// The session's line in a list, if it is there.
    pub async fn info(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        let session = self.read_only(slot).await?;
        let running = self.running_elsewhere(&session).is_some();
        let info = session.head.as_ref().map(SessionInfo::of);
        Ok(info.map(|info| SessionInfo { running, ..info }))
    }

    /// A user's sessions, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let prefix = self.index(user);
        let after = page.after.map(|cursor| format!("{prefix}{cursor}"));
        let mut infos = Vec::new();
        for (key, record) in self.records.list(&prefix, Page { after, ..page }).await? {
            let cursor = key.strip_prefix(&prefix).unwrap_or_default();
            let read = read(&record, SessionInfo::from_json, "a line of the session list");
            let info = match read {
                Ok(info) => Some(info),
                Err(_) => self.line_of_head(user, cursor).await?,
            };
            infos.extend(info.map(|info| SessionInfo { cursor: cursor.to_owned(), ..info }));
        }
        Ok(infos)
    }

    /// A line that cannot be read, made anew from its session's head; the next change of the session stores it. One
    /// whose head cannot be read either is left out: whoever opens the session is told.
    async fn line_of_head(&self, user: Option<&str>, line: &str) -> Result<Option<SessionInfo>> {
        let Some(key) = key::head_of_line(&key::partition(&self.agent, user), line) else {
            return Ok(None);
        };
        let Some(record) = self.records.get(key).await? else { return Ok(None) };
        Ok(match read(&record, Head::from_json, "a head") {
            Ok(HeadRecord::Live(head)) => Some(SessionInfo::of(&head)),
            _ => None,
        })
    }

    /// Where a user's list of sessions is.
    pub(super) fn index(&self, user: Option<&str>) -> String {
        key::index(&key::partition(&self.agent, user))
    }

    /// The newest messages of the log before `before`, oldest first, whole.
    pub async fn history(
        &self,
        slot: &Slot,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.history_of(slot, None, before, limit).await
    }

    /// The same of a branch.
    pub async fn history_of(
        &self,
        slot: &Slot,
        branch: Option<&str>,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        let mut messages = Vec::new();
        for _ in 0..ATTEMPTS {
            let session = self.read_only(slot).await?;
            let Some(leaf) = self.leaf(&session, branch).await? else { return Ok(Vec::new()) };
            let whole;
            (messages, whole) = self.look_back(&session.keys, &leaf, before, limit).await?;
            // An entry that is missing may have been taken away with its session: then another may be there.
            if whole || !self.has_moved_on(&session).await? {
                break;
            }
        }
        Ok(messages)
    }

    /// The newest messages on the path to `leaf`, and whether they are all that was asked for.
    async fn look_back(
        &self,
        keys: &SlotKeys,
        leaf: &EntryRef,
        before: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Rc<Message>>, bool)> {
        let mut window = limit as u64 + 1;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let entries = self.records.entries(keys, first, leaf.seq).await?;
            let (messages, whole) = newest(&entries, leaf, before, limit);
            if whole || first == 0 {
                return Ok((messages, whole));
            }
            window = window.saturating_mul(4);
        }
    }
}

/// The newest messages on the path to `leaf`, and whether they are all that was asked for.
pub(super) fn newest(
    entries: &Entries,
    leaf: &EntryRef,
    before: Option<&str>,
    limit: usize,
) -> (Vec<Rc<Message>>, bool) {
    let mut found = Vec::new();
    let mut later = Vec::new();
    let mut seen = before.is_none();
    let mut name = Some(leaf);
    while let Some(entry) = name.and_then(|name| entries.get(name)) {
        let spoken = entry.messages.iter().rev().filter(|_| entry.kind != EntryKind::Summary);
        for message in spoken {
            if seen && found.len() < limit {
                let mut message = Rc::clone(message);
                // The newest stands first, and has the last word.
                let of_it = |it: &&Later| it.message == message.id;
                let of_it: Vec<&Later> = later.iter().rev().copied().filter(of_it).collect();
                of_it.into_iter().for_each(|it| it.apply(&mut message));
                found.push(message);
            }
            seen |= Some(message.id.as_str()) == before;
        }
        later.extend(entry.changes.iter().rev());
        name = entry.parent.as_ref();
        if found.len() == limit {
            break;
        }
    }
    let whole = found.len() == limit || name.is_none();
    found.reverse();
    (found, whole)
}
