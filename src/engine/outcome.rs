//! How calls end, and how an end that was stored is told again.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Reason, Reply};
use crate::json;
use crate::message::{Message, Role, Usage};
use crate::run::open;
use crate::slot::Slot;
use crate::store::entry::Entry;
use crate::store::input::Input;
use crate::store::session::Session;

/// How a call ended.
pub type Ended = std::result::Result<Rc<Reply>, Failed>;

/// A call that failed, and what was answered before it did.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The answer so far; it is in the log too.
    pub partial: Option<Rc<Message>>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { error, partial: None }
    }
}

/// Refuses a call whose id was used before for another input.
pub(super) fn same_input(input: &Input, entry: &Entry, asked: Option<&str>) -> Result<()> {
    let said =
        |message: &Rc<Message>| (message.role == Role::User).then(|| message.content.clone());
    let stored = entry.messages.iter().filter_map(said).take(input.messages.len());
    let same = match asked {
        Some(asked) => asked == input.digest(),
        None => stored.eq(input.messages.iter().filter_map(said)),
    };
    // A resend that names no question asks the one that it finds.
    let same = same || (input.resends && input.messages.is_empty());
    if same {
        return Ok(());
    }
    let message = format!("call \"{}\" was made before with another input", input.call_id);
    Err(Error::new(ErrorKind::InputInvalid, message).hint("use a new callId for a new question"))
}

/// The outcome that an entry holds; `None` if the call is worth another try.
pub(super) fn told_again(
    entry: &Entry,
    input: &Input,
    session: &Session,
    silence: &Rc<Message>,
) -> Option<Result<Reply, Failed>> {
    let outcome = entry.outcome.as_ref()?;
    let answer = answer_of(&entry.messages);
    if let Some(code) = &outcome.code {
        let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.code() == code);
        let kind = kind.unwrap_or(ErrorKind::Internal);
        let error = Error::new(kind, outcome.message.clone().unwrap_or_default());
        return (!kind.is_retryable()).then_some(Err(Failed { error, partial: answer }));
    }
    let message = answer.unwrap_or_else(|| Rc::clone(silence));
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

pub(super) fn aborted() -> Error {
    Error::new(ErrorKind::Aborted, "the call was aborted by its signal")
}

pub(super) fn timed_out() -> Error {
    let message = "the call did not end within its deadline";
    Error::new(ErrorKind::Timeout, message)
        .hint("what was answered so far is stored; raise timeouts.call")
}

pub(super) fn shutting_down() -> Error {
    let message = "the agent is shutting down";
    Error::new(ErrorKind::ShuttingDown, message)
        .hint("ask again: what was answered so far is stored")
}

pub(super) fn robbed(slot: &Slot) -> Error {
    let message = format!("{slot} was taken over elsewhere, because this call did not answer");
    Error::new(ErrorKind::Superseded, message).hint("what was answered so far is in the log")
}

pub(super) fn gone(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSession, format!("{slot} was deleted"))
}

/// The last thing the model said.
pub(super) fn answer_of(messages: &[Rc<Message>]) -> Option<Rc<Message>> {
    messages.iter().rev().find(|message| message.role == Role::Assistant).cloned()
}

/// Reads a reason back from its word.
fn reason(word: Option<&Value>) -> Reason {
    let same = |reason: &Reason| Some(&json::to_value(reason)) == word;
    Reason::ALL.iter().copied().find(same).unwrap_or(Reason::Stop)
}
