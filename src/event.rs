//! The events of a call, and the reply or error that ends it.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::message::{Block, Message, ResultState, Usage};
use crate::slot::Slot;
use crate::state::{PlanModeContext, Rule, Task};

/// One event of a call. A longer action has a start and an end event, named `noun-start` and `noun-end`. The start of a block
/// or of a tool is followed by its end, even if the call fails.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "the fields are documented once, in the public types of src/npm/types/event.ts"
)]
pub enum Event {
    /// The call has a place in the queue.
    CallStart { message_ids: Vec<String> },
    /// Other calls of the session run first.
    Queued { ahead: usize },
    /// The input is stored.
    Accepted { messages: Vec<Rc<Message>> },
    /// A request to the model starts.
    ModelStart { iteration: u32, model: String },
    /// The reply of the model is complete.
    ModelEnd { iteration: u32, usage: Usage, finish: String },
    /// A text block starts.
    TextStart { id: String, message_id: String },
    /// More text.
    TextDelta { id: String, delta: String },
    /// The text block ends.
    TextEnd { id: String },
    /// A thinking block starts.
    ThinkingStart { id: String, message_id: String },
    /// More of the thinking block.
    ThinkingDelta { id: String, delta: String },
    /// The thinking block ends.
    ThinkingEnd { id: String },
    /// A tool call starts in the reply of the model.
    ToolCallStart { tool_call_id: String, name: String },
    /// More of the arguments.
    ToolCallDelta { tool_call_id: String, delta: String },
    /// The tool call is complete.
    ToolCallEnd { tool_call_id: String, name: String, input: Value },
    /// The tool starts to run.
    ToolStart { tool_call_id: String, name: String },
    /// The tool reports progress.
    ToolDelta { tool_call_id: String, delta: String },
    /// The tool shows a block, for example an image that is not finished.
    #[serde(rename = "tool-delta")]
    ToolBlock { tool_call_id: String, block: Block },
    /// The tool has ended.
    ToolEnd { tool_call_id: String, name: String, state: ResultState, output: Vec<Block> },
    /// The call needs answers of a person.
    Ask { asks: Vec<Ask> },
    /// A person has answered.
    Answered { answers: Vec<Value> },
    /// The engine starts to make a summary.
    CompactionStart { messages: usize, tokens: usize },
    /// The summary has replaced messages.
    CompactionEnd { report: CompactionReport },
    /// There is no summary. The conversation is unchanged.
    CompactionFailed { code: &'static str, message: String },
    /// The model is shown only both ends of a large tool result. The path is where it can read the rest.
    Evicted { tool_call_id: String, path: String, chars: usize },
    /// The request was too large for the model and was made smaller.
    OverflowRecovered { before: usize, after: usize },
    /// The agent's task list has changed.
    Tasks { tasks: Vec<Task> },
    /// Plan mode was switched on or off.
    Plan { plan: PlanModeContext },
    /// An event of a subagent.
    Subagent { task_id: String, agent: String, event: Box<Stamped> },
    /// The request to the model is retried.
    Retry { attempt: u32, wait_ms: u64, code: &'static str },
    /// The agent switches to another model.
    Fallback { model: String },
    /// A problem that does not stop the call.
    Warning { code: String, message: String },
    /// The turn is stored.
    Saved { version: u64, bytes: usize },
    /// The call has ended without an error.
    CallEnd { reply: Rc<Reply> },
    /// The call has failed.
    Error { error: SerializedError },
}

impl Event {
    /// Appends `next` to this event if both are deltas of the same block. Returns `false` if they are not.
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

/// An event with its call, its number and its time.
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
    /// The number of the event in its call. It starts at 0 and has no gaps.
    pub seq: u64,
    /// RFC 3339 in UTC.
    pub at: String,
}

/// Why a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The reply of the model was complete.
    Stop,
    /// A person must answer first.
    Asking,
    /// The result of a tool call comes later, from outside.
    Suspended,
    /// The call was stopped.
    Interrupted,
    /// The limit of model requests was reached.
    MaxIterations,
    /// The model reached its token limit.
    Length,
    /// A hook stopped it.
    Middleware,
    /// The model replied without text.
    Empty,
}

impl Reason {
    /// All reasons.
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

/// The result of a call that ended without an error.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The call.
    pub call_id: Rc<str>,
    /// Why it ended.
    pub reason: Reason,
    /// The reply of the model.
    pub message: Rc<Message>,
    /// The text of the reply.
    pub text: String,
    /// All messages of this call, the input included.
    pub messages: Vec<Rc<Message>>,
    /// The tokens and the time that the call used.
    pub usage: Usage,
    /// The structured output, if the caller asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The questions that a person must answer.
    pub asks: Vec<Ask>,
    /// The version of the session after the call.
    pub version: u64,
}

/// A question to a person.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Whether an approval or a result is needed.
    pub kind: AskKind,
    /// The tool call.
    pub tool_call_id: String,
    /// The tool.
    pub name: String,
    /// The input of the tool call.
    pub input: Value,
    /// The reason for the question.
    pub reason: String,
    /// Rules that would answer such questions from now on.
    pub suggested_rules: Vec<Rule>,
}

/// The kind of answer that an [`Ask`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// An approval: yes or no.
    Approval,
    /// The result of the tool call.
    Result,
}

/// What a compaction did.
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

/// An error in the form that events carry.
#[derive(Clone, Debug, Serialize)]
pub struct SerializedError {
    /// The error code.
    pub code: &'static str,
    /// The message for people.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The part of the reply that had arrived before the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Rc<Message>>,
}

impl SerializedError {
    /// Serializes an error, with the part of the reply that had arrived before it.
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
