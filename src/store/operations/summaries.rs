//! Stores a changed view of a session: a summary of its oldest messages, or a context that a hook has revised. Undoes both.
//!
//! Messages that a hook keeps become spans of the new view. New and changed messages are stored in an entry of the kind
//! `summary`, which also keeps the view that it replaces. So a revision is undone like a summary.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Message;
use crate::slot::Slot;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::Head;
use crate::store::format::view::{self, MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::log::{self, Entries};
use crate::store::operations::sessions::Sessions;
use crate::store::operations::sessions::superseded;
use crate::store::records::CommitOutcome;
use crate::store::rejected::RejectedParts;
use crate::store::session::{RevisedPiece, Revision, Session, ViewChange};

impl Sessions {
    /// Stores the changed view of a session. `false`: the session was changed meanwhile, and nothing is stored.
    pub async fn store_view(&self, session: &mut Session) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(false) };
        head.check_format(&session.slot)?;
        let view_change = session.view_change.clone();
        let change = self.records().change(|host| session.reshaping(&head, &view_change, host));
        let committed =
            !matches!(self.records().commit(&change.batch).await?, CommitOutcome::Conflict);
        if committed {
            session.take(change);
            session.view_change = ViewChange::default();
        }
        Ok(committed)
    }

    /// Shows the messages again that the last summary or revision has replaced. Later messages stay. Without a summary nothing changes.
    pub async fn undo_summary(&self, session: &Session) -> Result<()> {
        let Some(head) = &session.head else { return Ok(()) };
        head.check_format(&session.slot)?;
        for name in view::named(&head.view) {
            let entry = self.records().entry(&session.keys, name).await?;
            let is_shown = |entry: &Entry| entry.kind != EntryKind::Summary;
            if entry.as_ref().is_some_and(is_shown) {
                continue;
            }
            let Some(entry) = entry else {
                // The session may have been deleted meanwhile.
                let is_lost = !self.has_moved_on(session).await?;
                return Err(if is_lost { lost(&session.slot) } else { moved_on(&session.slot) });
            };
            if entry.hides_unknown() {
                // The summary was imported without the messages that it replaces: it is all that is left of them.
                return Ok(());
            }
            return self.undo(session, head, (name, &entry)).await;
        }
        Ok(())
    }

    async fn undo(
        &self,
        session: &Session,
        head: &Head,
        summary: (&EntryRef, &Entry),
    ) -> Result<()> {
        let rejected = self.rejected_since(session, head, summary.0).await?;
        let change =
            self.records().change(|host| session.restoring_view(head, summary, &rejected, host));
        match self.records().commit(&change.batch).await? {
            CommitOutcome::Conflict => Err(moved_on(&session.slot)),
            _ => Ok(()),
        }
    }
}

impl Sessions {
    /// What providers have rejected on the path of a head, if they have rejected anything since this entry.
    async fn rejected_since(
        &self,
        session: &Session,
        head: &Head,
        name: &EntryRef,
    ) -> Result<RejectedParts> {
        let Some(leaf) = &head.leaf else { return Ok(RejectedParts::default()) };
        let later = self.records().entries(&session.keys, name.seq, leaf.seq).await?;
        if !later.values().any(|entry| entry.is_rejected()) {
            return Ok(RejectedParts::default());
        }
        let log = self.records().entries(&session.keys, 0, leaf.seq).await?;
        let path = log::path_to(&log, Some(leaf)).unwrap_or_default();
        Ok(RejectedParts::on(&path))
    }
}

fn moved_on(slot: &Slot) -> Error {
    superseded(slot, "the session was changed meanwhile; nothing was stored").hint("try again")
}

fn lost(slot: &Slot) -> Error {
    let message = format!("the messages that the summary of {slot} has replaced cannot be found");
    Error::new(ErrorKind::StoreCorrupt, message).hint("history(slot) still returns all messages")
}

/// Where a message of the context is stored.
#[derive(Clone)]
enum ShownAt {
    /// In the log: the number of the message on the path, its place, and the place after it.
    Log(usize, MessagePlace),
    /// In an entry of an earlier revision.
    Revision(MessagePlace),
    /// In the entry of a summary.
    Summary(EntryRef),
}

