//! Checks the promises of ARCHITECTURE.md against the stored records at the end of a schedule.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use lockgate::error::ErrorKind;
use lockgate::message::{Message, Role};
use lockgate::port::Record;
use lockgate::slot::Slot;
use lockgate::store::format::entry::{Entry, EntryKind};
use lockgate::store::format::view::ViewPiece;
use lockgate::store::keys::EntryRef;
use lockgate::store::keys::SlotKeys;

use crate::history::{AGENT, Attempt, History, Resend, ids, pairs, says};
use crate::providers::refused_after;
use crate::records::{Session, read};
use crate::store::Server;

struct Checker<'a> {
    history: &'a History,
    server: &'a Server,
    slot: Slot,
    prefix: String,
    session: Session,
}

/// Returns the promises that these sessions break.
pub fn check(history: &History, server: &Server, slots: &[Slot]) {
    let records = match server.dump() {
        Ok(records) => records,
        Err(error) => return history.problem(format!("the store cannot be read: {error:?}")),
    };
    for slot in slots {
        let prefix = SlotKeys::new(AGENT, slot).all();
        match read(&records, &prefix) {
            Ok(session) => {
                Checker { history, server, slot: slot.clone(), prefix, session }.check(&records)
            }
            Err(why) => history.problem(format!("{slot} cannot be read: {why}")),
        }
    }
}

