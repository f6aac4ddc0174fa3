//! What must hold at the end, whatever happened: the promises of the design, over the records that are left.

use std::collections::HashMap;
use std::rc::Rc;

use lockgate::error::ErrorKind;
use lockgate::message::{Message, Role};
use lockgate::port::Record;
use lockgate::slot::Slot;
use lockgate::store::entry::{Entry, EntryKind, EntryRef};
use lockgate::store::head::Piece;
use lockgate::store::key::SlotKeys;

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

/// Finds what does not hold of these sessions.
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
        self.check_deletions();
        self.check_readings();
    }

    fn problem(&self, problem: &str) {
        self.history.problem(format!("{}: {problem}", self.slot));
    }

    fn messages_of_path(&self) -> Vec<Rc<Message>> {
        self.messages_of(&self.session.path)
    }

    /// What was said in these entries; a summary says nothing new.
    fn messages_of(&self, path: &[String]) -> Vec<Rc<Message>> {
        let entries = path.iter().map(|it| &self.session.entries[it]);
        let spoken = entries.filter(|it| it.kind != EntryKind::Summary);
        spoken.flat_map(|it| it.messages.clone()).collect()
    }

    /// The numbers of this session's questions, and their calls.
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

    /// Whether a deletion took these words away.
    fn buried(&self, words: &str) -> bool {
        let graves = self.server.graves.borrow();
        let ours = graves.iter().filter(|grave| grave.prefix == self.prefix);
        ours.flat_map(|it| &it.values).any(|it| String::from_utf8_lossy(it).contains(words))
    }

    /// The entries that hold a question, by name.
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
                self.problem(&format!("entry {name} hangs nowhere"));
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
            self.problem(&format!("its lines in the list are {lines:?}, not {expected:?}"));
        }
    }

    fn check_messages(&self) {
        let mut seen = HashMap::new();
        for (name, entry) in &self.session.entries {
            for message in &entry.messages {
                let Some(other) = seen.insert(message.id.clone(), name) else { continue };
                // A question that was answered again is one message on every branch, and once on each.
                let is_again = message.role == Role::User && self.moved(u64::MAX);
                if !is_again || self.are_of_one_path(other, name) {
                    let text = message.text();
                    self.problem(&format!("{text:?} is in the log twice: {other} and {name}"));
                }
            }
        }
        let path = self.messages_of_path();
        if let Err(why) = pairs(&path) {
            self.problem(&format!("the path is no valid transcript: {why}"));
        }
        if let Err(why) = refused_after(&self.slot, &path) {
            self.problem(&format!("the path, asked once more, is what {why}"));
        }
        for entry in self.session.entries.values() {
            self.history.check_words(&self.slot, &entry.messages, "the log has");
        }
    }

    /// Accepted inputs are never lost, and said once.
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
            // A yes has no words: what came of it is the result of its tool.
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

    /// Whether a question stands in two places of one path because it is a resend that failed in the first, was tried
    /// again under its name when somebody had gone on from that branch, and took the place of what they had asked there.
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

    /// The entry before another on its path that is no summary.
    fn spoken_before(&self, name: &str) -> Option<String> {
        let entries = &self.session.entries;
        let parent = entries[name].parent.as_ref().map(EntryRef::to_string)?;
        match entries[&parent].kind == EntryKind::Summary {
            true => self.spoken_before(&parent),
            false => Some(parent),
        }
    }

    /// An entry, and the steps of its call before it.
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

    /// Acknowledged turns are in the log: once, whole, and on the path.
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

    /// Where these messages stand on the path, one after the other; a call that is stored in steps has several entries.
    fn place(&self, said: &[String]) -> Option<usize> {
        let path = ids(&self.messages_of_path());
        path.windows(said.len()).position(|it| it == said)
    }

    /// Whether these messages stand one after the other on a branch that can be gone back to.
    fn is_on_a_branch(&self, said: &[String]) -> bool {
        let mut others = self.session.others.iter().filter(|_| self.moved(u64::MAX));
        others.any(|path| ids(&self.messages_of(path)).windows(said.len()).any(|it| it == said))
    }

    /// Whether one entry comes before the other.
    fn are_of_one_path(&self, one: &str, other: &str) -> bool {
        let is_before = |one: &str, other: &str| {
            let mut name = Some(other.to_owned());
            while let Some(next) = name {
                if next == one {
                    return true;
                }
                name = self.session.entries[&next].parent.as_ref().map(EntryRef::to_string);
            }
            false
        };
        is_before(one, other) || is_before(other, one)
    }

    /// Whether the session may have gone on from another place of its log before a moment.
    fn moved(&self, to: u64) -> bool {
        let moves = self.history.moves.borrow();
        moves.iter().any(|(slot, begun)| *slot == self.slot && *begun < to)
    }

    /// Whether the conversation may have been taken from the model's sight before a moment: a change whose end nobody
    /// knows may come at any time after its beginning.
    fn cleared(&self, to: u64) -> bool {
        let clears = self.history.clears.borrow();
        self.moved(to) || clears.iter().any(|it| it.slot == self.slot && it.begun < to)
    }

    /// Whether the model may have been shown less than all by then.
    fn shortened(&self, to: u64) -> bool {
        self.history.compacts.get() || self.history.overflowed.get() || self.cleared(to)
    }

    /// What the model is shown, with every summary spelled out, is the end of the path; all of it, unless it was
    /// cleared. So no summary stands for what another has replaced, or for what stands beside it.
    fn check_view(&self) {
        let Some(head) = &self.session.head else { return };
        let shown = self.spelled_out(&head.view);
        let path = ids(&self.messages_of_path());
        let is_all = shown.len() == path.len();
        if !path.ends_with(&shown) || !(is_all || self.cleared(u64::MAX)) {
            self.problem(&format!("the view spells out {shown:?} of the path {path:?}"));
        }
        let is_summary = |piece: &&Piece| matches!(piece, Piece::Summary { .. });
        if head.view.iter().skip(1).any(|it| is_summary(&it)) {
            self.problem("a summary stands within the view");
        }
    }

    fn spelled_out(&self, view: &[Piece]) -> Vec<String> {
        let mut shown = Vec::new();
        for piece in view {
            let (from, to) = match piece {
                Piece::Summary { summary } => {
                    let entry = &self.session.entries[&summary.to_string()];
                    let replaced = self.spelled_out(&entry.replaced);
                    // It is made of just what it stands for, and not of what came between.
                    let metadata = entry.messages[0].metadata.as_ref().unwrap();
                    if metadata["replaces"]["messages"] != replaced.len() {
                        self.problem(&format!("{summary} says {metadata:?} of {replaced:?}"));
                    }
                    shown.extend(replaced);
                    continue;
                }
                Piece::Span { from, to } => (from, to),
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

    /// What was put into a session by hand is there once.
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

    /// What was acknowledged before another call began comes before it.
    fn check_order(&self) {
        let attempts = self.history.attempts.borrow();
        let place = |call: &Attempt| {
            let said = call.reply().map(|(_, reply)| ids(&reply.messages))?;
            self.place(&said)
        };
        let ended = self.questions().into_iter().filter_map(|(number, _, calls)| {
            let calls: Vec<_> = calls.into_iter().map(|call| &attempts[call]).collect();
            let told = calls.iter().find(|call| call.reply().is_some())?;
            Some((number, calls[0].begun, told.reply()?.0, place(told)?))
        });
        let ended: Vec<_> = ended.collect();
        for (before, _, told, first) in &ended {
            for (after, begun, _, second) in &ended {
                // A question that was stopped at once, and then answered again, stands where it stood.
                let is_same_place = first == second && self.moved(u64::MAX);
                if told < begun && first >= second && !is_same_place {
                    self.problem(&format!("question {after} stands before question {before}"));
                }
            }
        }
    }

    /// The same callId answers the same, and asks the model no second time.
    fn check_names(&self) {
        let attempts = self.history.attempts.borrow();
        for (number, _, calls) in self.questions() {
            let mut known: Option<(u64, Vec<String>)> = None;
            for call in calls.iter().map(|call| &attempts[*call]) {
                if let Some((_, Err(kind))) = &call.ended
                    && matches!(
                        kind,
                        ErrorKind::Internal | ErrorKind::StoreCorrupt | ErrorKind::InputInvalid
                    )
                {
                    self.problem(&format!("question {number} ended with {kind:?}"));
                }
                let over = call.over.unwrap_or(u64::MAX);
                known = known.filter(|(begun, _)| !self.deleted(*begun, over));
                if known.is_some() && !call.requests.is_empty() {
                    self.problem(&format!("question {number} was answered and asks again"));
                }
                let Some((_, reply)) = call.reply() else { continue };
                let said = ids(&reply.messages);
                match &known {
                    Some((_, before)) if *before != said => {
                        self.problem(&format!("question {number} has two different answers"));
                    }
                    // A deletion after the commit counts, also if it comes before the answer is heard.
                    _ => known = Some((call.begun, said)),
                }
            }
        }
    }

    /// What the model was shown begins as the path does, and has all that was acknowledged before.
    fn check_requests(&self) {
        let attempts = self.history.attempts.borrow();
        let ours: Vec<_> = self.questions().into_iter().flat_map(|(_, _, calls)| calls).collect();
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
                if !ids(&reply.messages).iter().all(|id| shown.contains(id)) {
                    self.problem(&format!("call {later} shows the model no call {earlier}"));
                }
            }
            let Some((_, reply)) = call.reply() else { continue };
            let said = ids(&reply.messages);
            // What went with a deleted session is not looked for in the next one, which may have its question again: that of
            // another call, which had come to the first session and was cut off there.
            if self.place(&said).is_none() && self.deleted(call.begun, u64::MAX) {
                continue;
            }
            let before: Vec<_> = shown.iter().filter(|id| !said.contains(id)).cloned().collect();
            let path = ids(&self.messages_of_path());
            let Some(end) = path.iter().position(|id| *id == said[0]) else { continue };
            // After a clearing it begins somewhere on the path; what it holds stands there one after the other.
            let begin = path.iter().position(|id| Some(id) == before.first()).unwrap_or(0);
            let is_run = path[begin..end.max(begin)].starts_with(&before);
            if !is_run || (begin > 0 && !self.shortened(call.over.unwrap_or(u64::MAX))) {
                self.problem(&format!("call {later} shows the model what is not on the path"));
            }
        }
    }

    /// What was accepted before a deletion began is gone after it.
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
                    self.problem(&format!("question {number} was deleted and is back"));
                }
            }
        }
    }

    /// Whoever reads sees what was acknowledged before, each message once.
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
}
