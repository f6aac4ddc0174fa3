//! One attempt to get an answer from a model: the request, its hooks and deadlines, and the answer as it arrives.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use serde_json::Value;

use crate::engine::call::scope::CallScope;
use crate::engine::compaction::fit::Fitting;
use crate::engine::instructions::Instructions;
use crate::engine::turn::hooks::{Hooks, RequestChanges, Verdict};
use crate::engine::turn::output::Output;
use crate::engine::turn::tool_access::ToolAccess;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, Local, race, rarely};
use crate::message::{Block, Delta, Finish, MAX_TOOL_TEXT, Message, Role, Usage, shortened};
use crate::policy::tokens;
use crate::port::{Lineage, Model, Request, ToolSpec};
use crate::run::{Asking, Assembly, ModelReply, Run};
use crate::store::id;
use crate::store::session::Session;

/// The result of a request to the model.
pub(in crate::engine) enum ModelAnswer {
    /// The model answered.
    Replied(ModelReply),
    /// A hook ended the call with this text.
    Ended(String),
    /// The turn was stopped. With the part of the answer that had arrived.
    Stopped(Option<Message>),
    /// The request failed. With the part of the answer that had arrived.
    Failed(Error, Option<Message>),
}

impl ModelAnswer {
    /// Reports the answer to the run. Returns the error if the request failed.
    pub(in crate::engine) fn report(self, run: &mut Run) -> Option<Error> {
        match self {
            ModelAnswer::Replied(reply) => run.replied(reply),
            ModelAnswer::Ended(says) => run.stopped(said_instead(says)),
            ModelAnswer::Stopped(said) => run.interrupted(said),
            ModelAnswer::Failed(why, said) => {
                run.failed(said);
                return Some(why);
            }
        }
        None
    }
}

/// The answer of a hook in place of the model's answer.
fn said_instead(says: String) -> Option<Message> {
    let says = shortened(says, MAX_TOOL_TEXT);
    (!says.is_empty()).then(|| Message::draft(Role::Assistant, vec![Block::text(says)]))
}

/// The parts of a request besides the conversation.
#[derive(Clone, Copy)]
pub(in crate::engine) struct RequestParts<'a> {
    pub(in crate::engine) instructions: &'a Instructions<'a>,
    pub(in crate::engine) tools: ToolAccess<'a>,
    /// The output schema, if the caller asked for structured output.
    pub(in crate::engine) output: Option<&'a Output>,
    /// Temperature and the like.
    pub(in crate::engine) generate: &'a Value,
}

/// One attempt to get an answer.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Attempt<'a> {
    pub(in crate::engine) model: &'a dyn Model,
    pub(in crate::engine) asking: Asking,
    pub(in crate::engine) iteration: u32,
    /// The limit for the tokens of the answer, if the provider has said how many fit.
    pub(in crate::engine) max_tokens: Option<u64>,
}

/// What a request waits for, with the timeout in milliseconds.
#[derive(Clone, Copy)]
enum ModelWait {
    /// The provider accepts the request.
    Connect(u64),
    /// The answer begins.
    FirstByte(u64),
    /// The next piece of the answer arrives.
    Idle(u64),
}

/// Makes the attempts of one call.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ModelAttempts<'a> {
    pub(in crate::engine) scope: &'a CallScope<'a>,
    pub(in crate::engine) parts: RequestParts<'a>,
    pub(in crate::engine) fitting: &'a Fitting<'a>,
    pub(in crate::engine) hooks: Hooks<'a>,
}