impl Checker<'_> {
    fn check(&self, records: &[(String, Record)]) {
        self.check_tree(records);
        self.check_messages();
        self.check_view();
        self.check_accepted();
        self.check_acknowledged();
        self.check_notes();
        self.check_order();
        self.check_names();
        self.check_requests();
        self.check_rejected();
        self.check_deletions();
        self.check_readings();
        self.check_visible();
        self.check_pieces();
    }

    fn problem(&self, problem: &str) {
        self.history.problem(format!("{}: {problem}", self.slot));
    }

    fn messages_of_path(&self) -> Vec<Rc<Message>> {
        self.messages_of(&self.session.path)
    }

    /// The messages of these entries, without summaries.
    fn messages_of(&self, path: &[String]) -> Vec<Rc<Message>> {
        let entries = path.iter().map(|it| &self.session.entries[it]);
        let spoken = entries.filter(|it| it.kind != EntryKind::Summary);
        spoken.flat_map(|it| it.messages.clone()).collect()
    }

    /// The questions of this session by number, with their calls.
    fn questions(&self) -> Vec<(usize, String, Vec<usize>)> {
        let (questions, attempts) =
            (self.history.questions.borrow(), self.history.attempts.borrow());
        let ours = questions.iter().enumerate().filter(|(_, it)| it.slot == self.slot);
        let calls = |question| {
            let all = attempts.iter().enumerate();
            all.filter(|(_, it)| it.question == question).map(|(n, _)| n).collect()
        };
        ours.map(|(number, it)| (number, it.text.clone(), calls(number))).collect()
    }

    /// Whether the session was deleted between two moments.
    fn deleted(&self, from: u64, to: u64) -> bool {
        let graves = self.server.graves.borrow();
        graves.iter().any(|it| it.prefix == self.prefix && it.tick > from && it.tick < to)
    }

    /// Whether a deletion removed this text.
    fn buried(&self, words: &str) -> bool {
        let graves = self.server.graves.borrow();
        let ours = graves.iter().filter(|grave| grave.prefix == self.prefix);
        ours.flat_map(|it| &it.values).any(|it| String::from_utf8_lossy(it).contains(words))
    }

    /// The names of the entries with a question.
    fn entries_with(&self, text: &str) -> Vec<&String> {
        let holds = |entry: &Entry| entry.messages.iter().any(|message| says(message, text));
        self.session.entries.iter().filter(|(_, it)| holds(it)).map(|(name, _)| name).collect()
    }

    fn check_tree(&self, records: &[(String, Record)]) {
        let mut numbers = HashMap::new();
        for (name, entry) in &self.session.entries {
            let seq = name.split('.').next().unwrap().to_owned();
            if let Some(other) = numbers.insert(seq, name) {
                self.problem(&format!("entries {other} and {name} share a number"));
            }
            let parent = entry.parent.as_ref().map(EntryRef::to_string);
            if parent.is_some_and(|it| !self.session.entries.contains_key(&it) || it >= *name) {
                self.problem(&format!("entry {name} has no valid parent"));
            }
        }
        if !self.session.inputs.is_empty() {
            self.problem("an input is still waiting after the last call");
        }
        let partition = self.prefix.split("slot/").next().unwrap();
        let session = format!(".{}", self.prefix.trim_end_matches('/').rsplit('/').next().unwrap());
        let lines = records.iter().map(|(key, _)| key);
        let lines = lines.filter(|it| it.starts_with(&format!("{partition}index/")));
        let lines: Vec<_> = lines.filter(|it| it.ends_with(&session)).collect();
        let expected: Vec<_> = self.session.head.iter().map(|head| &head.index).collect();
        if lines != expected {
            self.problem(&format!("the session's list lines are {lines:?}, not {expected:?}"));
        }
    }

    fn check_messages(&self) {
        let mut seen = HashMap::new();
        for (name, entry) in &self.session.entries {
            for message in &entry.messages {
                let Some(other) = seen.insert(message.id.clone(), name) else { continue };
                // A question that was resent is one message, which is once on each branch.
                // A resend of a question in the middle of an entry copies the messages before it.
                let is_copy = |name: &String| {
                    let entry = &self.session.entries[name];
                    entry.kind == EntryKind::Put && !entry.call_id.is_empty()
                };
                let may_be_again = message.role == Role::User || is_copy(name) || is_copy(other);
                let is_again = may_be_again && self.moved(u64::MAX);
                if !is_again || self.are_of_one_path(other, name) {
                    let text = message.text();
                    self.problem(&format!("{text:?} is in the log twice: {other} and {name}"));
                }
            }
        }
        let path = self.messages_of_path();
        if let Err(why) = pairs(&path) {
            self.problem(&format!("the path is not a valid transcript: {why}"));
        }
        if let Err(why) = refused_after(&self.slot, &path) {
            self.problem(&format!("a request with the path and a new question is one that {why}"));
        }
        for entry in self.session.entries.values() {
            self.history.check_words(&self.slot, &entry.messages, "the log has");
        }
    }

    /// Checks that accepted inputs are never lost and never doubled.
    fn check_accepted(&self) {
        let attempts = self.history.attempts.borrow();
        for (number, text, calls) in self.questions() {
            let places = self.entries_with(&text);
            let is_doubled = |(n, place): (usize, &&String)| {
                let mut others = places[..n].iter();
                let moved = self.moved(u64::MAX);
                others.any(|other| {
                    let is_again = !moved || self.are_of_one_path(other, place);
                    is_again && !self.is_tried_again(number, other, place)
                })
            };
            if places.iter().enumerate().any(is_doubled) {
                self.problem(&format!("question {number} is in the log twice: {places:?}"));
            }
            // An approval has no text: its effect is the result of the tool.
            let is_said = !self.history.questions.borrow()[number].approves;
            if self.history.questions.borrow()[number].resends == Some(Resend::Same) {
                continue;
            }
            let accepted = calls.iter().any(|call| attempts[*call].accepted.is_some());
            let accepted = accepted && is_said;
            if accepted && places.is_empty() && !self.buried(&format!("\"{text}\"")) {
                self.problem(&format!("question {number} was accepted and is lost"));
            }
        }
    }

    /// Whether a question is at two places of one path because it is a resend that failed at the first, was repeated with
    /// its callId after another client had continued that branch, and replaced the question of that client.
    fn is_tried_again(&self, question: usize, first: &str, second: &str) -> bool {
        let question = &self.history.questions.borrow()[question];
        let (Some(call), Some(_)) = (&question.name, question.resends) else { return false };
        let is_failure = |entry: &Entry| entry.outcome.as_ref().is_some_and(|it| it.code.is_some());
        let has_failed = self.session.entries.iter().any(|(name, entry)| {
            let is_end = entry.call_id == *call && is_failure(entry);
            is_end && self.turn_of(name).iter().any(|it| it == first)
        });
        let is_asked = |it: &Message| it.role == Role::User && it.name.as_deref() != Some("system");
        let gives_way = |(name, entry): (&String, &Entry)| {
            let is_question =
                entry.call_id != *call && entry.messages.iter().any(|it| is_asked(it));
            is_question && self.spoken_before(name) == self.spoken_before(second)
        };
        has_failed && self.session.entries.iter().any(gives_way)
    }

    /// The nearest earlier entry on the path that is not a summary.
    fn spoken_before(&self, name: &str) -> Option<String> {
        let entries = &self.session.entries;
        let parent = entries[name].parent.as_ref().map(EntryRef::to_string)?;
        match entries[&parent].kind == EntryKind::Summary {
            true => self.spoken_before(&parent),
            false => Some(parent),
        }
    }

    /// An entry, and the earlier steps of its call.
    fn turn_of(&self, name: &str) -> Vec<String> {
        let mut turn = vec![name.to_owned()];
        while let Some(before) = self.spoken_before(turn.last().unwrap()) {
            let (entry, last) = (&self.session.entries[&before], &self.session.entries[name]);
            if entry.kind != EntryKind::Step || entry.call_id != last.call_id {
                break;
            }
            turn.push(before);
        }
        turn
    }

    /// Checks that acknowledged turns are in the log once, completely, and on the path.
    fn check_acknowledged(&self) {
        let attempts = self.history.attempts.borrow();
        for (_, _, calls) in self.questions() {
            for call in calls {
                let Some((_, reply)) = attempts[call].reply() else { continue };
                let said = ids(&reply.messages);
                let is_there = self.place(&said).is_some() || self.is_on_a_branch(&said);
                if !is_there && !self.buried(&said[0]) {
                    let why = "was acknowledged and is not whole on the path";
                    self.problem(&format!("call {call} {why}"));
                }
            }
        }
    }

    /// The position of these consecutive messages on the path. A call that is stored by steps has several entries.
    fn place(&self, said: &[String]) -> Option<usize> {
        let path = ids(&self.messages_of_path());
        path.windows(said.len()).position(|it| it == said)
    }

    /// The position of an acknowledged call on the path; none if its entries are on another branch. Its messages alone
    /// do not tell this: if a call is stopped before the model answers, its whole turn is messages of the user, and a resend
    /// of them has the same messages on another branch. An entry of an earlier call with its callId, which failed, does not
    /// tell it either, and a call that joined another is in the entry of that call: the first with its messages.
    fn place_of(&self, call: &Attempt) -> Option<usize> {
        let (_, reply) = call.reply()?;
        let said = ids(&reply.messages);
        let has_some = |entry: &Entry| entry.messages.iter().any(|it| said.contains(&it.id));
        let ours = self.session.entries.iter().filter(|(_, entry)| has_some(entry));
        let mut own: Vec<_> =
            ours.clone().filter(|(_, entry)| entry.call_id == call.call_id).collect();
        if own.is_empty() {
            own.extend(ours.clone().next());
        }
        let is_left = own.iter().all(|(name, _)| !self.session.path.contains(name));
        if is_left { None } else { self.place(&said) }
    }

    /// Whether these messages are consecutive on a branch that can be selected.
    fn is_on_a_branch(&self, said: &[String]) -> bool {
        let mut others = self.session.others.iter().filter(|_| self.moved(u64::MAX));
        others.any(|path| ids(&self.messages_of(path)).windows(said.len()).any(|it| it == said))
    }

    /// Whether one entry comes before the other.
    fn are_of_one_path(&self, one: &str, other: &str) -> bool {
        self.is_before(one, other) || self.is_before(other, one)
    }

    /// Whether an entry is the other one or comes before it.
    fn is_before(&self, one: &str, other: &str) -> bool {
        let mut name = Some(other.to_owned());
        while let Some(next) = name {
            if next == one {
                return true;
            }
            name = self.session.entries[&next].parent.as_ref().map(EntryRef::to_string);
        }
        false
    }

    /// Whether the session may have switched to another place in its log before a moment.
    fn moved(&self, to: u64) -> bool {
        let moves = self.history.moves.borrow();
        moves.iter().any(|(slot, begun)| *slot == self.slot && *begun < to)
    }

    /// Whether the conversation may have been removed from the model's context before a moment. A change whose end is
    /// unknown may happen at any time after its start.
    fn cleared(&self, to: u64) -> bool {
        let clears = self.history.clears.borrow();
        self.moved(to) || clears.iter().any(|it| it.slot == self.slot && it.begun < to)
    }

    /// Whether the model may have got less than the whole conversation by then.
    fn shortened(&self, to: u64) -> bool {
        self.history.compacts.get() || self.history.overflowed.get() || self.cleared(to)
    }

    /// Checks that the model's context, with every summary expanded, is the path. If it was cleared or replaced by hand, some
    /// messages may be missing. So no summary covers messages that another summary has replaced or that are in the context.
    fn check_view(&self) {
        let Some(head) = &self.session.head else { return };
        let shown = self.spelled_out(&head.view);
        let mut path = ids(&self.messages_of_path());
        let left_out = self.may_be_left_out();
        path.retain(|id| !left_out.contains(&**id) || shown.contains(id));
        let mut rest = path.iter();
        let is_in_order = shown.iter().all(|id| rest.any(|other| other == id));
        let is_all = shown.len() == path.len();
        if !is_in_order || !(is_all || self.cleared(u64::MAX)) {
            self.problem(&format!("the view expands to {shown:?}, but the path is {path:?}"));
        }
        let is_summary = |piece: &&ViewPiece| matches!(piece, ViewPiece::Summary { .. });
        if head.view.iter().skip(1).any(|it| is_summary(&it)) {
            self.problem("a summary stands within the view");
        }
    }

    fn spelled_out(&self, view: &[ViewPiece]) -> Vec<String> {
        let mut shown = Vec::new();
        for piece in view {
            let (from, to) = match piece {
                ViewPiece::Summary { summary } => {
                    let entry = &self.session.entries[&summary.to_string()];
                    let replaced = self.spelled_out(&entry.replaced);
                    // The summary was made from exactly the messages that it replaces.
                    let metadata = entry.messages[0].metadata.as_ref().unwrap();
                    if metadata["replaces"]["messages"] != replaced.len() {
                        self.problem(&format!("{summary} says {metadata:?} of {replaced:?}"));
                    }
                    shown.extend(replaced);
                    continue;
                }
                ViewPiece::Span { from, to } => (from, to),
            };
            let place = |(entry, index): &(EntryRef, usize)| (entry.seq, *index);
            for name in &self.session.path {
                let entry = &self.session.entries[name];
                let seq: u64 = name.split('.').next().unwrap().parse().unwrap();
                for (index, message) in entry.messages.iter().enumerate() {
                    let is_within = (place(from)..place(to)).contains(&(seq, index));
                    if is_within && entry.kind != EntryKind::Summary {
                        shown.push(message.id.clone());
                    }
                }
            }
        }
        shown
    }

    /// Checks that appended messages are stored once.
    fn check_notes(&self) {
        for clear in
            self.history.clears.borrow().iter().filter(|it| it.slot == self.slot && it.done)
        {
            let places = self.entries_with(&clear.text).len();
            if places != 1 && !self.buried(&format!("\"{}\"", clear.text)) {
                self.problem(&format!("{} is in the log {places} times", clear.text));
            }
        }

        for note in self.history.notes.borrow().iter().filter(|it| it.slot == self.slot) {
            let places = self.entries_with(&note.text);
            let lost = places.is_empty() && !self.buried(&format!("\"{}\"", note.text));
            if places.len() > 1 || (note.done && lost) {
                self.problem(&format!("{} is in the log {} times", note.text, places.len()));
            }
        }
    }

    /// Checks that a turn that was acknowledged before another call started comes before it.
    fn check_order(&self) {
        let attempts = self.history.attempts.borrow();
        let ended = self.questions().into_iter().filter_map(|(number, _, calls)| {
            let calls: Vec<_> = calls.into_iter().map(|call| &attempts[call]).collect();
            let told = calls.iter().find(|call| call.reply().is_some())?;
            Some((number, calls[0].begun, told.reply()?.0, self.place_of(told)?))
        });
        let ended: Vec<_> = ended.collect();
        for (before, _, told, first) in &ended {
            for (after, begun, _, second) in &ended {
                if told < begun && first >= second {
                    self.problem(&format!("question {after} stands before question {before}"));
                }
            }
        }
    }

    /// Checks that a repeated callId returns the same outcome without another model request.
    fn check_names(&self) {
        let attempts = self.history.attempts.borrow();
        for (number, _, calls) in self.questions() {
            let mut known: Option<(u64, Vec<String>)> = None;
            let is_from_earlier = self.history.questions.borrow()[number].from.is_some();
            for call in calls.iter().map(|call| &attempts[*call]) {
                if let Some((_, Err(kind))) = &call.ended
                    && matches!(
                        kind,
                        ErrorKind::Internal | ErrorKind::StoreCorrupt | ErrorKind::InputInvalid
                    )
                    // An earlier question may be on another branch now.
                    && !(*kind == ErrorKind::InputInvalid && is_from_earlier)
                {
                    self.problem(&format!("question {number} ended with {kind:?}"));
                }
                let over = call.over.unwrap_or(u64::MAX);
                known = known.filter(|(begun, _)| !self.deleted(*begun, over));
                if known.is_some() && !call.requests.is_empty() {
                    self.problem(&format!(
                        "question {number} was answered, and its repetition asks the model again"
                    ));
                }
                let Some((_, reply)) = call.reply() else { continue };
                let said = ids(&reply.messages);
                match &known {
                    Some((_, before)) if *before != said => {
                        self.problem(&format!("question {number} has two different answers"));
                    }
                    // A deletion after the commit counts, also if the caller gets the answer after it.
                    _ => known = Some((call.begun, said)),
                }
            }
        }
    }

    /// The entries of the turns that a provider has rejected for their content, by the name of the entry with the outcome.
    fn rejected_turns<'s>(&'s self) -> Vec<(&'s String, Vec<&'s Entry>)> {
        let codes = ErrorKind::ALL.iter().filter(|kind| kind.is_for_content());
        let codes: Vec<_> = codes.map(|kind| Some(kind.code())).collect();
        let ends = self.session.entries.iter().filter(|(_, entry)| {
            codes.contains(&entry.outcome.as_ref().and_then(|outcome| outcome.code.as_deref()))
        });
        let ends: Vec<_> = ends.collect();
        let rejected: HashSet<_> = ends.iter().map(|(_, end)| &end.call_id).collect();
        let turn = |(name, end): &(&'s String, &'s Entry)| {
            let (mut names, mut before) = (self.turn_of(name), Some((*name).clone()));
            let own = self.question_of(end).filter(|own| self.is_said_before(name, own));
            // The question of another rejected call does not belong to this turn, nor one that has joined a repeated call.
            let asks = |it: &String| {
                let entry = &self.session.entries[it];
                let is_other = entry.call_id != end.call_id && rejected.contains(&entry.call_id);
                let is_own = |it: &Message| own.as_ref().is_none_or(|own| says(it, own));
                !is_other && entry.messages.iter().any(|it| it.is_question() && is_own(it))
            };
            // A call that is repeated with its callId has its question in an earlier entry.
            while !names.iter().any(asks)
                && let Some(earlier) = before.and_then(|name| self.spoken_before(&name))
            {
                names.push(earlier.clone());
                before = Some(earlier);
            }
            (*name, names.iter().map(|name| &self.session.entries[name]).collect())
        };
        ends.iter().map(turn).collect()
    }

    /// The words with which the caller has asked the question of the call of an entry.
    fn question_of(&self, entry: &Entry) -> Option<String> {
        let attempts = self.history.attempts.borrow();
        let call = attempts.iter().find(|attempt| attempt.call_id == entry.call_id)?;
        let question = &self.history.questions.borrow()[call.question];
        let is_said = question.open.is_empty() && question.resends != Some(Resend::Same);
        is_said.then(|| question.text.clone())
    }

    /// Whether an entry, or one before it on its path, says this.
    fn is_said_before(&self, name: &str, text: &str) -> bool {
        self.entries_with(text).iter().any(|other| self.is_before(other, name))
    }

    /// The messages of rejected turns, which later requests may leave out.
    fn may_be_left_out(&self) -> HashSet<&str> {
        let turns = self.rejected_turns().into_iter().flat_map(|(_, turn)| turn);
        turns.flat_map(|entry| &entry.messages).map(|message| &*message.id).collect()
    }

    /// Checks that a question that was rejected for its content is not in later requests on the same path, unless it was
    /// answered later. A path that a resend, a switch or a copy has taken from before the rejection does not know of it.
    fn check_rejected(&self) {
        let attempts = self.history.attempts.borrow();
        let rejected = self.rejected_turns();
        let entry_of = |name: &str| &self.session.entries[name];
        let is_answered = |id: &str| {
            let mut entries = self.session.entries.values();
            entries.any(|entry| {
                // The question of an earlier call, which ended in an approval, is answered by that call.
                let is_rejected = |(end, turn): &(&String, Vec<&Entry>)| {
                    let is_own = entry.call_id == entry_of(end).call_id;
                    is_own && turn.iter().any(|it| it.id == entry.id)
                };
                !rejected.iter().any(is_rejected) && entry.messages.iter().any(|it| it.id == id)
            })
        };
        for (name, turn) in &rejected {
            let end = entry_of(name);
            let own = turn.iter().filter(|entry| entry.call_id == end.call_id);
            let asked = own.flat_map(|entry| &entry.messages).filter(|it| it.is_question());
            let asked: Vec<_> = asked.filter(|it| !is_answered(&it.id)).collect();
            let ended = attempts.iter().find_map(|attempt| {
                let (told, ended) = attempt.ended.as_ref()?;
                // After a deletion, a question that was rejected before is asked anew with the same callId. Its messages
                // have new ids. The rejection of the deleted turn says nothing about them.
                // If the question of another call stands behind it, the rejected request asked that one. This happens when a
                // call is repeated with its callId after another call.
                let is_asked = |shown: &Vec<String>| {
                    let last = shown.iter().rposition(|id| asked.iter().any(|it| it.id == *id));
                    last.is_some_and(|last| !self.asks_another(&shown[last + 1..], &end.call_id))
                };
                let is_it = attempt.call_id == end.call_id
                    && ended.as_ref().is_err_and(|kind| kind.is_for_content())
                    && attempt.requests.iter().any(is_asked);
                is_it.then_some(*told)
            });
            for call in attempts.iter().filter(|call| ended.is_some_and(|ended| call.begun > ended))
            {
                let question = &self.history.questions.borrow()[call.question];
                // In a copy that was made before the end of the turn, the question is not rejected.
                let is_later = question.resends.is_none()
                    && question.slot == self.slot
                    && self.entries_of(&call.call_id).any(|it| self.is_before(name, it));
                let Some(shown) = call.requests.first().filter(|_| is_later) else {
                    continue;
                };
                if let Some(again) = asked.iter().find(|it| shown.contains(&it.id)) {
                    self.problem(&format!(
                        "a later request contains the rejected question {}",
                        again.text()
                    ));
                }
            }
        }
    }

    /// Whether one of these messages is a question of another call.
    fn asks_another(&self, shown: &[String], call_id: &str) -> bool {
        let others = self.session.entries.values().filter(|entry| entry.call_id != call_id);
        let mut said = others.flat_map(|entry| &entry.messages);
        said.any(|it| it.is_question() && shown.contains(&it.id))
    }

    /// The names of the entries of a call.
    fn entries_of(&self, call_id: &str) -> impl Iterator<Item = &String> {
        let entries = self.session.entries.iter();
        entries.filter(move |(_, entry)| entry.call_id == call_id).map(|(name, _)| name)
    }

    /// Checks that requests start like the path, and contain all turns that were acknowledged before.
    fn check_requests(&self) {
        let attempts = self.history.attempts.borrow();
        let ours: Vec<_> = self.questions().into_iter().flat_map(|(_, _, calls)| calls).collect();
        let left_out = self.may_be_left_out();
        for later in &ours {
            let call = &attempts[*later];
            let Some(shown) = call.requests.first() else { continue };
            for earlier in &ours {
                let Some((told, reply)) = attempts[*earlier].reply() else { continue };
                let over = call.over.unwrap_or(u64::MAX);
                let is_gone = self.deleted(attempts[*earlier].begun, over) || self.shortened(over);
                if told >= call.begun || is_gone {
                    continue;
                }
                if !ids(&reply.messages)
                    .iter()
                    .all(|id| shown.contains(id) || left_out.contains(&**id))
                {
                    self.problem(&format!(
                        "the request of call {later} does not contain call {earlier}"
                    ));
                }
            }
            let Some((_, reply)) = call.reply() else { continue };
            let said = ids(&reply.messages);
            // Text of a deleted session is not expected in the next one, which may have the question again through
            // another call that had started on the first session and was cut off there.
            let is_deleted = self.place(&said).is_none() && self.deleted(call.begun, u64::MAX);
            // A resend on another branch may have the same question as the path, behind other results of its tool calls.
            if is_deleted || (self.place_of(call).is_none() && self.is_on_a_branch(&said)) {
                continue;
            }
            let before: Vec<_> = shown.iter().filter(|id| !said.contains(id)).cloned().collect();
            let mut path = ids(&self.messages_of_path());
            path.retain(|id| !left_out.contains(&**id) || shown.contains(id) || said.contains(id));
            let Some(end) = path.iter().position(|id| *id == said[0]) else { continue };
            // After clearContext the request starts somewhere on the path, and its messages are consecutive there.
            let begin = path.iter().position(|id| Some(id) == before.first()).unwrap_or(0);
            let is_run = path[begin..end.max(begin)].starts_with(&before);
            if !is_run || (begin > 0 && !self.shortened(call.over.unwrap_or(u64::MAX))) {
                self.problem(&format!(
                    "the request of call {later} has messages that are not on the path"
                ));
            }
        }
    }

    /// Checks that inputs accepted before a deletion are gone after it.
    fn check_deletions(&self) {
        let attempts = self.history.attempts.borrow();
        let deletions = self.history.deletions.borrow();
        for deletion in deletions.iter().filter(|it| it.done && it.slot == self.slot) {
            for (number, text, calls) in self.questions() {
                let old = |call: &usize| {
                    let call = &attempts[*call];
                    let moment = call.accepted.into_iter().chain(call.over).min();
                    moment.is_some_and(|it| it < deletion.begun)
                };
                if calls.iter().all(old) && !self.entries_with(&text).is_empty() {
                    self.problem(&format!("question {number} is in the log after its deletion"));
                }
            }
        }
    }

    /// Checks that reads contain all turns that were acknowledged before, each message once.
    fn check_readings(&self) {
        let attempts = self.history.attempts.borrow();
        let readings = self.history.readings.borrow();
        for reading in readings.iter().filter(|it| it.slot == self.slot) {
            for (number, _, calls) in self.questions() {
                let mut replies =
                    calls.iter().filter_map(|it| Some((&attempts[*it], attempts[*it].reply()?)));
                let Some((call, (told, reply))) = replies.next() else { continue };
                let said = ids(&reply.messages);
                let seen = reading.ids.windows(said.len()).filter(|it| *it == said).count();
                if self.moved(reading.ended) {
                    if seen > 1 {
                        self.problem(&format!("a reader sees question {number} {seen} times"));
                    }
                    continue;
                }
                let deleted = self.deleted(call.begun, reading.ended)
                    || (!reading.of_log && self.shortened(reading.ended));
                if told < reading.begun && !deleted && seen != 1 {
                    self.problem(&format!("a reader sees question {number} {seen} times"));
                }
            }
        }
    }

    /// Checks that readers see every input from the moment of its acceptance, while its call runs and after it died.
    fn check_visible(&self) {
        let attempts = self.history.attempts.borrow();
        let readings = self.history.readings.borrow();
        for (number, text, calls) in self.questions() {
            let question = &self.history.questions.borrow()[number];
            if question.resends.is_some() || !question.open.is_empty() {
                continue;
            }
            for reading in readings.iter().filter(|it| it.slot == self.slot) {
                let Some(texts) = &reading.texts else { continue };
                let is_accepted = |call: &&usize| {
                    let call = &attempts[**call];
                    call.accepted.is_some_and(|it| it < reading.begun)
                        && !self.deleted(call.begun, reading.ended)
                };
                let is_due = calls.iter().any(|call| is_accepted(&call));
                if is_due && !self.moved(reading.ended) && !texts.contains(&text) {
                    self.problem(&format!("question {number} is accepted, and no reader sees it"));
                }
            }
        }
    }

    /// Checks that what was stored of an answer comes into the log and leaves nothing else behind, and that an answer which the
    /// log is said to keep is there.
    fn check_pieces(&self) {
        if !self.session.pieces.is_empty() {
            self.problem(&format!("parts of answers are left: {:?}", self.session.pieces));
        }
        let entries = self.session.entries.values();
        let log: Vec<String> = entries.flat_map(|it| &it.messages).map(|it| it.text()).collect();
        for (key, words, _) in self.server.pieces.borrow().iter() {
            // A piece may come between the moment at which the pieces of a dead call are read and the moment at which its
            // input is logged. Then it is removed.
            let is_known = self.server.known.borrow().contains(key);
            let is_there = !is_known || log.iter().any(|text| text.contains(words));
            if key.starts_with(&self.prefix) && !is_there && !self.buried(words) {
                self.problem(&format!("{words:?} was stored as a part of an answer and is lost"));
            }
        }
        let attempts = self.history.attempts.borrow();
        for (_, _, calls) in self.questions() {
            for call in calls {
                let Some(kept) = &attempts[call].kept else { continue };
                if !log.contains(kept) && !self.deleted(attempts[call].begun, u64::MAX) {
                    self.problem(&format!(
                        "the log does not keep the answer {kept:?} of call {call}"
                    ));
                }
            }
        }
    }
}
