//! The run decides what a turn does next. It never waits.
//!
//! A turn is a conversation between a model and its tools. If the reply of the model contains tool calls, the tools
//! run and the model gets one result per tool call, in the order of the tool calls. A reply without tool calls ends
//! the call. The driver in `engine/` does what [`Run::next`] returns and reports the outcome. The run then appends the
//! messages that follow and decides the next step:
//!
//! ```text
//! Run::new ──► CallModel ──replied──► text only ───────────► Done
//!                 ▲                     └─ tool calls ─────► CallTools ─┐
//!                 └───────── every result is in (tool_returned) ◄───────┘
//! ```
//!
//! A tool call can also be *suspended* (its result comes later, from outside), or a person is *asked* first. Then the
//! call ends with that tool call still open, and [`open`] decides what a later input does to it. Every other tool call
//! that the run has appended has exactly one result right after its reply, also when the call is stopped, fails or
//! reaches its limit ([`Run::interrupted`], [`Run::failed`]). Messages leave the run as drafts: the driver adds ids and
//! times.

pub mod open;
mod reply;

pub use reply::{Assembly, ModelReply};

use crate::event::Reason;
use crate::message::{Block, Finish, Message, Note, ResultState, Role, ToolResult, ToolUse};
use crate::seams;

/// How often the model is asked again after a reply without text.
const BLANK_ANSWERS: u32 = 2;

const BLANK_NOTE: &str = "Your last answer had no visible text. Please answer the user in words.";
const CUT_CALL: &str = "This call was not run: the answer that asked for it was cut off at the token limit. \
                        Ask again with shorter arguments.";
const LIMIT_CALL: &str = "This call was not run: the limit of steps for this turn is reached.";
/// The result of a tool call that was stopped.
pub const STOPPED_CALL: &str =
    "This call was stopped before it had a result. It may have run in part.";

/// What the driver does next. The driver must handle every case.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send a request to the model.
    CallModel(Asking),
    /// Run these tools and report each result.
    CallTools(Vec<ToolUse>),
    /// Commit, and end the call for this reason.
    Done(Reason),
}

/// The kind of a model request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// With the tools.
    WithTools,
    /// For a final reply in text, because the limit is reached.
    ToClose,
}

/// The decisions of one call.
#[derive(Debug)]
pub struct Run {
    limit: u32,
    max_tool_calls: usize,
    iteration: u32,
    blanks: u32,
    stage: Stage,
    /// Why the run ends after the current tools, if other tool calls stay open.
    leaves: Option<Reason>,
    out: Vec<Message>,
}

#[derive(Debug)]
enum Stage {
    Model,
    Tools(Vec<(ToolUse, Option<Settled>)>),
    Done(Reason),
}

/// How a tool call ended for this run.
#[derive(Debug)]
enum Settled {
    Result(ToolResult),
    /// The result comes later, from outside.
    Suspended,
}

impl Run {
    /// A run with at most `limit` model requests before the final one.
    pub fn new(limit: u32) -> Run {
        Run {
            limit: limit.max(1),
            max_tool_calls: usize::MAX,
            iteration: 0,
            blanks: 0,
            stage: Stage::Model,
            leaves: None,
            out: Vec::new(),
        }
    }

    /// A run that starts with tool calls of an earlier run. If `leaves` is set, other tool calls stay open, and the run
    /// ends for this reason after its own.
    pub fn with_calls(limit: u32, calls: Vec<ToolUse>, leaves: Option<Reason>) -> Run {
        let stage = Stage::Tools(calls.into_iter().map(|call| (call, None)).collect());
        let mut run = Run { stage, leaves, ..Run::new(limit) };
        run.settle(Stage::Model);
        run
    }

    /// The same, with at most this many tool calls in one reply. Those beyond get a result that says so.
    pub fn with_max_tool_calls(self, max_tool_calls: usize) -> Run {
        Run { max_tool_calls, ..self }
    }

    /// The next step. A second call without a report in between returns the same step.
    pub fn next(&self) -> Step {
        match &self.stage {
            Stage::Model if self.iteration < self.limit => Step::CallModel(Asking::WithTools),
            Stage::Model => Step::CallModel(Asking::ToClose),
            Stage::Tools(open) => {
                let unanswered = open.iter().filter(|(_, result)| result.is_none());
                Step::CallTools(unanswered.map(|(call, _)| call.clone()).collect())
            }
            Stage::Done(reason) => Step::Done(*reason),
        }
    }

