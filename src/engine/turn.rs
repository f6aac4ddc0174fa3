//! One call's conversation with its model: the loop that does what the run says.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::Durability;
use crate::engine::Inner;
use crate::engine::Options;
use crate::engine::ask::Asked;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::crew::Post;
use crate::engine::drive::stamped;
use crate::engine::live::Live;
use crate::engine::meet::{Met, placed};
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{aborted, robbed, shutting_down, timed_out};
use crate::engine::output::Output;
use crate::engine::prompt::Brief;
use crate::engine::steer::Joined;
use crate::engine::work::Worked;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Ask, Event, Reason};
use crate::future::rarely;
use crate::message::{
    Block, CallState, Message, ResultState, Role, ToolResult, ToolUse, Usage, rfc3339,
};
use crate::mutants;
use crate::port::Model;
use crate::run::open::{self, Answered};
use crate::run::{self, Run, STOPPED_CALL, Step};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::entry::{EntryKind, Later};
use crate::store::id;
use crate::store::input::Input;
use crate::store::session::{Session, Turn as StoredTurn};

/// What was said in a call, and how it ended.
pub(super) struct Spoken {
    /// Every message, the input included.
    pub(super) messages: Vec<Rc<Message>>,
    /// How many of them are stored already.
    pub(super) n_stored: usize,
    /// What became of tool calls that are stored.
    pub(super) changes: Vec<Later>,
    /// The step whose save has failed, and ended the call.
    pub(super) unsaved: Option<StoredTurn>,
    /// What waits for an answer.
    pub(super) asks: Vec<Ask>,
    /// The answer that a failure cut off.
    pub(super) partial: Option<Rc<Message>>,
    /// What it cost.
    pub(super) usage: Usage,
    /// Why it ended.
    pub(super) ended: Result<Reason>,
    /// The AgentState fields after it.
    pub(super) facts: Facts,
    /// A step of it met another's turn, and all of it was kept beside the path.
    pub(super) is_aside: bool,
}

/// One call's conversation with its model.
pub(super) struct Turn<'a> {
    pub(super) agent: &'a Inner,
    pub(super) slot: &'a Slot,
    pub(super) tag: u32,
    pub(super) outbox: &'a Outbox,
    pub(super) cancel: &'a Cancel,
    /// What its tools and hooks see and change of the session.
    pub(super) live: &'a Live,
    /// The form that the caller asked for.
    pub(super) output: Option<&'a Output>,
    /// Temperature and the like.
    pub(super) generate: &'a Value,
    /// For tools and hooks.
    pub(super) attributes: &'a Attributes,
    /// What is different because another call has begun it.
    pub(super) post: Option<&'a Post>,
    /// The instructions of this call.
    pub(super) prompt: RefCell<String>,
    /// What they were made of.
    pub(super) brief: RefCell<Brief>,
    /// What it was asked.
    pub(super) input: &'a Input,
    /// The calls that it has taken in.
    pub(super) joined: &'a Joined,
    /// Where the messages of this call begin in the context.
    pub(super) first: Cell<usize>,
    /// How many messages of the context are stored.
    pub(super) stored: Cell<usize>,
    /// Whether a summary has failed: it is not tried again in this call, unless nothing else helps.
    pub(super) unsummarised: Cell<bool>,
    /// What summaries cost.
    pub(super) spent: RefCell<Usage>,
    /// What became of tool calls in those.
    pub(super) changes: RefCell<Vec<Later>>,
    /// The tool calls that a person has allowed with this very call, until they run.
    pub(super) approved: RefCell<Vec<String>>,
    /// The step whose save has failed, and ended the call.
    pub(super) unsaved: RefCell<Option<StoredTurn>>,
    /// Whether a step has met another's turn.
    pub(super) is_aside: Cell<bool>,
}

