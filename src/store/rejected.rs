//! What has left the context of a path because a provider has rejected it, computed from the log. It is needed where the view
//! of that time is not stored any more. `policy::rejection` has decided the same when the turns ended.

use std::rc::Rc;

use crate::message::{Edit, Edits, Message, Role};
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::view::{self, MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;

/// What providers have rejected on a path.
#[derive(Debug, Default)]
pub(in crate::store) struct RejectedParts {
    /// The messages that have left the context: from the first place to the second, in the order of the path.
    spans: Vec<(MessagePlace, MessagePlace)>,
    /// The ids of messages whose tool results are hidden.
    hidden: Vec<String>,
}

/// The messages of a path that are shown.
type ShownMessages<'a> = Vec<(MessagePlace, &'a Rc<Message>)>;

impl RejectedParts {
    /// From the entries of a whole path, oldest first.
    pub(in crate::store) fn on(path: &[(EntryRef, Entry)]) -> RejectedParts {
        let mut parts = RejectedParts::default();
        if !path.iter().any(|(_, entry)| entry.is_rejected()) {
            return parts;
        }
        let mut shown: ShownMessages<'_> = Vec::new();
        for (index, (name, entry)) in path.iter().enumerate() {
            if entry.kind == EntryKind::Summary {
                continue;
            }
            let said = entry.messages.iter().enumerate();
            shown.extend(said.map(|(n, message)| ((name.clone(), n), message)));
            if entry.is_rejected() {
                let earlier = path.get(..index).unwrap_or_default();
                parts.leave_out(&mut shown, earlier, (name, entry));
            }
        }
        parts
    }

    /// Takes what the rejection at the end of a turn concerns out of the messages that are shown.
    fn leave_out(
        &mut self,
        shown: &mut ShownMessages<'_>,
        earlier: &[(EntryRef, Entry)],
        (name, entry): (&EntryRef, &Entry),
    ) {
        let spoken = earlier.iter().rev().filter(|(_, it)| it.kind != EntryKind::Summary);
        let is_step = |it: &Entry| it.kind == EntryKind::Step && it.call_id == entry.call_id;
        let steps = spoken.take_while(|(_, it)| is_step(it)).last();
        let first = (steps.map_or(name, |(first, _)| first).clone(), 0);
        let own = shown.partition_point(|(place, _)| view::order(place) < view::order(&first));
        let said = shown.get(own..).unwrap_or_default();
        let n_results = said.iter().take_while(|(_, it)| it.role == Role::Tool).count();
        let asks = said.get(n_results).is_some_and(|(_, it)| it.is_question());
        // A call that is repeated with its callId has its question in the log already. A question in its entry has joined it.
        let begun = |it: &Entry| it.call_id == entry.call_id && it.outcome.is_some();
        let is_repeated = earlier.iter().any(|(_, it)| begun(it));
        let mut start = own + n_results;
        if n_results == 0 && (is_repeated || !asks) {
            let call_id = is_repeated.then_some(&*entry.call_id);
            start = earlier_question(shown.get(..own).unwrap_or_default(), earlier, call_id)
                .unwrap_or(start);
        } else if !asks {
            let before = shown.get(..own).unwrap_or_default();
            let asked = before.iter().rposition(|(_, it)| it.role == Role::Assistant);
            let results = shown.get(asked.map_or(start, |at| at + 1)..start).unwrap_or_default();
            let results = results.iter().filter(|(_, it)| it.role == Role::Tool);
            self.hidden.extend(results.map(|(_, message)| message.id.clone()));
        }
        if let Some((from, _)) = shown.get(start) {
            self.spans.push((from.clone(), (name.clone(), entry.messages.len())));
        }
        shown.truncate(start);
    }

    /// Whether the message at this place has left the context.
    pub(in crate::store) fn has(&self, at: &MessagePlace) -> bool {
        let is_in = |(from, to): &(MessagePlace, MessagePlace)| {
            (view::order(from)..view::order(to)).contains(&view::order(at))
        };
        self.spans.iter().any(is_in)
    }

    /// Takes the rejected messages out of a view of the same path.
    pub(in crate::store) fn out_of(&self, view: Vec<ViewPiece>) -> Vec<ViewPiece> {
        self.spans.iter().fold(view, |view, (from, to)| view::without(&view, from, to))
    }

    /// Hides the rejected results.
    pub(in crate::store) fn hide(&self, edits: &mut Edits) {
        self.hidden.iter().for_each(|id| edits.put(id, Edit::Faded { results: true }));
    }
}

/// The index of the last question that is shown, if it is one of this call.
fn earlier_question(
    shown: &[(MessagePlace, &Rc<Message>)],
    path: &[(EntryRef, Entry)],
    call_id: Option<&str>,
) -> Option<usize> {
    let last = shown.iter().rposition(|(_, it)| it.is_question())?;
    let (name, _) = &shown.get(last)?.0;
    let (_, entry) = path.iter().find(|(other, _)| other == name)?;
    let is_other = call_id.is_some_and(|call_id| call_id != entry.call_id);
    if entry.kind == EntryKind::Put || is_other {
        return None;
    }
    if call_id.is_some() {
        // Later questions in the turn of the call have joined it.
        let earlier = path.iter().rev().skip_while(|(other, _)| other != name).skip(1);
        let spoken = earlier.filter(|(_, it)| it.kind != EntryKind::Summary);
        let is_step = |it: &Entry| it.kind == EntryKind::Step && it.call_id == entry.call_id;
        let steps = spoken.take_while(|(_, it)| is_step(it)).last();
        let first = (steps.map_or(name, |(first, _)| first).clone(), 0);
        let is_in_turn = |place: &MessagePlace| view::order(place) >= view::order(&first);
        return shown.iter().position(|(place, it)| is_in_turn(place) && it.is_question());
    }
    let is_same =
        |(place, it): &&(MessagePlace, &Rc<Message>)| place.0 == *name && it.is_question();
    let before = shown.get(..last).unwrap_or_default();
    Some(last - before.iter().rev().take_while(is_same).count())
}
