//! The turn of a call: the loop that asks the model and runs tools. The run decides each step.

pub(in crate::engine) mod attempt;
mod hook_wait;
pub(in crate::engine) mod hooks;
pub(in crate::engine) mod join;
pub(in crate::engine) mod model;
pub(in crate::engine) mod output;
pub(in crate::engine) mod permission;
mod revise;
pub(in crate::engine) mod setup;
pub(in crate::engine) mod tool_access;
pub(in crate::engine) mod tools;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::engine::call::cancel::Cause;
use crate::engine::call::log::CallLog;
use crate::engine::call::outcome::{
    aborted, shutting_down, taken_over, timed_out, with_stored_answer,
};
use crate::engine::compaction::evicted_files::EvictedFiles;
use crate::engine::compaction::fit::{Fitting, FittingModels, FittingParts};
use crate::engine::instructions::Instructions;
use crate::engine::options::{Durability, Options};
use crate::engine::subagent::report::{tell_ends, told_in};
use crate::engine::subagent::role::ChildRole;
use crate::engine::turn::attempt::{ModelAttempts, RequestParts};
use crate::engine::turn::hooks::Hooks;
use crate::engine::turn::model::{AnsweringModels, ModelRequests};
use crate::engine::turn::permission::{Permissions, show_result};
use crate::engine::turn::setup::{TurnResult, TurnSetup, TurnStart};
use crate::engine::turn::tool_access::ToolAccess;
use crate::engine::turn::tools::{ToolResults, ToolRunner};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reason};
use crate::future::rarely;
use crate::message::{Block, CallState, Message, ResultState, Role, ToolResult, ToolUse};
use crate::run::open::{self, Answered};
use crate::run::{self, Run, STOPPED_CALL, Step};
use crate::seams;
use crate::state::Facts;
use crate::store::format::entry::{CallUpdate, EntryKind};
use crate::store::format::input::Input;
use crate::store::id;
use crate::store::session::{Session, TurnCommit};

/// The turn of a call.
pub(in crate::engine) struct Turn<'a> {
    setup: TurnSetup<'a>,
    log: &'a CallLog<'a>,
    hooks: Hooks<'a>,
    instructions: &'a Instructions<'a>,
    fitting: &'a Fitting<'a>,
    model: ModelRequests<'a>,
    permissions: &'a Permissions<'a>,
    tools: ToolRunner<'a>,
    /// The step whose failed save ended the turn.
    unsaved: RefCell<Option<TurnCommit>>,
    is_aside: Cell<bool>,
}

