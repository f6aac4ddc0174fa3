//! What callers saw: every call with its events and its end, every deletion, every read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use lockgate::engine::Ended;
use lockgate::error::{Error, ErrorKind};
use lockgate::event::{AskKind, Event, Reply, Stamped};
use lockgate::message::{Block, Message, Role};
use lockgate::port::Request;
use lockgate::slot::Slot;
use lockgate::store::keys::SlotKeys;
use serde_json::{Value, json};

use crate::providers::refused;
use crate::store::Server;

/// The agent's name on every node.
pub const AGENT: &str = "simulated";

/// One call on one node. A question that is repeated with its callId is another call.
pub struct Attempt {
    pub question: usize,
    pub node: u64,
    pub call_id: String,
    /// Whether it joins a running call (overlap "steer").
    pub joins: bool,
    pub begun: u64,
    pub accepted: Option<u64>,
    pub events: Vec<Stamped>,
    /// The messages that the model got, by request.
    pub requests: Vec<Vec<String>>,
    /// When and how it ended; a call that died with its node has no end.
    pub ended: Option<(u64, Result<Rc<Reply>, ErrorKind>)>,
    /// When its end was observed.
    pub over: Option<u64>,
    /// The answer of a call that another has overtaken, if the error says that the log keeps it.
    pub kept: Option<String>,
}

impl Attempt {
    /// Whether it ended with another call, as part of it.
    pub fn has_joined(&self) -> bool {
        let asked = |it: &Stamped| matches!(it.event, Event::ModelStart { .. });
        self.accepted.is_some() && self.reply().is_some() && !self.events.iter().any(asked)
    }

    /// The reply, if it is stored.
    pub fn reply(&self) -> Option<(u64, &Rc<Reply>)> {
        let (tick, ended) = self.ended.as_ref()?;
        ended.as_ref().ok().filter(|reply| !reply.messages.is_empty()).map(|reply| (*tick, reply))
    }
}

/// A question of a client. Each question has unique text.
pub struct Question {
    pub slot: Slot,
    pub text: String,
    pub name: Option<String>,
    /// The tool calls that it answers, if it is an answer and not a question.
    pub open: Vec<String>,
    /// Whether it approves them, instead of giving their results.
    pub approves: bool,
    /// Whether it is a resend: of the last question, or with another question in its place.
    pub resends: Option<Resend>,
    /// The id of the earlier question that a resend answers again.
    pub from: Option<String>,
}

/// The two forms of a resend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// With the same question.
    Same,
    /// With another question.
    Edited,
}

impl Question {
    pub fn answers(&self) -> Vec<Value> {
        let answer = |id: &String| match self.approves {
            true => json!({ "toolCallId": id, "approve": true }),
            false => json!({ "toolCallId": id, "output": self.text }),
        };
        self.open.iter().map(answer).collect()
    }
}

pub struct Deletion {
    pub slot: Slot,
    pub begun: u64,
    pub done: bool,
}

/// Something put into a session by hand.
pub struct Note {
    pub slot: Slot,
    pub text: String,
    pub done: bool,
}

/// The result of reading a session's messages.
pub struct Reading {
    pub slot: Slot,
    pub begun: u64,
    pub ended: u64,
    pub ids: Vec<String>,
    /// Whether the log was read, and not the context of the model.
    pub of_log: bool,
    /// All texts of the log and its branches, if all were read.
    pub texts: Option<Vec<String>>,
}

/// A change that removes the conversation from the model's context, and the text that replaces it.
pub struct Clear {
    pub slot: Slot,
    pub begun: u64,
    pub text: String,
    pub done: bool,
}

