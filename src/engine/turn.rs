//! One call's conversation with its model: the loop that does what the run says.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::Inner;
use crate::engine::ask::Asked;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::drive::stamped;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{aborted, shutting_down, timed_out};
use crate::engine::output::Output;
use crate::error::Error;
use crate::error::Result;
use crate::event::Reason;
use crate::message::{Block, Message, Role, Usage, rfc3339};
use crate::run::{self, Run, Step};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::session::Session;

/// What was said in a call, and how it ended.
pub(super) struct Spoken {
    /// Every message, the input included.
    pub(super) messages: Vec<Rc<Message>>,
    /// The answer that a failure cut off.
    pub(super) partial: Option<Rc<Message>>,
    /// What it cost.
    pub(super) usage: Usage,
    /// Why it ended.
    pub(super) ended: Result<Reason>,
    /// The AgentState fields after it.
    pub(super) facts: Facts,
}

/// One call's conversation with its model.
pub(super) struct Turn<'a> {
    pub(super) agent: &'a Inner,
    pub(super) slot: &'a Slot,
    pub(super) tag: u32,
    pub(super) outbox: &'a Outbox,
    pub(super) cancel: &'a Cancel,
    /// The AgentState fields as this call has changed them.
    pub(super) facts: RefCell<Facts>,
    /// The form that the caller asked for.
    pub(super) output: Option<&'a Output>,
    /// Temperature and the like.
    pub(super) generate: &'a Value,
    /// The instructions of this call.
    pub(super) prompt: RefCell<String>,
}

impl Turn<'_> {
    /// Runs to the end. New messages go to the session's context, and all of them into the answer.
    pub(super) async fn speak(&self, session: &mut Session, input: Vec<Rc<Message>>) -> Spoken {
        let first = session.context.len();
        let (reason, error) = match self.prepare(input.clone()).await {
            Ok(input) => {
                session.context.extend(input);
                self.converse(session).await
            }
            Err(error) => {
                session.context.extend(input);
                (Reason::Interrupted, Some(error))
            }
        };
        let cause = self.cancel.cause();
        let cut_short = matches!(reason, Reason::Interrupted) && self.agent.closing.get();
        let shut_down = matches!(cause, Some(Cause::Shutdown)) || (cut_short && cause.is_none());
        let ended = match (error, cause) {
            (Some(error), _) => Err(error),
            (None, Some(Cause::Aborted)) => Err(aborted()),
            (None, Some(Cause::TimedOut)) => Err(timed_out()),
            (None, _) if shut_down => Err(shutting_down()),
            (None, Some(Cause::Stopped(says))) => {
                self.append(session, says);
                Ok(reason)
            }
            (None, _) => Ok(reason),
        };
        let messages = session.context.get(first..).unwrap_or_default().to_vec();
        let mut usage = Usage::default();
        messages.iter().filter_map(|message| message.usage.as_ref()).for_each(|one| usage.add(one));
        let partial =
            messages.iter().rfind(|it| it.role == Role::Assistant).filter(|_| ended.is_err());
        let facts = Facts { shutdown_interrupted: shut_down, ..self.facts.borrow().clone() };
        Spoken { partial: partial.cloned(), messages, usage, ended, facts }
    }

    /// Lets hooks see the input and write the instructions.
    async fn prepare(&self, input: Vec<Rc<Message>>) -> Result<Vec<Rc<Message>>> {
        let input = self.hook_call(input).await?;
        let prompt = self.hook_prompt().await?;
        *self.prompt.borrow_mut() = prompt;
        Ok(input)
    }

    /// Does what the run says until it is done: why it ended, and the error that ended it.
    async fn converse(&self, session: &mut Session) -> (Reason, Option<Error>) {
        let mut run = Run::new(self.agent.options.max_iterations);
        let mut error = None;
        loop {
            match run.next() {
                Step::Done(reason) => return (reason, error),
                _ if self.cancel.cause().is_some() || self.agent.closing.get() => {
                    run.interrupted(None)
                }
                Step::CallModel(asking) => {
                    match self.ask_formed(session, asking, run.iteration() + 1).await {
                        Asked::Replied(reply) => run.replied(reply),
                        Asked::Ended(says) => run.stopped(answer(says)),
                        Asked::Stopped(said) => run.interrupted(said),
                        Asked::Failed(why, said) => {
                            error = Some(why);
                            run.failed(said);
                        }
                    }
                }
                Step::CallTools(calls) => {
                    let worked = self.run_tools(&calls).await;
                    worked.results.into_iter().for_each(|result| run.tool_returned(result));
                    if worked.failed.is_some() {
                        error = worked.failed;
                        run.failed(None);
                    } else if worked.stopped {
                        run.interrupted(None);
                    }
                }
            }
            self.append(session, run.take_messages());
        }
    }

    /// Stamps messages and appends them; calls that have their result are finished.
    fn append(&self, session: &mut Session, messages: Vec<Message>) {
        let at = rfc3339(self.agent.host.now_ms());
        for message in messages {
            let answers = message.role == Role::Tool;
            session.context.push(Rc::new(stamped(message, self.agent, &at)));
            if !answers {
                continue;
            }
            let is_asker = |message: &Rc<Message>| message.role == Role::Assistant;
            if let Some(index) = session.context.iter().rposition(is_asker)
                && let Some(asker) = session.context.get_mut(index)
            {
                run::finish_calls(Rc::make_mut(asker));
                session.lineage.changed(index);
            }
        }
    }
}

/// What a hook says in place of the model.
fn answer(says: String) -> Option<Message> {
    (!says.is_empty()).then(|| Message::draft(Role::Assistant, vec![Block::text(says)]))
}
