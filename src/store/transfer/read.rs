//! Reads a whole session, for an export.

use std::rc::Rc;

use crate::error::{Error, ErrorKind, Result};
use crate::message::Message;
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::state::AgentState;
use crate::store::backend::memory_store::MemoryStore;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::history::Newest;
use crate::store::keys::EntryRef;
use crate::store::log::{self, Entries};
use crate::store::operations::{ATTEMPTS, Sessions, missing_entry, superseded};
use crate::store::transfer::SessionCopy;

/// All of a session, and what readers see of it.
pub struct WholeSession {
    /// Its log, its head and its branches.
    pub copy: SessionCopy,
    /// The messages of its current path.
    pub history: Vec<Rc<Message>>,
    /// Its AgentState.
    pub state: AgentState,
}

impl Sessions {
    /// Reads all of a session. `None`: there is no such session.
    pub async fn read_whole(&self, slot: &Slot) -> Result<Option<WholeSession>> {
        for _ in 0..ATTEMPTS {
            // This also finds out whether its context can be read.
            let session = self.load(slot, None).await?;
            let Some(mut head) = session.head.clone() else { return Ok(None) };
            let read = self.records().entries_in_order(&session.keys, 0, head.next).await?;
            let log: Entries = read.iter().cloned().collect();
            let mut branches = self.left_heads(&session).await?;
            branches.retain(|branch| branch.leaf != head.leaf && branch.leaf.is_some());
            if self.has_moved_on(&session).await? {
                continue;
            }
            let n_read = read.iter().filter(|(name, _)| name.seq < head.next).count() as u64;
            if head.counts().is_some_and(|(n_known, _)| n_read < n_known) {
                return Err(missing_entry(slot));
            }
            let first = head.log.map_or(u64::MAX, |log| log.from);
            if read.iter().any(|(name, entry)| entry.is_copied && name.seq >= first) {
                let message = format!("the log of {slot} has an entry of another session");
                return Err(Error::new(ErrorKind::StoreCorrupt, message));
            }
            for head in branches.iter_mut().chain([&mut head]) {
                let Some(path) = log::path_to(&log, head.leaf.as_ref()) else {
                    return Err(missing_entry(slot));
                };
                head.card.messages = path.iter().map(|(_, entry)| n_said(entry)).sum();
            }
            head.card.branches = branches.len() as u64;
            let mut newest = Newest::new(None, usize::MAX, None);
            newest.collect(&log, head.leaf.as_ref());
            let mut entries: Vec<(EntryRef, Entry)> = Vec::new();
            for (name, entry) in read {
                // After a failover of the store, there may be entries that no head can reach.
                let mut earlier = entries.iter().rev();
                let is_known = |parent: &EntryRef| earlier.any(|(name, _)| name == parent);
                if name.seq < head.next && entry.parent.as_ref().is_none_or(is_known) {
                    entries.push((name, entry));
                }
            }
            let copy = SessionCopy { head, entries, branches };
            let (history, state) = (newest.into_messages(), session.state());
            return Ok(Some(WholeSession { copy, history, state }));
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// A copy of the records of a session in memory, if it has accepted inputs that are not in its log. There they can be
    /// logged without changing the session.
    pub async fn in_memory(&self, slot: &Slot) -> Result<Option<Sessions>> {
        for _ in 0..ATTEMPTS {
            if self.inputs(slot).await?.is_empty() {
                return Ok(None);
            }
            let session = self.load_head(slot).await?;
            let store = Rc::new(MemoryStore::new());
            let copy = self.over(Rc::clone(&store) as _);
            for (key, record) in self.records().list(&session.keys.all(), Page::default()).await? {
                let put = vec![(key, record.value)];
                let batch = Batch { revision: record.revision, put, ..Batch::default() };
                copy.records().commit(&batch).await?;
            }
            if !self.has_moved_on(&session).await? {
                return Ok(Some(copy));
            }
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }
}

/// Number of messages of an entry that a history shows.
pub(super) fn n_said(entry: &Entry) -> u64 {
    if entry.kind == EntryKind::Summary { 0 } else { entry.messages.len() as u64 }
}
