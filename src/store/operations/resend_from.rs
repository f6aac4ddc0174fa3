//! Going back to before an earlier question, so that a resend can answer it again.
//!
//! Where the session was at that time is read from the log: the entries before the question, the view without later
//! summaries, and the facts that later entries have recorded.

use std::rc::Rc;

use crate::error::{Error, ErrorKind, Result};
use crate::message::Message;
use crate::state::{Facts, Persistence};
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::{Anchor, Head};
use crate::store::format::view::{self, MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::log::{self, Entries};
use crate::store::operations::load::missing_entry;
use crate::store::operations::sessions::Sessions;
use crate::store::rejected::RejectedParts;
use crate::store::session::Session;

/// The session before the entry of an earlier question.
pub(super) struct Earlier {
    /// The path before the entry.
    pub(super) path: Head,
    /// The question.
    pub(super) asked: Vec<Rc<Message>>,
    entry: Entry,
    /// The index of the first message of the question in its entry.
    index: usize,
}

/// The entries from the leaf back to the entry with a question, newest first.
struct Found<'a> {
    entry: (&'a EntryRef, &'a Entry),
    /// The index of the first message of the question.
    index: usize,
    /// The index behind its last message.
    end: usize,
    later: Vec<&'a Entry>,
}

impl Earlier {
    /// Adds the messages that stand before the question in its own entry: a copy of them becomes an entry of the new path,
    /// `name`. Without such messages there is no entry.
    pub(super) fn begin(&mut self, name: EntryRef, call_id: &str) -> Option<(EntryRef, Entry)> {
        let before = self.entry.messages.get(..self.index).filter(|it| !it.is_empty())?;
        let copy = Entry {
            call_id: call_id.to_owned(),
            messages: before.to_vec(),
            changes: self.entry.changes.clone(),
            asked: self.entry.asked.clone(),
            earlier: self.entry.earlier.take(),
            ..Entry::put(&name, self.entry.parent.clone())
        };
        self.path.append(name.clone(), before.len());
        let asked = std::mem::take(&mut self.path.anchor);
        self.path.anchor = asked.map(|it| Anchor { facts: it.facts, ..Anchor::of(&self.path) });
        Some((name, copy))
    }

    /// The facts before the question before this one, if they differ.
    pub(super) fn earlier(&mut self) -> Option<Facts> {
        self.entry.earlier.take()
    }
}

impl Sessions {
    /// The session before the question with this message. Facts go back as `rolls_back` says.
    pub(super) async fn before_question(
        &self,
        session: &Session,
        from: &str,
        rolls_back: Persistence,
    ) -> Result<Earlier> {
        let unknown = || no_question(session, from, "there is no such message on its current path");
        let Some(head) = session.stored_head() else { return Err(unknown()) };
        let Some(leaf) = &head.leaf else { return Err(unknown()) };
        let mut window = 64;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let log = self.records().entries(&session.keys, first, leaf.seq).await?;
            if let Some(found) = find(&log, leaf, from) {
                if !found.entry.1.messages.get(found.index).is_some_and(|it| it.is_question()) {
                    return Err(no_question(session, from, "this message is not a question"));
                }
                return self.before(session, head, (&log, found), rolls_back).await;
            }
            if first == 0 {
                let is_whole = log::is_whole(&log, leaf);
                return Err(if is_whole { unknown() } else { missing_entry(&session.slot) });
            }
            window = window.saturating_mul(4);
        }
    }

    async fn before(
        &self,
        session: &Session,
        head: &Head,
        (log, found): (&Entries, Found<'_>),
        rolls_back: Persistence,
    ) -> Result<Earlier> {
        let Found { entry: (name, entry), index, end, later } = found;
        let mut path = head.clone();
        let at = (name.clone(), 0);
        let pieces = without_later_summaries(log, &mut path, name);
        path.view = match view::before(&pieces, &at) {
            Some(view) => view,
            None if entry.parent.is_none() => Vec::new(),
            // The context was cleared or replaced since. The log has what was said before.
            None => {
                let (view, rejected) = self.whole_path(session, entry, &at).await?;
                rejected.hide(&mut path.edits);
                view
            }
        };
        if let Some(ViewPiece::Span { to, .. }) = path.view.last_mut()
            && *to == at
            && let Some(parent) = &entry.parent
        {
            // The entry of the question is not on the new path.
            let parent_entry = self.records().entry(&session.keys, parent).await?;
            let n = parent_entry.ok_or_else(|| missing_entry(&session.slot))?.messages.len();
            *to = (parent.clone(), n);
        }
        let spoken = later.iter().filter(|it| it.kind != EntryKind::Summary);
        let n_later: usize = spoken.map(|it| it.messages.len()).sum();
        let n_left = (n_later + entry.messages.len()) as u64;
        path.card.messages = path.card.messages.saturating_sub(n_left);
        path.card.asking = false;
        path.leaf = entry.parent.clone();
        let then = facts_before(head, &later);
        path.facts = rolls_back.rolled_back(&then, &head.facts);
        let facts = Some(then).filter(|then| *then != path.facts);
        path.anchor = Some(Anchor { facts, ..Anchor::of(&path) });
        let said = entry.messages.get(index..end).unwrap_or_default().iter();
        let asked = said.take_while(|message| message.is_question()).cloned().collect();
        Ok(Earlier { path, asked, entry: entry.clone(), index })
    }

    /// A view of everything on the path before this entry, except what providers have rejected.
    async fn whole_path(
        &self,
        session: &Session,
        entry: &Entry,
        at: &MessagePlace,
    ) -> Result<(Vec<ViewPiece>, RejectedParts)> {
        let log = self.records().entries(&session.keys, 0, at.0.seq).await?;
        let path = log::path_to(&log, entry.parent.as_ref());
        let path = path.ok_or_else(|| missing_entry(&session.slot))?;
        let rejected = RejectedParts::on(&path);
        let root = path.first().map_or(&at.0, |(root, _)| root);
        let whole = vec![ViewPiece::Span { from: (root.clone(), 0), to: at.clone() }];
        Ok((rejected.out_of(whole), rejected))
    }
}

