//! How far a session has been read for its user's memory.

use std::rc::Rc;

use serde_json::json;

use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::message::Message;
use crate::port::Batch;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::id;
use crate::store::look::newest;
use crate::store::records::read;

/// The most entries, and messages in them, that are read at once. Of a session that nobody has read for so long, the
/// older ones are passed over.
const MOST: usize = 500;

/// What was said in a session since it was last read.
pub struct Unread {
    slot: Slot,
    /// The session that it was said in; a later one of the same name has another.
    epoch: String,
    /// Up to here the session will have been read.
    next: u64,
    /// The revision of the mark that is there, if there is one.
    found: Option<String>,
    /// What was said, oldest first.
    pub messages: Vec<Rc<Message>>,
}

impl Sessions {
    /// What was said since the session was last read; `None` if nothing was, or the session is gone.
    pub async fn unread(&self, slot: &Slot) -> Result<Option<Unread>> {
        let session = self.load_head(slot).await?;
        let Some(head) = session.head else { return Ok(None) };
        let Some(leaf) = &head.leaf else { return Ok(None) };
        let record = self.records.get(session.keys.memory()).await?;
        let mark = record.as_ref().map(|record| read(record, mark, "a mark of the memory"));
        let is_ours = |(epoch, _): &(String, u64)| *epoch == head.epoch;
        let from = mark.transpose()?.filter(is_ours).map_or(0, |(_, next)| next);
        if leaf.seq < from {
            return Ok(None);
        }
        let from = from.max(leaf.seq.saturating_sub(MOST as u64));
        let entries = self.records.entries(&session.keys, from, leaf.seq).await?;
        let (messages, _) = newest(&entries, leaf, None, MOST);
        let found = record.map(|record| record.revision);
        let (slot, next) = (slot.clone(), leaf.seq + 1);
        Ok(Some(Unread { slot, epoch: head.epoch, next, found, messages }))
    }

    /// Whether the session is still there, and nobody else has read it meanwhile.
    pub async fn is_unread(&self, unread: &Unread) -> Result<bool> {
        let session = self.load_head(&unread.slot).await?;
        let record = self.records.get(session.keys.memory()).await?;
        let epoch = session.head.map(|head| head.epoch);
        let is_same = record.map(|record| record.revision) == unread.found;
        Ok(epoch.as_deref() == Some(&*unread.epoch) && is_same)
    }

    /// The mark that it has been read, to be written together with what was found.
    pub fn mark(&self, unread: &Unread) -> (String, Vec<u8>) {
        let value = json!({ "epoch": unread.epoch, "next": unread.next });
        (self.keys(&unread.slot).memory(), json::to_bytes(&value))
    }

    /// Marks that it has been read, and nothing was found. Somebody who was faster has done it.
    pub async fn mark_read(&self, unread: &Unread) -> Result<()> {
        let put = self.mark(unread);
        let expect = Some((put.0.clone(), unread.found.clone()));
        let revision = id::mint(&*self.records.host);
        let batch = Batch { expect, revision, put: vec![put], ..Batch::default() };
        self.records.commit(&batch).await.map(|_| ())
    }
}

fn mark(value: &serde_json::Value) -> Read<(String, u64)> {
    let fields = Fields::of(value)?;
    Ok((fields.required("epoch", json::text)?, fields.required("next", json::count)?))
}
