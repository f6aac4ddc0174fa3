//! The view of a session: which messages of the log are its context, as pieces.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};
use crate::store::keys::EntryRef;

/// A place between messages: an entry, and the index of the message that follows in it.
pub type MessagePlace = (EntryRef, usize);

/// What leaves the context at the end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The id of the first stored message that leaves the context; `None` if all stored messages stay.
    pub first: Option<String>,
    /// The call that has asked the question of that message; `None` if it may be any call.
    pub call_id: Option<String>,
    /// The place of that message. It is found when the turn is saved.
    pub from: Option<MessagePlace>,
    /// How many messages of the last entry stay, if all stored messages stay.
    pub n_kept: usize,
}

/// One piece of the context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ViewPiece {
    /// The messages on the path between two places. A place may be inside an entry.
    Span {
        /// The first message.
        from: MessagePlace,
        /// The place after the last message.
        to: MessagePlace,
    },
    /// A summary in place of the messages that it replaces.
    Summary {
        /// The entry that holds its text and the pieces it replaced.
        summary: EntryRef,
    },
}

impl ViewPiece {
    fn from_json(value: &Value) -> Read<ViewPiece> {
        let fields = Fields::of(value)?;
        if let Some(summary) = fields.optional("summary", EntryRef::from_json)? {
            return Ok(ViewPiece::Summary { summary });
        }
        Ok(ViewPiece::Span {
            from: fields.required("from", place)?,
            to: fields.required("to", place)?,
        })
    }
}

impl ViewPiece {
    /// Whether it is a summary.
    pub(in crate::store) fn is_summary(&self) -> bool {
        matches!(self, ViewPiece::Summary { .. })
    }

    /// The entry of the summary, if it is one.
    pub(in crate::store) fn summary_name(&self) -> Option<&EntryRef> {
        match self {
            ViewPiece::Summary { summary } => Some(summary),
            ViewPiece::Span { .. } => None,
        }
    }

    /// Whether it is a span with the message at this place.
    pub(in crate::store) fn contains(&self, at: &MessagePlace) -> bool {
        matches!(self, ViewPiece::Span { from, to } if (order(from)..order(to)).contains(&order(at)))
    }
}

/// The order of places on one path.
pub(in crate::store) fn order(place: &MessagePlace) -> (u64, usize) {
    (place.0.seq, place.1)
}

/// Reads the pieces of a view.
pub(in crate::store) fn pieces(value: &Value) -> Read<Vec<ViewPiece>> {
    json::list(value, ViewPiece::from_json)
}

fn place(value: &Value) -> Read<MessagePlace> {
    match value.as_array().map(Vec::as_slice) {
        Some([entry, index]) => Ok((EntryRef::from_json(entry)?, json::count(index)? as usize)),
        _ => Err(Misread::new("a place, [entry, index]")),
    }
}

/// If `new` is `old` with more messages at the end: the old end and the new end.
pub(in crate::store) fn growth<'a>(
    old: &'a [ViewPiece],
    new: &'a [ViewPiece],
) -> Option<(&'a MessagePlace, &'a MessagePlace)> {
    let (last_old, rest_old) = old.split_last()?;
    let (last_new, rest_new) = new.split_last()?;
    match (last_old, last_new) {
        (ViewPiece::Span { from: a, to: was }, ViewPiece::Span { from: b, to: is })
            // After a failover of the store an older head may be back.
            if a == b && rest_old == rest_new && was.0.seq <= is.0.seq =>
        {
            Some((was, is))
        }
        _ => None,
    }
}

/// Splits a view at a place. Without a place it is split at its end.
pub(in crate::store) fn split(
    view: &[ViewPiece],
    at: Option<&MessagePlace>,
) -> (Vec<ViewPiece>, Vec<ViewPiece>) {
    let is_before = |from: &MessagePlace, at: &MessagePlace| order(from) <= order(at);
    let holds = |piece: &ViewPiece| match (piece, at) {
        (ViewPiece::Span { from, .. }, Some(at)) => is_before(from, at),
        (ViewPiece::Span { .. }, None) => true,
        (ViewPiece::Summary { .. }, _) => false,
    };
    let contains = |piece: &ViewPiece| at.is_some_and(|at| piece.contains(at));
    // The pieces of a revised context are not in the order of the log.
    let index = view.iter().position(contains).or_else(|| view.iter().rposition(holds));
    let Some(index) = index else {
        // Without a place, everything is before it: also a summary that no message follows.
        return if at.is_none() {
            (view.to_vec(), Vec::new())
        } else {
            (Vec::new(), view.to_vec())
        };
    };
    let (before, rest) = view.split_at(index);
    let (mut before, mut behind) = (before.to_vec(), rest.to_vec());
    if let Some(ViewPiece::Span { from, to }) = rest.first() {
        let place = at.unwrap_or(to).clone();
        let start = ViewPiece::Span { from: from.clone(), to: place.clone() };
        before.extend(Some(start).filter(|_| *from != place));
        behind.splice(..1, [ViewPiece::Span { from: place, to: to.clone() }]);
    }
    (before, behind)
}

