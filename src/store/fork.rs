//! A session made of a part of another: the same entries under other keys, so that every reference to them holds.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::port::Batch;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Card, Head, Piece};
use crate::store::records::Landing;
use crate::store::resend::Closing;
use crate::store::session::{Mint, Session, last_line};
use crate::store::view::{self, Entries};

/// The most records of a batch, but for the head and its line in the list.
const RECORDS: usize = 98;

/// The most bytes of a batch.
const BYTES: usize = 1_000_000;

/// What a fork holds: a path, and the head at its end.
pub struct Fork {
    head: Head,
    entries: Vec<(EntryRef, Entry)>,
}

impl Fork {
    /// How many bytes its messages take, about.
    pub fn weight(&self) -> usize {
        let messages = self.entries.iter().flat_map(|(_, entry)| &entry.messages);
        messages.map(|message| message.weight()).sum()
    }
}

impl Sessions {
    /// What a session was up to and with a message; all of it, if none is named. `close` gives results to tool calls
    /// that are left without. `None`: there is no such session.
    pub async fn part(
        &self,
        slot: &Slot,
        up_to: Option<&str>,
        close: Closing<'_>,
    ) -> Result<Option<Fork>> {
        let session = self.read_only(slot).await?;
        let Some(head) = session.head else { return Ok(None) };
        head.check_format(slot)?;
        let log = self.records.entries(&session.keys, 0, head.next).await?;
        let Some(up_to) = up_to else {
            let entries = path(&log, &head);
            return Ok(Some(Fork { head, entries }));
        };
        let others = self.left_heads(&session.keys).await?;
        let cut = [head].into_iter().chain(others).find_map(|head| {
            let mut entries = path(&log, &head);
            let (last, index) = place(&entries, up_to)?;
            entries.truncate(last + 1);
            Some((head, entries, index))
        });
        let Some((head, entries, index)) = cut else {
            let message = format!("{slot} has no message \"{up_to}\"");
            return Err(Error::new(ErrorKind::InputInvalid, message)
                .hint("upTo is the id of a message that history(slot) shows"));
        };
        Ok(Some(cut_off(&log, head, entries, index, close)))
    }

    /// Makes a session of it. A reader sees it when all of it is there. `false`: somebody else has made the session.
    pub async fn plant(&self, session: &mut Session, fork: Fork) -> Result<bool> {
        let mut head = self.records.change(|mint| planted(session, &fork.head, mint));
        let mut batches: Vec<Vec<(String, Vec<u8>)>> = vec![Vec::new()];
        let mut bytes = 0;
        for (name, entry) in &fork.entries {
            let record = (session.keys.entry(name), json::to_bytes(entry));
            bytes += record.1.len();
            match batches.last_mut() {
                Some(last) if last.is_empty() || (last.len() < RECORDS && bytes <= BYTES) => {
                    last.push(record);
                }
                _ => {
                    bytes = record.1.len();
                    batches.push(vec![record]);
                }
            }
        }
        let n_batches = batches.len();
        for (number, put) in batches.into_iter().enumerate() {
            let (is_first, is_last) = (number == 0, number + 1 == n_batches);
            let mut batch = self.records.change(|mint| match is_first {
                true => session.clearing(&head, mint),
                false => session.batch(&head, mint),
            });
            batch.put = put;
            if is_last {
                self.records.change(|mint| session.put_index(&mut head, &mut batch, mint));
                batch.put.push((session.keys.head(), json::to_bytes(&head)));
            } else if is_first {
                batch.put.push((session.keys.head(), json::to_bytes(&building(&head))));
            }
            if matches!(self.records.commit(&batch).await?, Landing::Conflict) {
                return Ok(false);
            }
            if is_first || is_last {
                session.revision = Some(batch.revision);
            }
        }
        session.head = Some(head);
        Ok(true)
    }
}

impl Session {
    /// A batch that makes the session anew: one that is empty goes, and what somebody has left unfinished.
    fn clearing(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let mut batch = self.batch(head, mint);
        batch.remove_prefix.push(self.keys.log());
        batch.remove.extend(self.head.iter().map(|head| head.index.clone()));
        batch
    }
}

/// A head under another name, as one that was just made.
fn planted(session: &Session, head: &Head, mint: Mint<'_>) -> Head {
    let Head { epoch, session_id, user_id, card, .. } = session.unmade(mint);
    let card = Card { created: card.created, branches: 0, ..head.card.clone() };
    Head { epoch, session_id, user_id, card, index: String::new(), open: None, ..head.clone() }
}

/// The head of a session that is still being made: nobody takes it for one that is there.
fn building(head: &Head) -> serde_json::Value {
    let mut value = json::to_value(head);
    if let Some(members) = value.as_object_mut() {
        members.insert("building".to_owned(), true.into());
    }
    value
}

/// The path to a head's leaf, oldest first.
fn path(log: &Entries, head: &Head) -> Vec<(EntryRef, Entry)> {
    let (mut path, mut name) = (Vec::new(), head.leaf.as_ref());
    while let Some((found, entry)) = name.and_then(|name| log.get_key_value(name)) {
        path.push((found.clone(), entry.clone()));
        name = entry.parent.as_ref();
    }
    path.reverse();
    path
}

/// Which entry has a message, and where.
fn place(path: &[(EntryRef, Entry)], id: &str) -> Option<(usize, usize)> {
    let spoken = path.iter().enumerate().filter(|(_, it)| it.1.kind != EntryKind::Summary);
    let mut found = spoken.filter_map(|(last, (_, entry))| {
        let index = entry.messages.iter().position(|message| message.id == id)?;
        Some((last, index))
    });
    found.next_back()
}

/// Ends a path with the message of this number in its last entry.
fn cut_off(
    log: &Entries,
    mut head: Head,
    mut entries: Vec<(EntryRef, Entry)>,
    index: usize,
    close: Closing<'_>,
) -> Fork {
    let last = entries.last().map(|(name, _)| name.clone());
    head.view = last.iter().flat_map(|last| view_at(log, &mut head, (last, index))).collect();
    if let Some((_, entry)) = entries.last_mut() {
        entry.messages.truncate(index + 1);
    }
    let said: Vec<_> = entries.iter().flat_map(|(_, entry)| entry.messages.clone()).collect();
    let results = close(&said);
    if let Some((name, entry)) = entries.last_mut() {
        if let Some(Piece::Span { to, .. }) = head.view.last_mut() {
            *to = (name.clone(), index + 1 + results.len());
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
    Fork { head, entries }
}

/// What was shown when a message was the last: what the summaries since have replaced is shown again.
fn view_at(log: &Entries, head: &mut Head, (last, index): (&EntryRef, usize)) -> Vec<Piece> {
    let mut pieces = head.view.clone();
    while let Some(Piece::Summary { summary }) = pieces.first()
        && summary.seq > last.seq
        && let Some(entry) = log.get(summary)
    {
        let later = std::mem::replace(&mut head.edits, entry.edits.clone());
        head.edits.extend(&later);
        pieces = view::join(&entry.replaced, pieces.get(1..).unwrap_or_default());
    }
    let at = (last.seq, index);
    let holds = |piece: &Piece| match piece {
        Piece::Span { from, to } => (from.0.seq, from.1) <= at && at < (to.0.seq, to.1),
        Piece::Summary { .. } => false,
    };
    if !pieces.iter().any(holds) {
        // It was out of sight, as after a clearing: then its own turn is all that there is.
        let (from, to) = ((last.clone(), 0), (last.clone(), index + 1));
        return vec![Piece::Span { from, to }];
    }
    view::split(&pieces, Some(&(last.clone(), index + 1))).0
}
