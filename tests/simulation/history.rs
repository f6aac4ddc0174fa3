//! What was seen: every call with its events and its end, every deletion, every reading.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use lockgate::engine::Ended;
use lockgate::error::ErrorKind;
use lockgate::event::{AskKind, Event, Reply, Stamped};
use lockgate::message::{Block, Message, Role};
use lockgate::port::Request;
use lockgate::slot::Slot;
use lockgate::store::key::SlotKeys;
use serde_json::{Value, json};

use crate::providers::refused;
use crate::store::Server;

/// The agent's name on every node.
pub const AGENT: &str = "simulated";

/// One call on one node. A question that is asked again under its callId is another call.
pub struct Attempt {
    pub question: usize,
    pub node: u64,
    pub call_id: String,
    /// Whether it would join the call that it finds.
    pub joins: bool,
    pub begun: u64,
    pub accepted: Option<u64>,
    pub events: Vec<Stamped>,
    /// What the model was shown, request by request.
    pub requests: Vec<Vec<String>>,
    /// When and how it ended; a call that died with its node has no end.
    pub ended: Option<(u64, Result<Rc<Reply>, ErrorKind>)>,
    /// When it was known to be over.
    pub over: Option<u64>,
}

impl Attempt {
    /// Whether it ended with another call, as part of it.
    pub fn has_joined(&self) -> bool {
        let asked = |it: &Stamped| matches!(it.event, Event::ModelStart { .. });
        self.accepted.is_some() && self.reply().is_some() && !self.events.iter().any(asked)
    }

    /// The reply, if there is one that is stored.
    pub fn reply(&self) -> Option<(u64, &Rc<Reply>)> {
        let (tick, ended) = self.ended.as_ref()?;
        ended.as_ref().ok().filter(|reply| !reply.messages.is_empty()).map(|reply| (*tick, reply))
    }
}

/// A question of a client; it knows the words of each one from all others.
pub struct Question {
    pub slot: Slot,
    pub text: String,
    pub name: Option<String>,
    /// The tool calls that it answers, if it is no question after all.
    pub open: Vec<String>,
    /// Whether it lets them run, and does not hand in their results.
    pub approves: bool,
    /// Whether it is the last question once more, or another in its place.
    pub resends: Option<Resend>,
}

/// How something is asked again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// As it was.
    Same,
    /// In other words.
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

/// A reading of a session's messages.
pub struct Reading {
    pub slot: Slot,
    pub begun: u64,
    pub ended: u64,
    pub ids: Vec<String>,
    /// Whether it is of the log, and not of what the model is shown.
    pub of_log: bool,
}

