//! What an input does in its session: it answers open tool calls, continues an interrupted turn, or begins a turn.

use crate::engine::session::{no_such, refuse_if_pending};
use crate::engine::turn::permission::check_approval;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Role;
use crate::port::Host;
use crate::run::open::{self, Answered};
use crate::seams;
use crate::store::format::input::Input;
use crate::store::session::Session;
use crate::tool::Registry;

/// What an input does in its session before the model is asked.
#[derive(Default)]
pub(in crate::engine) struct InputMeaning {
    /// The effect of the input on open tool calls.
    pub(in crate::engine) answered: Answered,
    /// Whether the input is in the log already.
    pub(in crate::engine) is_known: bool,
    /// True for a resend without a new input: its messages already contain the changes of hooks.
    pub(in crate::engine) is_again: bool,
}

impl InputMeaning {
    /// Decides what an input does. Fails if the session cannot accept the input.
    pub(in crate::engine) fn of(
        tools: &Registry,
        host: &dyn Host,
        session: &Session,
        input: &Input,
    ) -> Result<InputMeaning> {
        if !input.answers.is_empty() {
            return InputMeaning::of_answers(tools, host, session, input);
        }
        if input.messages.is_empty() {
            check_cut_off(session)?;
            return Ok(InputMeaning { is_known: true, ..InputMeaning::default() });
        }
        let is_known = session.facts().shutdown_interrupted && asks_the_same(session, input);
        Ok(InputMeaning { is_known, ..InputMeaning::of_question(session, false) })
    }

    /// For a failed call that is made again with the same id: its input is in the log.
    pub(in crate::engine) fn of_retry(session: &Session) -> Result<InputMeaning> {
        // Later calls may have left tool calls open. The old question must not close these tool calls.
        refuse_if_pending(session)?;
        Ok(InputMeaning { is_known: seams::is_logged(true), ..InputMeaning::default() })
    }

    /// For a question: it closes the open tool calls.
    pub(in crate::engine) fn of_question(session: &Session, is_again: bool) -> InputMeaning {
        let results = open::passed_over(&session.context);
        let answered = Answered { results, ..Answered::default() };
        InputMeaning { answered, is_again, ..InputMeaning::default() }
    }

    fn of_answers(
        tools: &Registry,
        host: &dyn Host,
        session: &Session,
        input: &Input,
    ) -> Result<InputMeaning> {
        let open = open::open_calls(&session.context);
        if open.is_empty() {
            return Err(open::not_asking(&format!("{} has no open question", session.slot)));
        }
        let answered = open::answered(&session.context, &input.answers)?;
        for call in &answered.approved {
            let asked = open.iter().find(|asked| asked.id == call.id);
            asked.map_or(Ok(()), |asked| check_approval(tools, host, asked, call))?;
        }
        Ok(InputMeaning { answered, ..InputMeaning::default() })
    }
}

/// Refuses a call without an input, unless the session has an interrupted turn.
fn check_cut_off(session: &Session) -> Result<()> {
    let slot = &session.slot;
    if session.head.is_none() {
        return Err(no_such(slot));
    }
    refuse_if_pending(session)?;
    let last = session.context.last().map(|message| message.role);
    if session.facts().shutdown_interrupted || matches!(last, Some(Role::User | Role::Tool)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InputInvalid, format!("{slot} has no interrupted turn to resume"))
        .hint("make a call with an input"))
}

/// Whether the input is the last question of the conversation.
fn asks_the_same(session: &Session, input: &Input) -> bool {
    let asked = session.context.iter().rev().filter(|it| it.is_question()).map(|it| &it.content);
    asked.take(input.messages.len()).eq(input.messages.iter().rev().map(|it| &it.content))
}