#[derive(Default)]
pub struct History {
    pub attempts: RefCell<Vec<Attempt>>,
    pub questions: RefCell<Vec<Question>>,
    pub deletions: RefCell<Vec<Deletion>>,
    pub readings: RefCell<Vec<Reading>>,
    pub notes: RefCell<Vec<Note>>,
    pub clears: RefCell<Vec<Clear>>,
    /// Copies of sessions: the copy, the original, and whether it is complete.
    pub copies: RefCell<Vec<(Slot, Slot, bool)>>,
    /// When a session may first have switched to another place in its log.
    pub moves: RefCell<Vec<(Slot, u64)>>,
    pub problems: RefCell<Vec<String>>,
    /// Whether summaries replace older messages.
    pub compacts: Cell<bool>,
    /// Whether a conversation was too long for the model, so that it was compacted at once.
    pub overflowed: Cell<bool>,
    effects: RefCell<BTreeMap<String, u32>>,
    /// The owner of each text: a word for its kind, and a unique number.
    owners: RefCell<HashMap<String, Slot>>,
    server: RefCell<Option<Rc<Server>>>,
}

impl History {
    pub fn new(server: &Rc<Server>) -> Rc<History> {
        let history = History::default();
        *history.server.borrow_mut() = Some(Rc::clone(server));
        Rc::new(history)
    }

    pub fn problem(&self, problem: String) {
        self.problems.borrow_mut().push(problem);
    }

    pub fn tick(&self) -> u64 {
        self.server.borrow().as_ref().unwrap().world.tick()
    }

    /// Text that is unique to this session.
    pub fn words(&self, what: &str, slot: &Slot) -> String {
        let words = format!("{what} {}", self.tick());
        self.owners.borrow_mut().insert(words.clone(), slot.clone());
        words
    }

    /// Checks that these messages have no text of another session.
    pub fn check_words(&self, slot: &Slot, messages: &[Rc<Message>], who: &str) {
        let owners = self.owners.borrow();
        for message in messages {
            let text = message.text();
            let words = text.split_inclusive(' ').take(2).collect::<String>();
            let words = words.split('.').next().unwrap_or_default().trim_end();
            let is_copied = |owner: &Slot| {
                let copies = self.copies.borrow();
                copies.iter().any(|(copy, original, _)| copy == slot && original == owner)
            };
            if owners.get(words).is_some_and(|owner| owner != slot && !is_copied(owner)) {
                self.problem(format!("{who} {words:?} of another session in {slot}"));
            }
        }
    }

    /// A new question; its number.
    pub fn question(&self, slot: &Slot, named: bool) -> usize {
        let owners = &self.owners;
        let mut questions = self.questions.borrow_mut();
        let number = questions.len();
        let (text, name) = (format!("question {number}"), named.then(|| format!("name-{number}")));
        owners.borrow_mut().insert(text.clone(), slot.clone());
        let (slot, open) = (slot.clone(), Vec::new());
        let (approves, resends, from) = (false, None, None);
        questions.push(Question { slot, text, name, open, approves, resends, from });
        number
    }

    /// Records a resend of the last question. Returns its number.
    pub fn resend(&self, slot: &Slot, named: bool, how: Resend) -> usize {
        self.moves(slot);
        let number = self.question(slot, named);
        self.questions.borrow_mut()[number].resends = Some(how);
        number
    }

    /// The ids of the questions of a session that were answered, in the order of the calls.
    pub fn answered(&self, slot: &Slot) -> Vec<String> {
        let (questions, attempts) = (self.questions.borrow(), self.attempts.borrow());
        let ours = attempts.iter().filter(|it| questions[it.question].slot == *slot);
        let replies = ours.filter_map(|it| it.reply());
        let asked =
            replies.flat_map(|(_, reply)| reply.messages.iter().filter(|it| it.is_question()));
        asked.map(|message| message.id.clone()).collect()
    }

    /// Records that the session may switch to another place in its log from now on.
    pub fn moves(&self, slot: &Slot) {
        self.moves.borrow_mut().push((slot.clone(), self.tick()));
    }

