//! From the head's pieces to messages: which entries are read, and which of their messages count.

use std::collections::HashMap;
use std::rc::Rc;

use crate::message::Message;
use crate::store::entry::{Entry, EntryKind, EntryRef, Later};
use crate::store::head::{Piece, Place};

/// Entries by name.
pub(super) type Entries = HashMap<EntryRef, Entry>;

/// The entries from `from` to `to` along the path, oldest first; `None` if one of them is missing.
pub(super) fn path<'a>(
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

/// The messages of a span, and what it says of messages before it.
#[derive(Default)]
pub(super) struct Stretch {
    pub(super) messages: Vec<Rc<Message>>,
    pub(super) of_earlier: Vec<Later>,
}

/// The messages of a span, as later entries of it have changed them; `None` if an entry is missing.
pub(super) fn span(entries: &Entries, from: &Place, to: &Place) -> Option<Stretch> {
    let mut stretch = Stretch::default();
    for (name, entry) in path(entries, &from.0, &to.0)? {
        let is_new = |later: &&Later| !later.apply_to(&mut stretch.messages);
        stretch.of_earlier.extend(entry.changes.iter().filter(is_new).cloned());
        // A summary is shown where a view names it, and nowhere else.
        if entry.kind == EntryKind::Summary && from.0 != to.0 {
            continue;
        }
        let start = if *name == from.0 { from.1 } else { 0 };
        let end = if *name == to.0 { to.1 } else { entry.messages.len() };
        stretch.messages.extend(entry.messages.get(start..end)?.iter().cloned());
    }
    Some(stretch)
}

/// If `new` is `old` grown at its end: where it ended, and where it ends now.
pub(super) fn growth<'a>(old: &'a [Piece], new: &'a [Piece]) -> Option<(&'a Place, &'a Place)> {
    let (last_old, rest_old) = old.split_last()?;
    let (last_new, rest_new) = new.split_last()?;
    match (last_old, last_new) {
        (Piece::Span { from: a, to: was }, Piece::Span { from: b, to: is })
            // A failover may have brought an older head back: that is no growth.
            if a == b && rest_old == rest_new && was.0.seq <= is.0.seq =>
        {
            Some((was, is))
        }
        _ => None,
    }
}

/// Parts a view before a place: what stands before it, and the rest. No place is behind all of it.
pub(super) fn split(view: &[Piece], at: Option<&Place>) -> (Vec<Piece>, Vec<Piece>) {
    let is_before = |from: &Place, at: &Place| (from.0.seq, from.1) <= (at.0.seq, at.1);
    let holds = |piece: &Piece| match (piece, at) {
        (Piece::Span { from, .. }, Some(at)) => is_before(from, at),
        (Piece::Span { .. }, None) => true,
        (Piece::Summary { .. }, _) => false,
    };
    let Some(index) = view.iter().rposition(holds) else { return (Vec::new(), view.to_vec()) };
    let (before, rest) = view.split_at(index);
    let (mut before, mut behind) = (before.to_vec(), rest.to_vec());
    if let Some(Piece::Span { from, to }) = rest.first() {
        let place = at.unwrap_or(to).clone();
        let start = Piece::Span { from: from.clone(), to: place.clone() };
        before.extend(Some(start).filter(|_| *from != place));
        behind.splice(..1, [Piece::Span { from: place, to: to.clone() }]);
    }
    (before, behind)
}

/// Puts together what [`split`] has parted; what has grown since stays.
pub(super) fn join(before: &[Piece], behind: &[Piece]) -> Vec<Piece> {
    let mut view = before.to_vec();
    let mut behind = behind.iter().cloned();
    let first = behind.next();
    match (view.last_mut(), first) {
        (Some(Piece::Span { to, .. }), Some(Piece::Span { from, to: end })) if *to == from => {
            *to = end;
        }
        (_, first) => view.extend(first),
    }
    view.extend(behind);
    view
}
