//! The inputs of a turn, and its result.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::joining::JoinedCalls;
use crate::engine::call::scope::CallScope;
use crate::engine::parts::AgentParts;
use crate::engine::subagent::children::CallChildren;
use crate::engine::subagent::role::ChildRole;
use crate::engine::turn::output::Output;
use crate::error::Result;
use crate::event::{Ask, Reason};
use crate::message::{Message, Usage};
use crate::run::open::Answered;
use crate::state::Facts;
use crate::store::format::entry::CallUpdate;
use crate::store::format::input::Input;
use crate::store::session::TurnCommit;

/// The inputs of a turn.
#[derive(Clone, Copy)]
pub(in crate::engine) struct TurnSetup<'a> {
    pub(in crate::engine) scope: &'a CallScope<'a>,
    pub(in crate::engine) parts: &'a AgentParts,
    /// The differences in the call of a subagent.
    pub(in crate::engine) role: Option<&'a ChildRole>,
    /// The accepted input.
    pub(in crate::engine) input: &'a Input,
    /// The output schema, if the caller asked for structured output.
    pub(in crate::engine) output: Option<&'a Output>,
    /// Temperature and the like.
    pub(in crate::engine) generate: &'a Value,
    /// The calls that have joined this call.
    pub(in crate::engine) joined: &'a JoinedCalls,
    /// The subagents that this call has begun.
    pub(in crate::engine) children: &'a CallChildren,
}

/// The state at the beginning of a turn.
pub(in crate::engine) struct TurnStart {
    /// The effect of the input on open tool calls.
    pub(in crate::engine) answered: Answered,
    /// True for a resend without a new input: its messages already contain the changes of hooks.
    pub(in crate::engine) is_again: bool,
}

/// The messages of a turn, and how it ended.
pub(in crate::engine) struct TurnResult {
    /// All messages, including the input.
    pub(in crate::engine) messages: Vec<Rc<Message>>,
    /// How many of them are stored already.
    pub(in crate::engine) n_stored: usize,
    /// Updates of tool calls in stored messages.
    pub(in crate::engine) changes: Vec<CallUpdate>,
    /// The step whose failed save ended the turn.
    pub(in crate::engine) unsaved: Option<TurnCommit>,
    /// The questions that wait for an answer.
    pub(in crate::engine) asks: Vec<Ask>,
    /// The answer that a failure cut off.
    pub(in crate::engine) partial: Option<Rc<Message>>,
    /// The usage of the turn.
    pub(in crate::engine) usage: Usage,
    /// Why it ended.
    pub(in crate::engine) ended: Result<Reason>,
    /// The AgentState fields after it.
    pub(in crate::engine) facts: Facts,
    /// Whether a step conflicted with another writer's turn, so that this whole turn is stored as a side branch.
    pub(in crate::engine) is_aside: bool,
}