    /// Records answers to open tool calls. Returns their number among the questions.
    pub fn answers(&self, slot: &Slot, named: bool, open: &[String], approves: bool) -> usize {
        let number = self.question(slot, named);
        let question = &mut self.questions.borrow_mut()[number];
        question.text = format!("output {number}");
        question.open = open.to_vec();
        question.approves = approves;
        number
    }

    /// The tool calls of this kind that are still open after the last answer.
    pub fn asks(&self, question: usize, kind: AskKind) -> Vec<String> {
        let attempts = self.attempts.borrow();
        let replies = attempts.iter().filter(|it| it.question == question);
        let reply = replies.filter_map(|it| it.reply()).last();
        let asks = reply.iter().flat_map(|(_, reply)| &reply.asks);
        asks.filter(|ask| ask.kind == kind).map(|ask| ask.tool_call_id.clone()).collect()
    }

    /// Records that the conversation may be removed from the model's context from now on.
    pub fn clear(&self, slot: &Slot, text: &str) {
        let (slot, begun, text) = (slot.clone(), self.tick(), text.to_owned());
        self.clears.borrow_mut().push(Clear { slot, begun, text, done: false });
    }

    /// Records that the replacement is stored.
    pub fn changed(&self, number: u64, done: bool) {
        let text = format!("put {number}");
        let mut clears = self.clears.borrow_mut();
        clears.iter_mut().filter(|it| it.text == text).for_each(|it| it.done = done);
    }

    /// Records the start of a call. Its number is the tag that models and tools see.
    pub fn begin(&self, question: usize, node: u64) -> usize {
        let begun = self.tick();
        let mut attempts = self.attempts.borrow_mut();
        attempts.push(Attempt {
            question,
            node,
            call_id: String::new(),
            joins: false,
            begun,
            accepted: None,
            events: Vec::new(),
            requests: Vec::new(),
            ended: None,
            over: None,
            kept: None,
        });
        attempts.len() - 1
    }

    pub fn named(&self, attempt: usize, call_id: &str) {
        self.attempts.borrow_mut()[attempt].call_id = call_id.to_owned();
    }

    pub fn event(&self, attempt: usize, stamped: Stamped) {
        let tick = self.tick();
        let attempt = &mut self.attempts.borrow_mut()[attempt];
        if matches!(stamped.event, Event::Accepted { .. }) {
            attempt.accepted = Some(tick);
        }
        attempt.events.push(stamped);
    }

    pub fn end(&self, attempt: usize, ended: &Ended) {
        let is_kept =
            |error: &Error| error.hint_text().is_some_and(|it| it.contains("side branch"));
        let failed = ended.as_ref().err().filter(|failed| is_kept(&failed.error));
        let kept = failed.and_then(|failed| failed.partial.as_ref()).map(|it| it.text());
        self.attempts.borrow_mut()[attempt].kept = kept.filter(|text| !text.is_empty());
        let ended = ended.as_ref().map(Rc::clone).map_err(|failed| failed.error.kind());
        self.attempts.borrow_mut()[attempt].ended = Some((self.tick(), ended));
    }

    pub fn over(&self, attempt: usize) {
        self.attempts.borrow_mut()[attempt].over = Some(self.tick());
    }

    /// Records a model request.
    pub fn asked(&self, request: Request<'_>) {
        let Request { tag, slot, messages, .. } = request;
        self.check_words(slot, messages, "the model is shown");
        if let Err(why) = refused(request) {
            self.problem(format!("call {tag} sends the model a request that {why}"));
        }
        let attempt = &mut self.attempts.borrow_mut()[tag as usize];
        let is_view =
            |it: &Message| it.metadata.as_ref().is_some_and(|it| it.contains_key("replaces"));
        let said = messages.iter().filter(|it| !is_view(it));
        attempt.requests.push(said.map(|it| it.id.clone()).collect());
        let key = SlotKeys::new(AGENT, slot).input(&attempt.call_id);
        if !self.server.borrow().as_ref().unwrap().inputs.borrow().contains(&key) {
            self.problem(format!("call {tag} asks the model before its input is stored"));
        }
        if let Err(why) = pairs(messages) {
            self.problem(format!("call {tag} shows the model an invalid transcript: {why}"));
        }
    }