fn find<'a>(log: &'a Entries, leaf: &EntryRef, id: &str) -> Option<Found<'a>> {
    let (mut later, mut name) = (Vec::new(), Some(leaf));
    while let Some((at, entry)) = name.and_then(|name| log.get_key_value(name)) {
        let index = entry.messages.iter().position(|message| message.id == id);
        if let Some(index) = index.filter(|_| entry.kind != EntryKind::Summary) {
            // Messages that joined the turn or stopped it are not part of the question that they follow.
            let is_asked = |message: &Rc<Message>| entry.asked.contains(&message.id);
            let n_asked = entry.messages.iter().rposition(is_asked).map_or(0, |last| last + 1);
            let (start, end) = match index < n_asked {
                true => (0, n_asked),
                false => (n_asked, entry.messages.len()),
            };
            let said = entry.messages.get(start..index).unwrap_or_default();
            let n = said.iter().rev().take_while(|message| message.is_question()).count();
            let is_question = entry.messages.get(index).is_some_and(|it| it.is_question());
            let index = if is_question { index - n } else { index };
            return Some(Found { entry: (at, entry), index, end, later });
        }
        later.push(entry);
        name = entry.parent.as_ref();
    }
    None
}

/// The pieces of the view of a head, with the messages that summaries after an entry have replaced. Also puts back how these
/// messages were shown.
pub(in crate::store) fn without_later_summaries(
    log: &Entries,
    head: &mut Head,
    last: &EntryRef,
) -> Vec<ViewPiece> {
    let mut pieces = head.view.clone();
    let mut bound = u64::MAX;
    let find = |pieces: &[ViewPiece], bound: u64| {
        let is_later = |name: &&EntryRef| name.seq > last.seq && name.seq < bound;
        let later = view::named(pieces).into_iter().filter(is_later);
        let mut found = later.filter_map(|name| Some((name.clone(), log.get(name)?)));
        found.find(|(_, entry)| entry.kind == EntryKind::Summary)
    };
    while let Some((name, entry)) = find(&pieces, bound) {
        bound = name.seq;
        let later = std::mem::replace(&mut head.edits, entry.edits.clone());
        head.edits.extend(&later);
        pieces = entry.undone(&pieces, &name);
    }
    pieces
}

/// The facts before a question. `later` are the entries after it, newest first.
fn facts_before(head: &Head, later: &[&Entry]) -> Facts {
    let last = head.anchor.as_ref().and_then(|anchor| anchor.facts.as_ref());
    let recorded = later.iter().rev().find_map(|entry| entry.earlier.as_ref());
    recorded.or(last).unwrap_or(&head.facts).clone()
}

fn no_question(session: &Session, id: &str, why: &str) -> Error {
    let message = format!("{}: \"{id}\" cannot be answered again: {why}", session.slot);
    Error::new(ErrorKind::InputInvalid, message)
        .hint("from is the id of a question that history(slot) shows; switch to a branch first to answer one of its questions")
}