impl Sessions {
    /// Makes a revised context that of the session, and part of its next commit. `kept` has for each message its index in
    /// the context if it is unchanged. The whole context must be stored. `false`: another writer has changed the stored context
    /// meanwhile, so the session stays as it is.
    pub async fn revise(
        &self,
        session: &mut Session,
        revised: Vec<Rc<Message>>,
        kept: &[Option<usize>],
    ) -> Result<bool> {
        let shown = self.shown(session).await?;
        if shown.len() != session.context.len() {
            return Ok(false);
        }
        let mut revision = Revision {
            id: self.records().random_id(),
            messages: Vec::new(),
            pieces: Vec::new(),
            kept: Vec::new(),
        };
        let mut last = None;
        for (message, kept) in revised.iter().zip(kept) {
            let place = kept.and_then(|index| shown.get(index));
            let Some(place) = place else {
                revision.add(Rc::clone(message));
                last = None;
                continue;
            };
            revision.kept.push(message.id.clone());
            let (number, piece, to) = match place.clone() {
                ShownAt::Summary(summary) => {
                    revision.pieces.push(RevisedPiece::Kept(ViewPiece::Summary { summary }));
                    last = None;
                    continue;
                }
                ShownAt::Log(number, at) => (Some(number), at.clone(), (at.0, at.1 + 1)),
                ShownAt::Revision(at) => (None, at.clone(), (at.0, at.1 + 1)),
            };
            let follows = number.is_some() && number == last;
            match revision.pieces.last_mut() {
                Some(RevisedPiece::Kept(ViewPiece::Span { to: end, .. })) if follows => *end = to,
                _ => revision.pieces.push(RevisedPiece::Kept(ViewPiece::Span { from: piece, to })),
            }
            last = number.map(|number| number + 1);
        }
        session.revise(revised, revision);
        Ok(true)
    }

    /// The place of a message of the context that an earlier revision has stored.
    pub async fn place_in_revision(
        &self,
        session: &Session,
        index: usize,
    ) -> Result<Option<MessagePlace>> {
        if session.view_change.revision.is_some() || session.view_change.summary.is_some() {
            return Ok(None);
        }
        Ok(match self.shown(session).await?.get(index) {
            Some(ShownAt::Revision(place)) => Some(place.clone()),
            _ => None,
        })
    }

    /// Where each message of the context is stored.
    async fn shown(&self, session: &Session) -> Result<Vec<ShownAt>> {
        let Some(head) = &session.head else { return Ok(Vec::new()) };
        let first = head.view.iter().filter_map(|piece| match piece {
            ViewPiece::Span { from, .. } => Some(from.0.seq),
            ViewPiece::Summary { .. } => None,
        });
        let (Some(first), Some(leaf)) = (first.min(), &head.leaf) else {
            let summaries = head.view.iter().filter_map(|piece| match piece {
                ViewPiece::Summary { summary } => Some(ShownAt::Summary(summary.clone())),
                ViewPiece::Span { .. } => None,
            });
            return Ok(summaries.collect());
        };
        let entries = self.records().entries(&session.keys, first, leaf.seq).await?;
        let said = said_on_path(&entries, leaf);
        let mut shown = Vec::new();
        for piece in &head.view {
            let (from, to) = match piece {
                ViewPiece::Summary { summary } => {
                    shown.push(ShownAt::Summary(summary.clone()));
                    continue;
                }
                ViewPiece::Span { from, to } => (from, to),
            };
            let is_revision = |at: &EntryRef| {
                entries.get(at).is_some_and(|entry| entry.kind == EntryKind::Summary)
            };
            if from.0 == to.0 && is_revision(&from.0) {
                let places = (from.1..to.1).map(|index| (from.0.clone(), index));
                shown.extend(places.map(ShownAt::Revision));
                continue;
            }
            let number = |at: &MessagePlace| said.partition_point(|it| order(it) < order(at));
            let numbers = number(from)..number(to);
            let places = said.iter().enumerate().filter(|(number, _)| numbers.contains(number));
            shown.extend(places.map(|(number, at)| ShownAt::Log(number, at.clone())));
        }
        Ok(shown)
    }
}

fn order(place: &MessagePlace) -> (u64, usize) {
    (place.0.seq, place.1)
}

/// The places of the messages on the path, oldest first.
fn said_on_path(entries: &Entries, leaf: &EntryRef) -> Vec<MessagePlace> {
    let mut said = Vec::new();
    for (name, entry) in log::back_from(entries, leaf) {
        if entry.kind != EntryKind::Summary {
            said.extend((0..entry.messages.len()).rev().map(|index| (name.clone(), index)));
        }
    }
    said.reverse();
    said
}
