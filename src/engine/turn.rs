//! The loop of one call: asks the model and runs the tools, as the run says.

use std::future::Future;
use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::drive::stamped;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{aborted, shutting_down};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reason};
use crate::future::{Either, Local, join_all, race};
use crate::message::{Block, Message, ResultState, Role, ToolResult, ToolUse, Usage, rfc3339};
use crate::policy::retry;
use crate::port::{Request, ToolRun};
use crate::run::{self, Asking, Assembly, Run, Step};
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
}

/// What came of asking the model.
enum Asked {
    Replied(run::Reply),
    Stopped(Option<Message>),
    Failed(Error, Option<Message>),
}

impl Turn<'_> {
    /// Runs to the end. New messages go to the session's context, and all of them into the answer.
    pub(super) async fn speak(&self, session: &mut Session, input: Vec<Rc<Message>>) -> Spoken {
        let first = session.context.len();
        session.context.extend(input);
        let mut run = Run::new(self.agent.options.max_iterations);
        let mut usage = Usage::default();
        let (mut error, mut partial, mut shut_down) = (None, None, false);
        let reason = loop {
            let known = session.context.len();
            match run.next() {
                Step::Done(reason) => break reason,
                _ if self.cancel.cause().is_some() => run.interrupted(None),
                _ if self.agent.closing.get() => {
                    shut_down = true;
                    run.interrupted(None);
                }
                Step::CallModel(asking) => {
                    match self.ask(session, asking, run.iteration() + 1).await {
                        Asked::Replied(reply) => run.replied(reply),
                        Asked::Stopped(said) => run.interrupted(said),
                        Asked::Failed(why, said) => {
                            error = Some(why);
                            run.failed(said);
                        }
                    }
                }
                Step::CallTools(calls) => {
                    let (results, stopped) = self.run_tools(&calls).await;
                    results.into_iter().for_each(|result| run.tool_returned(result));
                    if stopped {
                        run.interrupted(None);
                    }
                }
            }
            self.append(session, run.take_messages());
            let new = session.context.get(known..).unwrap_or_default();
            new.iter().filter_map(|message| message.usage.as_ref()).for_each(|one| usage.add(one));
            if error.is_some() {
                partial = new.iter().find(|message| message.role == Role::Assistant).cloned();
            }
        };
        let cause = self.cancel.cause();
        shut_down |= matches!(cause, Some(Cause::Shutdown));
        let ended = match (error, cause) {
            (Some(error), _) => Err(error),
            (None, Some(Cause::Aborted)) => Err(aborted()),
            (None, _) if shut_down => Err(shutting_down()),
            (None, Some(Cause::Stopped(says))) => {
                self.append(session, says);
                Ok(reason)
            }
            (None, _) => Ok(reason),
        };
        if ended.is_err() {
            let said = session.context.iter().skip(first);
            partial = partial.or(said.rev().find(|it| it.role == Role::Assistant).cloned());
        }
        let facts = Facts { shutdown_interrupted: shut_down, ..session.facts() };
        let messages = session.context.get(first..).unwrap_or_default().to_vec();
        Spoken { messages, partial, usage, ended, facts }
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

    /// Asks the model, again where the failure is a passing one and nothing of an answer was seen.
    async fn ask(&self, session: &Session, asking: Asking, iteration: u32) -> Asked {
        let mut attempt = 1;
        loop {
            let model = self.agent.model.id().to_owned();
            self.outbox.push(Event::ModelStart { iteration, model });
            let asked = self.ask_once(session, asking, iteration).await;
            let Asked::Failed(error, None) = asked else { return asked };
            let wait =
                retry::wait_ms(self.agent.options.retries, attempt, error.kind(), self.chance());
            let Some(wait_ms) = wait else { return Asked::Failed(error, None) };
            attempt += 1;
            self.outbox.push(Event::Retry { attempt, wait_ms, code: error.kind().code() });
            if let Either::First(()) =
                race(self.cancel.asked(), self.agent.host.sleep(wait_ms)).await
            {
                return Asked::Stopped(None);
            }
        }
    }

    async fn ask_once(&self, session: &Session, asking: Asking, iteration: u32) -> Asked {
        let started = self.agent.host.now_ms();
        let mut assembly = Assembly::new(crate::store::id::mint(&*self.agent.host));
        let received = self.receive(session, asking, &mut assembly).await;
        let visible = assembly.is_visible();
        let mut events = Vec::new();
        let seconds = (self.agent.host.now_ms() - started) / 1_000.0;
        let reply = assembly.finish(seconds, &mut events);
        events.into_iter().for_each(|event| self.outbox.push(event));
        let finish = match &received {
            Ok(Either::First(())) => "interrupted",
            Ok(Either::Second(())) => reply.finish.word(),
            Err(_) => "error",
        };
        let usage = reply.message.usage.clone().unwrap_or_default();
        self.outbox.push(Event::ModelEnd { iteration, usage, finish: finish.to_owned() });
        match received {
            Ok(Either::First(())) => Asked::Stopped(Some(reply.message).filter(|_| visible)),
            Ok(Either::Second(())) => Asked::Replied(reply),
            Err(error) => Asked::Failed(error, Some(reply.message).filter(|_| visible)),
        }
    }

    /// Receives an answer; the first is a wish to stop.
    async fn receive(
        &self,
        session: &Session,
        asking: Asking,
        assembly: &mut Assembly,
    ) -> Result<Either<(), ()>> {
        let timeouts = self.agent.options.timeouts;
        let tools = match asking {
            Asking::WithTools => self.agent.tools.specs(),
            Asking::ToClose => &[],
        };
        let request = Request {
            slot: self.slot,
            tag: self.tag,
            system: &self.agent.options.system_prompt,
            messages: &session.context,
            lineage: &session.lineage,
            tools,
            generate: &self.agent.options.generate,
        };
        let asked = self.unless_stopped(timeouts.model, self.agent.model.ask(request)).await?;
        let Either::Second(mut deltas) = asked else { return Ok(Either::First(())) };
        let mut patience = timeouts.model;
        loop {
            let arrived = self.unless_stopped(patience, deltas.next()).await?;
            let Either::Second(arrived) = arrived else { return Ok(Either::First(())) };
            if arrived.is_empty() {
                return Ok(Either::Second(()));
            }
            patience = timeouts.idle;
            let mut events = Vec::new();
            arrived.into_iter().for_each(|delta| assembly.push(delta, &mut events));
            events.into_iter().for_each(|event| self.outbox.push(event));
            self.breathe().await;
        }
    }

    /// Lets whoever pulls the call see what there is before the model is asked for more.
    async fn breathe(&self) {
        let mut shown = self.outbox.is_empty();
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut shown, true) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }

    async fn unless_stopped<T>(
        &self,
        ms: u64,
        work: Local<'_, Result<T>>,
    ) -> Result<Either<(), T>> {
        let timed = race(work, self.agent.host.sleep(ms));
        match race(self.cancel.asked(), timed).await {
            Either::First(()) => Ok(Either::First(())),
            Either::Second(Either::First(done)) => done.map(Either::Second),
            Either::Second(Either::Second(())) => {
                let message = format!("the model sent nothing for {ms} ms");
                Err(Error::new(ErrorKind::ModelTimeout, message)
                    .hint("try again, or raise timeouts.model"))
            }
        }
    }

    /// Runs tools: neighbours that may run side by side do so, results are in the order of the calls.
    async fn run_tools(&self, calls: &[ToolUse]) -> (Vec<ToolResult>, bool) {
        let mut results = Vec::new();
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let is_parallel = |call: &&ToolUse| {
                self.agent.tools.find(&call.name).is_none_or(|entry| entry.tool.spec().parallel)
            };
            let n_together = rest.iter().take_while(is_parallel).count().max(1);
            let (together, later) =
                rest.split_at_checked(n_together).unwrap_or((std::slice::from_ref(first), &[]));
            let running =
                together.iter().map(|call| Box::pin(self.run_tool(call)) as Local<'_, _>).collect();
            results.extend(join_all(running).await.into_iter().flatten());
            rest = later;
            if self.cancel.cause().is_some() {
                return (results, true);
            }
        }
        (results, false)
    }

    /// Runs one tool; `None` if the call was stopped meanwhile.
    async fn run_tool(&self, call: &ToolUse) -> Option<ToolResult> {
        let (tool_call_id, name) = (call.id.clone(), call.name.clone());
        self.outbox
            .push(Event::ToolStart { tool_call_id: tool_call_id.clone(), name: name.clone() });
        let running = Running::new(self.agent, (self.slot.clone(), name.clone()));
        let outcome = match race(self.cancel.asked(), self.execute(call)).await {
            Either::First(()) => None,
            Either::Second(result) => Some(result),
        };
        drop(running);
        let (state, output) = match &outcome {
            Some(result) => (result.state, result.output.clone()),
            None => (ResultState::Interrupted, Vec::new()),
        };
        self.outbox.push(Event::ToolEnd { tool_call_id, name, state, output });
        outcome
    }

    /// Whatever goes wrong in a tool is a result that the model can read.
    async fn execute(&self, call: &ToolUse) -> ToolResult {
        let Some(entry) = self.agent.tools.find(&call.name) else {
            let names: Vec<_> =
                self.agent.tools.specs().iter().map(|spec| spec.name.as_str()).collect();
            let text = format!(
                "There is no tool named \"{}\". The tools are: {}.",
                call.name,
                names.join(", ")
            );
            return ToolResult::new(call, ResultState::Error, text);
        };
        let tool = &entry.tool;
        let input = match entry.check(&call.input) {
            Ok(input) => input,
            Err(problems) => return ToolResult::new(call, ResultState::Error, problems),
        };
        let ms = tool.spec().timeout_ms.unwrap_or(self.agent.options.timeouts.tool);
        let run = ToolRun { slot: self.slot, tag: self.tag, tool_call_id: &call.id, input: &input };
        match within(ms, tool.call(run), self.agent.host.sleep(ms)).await {
            Ok(output) => ToolResult { output, ..ToolResult::new(call, ResultState::Success, "") },
            Err(error) => ToolResult::new(call, ResultState::Error, error.message()),
        }
    }

    /// A random number in 0..1.
    fn chance(&self) -> f64 {
        let mut bytes = [0; 2];
        self.agent.host.random(&mut bytes);
        f64::from(u16::from_le_bytes(bytes)) / 65_536.0
    }
}

/// A tool that runs, told to those who wait behind it; also a call that is dropped takes it back.
struct Running<'a>(&'a Inner, (Slot, String));

impl<'a> Running<'a> {
    fn new(agent: &'a Inner, tool: (Slot, String)) -> Running<'a> {
        agent.running_tools.borrow_mut().push(tool.clone());
        Running(agent, tool)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut tools = self.0.running_tools.borrow_mut();
        if let Some(index) = tools.iter().position(|tool| *tool == self.1) {
            tools.swap_remove(index);
        }
    }
}

async fn within(
    ms: u64,
    work: Local<'_, Result<Vec<Block>>>,
    limit: impl Future<Output = ()>,
) -> Result<Vec<Block>> {
    match race(work, limit).await {
        Either::First(done) => done,
        Either::Second(()) => Err(Error::new(
            ErrorKind::Timeout,
            format!("The tool did not finish within {ms} ms and was stopped."),
        )),
    }
}
