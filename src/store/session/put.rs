//! Puts another context in place of the current one. Messages that are in the log stay where they are; only the others are
//! logged.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::json::{self, Object, object_of};
use crate::message::{Edits, Message};
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::{Anchor, GAP, Head};
use crate::store::format::view::{self, MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::log::question;
use crate::store::session::changes::{NewContext, NewSummary};

/// The messages on the path of a session, and what else decides how another context is stored.
#[derive(Default)]
pub(in crate::store) struct Past {
    said: Vec<(MessagePlace, Rc<Message>)>,
    /// How many of them were said before the last question.
    n_before: usize,
    /// The ids of the messages of the last question.
    asked: Vec<String>,
    /// The summary at the start of the view.
    summary: Option<Entry>,
}

impl Past {
    /// The past of a session, from the entries on its path and the summary at the start of its view.
    pub(in crate::store) fn of(
        path: &[(EntryRef, Entry)],
        anchor: Option<&Anchor>,
        summary: Option<Entry>,
    ) -> Past {
        let mut past = Past { summary, ..Past::default() };
        let mut since = Vec::new();
        let mut is_since = anchor.is_some_and(|anchor| anchor.leaf.is_none());
        for (name, entry) in path {
            for change in &entry.changes {
                let changed = past.said.iter_mut().rev().find(|(_, it)| it.id == change.message);
                changed.into_iter().for_each(|(_, message)| change.apply(message));
            }
            if is_since {
                since.push(entry.clone());
            }
            let spoken = entry.messages.iter().filter(|_| entry.kind != EntryKind::Summary);
            let placed = spoken.enumerate().map(|(n, it)| ((name.clone(), n), Rc::clone(it)));
            past.said.extend(placed);
            if anchor.is_some_and(|anchor| anchor.leaf.as_ref() == Some(name)) {
                (is_since, past.n_before) = (true, past.said.len());
            }
        }
        let ids = anchor.map(|anchor| anchor.asked.as_slice()).unwrap_or_default();
        past.asked = question(&since, ids).iter().map(|message| message.id.clone()).collect();
        past
    }

    fn place(&self, index: usize) -> Option<&MessagePlace> {
        self.said.get(index).map(|(place, _)| place)
    }
}

/// What a new context consists of.
#[derive(Default)]
struct Chosen {
    /// Its messages, as indexes: first those of the past, then those of `logged`.
    order: Vec<usize>,
    /// Its messages that are not in the log.
    logged: Vec<Rc<Message>>,
    /// How its messages are shown.
    edits: Edits,
}

/// Changes a head so that it shows another context, and returns the entries to log: a new summary, and the messages that are
/// not in the log. The ids of the messages on a path stay unique, also if a put message has a known id.
pub(in crate::store) fn put(
    head: &mut Head,
    new: &NewContext,
    past: &Past,
    (id, at): (&dyn Fn() -> String, &str),
) -> Vec<(EntryRef, Entry)> {
    let chosen = chosen(&head.edits, &new.messages, past, (id, at));
    let mut entries = Vec::new();
    let summary = match &new.summary {
        NewSummary::None => None,
        NewSummary::Kept => head.view.first().filter(|it| it.is_summary()).cloned(),
        NewSummary::Text(message) => {
            let name = EntryRef { seq: head.next, id: id() };
            let stamped = stamped(message, None, (id, at));
            entries.push((name.clone(), summary_entry(head, &name, stamped, (past, &chosen))));
            head.next += 1;
            head.move_leaf(name.clone());
            Some(ViewPiece::Summary { summary: name })
        }
    };
    let name = EntryRef { seq: head.next, id: id() };
    let entry = Entry { messages: chosen.logged.clone(), ..Entry::put(&name, head.leaf.clone()) };
    entries.push((name.clone(), entry));
    let place = |index: usize| match past.place(index) {
        Some(place) => place.clone(),
        None => (name.clone(), index - past.said.len()),
    };
    head.anchor = head.anchor.take().and_then(|anchor| {
        let before = before_question(&chosen.order, past)?;
        let hidden = entries.iter().flat_map(|(_, entry)| &entry.replaced);
        let hidden: Vec<&ViewPiece> = hidden.collect();
        let mut since = past.said.iter().skip(past.n_before);
        if since.any(|(place, _)| hidden.iter().any(|piece| piece.contains(place))) {
            return None;
        }
        let end = match (past.n_before.checked_sub(1), &anchor.leaf) {
            (Some(last), _) => Some(behind(place(last))),
            (None, leaf) => leaf.clone().map(|leaf| (leaf, 0)),
        };
        let shown = pieces(&before, &place, (past.n_before, end));
        let view = summary.iter().cloned().chain(shown).collect();
        Some(Anchor { view, edits: None, ..anchor })
    });
    let n_logged = chosen.logged.len();
    let end = (past.said.len() + n_logged, Some((name.clone(), n_logged)));
    let shown = pieces(&chosen.order, &place, end);
    head.append(name.clone(), n_logged);
    head.view = summary.into_iter().chain(shown).collect();
    head.edits = chosen.edits;
    entries
}

/// Finds the messages of a new context in the past. A message with the id of another one, or of a message that it changes,
/// gets a new id.
fn chosen(
    edits: &Edits,
    messages: &[Rc<Message>],
    past: &Past,
    (id, at): (&dyn Fn() -> String, &str),
) -> Chosen {
    let mut chosen = Chosen::default();
    // The place of each message that is not used yet.
    let mut places: HashMap<&str, Option<usize>> = HashMap::new();
    for (index, (_, message)) in past.said.iter().enumerate() {
        places.insert(&message.id, Some(index));
    }
    for message in messages {
        let known = places.insert(&message.id, None);
        if let Some(Some(index)) = known
            && let Some((_, said)) = past.said.get(index)
        {
            let edit = edits.of(&message.id);
            let is_shown = edit.is_some_and(|edit| is_alike(&edit.apply(said), message));
            if is_shown || is_alike(said, message) {
                let edit = edit.filter(|_| is_shown);
                edit.into_iter().for_each(|it| chosen.edits.put(&message.id, it.clone()));
                chosen.order.push(index);
                continue;
            }
        }
        chosen.order.push(past.said.len() + chosen.logged.len());
        chosen.logged.push(Rc::new(stamped(message, known, (id, at))));
    }
    chosen
}

/// A message with an id and a time of its own. `known` says whether its id belongs to another message.
fn stamped(
    message: &Message,
    known: Option<Option<usize>>,
    (id, at): (&dyn Fn() -> String, &str),
) -> Message {
    let mut message = message.clone();
    if known.is_some() || message.id.is_empty() {
        message.id = id();
    }
    if message.at.is_empty() {
        message.at = at.to_owned();
    }
    message
}

/// Whether two messages have the same content. JavaScript writes some numbers in another form.
pub(crate) fn is_alike(one: &Message, other: &Message) -> bool {
    one == other || json::is_alike(&json::by_text(one), &json::by_text(other))
}

/// The pieces of a view with these messages. `end` is the number of messages of the path, and the place after the last one:
/// later messages are appended there.
fn pieces(
    order: &[usize],
    place: &dyn Fn(usize) -> MessagePlace,
    (n_all, end): (usize, Option<MessagePlace>),
) -> Vec<ViewPiece> {
    let mut pieces = Vec::new();
    let mut last = None;
    for index in order {
        let from = place(*index);
        let is_next = last.is_some_and(|last: usize| last + 1 == *index);
        match pieces.last_mut() {
            Some(ViewPiece::Span { to, .. }) if is_next && from.0.seq <= to.0.seq + GAP => {
                *to = behind(from);
            }
            _ => pieces.push(ViewPiece::Span { to: behind(from.clone()), from }),
        }
        last = Some(*index);
    }
    if last.is_some_and(|last| last + 1 != n_all) {
        let at_end = end.map(|end| ViewPiece::Span { from: end.clone(), to: end });
        pieces.extend(at_end);
    }
    pieces
}

fn behind((entry, index): MessagePlace) -> MessagePlace {
    (entry, index + 1)
}

/// The messages of a new context before its last question. `None`: the question is not whole in it. Messages that its turn
/// had logged before the question belong to the turn.
fn before_question(order: &[usize], past: &Past) -> Option<Vec<usize>> {
    let is_asked = |index: &&usize| {
        let asked = past.said.get(**index).filter(|_| **index >= past.n_before);
        asked.is_some_and(|(_, message)| past.asked.contains(&message.id))
    };
    let n_asked = order.iter().filter(is_asked).count();
    let first = order.iter().position(|index| is_asked(&index))?;
    let before = order.iter().take(first).copied();
    let stays = |index: &usize| *index < past.n_before || *index >= past.said.len();
    (n_asked >= past.asked.len()).then(|| before.filter(stays).collect())
}

/// The entry of a new summary. It replaces what the old summary has replaced, and the messages behind that are left out. If what
/// the old one has replaced is unknown, it replaces the old one itself.
fn summary_entry(
    head: &mut Head,
    name: &EntryRef,
    mut message: Message,
    (past, chosen): (&Past, &Chosen),
) -> Entry {
    // The messages before the first piece with a message that is kept, and before that message.
    let kept: Vec<&MessagePlace> =
        chosen.order.iter().filter_map(|index| past.place(*index)).collect();
    let in_piece = |piece: &ViewPiece| {
        let inside = kept.iter().filter(|at| piece.contains(at)).copied();
        inside.min_by_key(|at| (at.0.seq, at.1))
    };
    let first = head.view.iter().find_map(in_piece);
    let mut replaced = view::split(&head.view, first).0;
    let is_hidden =
        |at: &MessagePlace| replaced.iter().any(|piece| !piece.is_summary() && piece.contains(at));
    let hidden = past.said.iter().filter(|(place, _)| is_hidden(place));
    let hidden: Vec<&str> = hidden.map(|(_, message)| message.id.as_str()).collect();
    let old = past.summary.as_ref().filter(|_| replaced.first().is_some_and(ViewPiece::is_summary));
    message.set_replaces(replaces(old, &hidden));
    let mut edits = head.edits.take(|id| chosen.edits.of(id).is_none());
    let revised = head.view.first().and_then(ViewPiece::summary_name);
    let mut revises = false;
    if let Some(old) = old.filter(|old| !old.hides_unknown()) {
        // A revision stands for the whole view before it, also for messages that are still shown.
        revises = old.revises;
        replaced = match revised.filter(|_| revises) {
            Some(name) => old.undone(&head.view, name),
            None => view::join(&old.replaced, replaced.get(1..).unwrap_or_default()),
        };
        edits.extend(&old.edits);
    }
    Entry {
        kind: EntryKind::Summary,
        messages: vec![Rc::new(message)],
        replaced,
        edits,
        revises,
        ..Entry::put(name, head.leaf.clone())
    }
}

/// What a summary says of the messages that it replaces: those of an old summary, and these.
fn replaces(old: Option<&Entry>, hidden: &[&str]) -> Value {
    let old = old.and_then(|entry| entry.messages.first()?.replaces());
    let of_old = |name: &str| old.and_then(|it| it.get(name)).cloned().unwrap_or_default();
    let id = |id: Option<&&str>| id.map(|id| Value::from(*id));
    let first = Some(of_old("first")).filter(|first| !first.is_null());
    let first = first.or_else(|| id(hidden.first())).unwrap_or_default();
    let last = id(hidden.last()).unwrap_or_else(|| of_old("last"));
    let mut members: Object = object_of("first", first);
    members.insert("last".to_owned(), last);
    let n_old = of_old("messages").as_u64().unwrap_or_default();
    members.insert("messages".to_owned(), (n_old + hidden.len() as u64).into());
    Value::Object(members)
}