impl Turn<'_> {
    /// Runs to the end. New messages go to the session's context, and all of them into the answer.
    pub(super) async fn speak(&self, session: &mut Session, met: Met) -> Spoken {
        self.first.set(session.context.len());
        self.stored.set(session.context.len());
        let input = self.input.messages.clone();
        let (calls, leaves) = self.take_answers(session, met.answered);
        let (reason, error) = match self.prepare(session, input.clone()).await {
            Ok(hooked) => {
                let input = if met.is_again { input } else { hooked };
                session.context_mut().extend(input);
                let limit = self.options().max_iterations;
                self.converse(session, Run::with_calls(limit, calls, leaves)).await
            }
            Err(error) => {
                session.context_mut().extend(input);
                (Reason::Interrupted, Some(error))
            }
        };
        let cause = self.cancel.cause();
        let reason = if cause.is_some() || error.is_some() {
            self.close_open(session).unwrap_or(reason)
        } else {
            reason
        };
        let cut_short = matches!(reason, Reason::Interrupted) && self.agent.closing.get();
        let shut_down = matches!(cause, Some(Cause::Shutdown)) || (cut_short && cause.is_none());
        let ended = match (error, cause) {
            (Some(error), _) => Err(error),
            (None, Some(Cause::Aborted)) => Err(aborted()),
            (None, Some(Cause::TimedOut)) => Err(timed_out()),
            (None, Some(Cause::Robbed)) => Err(robbed(self.slot)),
            (None, _) if shut_down => Err(shutting_down()),
            (None, Some(Cause::Stopped(says))) => {
                self.append(session, says);
                Ok(reason)
            }
            (None, _) => Ok(reason),
        };
        let messages = self.said(session, self.first.get());
        let mut usage = self.spent.take();
        messages.iter().filter_map(|message| message.usage.as_ref()).for_each(|one| usage.add(one));
        let partial =
            messages.iter().rfind(|it| it.role == Role::Assistant).filter(|_| ended.is_err());
        let facts = Facts { shutdown_interrupted: shut_down, ..self.live.facts.borrow().clone() };
        let asks = open::asks(&session.context);
        if !asks.is_empty() {
            self.outbox.push(Event::Ask { asks: asks.clone() });
        }
        let n_stored = self.stored.get() - self.first.get();
        let (partial, changes) = (partial.cloned(), self.changes.take());
        let (unsaved, is_aside) = (self.unsaved.take(), self.is_aside.get());
        Spoken {
            partial,
            messages,
            n_stored,
            changes,
            unsaved,
            asks,
            usage,
            ended,
            facts,
            is_aside,
        }
    }

    /// Lets hooks see the input and write the instructions.
    async fn prepare(
        &self,
        session: &Session,
        input: Vec<Rc<Message>>,
    ) -> Result<Vec<Rc<Message>>> {
        let _shown = self.live.show(session);
        let input = match self.is_hooked() {
            true => rarely(self.hook_call(input)).await?,
            false => input,
        };
        self.prepare_brief().await;
        let prompt = self.hook_prompt().await?;
        *self.prompt.borrow_mut() = prompt;
        Ok(input)
    }

    /// Does what the run says until it is done: why it ended, and the error that ended it.
    async fn converse(&self, session: &mut Session, run: Run) -> (Reason, Option<Error>) {
        let mut run = run;
        let mut error = None;
        loop {
            match run.next() {
                Step::Done(reason) => return (reason, error),
                _ if self.cancel.cause().is_some() || self.agent.closing.get() => {
                    run.interrupted(None)
                }
                Step::CallModel(asking) => {
                    if let Err(why) = self.take_in(session).await {
                        error = Some(why);
                        run.failed(None);
                        continue;
                    }
                    if self.agent.options.subagents.is_some() {
                        rarely(self.tell_ends(session)).await;
                    }
                    match self.ask_fitting(session, asking, run.iteration() + 1).await {
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
                    let shown = self.live.show(session);
                    let permits = self.permit(&calls).await;
                    let mut worked = match permits.stopped {
                        true => Worked { stopped: true, ..Worked::default() },
                        false => self.run_tools(&permits.runs).await,
                    };
                    drop(shown);
                    let is_asked = !permits.paused.is_empty();
                    permits.paused.into_iter().for_each(|later| self.mark(session, later));
                    self.note_suspended(session, &worked.results);
                    worked.results.extend(permits.denied);
                    worked.results.into_iter().for_each(|result| run.tool_returned(result));
                    if worked.failed.is_some() {
                        error = worked.failed;
                        run.failed(None);
                    } else if worked.stopped {
                        run.interrupted(None);
                    } else if is_asked {
                        run.asked();
                    }
                }
            }
            self.append(session, run.take_messages());
            if self.agent.options.durability == Durability::Step
                && let Err(why) = rarely(self.step(session, &run)).await
            {
                return (Reason::Interrupted, Some(why));
            }
        }
    }

    /// Stores what was said so far.
    async fn step(&self, session: &mut Session, run: &Run) -> Result<()> {
        let is_over = matches!(run.next(), Step::Done(_));
        let new = self.said(session, self.stored.get());
        if is_over || new.is_empty() {
            return Ok(());
        }
        let turn = StoredTurn {
            id: id::mint(&*self.agent.host),
            kind: EntryKind::Step,
            input: self.input.clone(),
            joined: self.joined.inputs(),
            messages: new,
            changes: self.changes.take(),
            outcome: None,
            facts: self.agent.options.persistence.pick(&self.live.facts.borrow(), &session.facts()),
            reshaping: session.reshaping.clone(),
            is_forgotten: false,
            heard: self.live.brood.heard_in(&self.said(session, self.stored.get())),
        };
        let saved = match self.agent.sessions.finish(session, &turn).await {
            Ok(saved) => saved,
            Err(error) => {
                self.is_aside.set(error.kind() == ErrorKind::Superseded);
                self.unsaved.replace(Some(turn));
                return Err(error);
            }
        };
        self.stored.set(session.context.len());
        self.outbox.push(Event::Saved { version: saved.version, bytes: saved.bytes });
        Ok(())
    }

    /// The options of this call.
    pub(super) fn options(&self) -> &Options {
        self.post.map_or(&self.agent.options, |post| &post.options)
    }

    /// Who answers in this call.
    pub(super) fn model(&self) -> &dyn Model {
        let of_post = self.post.and_then(|post| post.model.as_deref());
        of_post.unwrap_or(&*self.agent.models.own)
    }

    /// What was said in this call from a place in the context on, whole.
    fn said(&self, session: &Session, from: usize) -> Vec<Rc<Message>> {
        let shown = session.context.get(from..).unwrap_or_default();
        let whole = |it: &Rc<Message>| self.live.original(&it.id).unwrap_or_else(|| Rc::clone(it));
        shown.iter().map(whole).collect()
    }

    /// Takes what was said to tool calls that an earlier call left open: those that run now, and why the conversation
    /// cannot go on behind them.
    fn take_answers(
        &self,
        session: &mut Session,
        answered: Answered,
    ) -> (Vec<ToolUse>, Option<Reason>) {
        let Answered { results, approved, waiting, leaves } = answered;
        if !self.input.answers.is_empty() {
            self.outbox.push(Event::Answered { answers: self.input.answers.clone() });
        }
        for rule in open::remembered(&self.input.answers) {
            self.live.facts.borrow_mut().permission_context.remember(rule);
        }
        for result in results {
            self.tell(&result);
            self.append(session, vec![run::result_message(result)]);
        }
        for call in &approved {
            let input = Some(call.input.clone());
            self.mark(session, Later { input, ..Later::new(&call.id, CallState::Allowed) });
        }
        self.approved.replace(approved.iter().map(|call| call.id.clone()).collect());
        (approved.into_iter().chain(waiting).collect(), leaves)
    }

    /// Tells of a result without a run.
    pub(super) fn tell(&self, result: &ToolResult) {
        let ToolResult { id, name, output, state, .. } = result.clone();
        let (tool_call_id, start) = (id.clone(), name.clone());
        self.outbox.push(Event::ToolStart { tool_call_id, name: start });
        self.outbox.push(Event::ToolEnd { tool_call_id: id, name, state, output });
    }

    /// A call that is cut off leaves no tool call open, also not one that waits for a result from outside.
    fn close_open(&self, session: &mut Session) -> Option<Reason> {
        let close = |call: &ToolUse| ToolResult::new(call, ResultState::Interrupted, STOPPED_CALL);
        let results: Vec<_> = open::open_calls(&session.context).into_iter().map(close).collect();
        let was_open = !results.is_empty() && !mutants::is("open-calls-stay");
        let results = results.into_iter().filter(|_| was_open).map(run::result_message);
        self.append(session, results.collect());
        was_open.then_some(Reason::Interrupted)
    }

    /// Stamps messages and appends them; calls that have their result are finished.
    pub(super) fn append(&self, session: &mut Session, messages: Vec<Message>) {
        let at = rfc3339(self.agent.host.now_ms());
        for message in messages {
            for block in &message.content {
                if let Block::ToolResult(result) = block {
                    self.mark(session, Later::new(&result.id, CallState::Finished));
                }
            }
            session.context_mut().push(Rc::new(stamped(message, self.agent, &at)));
        }
    }

    /// Marks the calls whose result comes later, from outside.
    fn note_suspended(&self, session: &mut Session, results: &[ToolResult]) {
        for result in results.iter().filter(|result| result.state == ResultState::Suspended) {
            let awaits = Some(Block::text_of(&result.output));
            self.mark(session, Later { awaits, ..Later::new(&result.id, CallState::Pending) });
        }
    }

    /// Says how far a tool call is; of one that is stored, as a later fact.
    fn mark(&self, session: &mut Session, later: Later) {
        let Some((index, later)) = placed(&session.context, later) else { return };
        if let Some(message) = session.context_mut().get_mut(index) {
            later.apply(message);
            session.lineage.changed(index);
        }
        if let Some(mut original) = self.live.original(&later.message) {
            later.apply(&mut original);
            self.live.keep_original(original);
        }
        if index < self.stored.get() {
            self.changes.borrow_mut().push(later);
        }
    }
}

/// What a hook says in place of the model.
fn answer(says: String) -> Option<Message> {
    (!says.is_empty()).then(|| Message::draft(Role::Assistant, vec![Block::text(says)]))
}
