//! Forks: a new session from a part of another. Its entries keep their names, so that every reference to them stays valid.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::state::Persistence;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::Head;
use crate::store::format::view::{self, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::log::{self, Entries};
use crate::store::operations::{CloseOpenCalls, Sessions, missing_entry, without_later_summaries};
use crate::store::rejected::RejectedParts;
use crate::store::session::{Session, TurnCommit, last_line};
use crate::store::transfer::SessionCopy;

impl Sessions {
    /// Reads a session up to and including a message; without a message, the whole session. The facts are those of the branch with
    /// the message, as far as `Persistence` lets them go back. `open` are the turns that are not
    /// logged yet, as the fork logs them. `close` makes results for tool calls that would have none. `None`: there is no such
    /// session.
    pub async fn read_fork(
        &self,
        session: &Session,
        open: Vec<TurnCommit>,
        up_to: Option<(&str, Persistence)>,
        close: CloseOpenCalls<'_>,
    ) -> Result<Option<SessionCopy>> {
        let (slot, Some(mut head)) = (&session.slot, session.head.clone()) else {
            return Ok(None);
        };
        head.check_format(slot)?;
        let mut log = self.records().entries(&session.keys, 0, head.next).await?;
        open.into_iter().for_each(|turn| add_turn(&mut log, &mut head, turn));
        let path = |head: &Head| log::path_to(&log, head.leaf.as_ref());
        let Some((up_to, persistence)) = up_to else {
            let entries = path(&head).ok_or_else(|| missing_entry(slot))?;
            return forked(&log, head, entries).ok_or_else(|| missing_entry(slot)).map(Some);
        };
        let others = self.left_heads(session).await?;
        let facts = head.facts.clone();
        let mut is_whole = true;
        let cut = [head].into_iter().chain(others).find_map(|head| {
            let entries = path(&head);
            is_whole &= entries.is_some();
            let mut entries = entries?;
            let (last, index) = place(&entries, up_to)?;
            entries.truncate(last + 1);
            Some((head, entries, index))
        });
        let Some((mut head, entries, index)) = cut else {
            if !is_whole {
                return Err(missing_entry(slot));
            }
            let message = format!("{slot} has no message \"{up_to}\"");
            return Err(Error::new(ErrorKind::InputInvalid, message)
                .hint("upTo is the id of a message that history(slot) shows"));
        };
        // A branch that was left has the facts of that time. Some facts belong to the session, and are the same in every branch.
        head.facts = persistence.rolled_back(&head.facts, &facts);
        cut_off(&log, head, entries, index, close).ok_or_else(|| missing_entry(slot)).map(Some)
    }
}

/// Appends a turn to the path of a head.
fn add_turn(log: &mut Entries, head: &mut Head, turn: TurnCommit) {
    let name = EntryRef { seq: head.next, id: turn.id };
    let TurnCommit { kind, messages, changes, outcome, facts, .. } = turn;
    let put = Entry::put(&name, head.leaf.clone());
    let call_id = turn.input.call_id;
    head.card.asking = false;
    head.card.interrupted = Some(name.id.clone());
    head.card.line = last_line(&messages).unwrap_or(head.card.line.clone());
    head.change_facts(&facts);
    head.append(name.clone(), messages.len());
    log.insert(name, Entry { kind, call_id, messages, changes, outcome, ..put });
}

/// The entry that contains a message, and the index of the message in it.
fn place(path: &[(EntryRef, Entry)], id: &str) -> Option<(usize, usize)> {
    let spoken = path.iter().enumerate().filter(|(_, it)| it.1.kind != EntryKind::Summary);
    let mut found = spoken.filter_map(|(last, (_, entry))| {
        let index = entry.messages.iter().position(|message| message.id == id)?;
        Some((last, index))
    });
    found.next_back()
}

/// Ends a path at the message with this index in its last entry.
fn cut_off(
    log: &Entries,
    mut head: Head,
    mut entries: Vec<(EntryRef, Entry)>,
    index: usize,
    close: CloseOpenCalls<'_>,
) -> Option<SessionCopy> {
    let last = entries.last().map(|(name, _)| name.clone());
    head.view = last.iter().flat_map(|last| view_at(log, &mut head, (last, index))).collect();
    if let Some((_, entry)) = entries.last_mut() {
        entry.messages.truncate(index + 1);
    }
    let said: Vec<_> = entries.iter().flat_map(|(_, entry)| entry.messages.clone()).collect();
    let results = close(&said);
    if let Some((name, entry)) = entries.last_mut() {
        if let Some(ViewPiece::Span { from, to }) = head.view.last_mut() {
            let end = (name.clone(), index + 1 + results.len());
            // A message that is not shown has no result that is shown.
            if from == to {
                *from = end.clone();
            }
            *to = end;
        }
        entry.messages.extend(results);
    }
    let is_behind = |anchor: &Option<EntryRef>| match (anchor, &last) {
        (Some(anchor), Some(last)) => anchor.seq < last.seq,
        _ => true,
    };
    head.anchor = head.anchor.filter(|anchor| is_behind(&anchor.leaf));
    head.leaf = last;
    head.facts.shutdown_interrupted = false;
    let spoken = || entries.iter().filter(|(_, it)| it.kind != EntryKind::Summary);
    head.card.messages = spoken().map(|(_, entry)| entry.messages.len() as u64).sum();
    head.card.line = spoken().rev().find_map(|it| last_line(&it.1.messages)).unwrap_or_default();
    head.card.asking = false;
    forked(log, head, entries)
}

/// A fork of these entries. If a view shows other entries, for example messages that were put by hand before the last
/// question was sent again, the fork has these too. `None`: one of them is missing.
fn forked(
    log: &Entries,
    mut head: Head,
    mut entries: Vec<(EntryRef, Entry)>,
) -> Option<SessionCopy> {
    head.card.created = String::new();
    let mut pieces = head.view.clone();
    pieces.extend(head.anchor.iter().flat_map(|anchor| anchor.view.clone()));
    pieces.extend(entries.iter().flat_map(|(_, entry)| entry.replaced.clone()));
    while let Some(piece) = pieces.pop() {
        let (from, to) = match piece {
            ViewPiece::Summary { summary } => (summary.clone(), summary),
            ViewPiece::Span { from, to } => (from.0, to.0),
        };
        if !log.contains_key(&from) || !log.contains_key(&to) {
            return None;
        }
        for (name, entry) in log::path(log, &from, &to).unwrap_or_default() {
            let order = |it: &EntryRef| (it.seq, it.id.clone());
            let index = entries.partition_point(|(other, _)| order(other) < order(name));
            if entries.get(index).is_none_or(|(other, _)| other != name) {
                pieces.extend(entry.replaced.clone());
                entries.insert(index, (name.clone(), entry.clone()));
            }
        }
    }
    Some(SessionCopy { head, entries, branches: Vec::new() })
}

/// The view when this message was the last. Messages that later summaries have replaced are shown again.
fn view_at(log: &Entries, head: &mut Head, (last, index): (&EntryRef, usize)) -> Vec<ViewPiece> {
    let mut pieces = without_later_summaries(log, head, last);
    let at = (last.clone(), index);
    let holds = |piece: &ViewPiece| piece.contains(&at);
    let (start, end) = ((last.clone(), 0), (last.clone(), index + 1));
    let Some(place) = pieces.iter().position(holds) else {
        let path = log::path_to(log, head.leaf.as_ref()).unwrap_or_default();
        if RejectedParts::on(&path).has(&at) {
            // A provider has rejected the message, so the view ends before it.
            let mut before = view::before(&pieces, &at).unwrap_or_default();
            before.push(ViewPiece::Span { from: end.clone(), to: end });
            return before;
        }
        // The message is not in the view, for example after clear(). Then the view is its own turn.
        return vec![ViewPiece::Span { from: start, to: end }];
    };
    pieces.truncate(place + 1);
    if let Some(ViewPiece::Span { to, .. }) = pieces.last_mut() {
        *to = end;
    }
    // Messages that were put later by hand can stand before the message.
    pieces.retain(|piece| {
        matches!(piece, ViewPiece::Span { to, .. } if to.0.seq <= last.seq) || piece.is_summary()
    });
    pieces
}