/// The part of a view before a place. `None`: the view begins after the place.
pub(in crate::store) fn before(view: &[ViewPiece], at: &MessagePlace) -> Option<Vec<ViewPiece>> {
    let begins = |piece: &ViewPiece| match piece {
        ViewPiece::Span { from, .. } => order(from),
        ViewPiece::Summary { summary } => (summary.seq, 0),
    };
    view.first().filter(|first| begins(first) <= order(at))?;
    let mut shown = Vec::new();
    // Messages that were put later by hand can stand before others.
    for piece in view.iter().filter(|piece| begins(piece) < order(at)) {
        shown.push(match piece {
            ViewPiece::Span { from, to } if order(to) > order(at) => {
                ViewPiece::Span { from: from.clone(), to: at.clone() }
            }
            other => other.clone(),
        });
    }
    Some(shown)
}

/// The view without a revision: what it replaced is shown again, and what came after it stays. `end` is the end of its entry.
pub(in crate::store) fn unrevised(
    view: &[ViewPiece],
    replaced: &[ViewPiece],
    end: &MessagePlace,
) -> Vec<ViewPiece> {
    let seq = end.0.seq;
    let later = view.iter().filter_map(|piece| match piece {
        ViewPiece::Span { from, .. } if from.0.seq > seq || from == end => Some(piece.clone()),
        ViewPiece::Span { to, .. } if to.0.seq > seq => {
            Some(ViewPiece::Span { from: end.clone(), to: to.clone() })
        }
        ViewPiece::Summary { summary } if summary.seq > seq => Some(piece.clone()),
        _ => None,
    });
    let mut shown = replaced.to_vec();
    for piece in later {
        match (shown.last_mut(), piece) {
            (_, ViewPiece::Span { from, to }) if from == to => {}
            (Some(ViewPiece::Span { to, .. }), ViewPiece::Span { from, to: is })
                if from == *end =>
            {
                *to = is;
            }
            (_, piece) => shown.push(piece),
        }
    }
    shown
}

/// The view without the messages between two places. A view that ended with them ends behind them, where it grows.
pub(in crate::store) fn without(
    view: &[ViewPiece],
    from: &MessagePlace,
    to: &MessagePlace,
) -> Vec<ViewPiece> {
    let mut shown = Vec::new();
    for (index, piece) in view.iter().enumerate() {
        let (start, end) = match piece {
            ViewPiece::Span { from: start, to: end }
                if order(start) < order(to) && order(from) < order(end) =>
            {
                (start, end)
            }
            other => {
                shown.push(other.clone());
                continue;
            }
        };
        if order(start) < order(from) {
            shown.push(ViewPiece::Span { from: start.clone(), to: from.clone() });
        }
        if order(to) < order(end) {
            shown.push(ViewPiece::Span { from: to.clone(), to: end.clone() });
        } else if index + 1 == view.len() {
            shown.push(ViewPiece::Span { from: end.clone(), to: end.clone() });
        }
    }
    shown
}

/// The entries of summaries and revisions that a view may show, newest first. Some of them are entries of turns.
pub(in crate::store) fn named(view: &[ViewPiece]) -> Vec<&EntryRef> {
    let mut names: Vec<&EntryRef> = view
        .iter()
        .map(|piece| match piece {
            ViewPiece::Span { from, .. } => &from.0,
            ViewPiece::Summary { summary } => summary,
        })
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.seq));
    names
}

/// Joins the parts of a view that [`split`] has made. The second part may have grown since.
pub(in crate::store) fn join(before: &[ViewPiece], behind: &[ViewPiece]) -> Vec<ViewPiece> {
    let mut view = before.to_vec();
    let mut behind = behind.iter().cloned();
    let first = behind.next();
    match (view.last_mut(), first) {
        (Some(ViewPiece::Span { to, .. }), Some(ViewPiece::Span { from, to: end }))
            if *to == from =>
        {
            *to = end;
        }
        (_, first) => view.extend(first),
    }
    view.extend(behind);
    view
}
