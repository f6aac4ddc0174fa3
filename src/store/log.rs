//! Entries of a log that were read: the paths through them, and the messages on these paths. Every path ends: the parent of
//! an entry has a lower number, or the entry is not read.

use std::collections::HashMap;
use std::rc::Rc;

use crate::message::Message;
use crate::store::format::entry::{CallUpdate, Entry, EntryKind};
use crate::store::format::view::{MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;

/// Entries by name.
pub(super) type Entries = HashMap<EntryRef, Entry>;

/// The entries from `from` to `to` along the path, oldest first; `None` if one of them is missing.
pub(in crate::store) fn path<'a>(
    entries: &'a Entries,
    from: &EntryRef,
    to: &EntryRef,
) -> Option<Vec<(&'a EntryRef, &'a Entry)>> {
    let mut path = Vec::new();
    let (mut name, mut entry) = entries.get_key_value(to)?;
    loop {
        path.push((name, entry));
        if name == from {
            path.reverse();
            return Some(path);
        }
        (name, entry) = entries.get_key_value(entry.parent.as_ref()?)?;
    }
}

/// The entries of the path that ends at `leaf`, newest first.
pub(super) fn back_from<'a>(
    entries: &'a Entries,
    leaf: &EntryRef,
) -> impl Iterator<Item = (&'a EntryRef, &'a Entry)> {
    let next =
        |(_, entry): &(&'a EntryRef, &'a Entry)| entries.get_key_value(entry.parent.as_ref()?);
    std::iter::successors(entries.get_key_value(leaf), next)
}

/// Whether these entries have the whole path to a leaf.
pub(in crate::store) fn is_whole(entries: &Entries, leaf: &EntryRef) -> bool {
    back_from(entries, leaf).last().is_some_and(|(_, root)| root.parent.is_none())
}

/// The whole path to an entry, oldest first; `None` if an entry is missing.
pub(in crate::store) fn path_to(
    entries: &Entries,
    leaf: Option<&EntryRef>,
) -> Option<Vec<(EntryRef, Entry)>> {
    let (mut path, mut name) = (Vec::new(), leaf);
    while let Some(next) = name {
        let (next, entry) = entries.get_key_value(next)?;
        path.push((next.clone(), entry.clone()));
        name = entry.parent.as_ref();
    }
    path.reverse();
    Some(path)
}

/// The messages of a span, and changes in it that concern earlier messages.
#[derive(Default)]
pub(super) struct SpanMessages {
    pub(super) messages: Vec<Rc<Message>>,
    pub(super) of_earlier: Vec<CallUpdate>,
}

/// The messages of a span, with the changes that later entries of the span make. `None`: an entry is missing.
pub(super) fn span(
    entries: &Entries,
    from: &MessagePlace,
    to: &MessagePlace,
) -> Option<SpanMessages> {
    let mut found = SpanMessages::default();
    for (name, entry) in path(entries, &from.0, &to.0)? {
        let is_new = |later: &&CallUpdate| !later.apply_to(&mut found.messages);
        found.of_earlier.extend(entry.changes.iter().filter(is_new).cloned());
        // A summary is shown only where a view names it.
        if entry.kind == EntryKind::Summary && from.0 != to.0 {
            continue;
        }
        let start = if *name == from.0 { from.1 } else { 0 };
        let end = if *name == to.0 { to.1 } else { entry.messages.len() };
        found.messages.extend(entry.messages.get(start..end)?.iter().cloned());
    }
    Some(found)
}

/// Entries in the order of the log.
pub(in crate::store) fn in_order(entries: Entries) -> Vec<(EntryRef, Entry)> {
    let mut ordered: Vec<(EntryRef, Entry)> = Vec::new();
    for (name, entry) in entries {
        let place =
            ordered.partition_point(|(other, _)| (other.seq, &other.id) < (name.seq, &name.id));
        ordered.insert(place, (name, entry));
    }
    ordered
}

pub(in crate::store) fn find(
    entries: &Entries,
    leaf: &EntryRef,
    id: &str,
) -> Option<(MessagePlace, Rc<Message>)> {
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

/// A message that a view shows. After a resend it can be on another path, if it was put by hand before that.
pub(in crate::store) fn find_shown(
    entries: &Entries,
    view: &[ViewPiece],
    id: &str,
) -> Option<(MessagePlace, Rc<Message>)> {
    view.iter().find_map(|piece| {
        let ViewPiece::Span { from, to } = piece else { return None };
        let found = path(entries, &from.0, &to.0)?.into_iter().find_map(|(name, entry)| {
            let index = entry.messages.iter().position(|message| message.id == id)?;
            Some(((name.clone(), index), Rc::clone(entry.messages.get(index)?)))
        });
        found.filter(|(place, _)| piece.contains(place))
    })
}

/// The first question of an entry.
pub(in crate::store) fn asked_in(entry: &Entry) -> Option<&Rc<Message>> {
    let is_turn = !matches!(entry.kind, EntryKind::Summary | EntryKind::Put);
    entry.messages.iter().find(|message| is_turn && message.is_question())
}

/// The messages of the user up to the first answer.
pub(in crate::store) fn first_said(messages: &[Rc<Message>]) -> Vec<Rc<Message>> {
    let said = messages.iter().skip_while(|message| !message.is_question());
    said.take_while(|message| message.is_question()).cloned().collect()
}

/// The question that a turn begins with: the messages with these ids, or the first messages of the user if a hook has
/// replaced them.
pub(in crate::store) fn question(turn: &[Entry], ids: &[String]) -> Vec<Rc<Message>> {
    let all = turn.iter().flat_map(|entry| &entry.messages);
    let asked: Vec<_> = all.filter(|message| ids.contains(&message.id)).cloned().collect();
    if !asked.is_empty() {
        return asked;
    }
    let entry = turn.iter().find(|entry| asked_in(entry).is_some());
    entry.map(|entry| first_said(&entry.messages)).unwrap_or_default()
}
