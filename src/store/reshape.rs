//! Changing how a conversation is shown: summaries in place of its beginning, and back. The log stays as it is.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::port::Batch;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, Piece, Place};
use crate::store::records::{Landing, read};
use crate::store::session::{Change, Mint, Reshaping, Session, Summary, Turn};
use crate::store::sessions::superseded;
use crate::store::view::{self, Entries};

impl Session {
    /// Whether the context begins with a summary.
    pub fn has_summary(&self) -> bool {
        let stored = self.head.as_ref().and_then(|head| head.view.first());
        self.reshaping.summary.is_some() || matches!(stored, Some(Piece::Summary { .. }))
    }

    /// The summary that the context begins with, or "".
    pub fn summary(&self) -> String {
        let first = self.context.first().filter(|_| self.has_summary());
        first.map(|message| message.summary()).unwrap_or_default()
    }

    /// A turn, or a step of one, is stored: what it has changed in how messages are shown, too.
    pub(super) fn stored(&mut self, turn: &Turn) {
        let weight =
            |messages: &[Rc<Message>]| messages.iter().map(|it| it.weight()).sum::<usize>();
        self.bytes = match std::mem::take(&mut self.reshaping).is_empty() {
            true => self.bytes + weight(&turn.messages),
            false => weight(&self.context),
        };
    }

    /// Shows a summary in place of the first `n` messages.
    pub fn summarise(&mut self, n: usize, summary: Summary) {
        let n_before = self.context.len();
        self.context_mut().splice(..n.min(n_before), [Rc::clone(&summary.message)]);
        self.lineage.changed(0);
        self.reshaping.summary = Some(summary);
    }

    /// Changing only how messages are shown, and nothing that was said.
    pub(super) fn reshaping(&self, head: &Head, reshaping: &Reshaping, mint: Mint<'_>) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, mint);
        self.reshape(&mut head, &mut batch, (reshaping, &[]));
        head.open = mint.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Puts what a summary has replaced back in its place.
    fn restoring_view(&self, head: &Head, summary: &Entry, mint: Mint<'_>) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, mint);
        head.pin_edits();
        head.view = view::join(&summary.replaced, head.view.get(1..).unwrap_or_default());
        let later = std::mem::replace(&mut head.edits, summary.edits.clone());
        head.edits.extend(&later);
        head.open = mint.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Puts a summary on the path, and in the view in place of what it replaces.
    ///
    /// What is said anew in the same batch is no concern of the anchor.
    pub(super) fn reshape(
        &self,
        head: &mut Head,
        batch: &mut Batch,
        (reshaping, new): (&Reshaping, &[Rc<Message>]),
    ) {
        let is_old = |id: &str| !new.iter().any(|message| message.id == id);
        let is_replaced = |id: &str| {
            reshaping.summary.iter().any(|summary| summary.replaced.iter().any(|it| it == id))
        };
        if reshaping.edits.has(is_old) || head.edits.has(is_replaced) {
            head.pin_edits();
        }
        head.edits.extend(&reshaping.edits);
        let Some(summary) = &reshaping.summary else { return };
        let name = EntryRef { seq: head.next, id: summary.id.clone() };
        let (replaced, mut kept) = view::split(&head.view, summary.cut.as_ref());
        let edits = head.edits.take(is_replaced);
        let entry = Entry {
            kind: EntryKind::Summary,
            messages: vec![Rc::clone(&summary.message)],
            replaced,
            edits,
            ..Entry::put(&name, head.leaf.clone())
        };
        batch.put.push((self.keys.entry(&name), json::to_bytes(&entry)));
        kept.insert(0, Piece::Summary { summary: name.clone() });
        head.view = kept;
        head.next += 1;
        head.leaf = Some(name);
    }
}

impl Sessions {
    /// Stores how a session is shown. `false`: it has moved on meanwhile, and nothing has changed.
    pub async fn reshape(&self, session: &mut Session) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(false) };
        head.check_format(&session.slot)?;
        let reshaping = session.reshaping.clone();
        let change = self.records.change(|mint| session.reshaping(&head, &reshaping, mint));
        let landed = !matches!(self.records.commit(&change.batch).await?, Landing::Conflict);
        if landed {
            session.take(change);
            session.reshaping = Reshaping::default();
        }
        Ok(landed)
    }

    /// Shows again what the summary at the beginning has replaced; what came after it stays. Without one, nothing
    /// changes.
    pub async fn undo_summary(&self, session: &Session) -> Result<()> {
        let Some(head) = &session.head else { return Ok(()) };
        let Some(Piece::Summary { summary }) = head.view.first() else { return Ok(()) };
        head.check_format(&session.slot)?;
        let record = self.records.get(session.keys.entry(summary)).await?;
        let entry =
            record.map(|record| read(&record, Entry::from_json, "a summary")).transpose()?;
        let Some(entry) = entry.filter(|entry| !entry.replaced.is_empty()) else {
            // It may have been taken away with its session.
            let is_lost = !self.has_moved_on(session).await?;
            return Err(if is_lost { lost(&session.slot) } else { moved_on(&session.slot) });
        };
        let change = self.records.change(|mint| session.restoring_view(head, &entry, mint));
        match self.records.commit(&change.batch).await? {
            Landing::Conflict => Err(moved_on(&session.slot)),
            _ => Ok(()),
        }
    }

    /// A stored message on the session's path as it was said, and its place; looked for from the newest on.
    pub async fn find(&self, session: &Session, id: &str) -> Result<Option<(Place, Rc<Message>)>> {
        let Some(leaf) = session.head.as_ref().and_then(|head| head.leaf.clone()) else {
            return Ok(None);
        };
        let mut window = 4;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let entries = self.records.entries(&session.keys, first, leaf.seq).await?;
            let found = found(&entries, &leaf, id);
            if found.is_some() || first == 0 {
                return Ok(found);
            }
            window = window.saturating_mul(4);
        }
    }

    /// The same for a session that is not in hand.
    pub async fn find_in(&self, slot: &Slot, id: &str) -> Result<Option<(Place, Rc<Message>)>> {
        let session = self.read_only(slot).await?;
        self.find(&session, id).await
    }
}

fn found(entries: &Entries, leaf: &EntryRef, id: &str) -> Option<(Place, Rc<Message>)> {
    let mut name = Some(leaf);
    while let Some((at, entry)) = name.and_then(|name| Some((name, entries.get(name)?))) {
        let spoken = entry.messages.iter().enumerate().filter(|_| entry.kind != EntryKind::Summary);
        for (index, message) in spoken {
            if message.id == id {
                return Some(((at.clone(), index), Rc::clone(message)));
            }
        }
        name = entry.parent.as_ref();
    }
    None
}

fn moved_on(slot: &Slot) -> Error {
    superseded(slot, "it has moved on meanwhile; nothing was changed").hint("try again")
}

fn lost(slot: &Slot) -> Error {
    let message = format!("what the summary of {slot} has replaced cannot be found");
    Error::new(ErrorKind::StoreCorrupt, message).hint("history(slot) still has all that was said")
}
