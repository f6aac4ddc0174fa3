//! What an observer of a call sees.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::message::{Block, Message, ResultState, Usage};
use crate::slot::Slot;
use crate::state::{PlanModeContext, Rule, Task};

/// One event of a call. Names are noun-verb, and every start has its end on every path.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "the fields are documented once, in the public types of src/npm/types.ts"
)]
pub enum Event {
    /// The call has its place in the queue.
    CallStart { message_ids: Vec<String> },
    /// Other calls of the session are before it.
    Queued { ahead: usize },
    /// The input is stored.
    Accepted { messages: Vec<Rc<Message>> },
    /// The model is asked.
    ModelStart { iteration: u32, model: String },
    /// The model has answered.
    ModelEnd { iteration: u32, usage: Usage, finish: String },
    /// Words begin.
    TextStart { id: String, message_id: String },
    /// More words.
    TextDelta { id: String, delta: String },
    /// Words end.
    TextEnd { id: String },
    /// A thought begins.
    ThinkingStart { id: String, message_id: String },
    /// More of the thought.
    ThinkingDelta { id: String, delta: String },
    /// The thought ends.
    ThinkingEnd { id: String },
    /// The model begins to ask for a tool.
    ToolCallStart { tool_call_id: String, name: String },
    /// More of the arguments.
    ToolCallDelta { tool_call_id: String, delta: String },
    /// The model has asked for a tool.
    ToolCallEnd { tool_call_id: String, name: String, input: Value },
    /// The tool runs.
    ToolStart { tool_call_id: String, name: String },
    /// The tool shows something while it runs.
    ToolDelta { tool_call_id: String, delta: String },
    /// The tool has ended.
    ToolEnd { tool_call_id: String, name: String, state: ResultState, output: Vec<Block> },
    /// A person is asked.
    Ask { asks: Vec<Ask> },
    /// A person has answered.
    Answered { answers: Vec<Value> },
    /// A summary is being made.
    CompactionStart { messages: usize, tokens: usize },
    /// The summary stands.
    CompactionEnd { report: CompactionReport },
    /// There is no summary; nothing has changed.
    CompactionFailed { code: &'static str, message: String },
    /// A huge result has left the context for a file.
    Evicted { tool_call_id: String, path: String, chars: usize },
    /// The request was too large and has been made to fit.
    OverflowRecovered { before: usize, after: usize },
    /// The agent's list of things to do has changed.
    Tasks { tasks: Vec<Task> },
    /// Planning has begun or ended.
    Plan { plan: PlanModeContext },
    /// An event of a child.
    Subagent { task_id: String, agent: String, event: Box<Stamped> },
    /// The model is asked again.
    Retry { attempt: u32, wait_ms: u64, code: &'static str },
    /// Another model takes over.
    Fallback { model: String },
    /// Something a person should know.
    Warning { code: String, message: String },
    /// The turn is stored.
    Saved { version: u64, bytes: usize },
    /// The call has ended well.
    CallEnd { reply: Rc<Reply> },
    /// The call has failed.
    Error { error: SerializedError },
}

impl Event {
    /// Takes over a delta that goes on where this one ends; `false` if it is no such delta.
    pub fn joins(&mut self, next: &Event) -> bool {
        let (ends, goes_on) = match (self, next) {
            (Event::TextDelta { id, delta }, Event::TextDelta { id: same, delta: next })
            | (
                Event::ThinkingDelta { id, delta },
                Event::ThinkingDelta { id: same, delta: next },
            ) if id == same => (delta, next),
            (
                Event::ToolCallDelta { tool_call_id: id, delta },
                Event::ToolCallDelta { tool_call_id: same, delta: next },
            )
            | (
                Event::ToolDelta { tool_call_id: id, delta },
                Event::ToolDelta { tool_call_id: same, delta: next },
            ) if id == same => (delta, next),
            (
                Event::Subagent { task_id: id, event, .. },
                Event::Subagent { task_id: same, event: next, .. },
            ) if id == same => return event.event.joins(&next.event),
            _ => return false,
        };
        ends.push_str(goes_on);
        true
    }
}

/// An event with its place: which call, which number, when.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stamped {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The session.
    pub slot: Slot,
    /// The call.
    pub call_id: Rc<str>,
    /// Counts a call's events from 0, without gaps.
    pub seq: u64,
    /// RFC 3339 in UTC.
    pub at: String,
}

/// Why a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The model had said all.
    Stop,
    /// A person must answer first.
    Asking,
    /// A result comes from outside.
    Suspended,
    /// Somebody stopped it.
    Interrupted,
    /// The loop was at its limit.
    MaxIterations,
    /// The model ran out of tokens.
    Length,
    /// A hook stopped it.
    Middleware,
    /// The model said nothing.
    Empty,
}

impl Reason {
    /// Every reason.
    pub const ALL: &'static [Reason] = &[
        Reason::Stop,
        Reason::Asking,
        Reason::Suspended,
        Reason::Interrupted,
        Reason::MaxIterations,
        Reason::Length,
        Reason::Middleware,
        Reason::Empty,
    ];
}

/// How a call ended well.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The call.
    pub call_id: Rc<str>,
    /// Why it ended.
    pub reason: Reason,
    /// The answer.
    pub message: Rc<Message>,
    /// The answer's words.
    pub text: String,
    /// All messages of this call, the input included.
    pub messages: Vec<Rc<Message>>,
    /// What it cost.
    pub usage: Usage,
    /// The structured answer, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What waits for a person.
    pub asks: Vec<Ask>,
    /// The session's version after it.
    pub version: u64,
}

/// A question to a person.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Whether a yes or a result is wanted.
    pub kind: AskKind,
    /// The tool call.
    pub tool_call_id: String,
    /// The tool.
    pub name: String,
    /// What it would be given.
    pub input: Value,
    /// Why it asks.
    pub reason: String,
    /// Rules that would answer it for good.
    pub suggested_rules: Vec<Rule>,
}

/// What kind of answer an [`Ask`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// Yes or no.
    Approval,
    /// The result itself.
    Result,
}

/// What a summary did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionReport {
    /// Messages before.
    pub messages_before: usize,
    /// Messages after.
    pub messages_after: usize,
    /// Tokens before.
    pub tokens_before: usize,
    /// Tokens after.
    pub tokens_after: usize,
    /// The summary.
    pub summary: String,
}

/// An error as an event carries it.
#[derive(Clone, Debug, Serialize)]
pub struct SerializedError {
    /// What to branch on.
    pub code: &'static str,
    /// What to read.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What was answered before it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Rc<Message>>,
}

impl SerializedError {
    /// The error, and what was answered before it.
    pub fn new(error: &Error, partial: Option<Rc<Message>>) -> SerializedError {
        SerializedError {
            code: error.kind().code(),
            message: error.message().to_owned(),
            hint: error.hint_text().map(str::to_owned),
            retryable: error.kind().is_retryable(),
            partial,
        }
    }
}
