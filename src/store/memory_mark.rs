//! The mark that says how far a session was searched for facts to remember.

use std::rc::Rc;

use serde_json::json;

use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::port::Batch;
use crate::slot::Slot;
use crate::store::format::memory_mark::MemoryMark;
use crate::store::history::Newest;
use crate::store::operations::Sessions;
use crate::store::records::read;

/// Most entries, and most messages, that are read at once. Older ones are skipped.
const MOST: usize = 500;

/// The messages of a session since the mark.
pub struct Unread {
    slot: Slot,
    /// The epoch of the session; a later session with the same id has another.
    epoch: String,
    /// The number of the first entry after these messages.
    next: u64,
    /// The revision of the stored mark, if there is one.
    found: Option<String>,
    /// When the session was last searched, if the mark says it.
    pub searched_ms: Option<f64>,
    /// The messages, oldest first.
    pub messages: Vec<Rc<Message>>,
}

impl Sessions {
    /// The messages since the mark. `None`: there are none, or the session is gone.
    pub async fn unread(&self, slot: &Slot) -> Result<Option<Unread>> {
        let session = self.load_head(slot).await?;
        let Some(head) = session.head else { return Ok(None) };
        let Some(leaf) = &head.leaf else { return Ok(None) };
        let key = session.keys.memory();
        let record = self.records().get(key.clone()).await?;
        let mark = record
            .as_ref()
            .map(|record| read(&key, record, MemoryMark::from_json, "a mark of the memory"));
        let mark = mark.transpose()?.filter(|mark| mark.epoch == head.epoch);
        let from = mark.as_ref().map_or(0, |mark| mark.next);
        let searched_ms = mark.and_then(|mark| mark.searched_ms);
        if leaf.seq < from {
            return Ok(None);
        }
        let from = from.max(leaf.seq.saturating_sub(MOST as u64));
        let entries = self.records().entries(&session.keys, from, leaf.seq).await?;
        let mut newest = Newest::new(None, MOST, None);
        newest.collect(&entries, Some(leaf));
        let messages = newest.into_messages();
        let found = record.map(|record| record.revision);
        let (slot, next) = (slot.clone(), leaf.seq + 1);
        Ok(Some(Unread { slot, epoch: head.epoch, next, found, searched_ms, messages }))
    }

    /// Whether the session still exists and the mark was not moved meanwhile.
    pub async fn is_unread(&self, unread: &Unread) -> Result<bool> {
        let session = self.load_head(&unread.slot).await?;
        let record = self.records().get(session.keys.memory()).await?;
        let epoch = session.head.map(|head| head.epoch);
        let is_same = record.map(|record| record.revision) == unread.found;
        Ok(epoch.as_deref() == Some(&*unread.epoch) && is_same)
    }

    /// The record of the new mark, to be written together with the facts that were found.
    pub fn mark(&self, unread: &Unread, now_ms: f64) -> (String, Vec<u8>) {
        let value = json!({ "epoch": unread.epoch, "next": unread.next, "at": now_ms as u64 });
        (self.keys(&unread.slot).memory(), json::to_bytes(&value))
    }

    /// Stores the new mark when no facts were found. If another node was faster, its mark stays.
    pub async fn mark_read(&self, unread: &Unread, now_ms: f64) -> Result<()> {
        let put = self.mark(unread, now_ms);
        let expect = Some((put.0.clone(), unread.found.clone()));
        let revision = self.records().random_id();
        let batch = Batch { expect, revision, put: vec![put], ..Batch::default() };
        self.records().commit(&batch).await.map(|_| ())
    }
}
