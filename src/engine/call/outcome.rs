//! How calls end, and how a later call with the same id gets the stored outcome.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::cancel::{Cancel, Cause};
use crate::engine::stamp::{now, stamped};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Reason, Reply};
use crate::json;
use crate::message::{Message, Role, Usage};
use crate::port::Host;
use crate::run::open;
use crate::slot::Slot;
use crate::store::format::entry::Entry;
use crate::store::format::input::Input;
use crate::store::session::Session;

/// How a call ended.
pub type Ended = std::result::Result<Rc<Reply>, Failed>;

/// A failed call: the error, and the part of the answer that was received before.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The answer so far. It is in the log too, unless the save failed.
    pub partial: Option<Rc<Message>>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { error, partial: None }
    }
}

/// Refuses a call if its id was used before for another input.
pub(in crate::engine) fn same_input(
    input: &Input,
    entry: &Entry,
    asked: Option<&str>,
) -> Result<()> {
    let said =
        |message: &Rc<Message>| (message.role == Role::User).then(|| message.content.clone());
    let stored = entry.messages.iter().filter_map(said).take(input.messages.len());
    let same = match asked {
        Some(asked) => asked == input.digest(),
        None => stored.eq(input.messages.iter().filter_map(said)),
    };
    // A resend without a message repeats the last question, so there is no input to compare.
    let same = same || (input.resends && input.messages.is_empty());
    if same {
        return Ok(());
    }
    let message = format!("the callId \"{}\" was used before with another input", input.call_id);
    Err(Error::new(ErrorKind::InputInvalid, message).hint("use a new callId for a new input"))
}

/// The outcome in an entry; `None` if the call failed with a retryable error.
pub(in crate::engine) fn stored_end(
    entry: &Entry,
    input: &Input,
    session: &Session,
    empty_answer: &Rc<Message>,
) -> Option<Result<Reply, Failed>> {
    let outcome = entry.outcome.as_ref()?;
    let answer = answer_of(&entry.messages);
    if let Some(code) = &outcome.code {
        let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.code() == code);
        let kind = kind.unwrap_or(ErrorKind::Internal);
        let error = Error::new(kind, outcome.message.clone().unwrap_or_default());
        return (!kind.is_retryable()).then_some(Err(Failed { error, partial: answer }));
    }
    let message = answer.unwrap_or_else(|| Rc::clone(empty_answer));
    let mut usage = Usage::default();
    entry.messages.iter().filter_map(|it| it.usage.as_ref()).for_each(|one| usage.add(one));
    Some(Ok(Reply {
        call_id: input.call_id.as_str().into(),
        reason: reason(outcome.reason.as_ref()),
        text: message.text(),
        message,
        messages: entry.messages.clone(),
        usage,
        output: outcome.output.clone(),
        asks: if outcome.is_open() { open::asks(&session.context) } else { Vec::new() },
        version: session.version(),
    }))
}

/// The hint of an error that ends a turn: its input was accepted.
pub(in crate::engine) fn with_stored_answer(error: Error) -> Error {
    error.hint("the question and the answer so far are stored; see `partial` and history")
}

pub(in crate::engine) fn aborted() -> Error {
    Error::new(ErrorKind::Aborted, "the call was aborted by its signal")
}

pub(in crate::engine) fn timed_out() -> Error {
    let message = "the call did not end before its deadline";
    Error::new(ErrorKind::Timeout, message).hint("nothing was stored; raise timeouts.call")
}

pub(in crate::engine) fn shutting_down() -> Error {
    let message = "the agent is shutting down";
    Error::new(ErrorKind::ShuttingDown, message).hint("nothing was stored; try again later")
}

pub(in crate::engine) fn taken_over(slot: &Slot) -> Error {
    let message =
        format!("another tab or process took over {slot}, because this call did not respond");
    Error::new(ErrorKind::Superseded, message).hint("nothing was stored; try again")
}

pub(in crate::engine) fn deleted_meanwhile(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSession, format!("{slot} was deleted"))
}

/// The end of a call that is cancelled before its input is accepted. Nothing of the call is stored.
pub(in crate::engine) fn ended_unaccepted(
    cancel: &Cancel,
    slot: &Slot,
    input: &Input,
    host: &dyn Host,
) -> Result<Reply, Failed> {
    match cancel.cause() {
        Some(Cause::Deleted) => Err(deleted_meanwhile(slot).into()),
        Some(Cause::Aborted) => Err(aborted().into()),
        Some(Cause::TakenOver) => Err(taken_over(slot).into()),
        Some(Cause::TimedOut) => Err(timed_out().into()),
        Some(Cause::Shutdown) | None => Err(shutting_down().into()),
        Some(Cause::Stopped(_)) => Ok(Reply {
            call_id: input.call_id.as_str().into(),
            reason: Reason::Interrupted,
            message: empty_answer(host),
            text: String::new(),
            messages: Vec::new(),
            usage: Usage::default(),
            output: None,
            asks: Vec::new(),
            version: 0,
        }),
    }
}

/// An empty answer, for a call without a reply of the model.
pub(in crate::engine) fn empty_answer(host: &dyn Host) -> Rc<Message> {
    stamped(Message::draft(Role::Assistant, Vec::new()), host, &now(host))
}

/// The last message of the model.
pub(in crate::engine) fn answer_of(messages: &[Rc<Message>]) -> Option<Rc<Message>> {
    messages.iter().rev().find(|message| message.role == Role::Assistant).cloned()
}

/// The reason with this JSON word.
fn reason(word: Option<&Value>) -> Reason {
    let same = |reason: &Reason| Some(&json::to_value(reason)) == word;
    Reason::ALL.iter().copied().find(same).unwrap_or(Reason::Stop)
}