    /// Records that a tool has run.
    pub fn did(&self, tool_call_id: &str) {
        let mut effects = self.effects.borrow_mut();
        let times = effects.entry(tool_call_id.to_owned()).or_default();
        *times += 1;
        if *times > 1 {
            self.problem(format!("tool call {tool_call_id} ran {times} times"));
        }
    }

    /// Checks the events of every call.
    pub fn check_events(&self) {
        for (number, attempt) in self.attempts.borrow().iter().enumerate() {
            if let Err(why) = events(attempt) {
                let kinds: Vec<_> = attempt.events.iter().map(|it| kind(&it.event)).collect();
                self.problem(format!("the events of call {number}: {why}: {kinds:?}"));
            }
        }
        self.check_queues();
    }

    /// Checks that calls of one session on one node run one at a time, in the order of arrival.
    fn check_queues(&self) {
        self.each_pair(|(other, earlier), (number, later)| {
            let (Some(a), Some(b)) = (earlier.accepted, later.accepted) else { return };
            if earlier.node == later.node && (a > b || earlier.over.is_none_or(|it| it > b)) {
                self.problem(format!("calls {other} and {number} overlap on one node"));
            }
        });
    }

    /// Checks that calls of one session wait for each other across nodes, unless `is_robbed` says that a lock of the session
    /// was taken from its holder.
    pub fn check_locks(&self, is_robbed: impl Fn(&Slot) -> bool) {
        let questions = self.questions.borrow();
        self.each_pair(|(other, earlier), (number, later)| {
            let (Some(a), Some(b)) = (earlier.accepted, later.accepted) else { return };
            let (first, second) = if a < b { (earlier, b) } else { (later, a) };
            let overlap = first.over.is_none_or(|it| it > second);
            if overlap && !is_robbed(&questions[later.question].slot) {
                self.problem(format!("calls {other} and {number} overlap in spite of the lock"));
            }
        });
    }

    /// All pairs of calls of one session, except calls that join another: these run during the other call and end with it.
    fn each_pair(&self, look: impl Fn((usize, &Attempt), (usize, &Attempt))) {
        let (attempts, questions) = (self.attempts.borrow(), self.questions.borrow());
        let slot = |attempt: &Attempt| &questions[attempt.question].slot;
        for (number, later) in attempts.iter().enumerate().filter(|(_, it)| !it.joins) {
            let before = attempts[..number].iter().enumerate().filter(|(_, it)| !it.joins);
            for (other, earlier) in before.filter(|(_, it)| slot(it) == slot(later)) {
                look((other, earlier), (number, later));
            }
        }
    }
}

fn events(attempt: &Attempt) -> Result<(), String> {
    let is_end = |it: &Event| matches!(it, Event::CallEnd { .. } | Event::Error { .. });
    let mut open: HashSet<(&str, String)> = HashSet::new();
    let mut seen = HashSet::new();
    for (n, stamped) in attempt.events.iter().enumerate() {
        let event = &stamped.event;
        if stamped.seq != n as u64 {
            return Err(format!("event number {} instead of {n}", stamped.seq));
        }
        if (n == 0) != matches!(event, Event::CallStart { .. }) {
            return Err("call-start is not the first, or not the only one".to_owned());
        }
        if is_end(event) && n + 1 != attempt.events.len() {
            return Err("something comes after the end".to_owned());
        }
        let needs = match event {
            Event::ModelStart { .. } => Some("accepted"),
            _ => None,
        };
        if let Some(what) = needs.filter(|what| !seen.contains(what)) {
            return Err(format!("{} before {what}", kind(event)));
        }
        seen.insert(kind(event));
        let (part, starts, ends) = part(event);
        let Some(part) = part else { continue };
        if starts && !open.insert(part.clone()) {
            return Err(format!("{part:?} starts twice"));
        }
        if !open.contains(&part) {
            return Err(format!("{part:?} goes on without a start"));
        }
        if ends {
            open.remove(&part);
        }
    }
    let Some((_, ended)) = &attempt.ended else { return Ok(()) };
    let last = attempt.events.last().map(|it| &it.event);
    match (last, ended) {
        (Some(Event::CallEnd { .. }), Ok(_)) | (Some(Event::Error { .. }), Err(_)) => {}
        _ => return Err("the last event is not the end that was told".to_owned()),
    }
    let is_saved = seen.contains("saved") || attempt.joins;
    if attempt.reply().is_some() && seen.contains("accepted") && !is_saved {
        return Err("it ended well without being saved".to_owned());
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} never end")) }
}

