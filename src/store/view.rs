//! From the head's pieces to messages: which entries are read, and which of their messages count.

use std::collections::HashMap;
use std::rc::Rc;

use crate::message::Message;
use crate::store::entry::{Entry, EntryRef};
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

/// The messages of a span; `None` if an entry is missing.
pub(super) fn span(entries: &Entries, from: &Place, to: &Place) -> Option<Vec<Rc<Message>>> {
    let mut messages = Vec::new();
    for (name, entry) in path(entries, &from.0, &to.0)? {
        let start = if *name == from.0 { from.1 } else { 0 };
        let end = if *name == to.0 { to.1 } else { entry.messages.len() };
        messages.extend(entry.messages.get(start..end)?.iter().cloned());
    }
    Some(messages)
}

/// If `new` is `old` grown at its end: where it ended, and where it ends now.
pub(super) fn growth<'a>(old: &'a [Piece], new: &'a [Piece]) -> Option<(&'a Place, &'a Place)> {
    let (last_old, rest_old) = old.split_last()?;
    let (last_new, rest_new) = new.split_last()?;
    match (last_old, last_new) {
        (Piece::Span { from: a, to: was }, Piece::Span { from: b, to: is })
            if a == b && rest_old == rest_new =>
        {
            Some((was, is))
        }
        _ => None,
    }
}