impl Turn<'_> {
    /// Runs a turn to its end. New messages are added to the session's context.
    pub(in crate::engine) async fn run(
        setup: TurnSetup<'_>,
        session: &mut Session,
        start: TurnStart,
    ) -> TurnResult {
        let TurnSetup { scope, parts, role, output, generate, .. } = setup;
        let log = CallLog::new(scope, session);
        let hooks = Hooks::new(scope, &parts.hooks);
        let instructions = Instructions::new(parts.sources(scope.options), scope.slot, role);
        let own = role.and_then(ChildRole::model).unwrap_or_else(|| parts.models.own());
        let models = FittingModels { all: &parts.models, own, summariser: parts.summariser() };
        let files = EvictedFiles {
            scope,
            files: parts.readable_files(),
            stored: parts.sessions.stored(),
            call_id: &setup.input.call_id,
        };
        let memory = parts.memory.as_deref();
        let fits = FittingParts { log: &log, instructions: &instructions, memory, files };
        let fitting = Fitting::new(scope, fits, models);
        let tools = ToolAccess::new(scope, &parts.tools, &instructions);
        let permissions = Permissions::new(scope, tools);
        let request = RequestParts { instructions: &instructions, tools, output, generate };
        let attempts = ModelAttempts { scope, parts: request, fitting: &fitting, hooks };
        let models = AnsweringModels { own, fallback: parts.models.fallback() };
        let turn = Turn {
            setup,
            log: &log,
            hooks,
            instructions: &instructions,
            fitting: &fitting,
            model: ModelRequests::new(scope, models, attempts),
            permissions: &permissions,
            tools: ToolRunner::new(scope, tools, &permissions, hooks, &parts.calls),
            unsaved: RefCell::default(),
            is_aside: Cell::new(false),
        };
        turn.run_to_end(session, start).await
    }

    async fn run_to_end(&self, session: &mut Session, start: TurnStart) -> TurnResult {
        let input = self.setup.input.messages.clone();
        let (calls, leaves) = self.take_person_answers(session, start.answered);
        let (reason, error) = match self.prepare(session, input.clone()).await {
            Ok(hooked) => {
                let input = if start.is_again { input } else { hooked };
                session.context_mut().extend(input);
                let Options { max_iterations, max_tool_calls, .. } = *self.setup.scope.options;
                let run = Run::with_calls(max_iterations, calls, leaves);
                self.follow(session, run.with_max_tool_calls(max_tool_calls)).await
            }
            Err(error) => {
                session.context_mut().extend(input);
                (Reason::Interrupted, Some(error))
            }
        };
        self.end(session, reason, error)
    }

    /// Takes the answers to tool calls that an earlier call left open. Returns the tool calls to run now. If others
    /// stay open, it also returns why the turn ends after these calls.
    fn take_person_answers(
        &self,
        session: &mut Session,
        answered: Answered,
    ) -> (Vec<ToolUse>, Option<Reason>) {
        let Answered { results, approved, waiting, leaves } = answered;
        let (scope, input) = (self.setup.scope, self.setup.input);
        if !input.answers.is_empty() {
            scope.emit(Event::Answered { answers: input.answers.clone() });
        }
        for rule in open::remembered(&input.answers) {
            scope.live.change_facts(|facts| facts.permission_context.remember(rule));
        }
        for result in results {
            show_result(scope, &result);
            self.log.append(session, vec![run::result_message(result)]);
        }
        for call in &approved {
            let input = Some(call.input.clone());
            let allowed = CallUpdate { input, ..CallUpdate::new(&call.id, CallState::Allowed) };
            self.log.mark(session, allowed);
        }
        self.permissions.approve(&approved);
        (approved.into_iter().chain(waiting).collect(), leaves)
    }

    /// Passes the input to the hooks, and writes the system prompt.
    async fn prepare(
        &self,
        session: &Session,
        input: Vec<Rc<Message>>,
    ) -> Result<Vec<Rc<Message>>> {
        let scope = self.setup.scope;
        let _shown = scope.live.show(session);
        let input = match self.hooks.is_empty() {
            true => input,
            false => rarely(self.hooks.on_call(input)).await?,
        };
        let facts = scope.live.with_facts(Facts::clone);
        for (code, error) in self.instructions.read(&facts).await {
            scope.warn(code, error.message());
        }
        let memory = self.setup.parts.memory.as_ref();
        if let Some(message) = memory.and_then(|memory| memory.take_failure(scope.slot)) {
            scope.warn("memory", message);
        }
        let prompt = self.hooks.system_prompt(self.instructions.written_prompt()).await?;
        self.instructions.set_prompt(prompt);
        Ok(input)
    }

    /// Executes the steps of the run until it is done. Returns the reason for its end, and the error if it failed.
    async fn follow(&self, session: &mut Session, run: Run) -> (Reason, Option<Error>) {
        let mut run = run;
        let mut error = None;
        loop {
            match run.next() {
                Step::Done(reason) => return (reason, error),
                _ if self.setup.scope.is_stopped() || self.setup.parts.calls.is_closing() => {
                    run.interrupted(None);
                }
                Step::CallModel(asking) => match self.before_model(session).await {
                    Ok(()) if self.setup.scope.is_stopped() => run.interrupted(None),
                    Ok(()) => {
                        let iteration = run.iteration() + 1;
                        let answer = self.model.ask(session, asking, iteration).await;
                        error = answer.report(&mut run).or(error);
                    }
                    Err(why) => {
                        error = Some(why);
                        run.failed(None);
                        continue;
                    }
                },
                Step::CallTools(calls) => {
                    error = self.call_tools(session, &mut run, &calls).await.or(error);
                }
            }
            self.log.append(session, run.take_messages());
            let scope = self.setup.scope;
            if scope.options.durability == Durability::Exit {
                scope.checkpoints.grow(scope.host.now_ms());
            } else if let Err(why) = rarely(self.store_step(session, &run)).await {
                return (Reason::Interrupted, Some(why));
            }
        }
    }

    /// Runs the permitted tools and reports their results to the run. Returns the error of a hook, if one failed.
    async fn call_tools(
        &self,
        session: &mut Session,
        run: &mut Run,
        calls: &[ToolUse],
    ) -> Option<Error> {
        let shown = self.setup.scope.live.show(session);
        let permits = self.permissions.decide(calls).await;
        let mut ran = match permits.stopped {
            true => ToolResults { stopped: true, ..ToolResults::default() },
            false => self.tools.run(&permits.runs).await,
        };
        drop(shown);
        let is_asked = !permits.paused.is_empty();
        permits.paused.into_iter().for_each(|later| self.log.mark(session, later));
        self.mark_suspended(session, &ran.results);
        ran.results.extend(permits.denied);
        ran.results.into_iter().for_each(|result| run.tool_returned(result));
        if ran.failed.is_some() {
            run.failed(None);
        } else if ran.stopped {
            run.interrupted(None);
        } else if is_asked {
            run.asked();
        }
        ran.failed
    }

    /// Marks the suspended tool calls: their results come later, from outside.
    fn mark_suspended(&self, session: &mut Session, results: &[ToolResult]) {
        for result in results.iter().filter(|result| result.state == ResultState::Suspended) {
            let awaits = Some(Block::text_of(&result.output));
            let later = CallUpdate { awaits, ..CallUpdate::new(&result.id, CallState::Pending) };
            self.log.mark(session, later);
        }
    }

    /// Adds a message for each subagent that has ended.
    async fn tell_of_children(&self, session: &mut Session) {
        let TurnSetup { scope, parts, children, .. } = self.setup;
        if scope.options.subagents.is_some() {
            let children = (children, &*parts.children);
            rarely(tell_ends(children, &parts.sessions, (scope, self.log), session)).await;
        }
    }

    /// Stores the messages so far as a step.
    async fn store_step(&self, session: &mut Session, run: &Run) -> Result<()> {
        let is_over = matches!(run.next(), Step::Done(_));
        if is_over || self.log.unstored(session).is_empty() {
            return Ok(());
        }
        self.store_part(session).await
    }

    /// Stores what is not stored yet, as a step.
    async fn store_part(&self, session: &mut Session) -> Result<()> {
        let TurnSetup { scope, parts, input, joined, children, .. } = self.setup;
        let messages = self.log.unstored(session);
        let changes = self.log.take_changes();
        if messages.is_empty() && changes.is_empty() && session.view_change.is_empty() {
            return Ok(());
        }
        let facts = scope.live.with_facts(Facts::clone);
        let turn = TurnCommit {
            id: id::random_id(scope.host),
            kind: EntryKind::Step,
            // Only the first entry of the call keeps the earlier facts.
            input: match self.log.n_own_stored() {
                0 => input.clone(),
                _ => Input { earlier: None, ..input.clone() },
            },
            joined: joined.inputs(),
            changes,
            outcome: None,
            facts: scope.options.persistence.saved(&facts, &session.facts()),
            view_change: session.view_change.clone(),
            is_forgotten: false,
            left_out: None,
            told_tasks: told_in(children, &messages),
            pieces: scope.checkpoints.close(),
            messages,
        };
        let saved = match parts.sessions.stored().save_turn(session, &turn).await {
            Ok(saved) => saved,
            Err(error) => {
                self.is_aside.set(error.kind() == ErrorKind::Superseded);
                self.unsaved.replace(Some(turn));
                return Err(error);
            }
        };
        self.log.all_stored(session);
        scope.checkpoints.answer(&input.call_id, session.accepted.clone());
        scope.emit(Event::Saved { version: saved.version, bytes: saved.bytes });
        Ok(())
    }

    /// Ends the turn: closes open tool calls if the turn was cut off, and collects the result.
    fn end(&self, session: &mut Session, reason: Reason, error: Option<Error>) -> TurnResult {
        let (scope, calls) = (self.setup.scope, &self.setup.parts.calls);
        let cause = scope.cancel.cause();
        let reason = if cause.is_some() || error.is_some() {
            self.close_open_calls(session).unwrap_or(reason)
        } else {
            reason
        };
        let is_cut_short = matches!(reason, Reason::Interrupted) && calls.is_closing();
        let is_shut_down =
            matches!(cause, Some(Cause::Shutdown)) || (is_cut_short && cause.is_none());
        let ended = match (error, cause) {
            (Some(error), _) => Err(error),
            (None, Some(Cause::Aborted)) => Err(aborted()),
            (None, Some(Cause::TimedOut)) => Err(with_stored_answer(timed_out())),
            (None, Some(Cause::TakenOver)) => Err(with_stored_answer(taken_over(scope.slot))),
            (None, _) if is_shut_down => Err(with_stored_answer(shutting_down())),
            (None, Some(Cause::Stopped(says))) => {
                self.log.append(session, says);
                Ok(reason)
            }
            (None, _) => Ok(reason),
        };
        let messages = self.log.messages(session);
        let mut usage = self.fitting.take_spent();
        messages.iter().filter_map(|message| message.usage.as_ref()).for_each(|one| usage.add(one));
        let partial =
            messages.iter().rfind(|it| it.role == Role::Assistant).filter(|_| ended.is_err());
        let asks = open::asks(&session.context);
        if !asks.is_empty() {
            scope.emit(Event::Ask { asks: asks.clone() });
        }
        TurnResult {
            partial: partial.cloned(),
            messages,
            n_stored: self.log.n_own_stored(),
            changes: self.log.take_changes(),
            unsaved: self.unsaved.take(),
            asks,
            usage,
            ended,
            facts: Facts {
                shutdown_interrupted: is_shut_down,
                ..scope.live.with_facts(Facts::clone)
            },
            is_aside: self.is_aside.get(),
        }
    }

    /// Closes all open tool calls of a turn that was cut off, including those that wait for a result from outside.
    fn close_open_calls(&self, session: &mut Session) -> Option<Reason> {
        let close = |call: &ToolUse| ToolResult::new(call, ResultState::Interrupted, STOPPED_CALL);
        let results: Vec<_> = open::open_calls(&session.context).into_iter().map(close).collect();
        if !seams::must_close(!results.is_empty()) {
            return None;
        }
        self.log.append(session, results.into_iter().map(run::result_message).collect());
        Some(Reason::Interrupted)
    }
}