/// The block of a start, delta or end event; whether the event is a start; whether it is an end.
fn part(event: &Event) -> (Option<(&'static str, String)>, bool, bool) {
    let of = |what: &'static str, id: &String| Some((what, id.clone()));
    match event {
        Event::ModelStart { .. } => (Some(("model", String::new())), true, false),
        Event::ModelEnd { .. } => (Some(("model", String::new())), false, true),
        Event::TextStart { id, .. } => (of("text", id), true, false),
        Event::TextDelta { id, .. } => (of("text", id), false, false),
        Event::TextEnd { id } => (of("text", id), false, true),
        Event::ThinkingStart { id, .. } => (of("thinking", id), true, false),
        Event::ThinkingDelta { id, .. } => (of("thinking", id), false, false),
        Event::ThinkingEnd { id } => (of("thinking", id), false, true),
        Event::ToolCallStart { tool_call_id, .. } => (of("tool-call", tool_call_id), true, false),
        Event::ToolCallDelta { tool_call_id, .. } => (of("tool-call", tool_call_id), false, false),
        Event::ToolCallEnd { tool_call_id, .. } => (of("tool-call", tool_call_id), false, true),
        Event::ToolStart { tool_call_id, .. } => (of("tool", tool_call_id), true, false),
        Event::ToolDelta { tool_call_id, .. } | Event::ToolBlock { tool_call_id, .. } => {
            (of("tool", tool_call_id), false, false)
        }
        Event::ToolEnd { tool_call_id, .. } => (of("tool", tool_call_id), false, true),
        _ => (None, false, false),
    }
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::CallStart { .. } => "call-start",
        Event::Queued { .. } => "queued",
        Event::Accepted { .. } => "accepted",
        Event::Saved { .. } => "saved",
        Event::CallEnd { .. } => "call-end",
        Event::Error { .. } => "error",
        Event::Retry { .. } => "retry",
        other => part(other).0.map_or("other", |(what, _)| what),
    }
}

/// Whether a message, or a tool result in it, has exactly this text.
pub fn says(message: &Message, text: &str) -> bool {
    let result = |block: &Block| match block {
        Block::ToolResult(result) => Block::text_of(&result.output) == text,
        _ => false,
    };
    message.text() == text || message.content.iter().any(result)
}

pub fn ids(messages: &[Rc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.id.clone()).collect()
}

/// Checks that every tool call has exactly one result right after it, and that no result has no tool call.
pub fn pairs(messages: &[Rc<Message>]) -> Result<(), String> {
    let mut due: Vec<String> = Vec::new();
    for message in messages {
        if message.role != Role::Tool && !due.is_empty() {
            return Err(format!("{due:?} have no result"));
        }
        for block in &message.content {
            match block {
                Block::ToolUse(call) => due.push(call.id.clone()),
                // Results that were given later come after the results that were available at once.
                Block::ToolResult(result) => match due.iter().position(|id| *id == result.id) {
                    Some(place) => drop(due.remove(place)),
                    None => return Err(format!("{} is no call", result.id)),
                },
                _ => {}
            }
        }
    }
    if due.is_empty() { Ok(()) } else { Err(format!("{due:?} have no result at the end")) }
}
