//! What an input meets in its session: tool calls that are open, an answer that was cut off, or nothing.

use std::rc::Rc;

use crate::engine::Inner;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::{Message, Role};
use crate::mutants;
use crate::run::open::{self, Answered};
use crate::slot::Slot;
use crate::store::entry::Later;
use crate::store::input::Input;
use crate::store::session::Session;

/// What an input does before the model is asked.
#[derive(Default)]
pub(super) struct Met {
    /// What was said to tool calls that were open.
    pub(super) answered: Answered,
    /// The log has the input already.
    pub(super) is_known: bool,
    /// It was asked before, on the branch that it leaves: hooks have changed what they would.
    pub(super) is_again: bool,
}

/// Decides what an input does, or why it can do nothing. `retried`: its call has failed before and is made again.
pub(super) fn meet(agent: &Inner, session: &Session, input: &Input, retried: bool) -> Result<Met> {
    if retried {
        // Others may have come since: what they wait for is not closed by a question that was there before.
        nothing_open(session)?;
        return Ok(Met { is_known: !mutants::is("append-on-retry"), ..Met::default() });
    }
    if !input.answers.is_empty() {
        let open = open::open_calls(&session.context);
        if open.is_empty() {
            return Err(open::not_asking(&format!("{} waits for no answer", session.slot)));
        }
        let answered = open::answered(&session.context, &input.answers)?;
        for call in &answered.approved {
            let asked = open.iter().find(|asked| asked.id == call.id);
            asked.map_or(Ok(()), |asked| agent.check_approval(asked, call))?;
        }
        return Ok(Met { answered, ..Met::default() });
    }
    if input.messages.is_empty() {
        goes_on(session)?;
        return Ok(Met { is_known: true, ..Met::default() });
    }
    let answered = Answered { results: open::passed_over(&session.context), ..Answered::default() };
    let is_known = session.facts().shutdown_interrupted && asks_the_same(session, input);
    Ok(Met { answered, is_known, ..Met::default() })
}

/// Refuses what a session with open tool calls cannot take.
pub(super) fn nothing_open(session: &Session) -> Result<()> {
    if open::open_calls(&session.context).is_empty() { Ok(()) } else { Err(pending(&session.slot)) }
}

/// What became of a tool call, with the message that asked for it, and the place of that.
pub(super) fn placed(context: &[Rc<Message>], later: Later) -> Option<(usize, Later)> {
    let asked = |message: &Rc<Message>| message.tool_uses().any(|it| it.id == later.call);
    let index = context.iter().rposition(asked)?;
    let message = context.get(index)?.id.clone();
    Some((index, Later { message, ..later }))
}

/// Whether there is something that a call without an input goes on with.
fn goes_on(session: &Session) -> Result<()> {
    let slot = &session.slot;
    if session.head.is_none() {
        return Err(Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}")));
    }
    nothing_open(session)?;
    let last = session.context.last().map(|message| message.role);
    if session.facts().shutdown_interrupted || matches!(last, Some(Role::User | Role::Tool)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InputInvalid, format!("nothing was cut off in {slot}"))
        .hint("call it with an input"))
}

fn pending(slot: &Slot) -> Error {
    Error::new(ErrorKind::PendingTools, format!("tool calls of {slot} wait for an answer"))
        .hint("answer them with confirm, or say something else, which closes them")
}

/// Whether the input is the question that the conversation stands at.
fn asks_the_same(session: &Session, input: &Input) -> bool {
    let is_question =
        |it: &&Rc<Message>| it.role == Role::User && it.name.as_deref() != Some("system");
    let asked = session.context.iter().rev().filter(is_question).map(|it| &it.content);
    asked.take(input.messages.len()).eq(input.messages.iter().rev().map(|it| &it.content))
}