    /// How many replies the model has sent.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Takes the messages that were appended since the last call of this method. Messages made by the run are drafts.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.out)
    }

    /// Reports a reply of the model.
    pub fn replied(&mut self, reply: ModelReply) {
        let closing = self.iteration >= self.limit;
        self.iteration += 1;
        let ModelReply { message, finish, unreadable } = reply;
        let calls: Vec<ToolUse> = message.tool_uses().cloned().collect();
        if calls.is_empty() {
            return self.spoke(message, finish, closing);
        }
        let refusal = match (closing, finish) {
            (true, _) => Some(LIMIT_CALL),
            (false, Finish::Length) => Some(CUT_CALL),
            (false, _) => None,
        };
        let most = self.max_tool_calls;
        let too_many = format!(
            "This call was not run: an answer may make at most {most} tool calls. Ask again in your next answers."
        );
        let results = calls.into_iter().enumerate().map(|(index, call)| {
            let complaint =
                unreadable.iter().find(|(id, _)| *id == call.id).map(|(_, why)| why.as_str());
            let beyond = (index >= most).then_some(too_many.as_str());
            let why = refusal.or(beyond).or(complaint);
            let refused = why.map(|why| ToolResult::new(&call, ResultState::Error, why));
            (call, refused.map(Settled::Result))
        });
        let results = results.collect();
        self.out.push(message);
        self.stage = Stage::Tools(results);
        self.settle(if closing { Stage::Done(Reason::MaxIterations) } else { Stage::Model });
    }

    /// Reports the result of a tool. A result without a waiting tool call is dropped.
    pub fn tool_returned(&mut self, result: ToolResult) {
        if let Stage::Tools(open) = &mut self.stage {
            let place =
                open.iter_mut().find(|(call, known)| call.id == result.id && known.is_none());
            if let Some((_, known)) = place {
                *known = Some(match result.state {
                    ResultState::Suspended => Settled::Suspended,
                    _ => Settled::Result(result),
                });
            }
        }
        self.settle(Stage::Model);
    }

    /// Reports that a person must answer first: tool calls without a result do not run yet.
    pub fn asked(&mut self) {
        if let Stage::Tools(open) = &mut self.stage {
            let unsettled = open.iter_mut().filter(|(_, settled)| settled.is_none());
            unsettled.for_each(|(_, settled)| *settled = Some(Settled::Suspended));
        }
        self.leaves = Some(Reason::Asking);
        self.settle(Stage::Model);
    }

    /// Reports that the call was stopped. `partial` is the part of the reply that had arrived.
    pub fn interrupted(&mut self, partial: Option<Message>) {
        self.close(partial, Reason::Interrupted);
    }

    /// Reports that a hook stopped the call. `says` replaces the reply.
    pub fn stopped(&mut self, says: Option<Message>) {
        self.close(says, Reason::Middleware);
    }

    /// Reports that the call has failed. `partial` is the part of the reply that had arrived.
    pub fn failed(&mut self, partial: Option<Message>) {
        self.close(partial, Reason::Interrupted);
    }

    /// Handles a reply without tool calls.
    fn spoke(&mut self, message: Message, finish: Finish, closing: bool) {
        let blank = message.text().trim().is_empty();
        let said = !message.content.is_empty();
        if said {
            self.out.push(message);
        }
        self.stage = match (blank, finish) {
            (_, _) if closing => Stage::Done(Reason::MaxIterations),
            (false, Finish::Length) => Stage::Done(Reason::Length),
            (false, _) => Stage::Done(Reason::Stop),
            (true, _) if self.blanks < BLANK_ANSWERS => {
                self.blanks += 1;
                self.out.push(Message::note_of(Note::BlankAnswer, BLANK_NOTE));
                Stage::Model
            }
            (true, _) => Stage::Done(Reason::Empty),
        };
    }

    /// Goes to the next stage if every tool call has its result.
    fn settle(&mut self, then: Stage) {
        let Stage::Tools(open) = &mut self.stage else { return };
        if open.iter().any(|(_, result)| result.is_none()) {
            return;
        }
        let mut leaves = self.leaves.take();
        for (_, settled) in std::mem::take(open) {
            match settled {
                Some(Settled::Result(result)) => self.out.push(result_message(result)),
                _ => leaves = leaves.or(Some(Reason::Suspended)),
            }
        }
        self.stage = leaves.map_or(then, Stage::Done);
    }

    fn close(&mut self, partial: Option<Message>, reason: Reason) {
        if let Stage::Tools(open) = &mut self.stage {
            for (call, settled) in open.iter_mut() {
                let has_result = matches!(settled, Some(Settled::Result(_)));
                if seams::must_close(!has_result) {
                    let result = ToolResult::new(call, ResultState::Interrupted, STOPPED_CALL);
                    *settled = Some(Settled::Result(result));
                }
            }
        }
        self.settle(Stage::Done(reason));
        if let Some(partial) =
            partial.map(without_calls).filter(|message| !message.content.is_empty())
        {
            self.out.push(partial);
        }
        self.stage = Stage::Done(reason);
    }
}

/// Removes tool calls, because an incomplete tool call must not run.
fn without_calls(mut message: Message) -> Message {
    message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
    message
}

/// The message for the result of a tool call.
pub fn result_message(result: ToolResult) -> Message {
    Message::draft(Role::Tool, vec![Block::ToolResult(result)])
}