/// A change that takes the conversation from the model's sight, and what it puts there instead.
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
    /// When a session may first have gone on from another place of its log.
    pub moves: RefCell<Vec<(Slot, u64)>>,
    pub problems: RefCell<Vec<String>>,
    /// Whether older messages give way to summaries.
    pub compacts: Cell<bool>,
    /// Whether a conversation was too long for the model, which makes it shorter at once.
    pub overflowed: Cell<bool>,
    effects: RefCell<BTreeMap<String, u32>>,
    /// Whose words are whose: a word for what they are, and a number that nothing else has.
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

    /// Words that are said in this session, and in no other.
    pub fn words(&self, what: &str, slot: &Slot) -> String {
        let words = format!("{what} {}", self.tick());
        self.owners.borrow_mut().insert(words.clone(), slot.clone());
        words
    }

    /// Nothing of another session is among these messages.
    pub fn check_words(&self, slot: &Slot, messages: &[Rc<Message>], who: &str) {
        let owners = self.owners.borrow();
        for message in messages {
            let text = message.text();
            let words = text.split_inclusive(' ').take(2).collect::<String>();
            let words = words.split('.').next().unwrap_or_default().trim_end();
            if owners.get(words).is_some_and(|owner| owner != slot) {
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
        let (slot, open, resends) = (slot.clone(), Vec::new(), None);
        questions.push(Question { slot, text, name, open, approves: false, resends });
        number
    }

    /// The last question again; its number among the questions.
    pub fn resend(&self, slot: &Slot, named: bool, how: Resend) -> usize {
        self.moves(slot);
        let number = self.question(slot, named);
        self.questions.borrow_mut()[number].resends = Some(how);
        number
    }

    /// The session is about to go on from another place of its log.
    pub fn moves(&self, slot: &Slot) {
        self.moves.borrow_mut().push((slot.clone(), self.tick()));
    }

    /// Answers to open tool calls; their number among the questions.
    pub fn answers(&self, slot: &Slot, named: bool, open: &[String], approves: bool) -> usize {
        let number = self.question(slot, named);
        let question = &mut self.questions.borrow_mut()[number];
        question.text = format!("output {number}");
        question.open = open.to_vec();
        question.approves = approves;
        number
    }

    /// The tool calls of this kind that the last answer to a question left open.
    pub fn asks(&self, question: usize, kind: AskKind) -> Vec<String> {
        let attempts = self.attempts.borrow();
        let replies = attempts.iter().filter(|it| it.question == question);
        let reply = replies.filter_map(|it| it.reply()).last();
        let asks = reply.iter().flat_map(|(_, reply)| &reply.asks);
        asks.filter(|ask| ask.kind == kind).map(|ask| ask.tool_call_id.clone()).collect()
    }

    /// The conversation is about to be taken from the model's sight.
    pub fn clear(&self, slot: &Slot, text: &str) {
        let (slot, begun, text) = (slot.clone(), self.tick(), text.to_owned());
        self.clears.borrow_mut().push(Clear { slot, begun, text, done: false });
    }

    /// What was put instead is stored.
    pub fn changed(&self, number: u64, done: bool) {
        let text = format!("put {number}");
        let mut clears = self.clears.borrow_mut();
        clears.iter_mut().filter(|it| it.text == text).for_each(|it| it.done = done);
    }

    /// A call begins; its number is the tag that models and tools see.
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
        let ended = ended.as_ref().map(Rc::clone).map_err(|failed| failed.error.kind());
        self.attempts.borrow_mut()[attempt].ended = Some((self.tick(), ended));
    }

    pub fn over(&self, attempt: usize) {
        self.attempts.borrow_mut()[attempt].over = Some(self.tick());
    }

    /// The model is asked.
    pub fn asked(&self, request: Request<'_>) {
        let Request { tag, slot, messages, .. } = request;
        self.check_words(slot, messages, "the model is shown");
        if let Err(why) = refused(request) {
            self.problem(format!("call {tag} asks the model what {why}"));
        }
        let attempt = &mut self.attempts.borrow_mut()[tag as usize];
        let said = messages.iter().filter(|it| it.name.as_deref() != Some("summary"));
        attempt.requests.push(said.map(|it| it.id.clone()).collect());
        let key = SlotKeys::new(AGENT, slot).input(&attempt.call_id);
        if !self.server.borrow().as_ref().unwrap().inputs.borrow().contains(&key) {
            self.problem(format!("call {tag} asks the model before its input is stored"));
        }
        if let Err(why) = pairs(messages) {
            self.problem(format!("call {tag} shows the model an invalid transcript: {why}"));
        }
    }

    /// A tool has done what it does.
    pub fn did(&self, tool_call_id: &str) {
        let mut effects = self.effects.borrow_mut();
        let times = effects.entry(tool_call_id.to_owned()).or_default();
        *times += 1;
        if *times > 1 {
            self.problem(format!("tool call {tool_call_id} ran {times} times"));
        }
    }

    /// What every call's own events must be like.
    pub fn check_events(&self) {
        for (number, attempt) in self.attempts.borrow().iter().enumerate() {
            if let Err(why) = events(attempt) {
                let kinds: Vec<_> = attempt.events.iter().map(|it| kind(&it.event)).collect();
                self.problem(format!("the events of call {number}: {why}: {kinds:?}"));
            }
        }
        self.check_queues();
    }

    /// Calls of one session on one node run one at a time, in the order they came.
    fn check_queues(&self) {
        self.each_pair(|(other, earlier), (number, later)| {
            let (Some(a), Some(b)) = (earlier.accepted, later.accepted) else { return };
            if earlier.node == later.node && (a > b || earlier.over.is_none_or(|it| it > b)) {
                self.problem(format!("calls {other} and {number} overlap on one node"));
            }
        });
    }

    /// Calls of one session wait for each other across nodes, too, unless `is_robbed` says that a lock of the session
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

    /// All pairs of calls of one session; those that join another run beside it, and end with it.
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
            return Err(format!("number {} where {n} was due", stamped.seq));
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

/// What a start, a delta or an end belongs to; whether it is the start, whether the end.
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
        Event::ToolDelta { tool_call_id, .. } => (of("tool", tool_call_id), false, false),
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

/// Whether a message says exactly this, also as the result of a tool.
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

/// Every tool call has exactly one result right after it, and no result stands alone.
pub fn pairs(messages: &[Rc<Message>]) -> Result<(), String> {
    let mut due: Vec<String> = Vec::new();
    for message in messages {
        if message.role != Role::Tool && !due.is_empty() {
            return Err(format!("{due:?} have no result"));
        }
        for block in &message.content {
            match block {
                Block::ToolUse(call) => due.push(call.id.clone()),
                // Results that were handed in later stand behind those that were there at once.
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