impl ModelAttempts<'_> {
    /// Sends the request and receives the answer.
    pub(in crate::engine) async fn ask(
        &self,
        session: &Session,
        attempt: Attempt<'_>,
    ) -> ModelAnswer {
        let iteration = attempt.iteration;
        let _shown = self.scope.live.show(session);
        let tools = self.offered_tools(attempt);
        let changes = match self.hooks.is_empty() {
            true => Ok(Verdict::GoOn(RequestChanges::default())),
            false => {
                let prompt = self.parts.instructions.prompt();
                let request = (&*prompt, &*tools, self.parts.generate);
                rarely(self.hooks.before_model(session, request)).await
            }
        };
        let changes = match changes {
            Ok(Verdict::GoOn(_)) if self.scope.is_stopped() => {
                return self.unasked(iteration, ModelAnswer::Stopped(None));
            }
            Ok(Verdict::GoOn(changes)) => changes,
            Ok(Verdict::Stop(says)) => {
                return self.unasked(iteration, ModelAnswer::Ended(says));
            }
            Err(error) => return self.unasked(iteration, ModelAnswer::Failed(error, None)),
        };
        let started = self.scope.host.now_ms();
        let assembly = Rc::new(RefCell::new(Assembly::new(id::random_id(self.scope.host))));
        self.scope.checkpoints.ask(started, &assembly);
        let received = self.receive(session, attempt, &tools, &changes, &assembly).await;
        let assembly = assembly.replace(Assembly::new(String::new()));
        let is_visible = assembly.is_visible();
        if assembly.has_halves() {
            let message = "half a character was replaced in what the model said";
            self.scope.warn("text", message.to_owned());
        }
        let mut events = Vec::new();
        let seconds = (self.scope.host.now_ms() - started) / 1_000.0;
        let reply = assembly.finish(seconds, &mut events);
        events.into_iter().for_each(|event| self.show(event));
        let usage = reply.message.usage.clone().unwrap_or_default();
        if received.is_ok() {
            self.compare_usage(session, attempt, &changes, &usage);
        }
        let finish = match &received {
            Ok(Either::First(())) => "interrupted",
            Ok(Either::Second(())) => reply.finish.word(),
            Err(_) => "error",
        };
        self.scope.emit(Event::ModelEnd { iteration, usage, finish: finish.to_owned() });
        self.answer(received, reply, is_visible).await
    }

    /// What a reply means for the turn. `is_visible`: the caller has seen a part of the reply.
    async fn answer(
        &self,
        received: Result<Either<(), ()>>,
        reply: ModelReply,
        is_visible: bool,
    ) -> ModelAnswer {
        match received {
            Ok(Either::First(())) => {
                ModelAnswer::Stopped(Some(reply.message).filter(|_| is_visible))
            }
            Ok(Either::Second(())) if reply.finish == Finish::Filter => {
                let error =
                    Error::new(ErrorKind::ModelRefused, "the provider's filter stopped the answer");
                let error = error.hint("rephrase the message");
                ModelAnswer::Failed(error, Some(reply.message).filter(|_| is_visible))
            }
            Ok(Either::Second(())) if self.hooks.is_empty() => ModelAnswer::Replied(reply),
            Ok(Either::Second(())) => {
                match rarely(self.hooks.after_model(reply.message.clone())).await {
                    Ok(Verdict::GoOn(message)) if self.scope.is_stopped() => {
                        ModelAnswer::Stopped(Some(message))
                    }
                    Ok(Verdict::GoOn(message)) => {
                        ModelAnswer::Replied(ModelReply { message, ..reply })
                    }
                    Ok(Verdict::Stop(says)) => ModelAnswer::Ended(says),
                    Err(error) => ModelAnswer::Failed(error, Some(reply.message)),
                }
            }
            Err(error) => ModelAnswer::Failed(error, Some(reply.message).filter(|_| is_visible)),
        }
    }

    /// Corrects our estimate with the provider's token count. Warns if the count is so low that the provider may have
    /// cut the request.
    fn compare_usage(
        &self,
        session: &Session,
        attempt: Attempt<'_>,
        changes: &RequestChanges,
        usage: &Usage,
    ) {
        let messages = changes.messages.as_deref().unwrap_or(&session.context);
        // If the provider reports no count, there is nothing to compare, so a long conversation is not estimated.
        let (estimate, window) = match usage.input_tokens {
            0 => (0, None),
            _ => (
                tokens::at_least(messages),
                self.fitting.estimates().window_after(attempt.model, usage.input_tokens),
            ),
        };
        if tokens::is_cut(estimate, usage.input_tokens, window) {
            let message = format!(
                "the provider counted {} tokens of a request of about {estimate}: it may have left out the beginning",
                usage.input_tokens
            );
            self.scope.warn("context_truncated", message);
        } else if changes.messages.is_none() {
            self.fitting.estimates().learn(attempt.model, messages, usage.input_tokens);
        }
    }

    /// Receives an answer. `First`: the turn was stopped.
    async fn receive(
        &self,
        session: &Session,
        attempt: Attempt<'_>,
        tools: &[Rc<ToolSpec>],
        changes: &RequestChanges,
        assembly: &RefCell<Assembly>,
    ) -> Result<Either<(), ()>> {
        let RequestParts { instructions, output, generate, .. } = self.parts;
        let timeouts = self.scope.options.timeouts;
        let prompt = instructions.prompt();
        let said = changes.messages.as_deref().unwrap_or(&session.context);
        let reminder = self.scope.live.with_facts(|facts| instructions.reminder(facts));
        let reminded = reminder.map(|reminder| [said, &[reminder]].concat());
        let fresh = Lineage::new();
        let given = changes.generate.as_ref().unwrap_or(generate);
        let generate = match attempt.max_tokens {
            Some(max_tokens) => Cow::Owned(limited(given, max_tokens)),
            None => Cow::Borrowed(given),
        };
        let request = Request {
            slot: self.scope.slot,
            tag: self.scope.tag,
            system: changes.system.as_deref().unwrap_or(&prompt),
            messages: reminded.as_deref().unwrap_or(said),
            lineage: if changes.messages.is_some() { &fresh } else { &session.lineage },
            tools: changes.tools.as_deref().unwrap_or(tools),
            generate: generate.as_ref(),
            form: output.filter(|_| self.keeps_form(attempt)).map(|output| output.form()),
        };
        let started = self.scope.host.now_ms();
        let connecting = ModelWait::Connect(timeouts.model);
        let asked = self.unless_stopped(connecting, attempt.model.ask(request)).await;
        if reminded.is_some() {
            // JavaScript may keep the messages of a request. The reminder at the end is not part of the conversation,
            // so JavaScript must drop it.
            session.lineage.changed(session.context.len());
        }
        let Either::Second(mut deltas) = asked? else { return Ok(Either::First(())) };
        let passed = self.scope.host.now_ms() - started;
        let mut wait = ModelWait::FirstByte(timeouts.model.saturating_sub(passed as u64));
        loop {
            let arrived = match self.unless_stopped(wait, deltas.next()).await {
                Err(error) if ends_answer(&error, &mut assembly.borrow_mut()) => {
                    return Ok(Either::Second(()));
                }
                arrived => arrived?,
            };
            let Either::Second(arrived) = arrived else { return Ok(Either::First(())) };
            if arrived.is_empty() {
                return Ok(Either::Second(()));
            }
            wait = ModelWait::Idle(timeouts.idle);
            self.take(arrived, assembly);
            self.hand_over().await;
        }
    }

    /// Adds what has arrived to the reply, and shows it.
    fn take(&self, arrived: Vec<Delta>, reply: &RefCell<Assembly>) {
        let mut events = Vec::new();
        for delta in arrived {
            reply.borrow_mut().push(delta, &mut events);
        }
        self.scope.checkpoints.grow(self.scope.host.now_ms());
        events.into_iter().for_each(|event| self.show(event));
    }

    /// Emits the end event of a request that was not sent.
    fn unasked(&self, iteration: u32, answer: ModelAnswer) -> ModelAnswer {
        let (usage, finish) = (Usage::default(), "unasked".to_owned());
        self.scope.emit(Event::ModelEnd { iteration, usage, finish });
        answer
    }

    /// The tools that the model may call. For a closing answer: only the hidden tool, if the caller asked for
    /// structured output.
    fn offered_tools(&self, attempt: Attempt<'_>) -> Vec<Rc<ToolSpec>> {
        let tools = match attempt.asking {
            Asking::WithTools => self.parts.tools.visible(),
            Asking::ToClose => Vec::new(),
        };
        let hidden = self.parts.output.filter(|_| !self.keeps_form(attempt));
        tools.into_iter().chain(hidden.map(|output| Rc::clone(output.spec()))).collect()
    }

    /// Whether to use the provider's own structured output in place of the hidden tool.
    fn keeps_form(&self, attempt: Attempt<'_>) -> bool {
        let beside_tools =
            attempt.asking == Asking::WithTools && !self.parts.tools.visible().is_empty();
        let may = self.parts.output.is_some_and(|output| !output.is_by_tool());
        may && attempt.model.keeps_form(self.scope.tag, beside_tools)
    }

    fn show(&self, event: Event) {
        if !self.parts.output.is_some_and(|output| output.hides(&event)) {
            self.scope.emit(event);
        }
    }

    /// Lets the caller read the new events before the model is asked for more.
    async fn hand_over(&self) {
        let mut is_shown = !self.scope.outbox.is_wanted();
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut is_shown, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    async fn unless_stopped<T>(
        &self,
        wait: ModelWait,
        work: Local<'_, Result<T>>,
    ) -> Result<Either<(), T>> {
        let (ModelWait::Connect(ms) | ModelWait::FirstByte(ms) | ModelWait::Idle(ms)) = wait;
        let timed = race(work, self.scope.host.sleep(ms));
        match race(self.scope.cancel.asked(), timed).await {
            Either::First(()) => Ok(Either::First(())),
            Either::Second(Either::First(done)) => done.map(Either::Second),
            Either::Second(Either::Second(())) => {
                let what = match wait {
                    ModelWait::Connect(_) => "did not accept the request",
                    ModelWait::FirstByte(_) => "did not begin its answer",
                    ModelWait::Idle(_) => "did not continue its answer",
                };
                let message = format!("the model {what} within {ms} ms");
                // The idle deadline never grows above its default, so a higher timeouts.model does not help there.
                let hint = match wait {
                    ModelWait::Idle(_) => "try again",
                    _ => "try again, or raise timeouts.model",
                };
                Err(Error::new(ErrorKind::ModelTimeout, message).hint(hint))
            }
        }
    }
}

/// Whether an error of a stream is only the end of its answer.
fn ends_answer(error: &Error, assembly: &mut Assembly) -> bool {
    // The finish reason has arrived, so the answer is complete: a later error loses nothing.
    if assembly.is_finished() {
        return true;
    }
    // The answer has filled the window: it was cut off at this limit, and the request was not too large.
    let is_full = error.kind() == ErrorKind::ModelContextOverflow && assembly.is_visible();
    if is_full {
        assembly.push(Delta::Finish(Finish::Length), &mut Vec::new());
    }
    is_full
}

/// The options with this limit for the tokens of the answer.
fn limited(generate: &Value, max_tokens: u64) -> Value {
    let mut limited = generate.as_object().cloned().unwrap_or_default();
    limited.insert("maxTokens".into(), max_tokens.into());
    Value::Object(limited)
}
