//! The run: what a call does next. It decides and never waits.
//!
//! A call is a conversation between a model and its tools. The model answers; an answer that asks for tools gets
//! their results, one for each call and in the order of the calls, and the model is asked again; an answer in words
//! ends the call. The driver in `engine/` does what [`Run::next`] says and reports what came of it; the run appends
//! the messages that follow from it and names the next step:
//!
//! ```text
//! Run::new ──► CallModel ──replied──► words ───────────────► Done
//!                 ▲                     └─ tools asked for ► CallTools ─┐
//!                 └───────── every result is in (tool_returned) ◄───────┘
//! ```
//!
//! A result may also be *suspended*: it comes later, from outside, or a person is *asked* first. Then the call ends here, with that tool call still
//! open, and [`open`] says what a later input does to it. But for these, whatever happens, every tool call that the run has appended has exactly one result right after its answer: also
//! when the call is stopped, fails or runs into its limit ([`Run::interrupted`], [`Run::failed`]).
//! Ids and times are the driver's to give: messages leave the run as drafts.

pub mod open;
mod reply;

pub use reply::{Assembly, Reply};

use crate::event::Reason;
use crate::message::{Block, Finish, Message, ResultState, Role, ToolResult, ToolUse};
use crate::mutants;

/// How often an answer without words is asked for again.
const BLANK_ANSWERS: u32 = 2;

const BLANK_NOTE: &str = "Your last answer had no visible text. Please answer the user in words.";
const CUT_CALL: &str = "This call was not run: the answer that asked for it was cut off at the token limit. \
                        Ask again with shorter arguments.";
const LIMIT_CALL: &str = "This call was not run: the limit of steps for this turn is reached.";
/// What a call that was stopped has for a result.
pub const STOPPED_CALL: &str =
    "This call was stopped before it had a result. It may have run in part.";

/// What the driver is to do next; it must handle every case.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the model.
    CallModel(Asking),
    /// Run these tools and report each result.
    CallTools(Vec<ToolUse>),
    /// Commit.
    Done(Reason),
}

/// How the model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// With its tools.
    WithTools,
    /// For a closing answer in words, because the limit is reached.
    ToClose,
}

/// The decisions of one call.
#[derive(Debug)]
pub struct Run {
    limit: u32,
    iteration: u32,
    blanks: u32,
    stage: Stage,
    /// What ends it behind the tools at hand: other calls stay open.
    leaves: Option<Reason>,
    out: Vec<Message>,
}

#[derive(Debug)]
enum Stage {
    Model,
    Tools(Vec<(ToolUse, Option<Settled>)>),
    Done(Reason),
}

/// A tool call that the run waits for no longer.
#[derive(Debug)]
enum Settled {
    Result(ToolResult),
    /// Its result comes later, from outside.
    Suspended,
}

impl Run {
    /// A run that asks the model at most `limit` times before it closes.
    pub fn new(limit: u32) -> Run {
        Run {
            limit: limit.max(1),
            iteration: 0,
            blanks: 0,
            stage: Stage::Model,
            leaves: None,
            out: Vec::new(),
        }
    }

    /// A run that begins with tool calls of an earlier one. `leaves`: others of them stay open, and it ends for that
    /// reason.
    pub fn with_calls(limit: u32, calls: Vec<ToolUse>, leaves: Option<Reason>) -> Run {
        let stage = Stage::Tools(calls.into_iter().map(|call| (call, None)).collect());
        let mut run = Run { stage, leaves, ..Run::new(limit) };
        run.settle(Stage::Model);
        run
    }

    /// What to do next. Asking twice answers the same.
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

    /// How many times the model has answered.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The messages that followed since this was last asked, as drafts where they are the run's own.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.out)
    }

    /// The model has answered.
    pub fn replied(&mut self, reply: Reply) {
        let closing = self.iteration >= self.limit;
        self.iteration += 1;
        let Reply { message, finish, unreadable } = reply;
        let calls: Vec<ToolUse> = message.tool_uses().cloned().collect();
        if calls.is_empty() {
            return self.spoke(message, finish, closing);
        }
        let refusal = match (closing, finish) {
            (true, _) => Some(LIMIT_CALL),
            (false, Finish::Length) => Some(CUT_CALL),
            (false, _) => None,
        };
        let results = calls.into_iter().map(|call| {
            let complaint =
                unreadable.iter().find(|(id, _)| *id == call.id).map(|(_, why)| why.as_str());
            let refused =
                refusal.or(complaint).map(|why| ToolResult::new(&call, ResultState::Error, why));
            (call, refused.map(Settled::Result))
        });
        let results = results.collect();
        self.out.push(message);
        self.stage = Stage::Tools(results);
        self.settle(if closing { Stage::Done(Reason::MaxIterations) } else { Stage::Model });
    }

    /// A tool has ended. A result that nobody waits for is dropped.
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

    /// A person is asked first: no call that has no result runs now.
    pub fn asked(&mut self) {
        if let Stage::Tools(open) = &mut self.stage {
            let unsettled = open.iter_mut().filter(|(_, settled)| settled.is_none());
            unsettled.for_each(|(_, settled)| *settled = Some(Settled::Suspended));
        }
        self.leaves = Some(Reason::Asking);
        self.settle(Stage::Model);
    }

    /// Somebody stopped the call; `partial` is what the model had said of its answer.
    pub fn interrupted(&mut self, partial: Option<Message>) {
        self.close(partial, Reason::Interrupted);
    }

    /// A hook stopped the call; `says` stands in place of an answer.
    pub fn stopped(&mut self, says: Option<Message>) {
        self.close(says, Reason::Middleware);
    }

    /// The call cannot go on; the driver knows why.
    pub fn failed(&mut self, partial: Option<Message>) {
        self.close(partial, Reason::Interrupted);
    }

    /// An answer without tool calls.
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
                self.out.push(Message::note(BLANK_NOTE));
                Stage::Model
            }
            (true, _) => Stage::Done(Reason::Empty),
        };
    }

    /// Goes on if every call has its result.
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
                if !has_result && !mutants::is("open-calls-stay") {
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

/// A half-received tool call is not a call.
fn without_calls(mut message: Message) -> Message {
    message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
    message
}

/// The message that a result becomes.
pub fn result_message(result: ToolResult) -> Message {
    Message::draft(Role::Tool, vec![Block::ToolResult(result)])
}
