//! Asking the model: with patience, again where that helps, and showing the answer as it comes.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::hooks::{Reshaped, Verdict};
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, Local, race, rarely};
use crate::message::{Finish, Message, Usage};
use crate::policy::retry;
use crate::policy::tokens;
use crate::port::{Lineage, Model, Request, ToolSpec};
use crate::run::{Asking, Assembly, Reply};
use crate::store::id;
use crate::store::session::Session;

/// What came of asking the model.
pub(super) enum Asked {
    /// It answered.
    Replied(Reply),
    /// A hook ended the call and says this instead.
    Ended(String),
    /// Somebody stopped the call; this much was said.
    Stopped(Option<Message>),
    /// It failed; this much was said.
    Failed(Error, Option<Message>),
}

/// How an answer is asked for.
#[derive(Clone, Copy)]
struct Way<'a> {
    model: &'a dyn Model,
    asking: Asking,
    iteration: u32,
    /// The most tokens that the answer may have, where the provider has said how many fit.
    max_tokens: Option<u64>,
}

/// What is waited for, and how long: each has its own deadline, and its own sentence when that has passed.
#[derive(Clone, Copy)]
enum Wait {
    /// Until the request is taken.
    Connect(u64),
    /// Until the answer begins.
    FirstByte(u64),
    /// Until it goes on.
    Idle(u64),
}

impl Turn<'_> {
    /// Asks the model; where it fails for good before anything of an answer was seen, the other one.
    pub(super) async fn ask(&self, session: &Session, asking: Asking, iteration: u32) -> Asked {
        let way = Way { model: self.model(), asking, iteration, max_tokens: None };
        let asked = self.ask_patiently(session, way).await;
        let (Asked::Failed(error, None), Some(fallback)) = (&asked, &self.agent.models.fallback)
        else {
            return asked;
        };
        if !retry::falls_back(error.kind()) {
            return asked;
        }
        self.outbox.push(Event::Fallback { model: fallback.id(self.tag) });
        rarely(self.ask_patiently(session, Way { model: &**fallback, ..way })).await
    }

    /// Asks a model, again where the failure is a passing one and nothing of an answer was seen.
    async fn ask_patiently(&self, session: &Session, way: Way<'_>) -> Asked {
        let mut way = way;
        let mut attempt = 1;
        loop {
            let model = way.model.id(self.tag);
            self.outbox.push(Event::ModelStart { iteration: way.iteration, model });
            let asked = self.ask_once(session, way).await;
            let Asked::Failed(error, None) = asked else { return asked };
            // A shorter answer fits: that is tried once, at once.
            let shorter = error.advice().max_tokens.filter(|_| way.max_tokens.is_none());
            let wait = match shorter {
                Some(_) => Some(0),
                None => retry::wait_ms(self.agent.options.retries, attempt, &error, self.chance()),
            };
            let Some(wait_ms) = wait else { return Asked::Failed(error, None) };
            way.max_tokens = shorter.or(way.max_tokens);
            attempt += 1;
            self.outbox.push(Event::Retry { attempt, wait_ms, code: error.kind().code() });
            if let Either::First(()) =
                race(self.cancel.asked(), self.agent.host.sleep(wait_ms)).await
            {
                return Asked::Stopped(None);
            }
        }
    }

    async fn ask_once(&self, session: &Session, way: Way<'_>) -> Asked {
        let iteration = way.iteration;
        let _shown = self.live.show(session);
        let tools = self.offered_tools(way);
        let hooked = match self.is_hooked() {
            true => rarely(self.hook_request(session, &tools)).await,
            false => Ok(Verdict::GoOn(Reshaped::default())),
        };
        let reshaped = match hooked {
            Ok(Verdict::GoOn(reshaped)) => reshaped,
            Ok(Verdict::Stop(says)) => return self.unasked(iteration, Asked::Ended(says)),
            Err(error) => return self.unasked(iteration, Asked::Failed(error, None)),
        };
        let started = self.agent.host.now_ms();
        let mut assembly = Assembly::new(id::mint(&*self.agent.host));
        let received = self.receive(session, way, &tools, &reshaped, &mut assembly).await;
        let visible = assembly.is_visible();
        let mut events = Vec::new();
        let seconds = (self.agent.host.now_ms() - started) / 1_000.0;
        let reply = assembly.finish(seconds, &mut events);
        events.into_iter().for_each(|event| self.show(event));
        let finish = match &received {
            Ok(Either::First(())) => "interrupted",
            Ok(Either::Second(())) => reply.finish.word(),
            Err(_) => "error",
        };
        let usage = reply.message.usage.clone().unwrap_or_default();
        let messages = reshaped.messages.as_deref().unwrap_or(&session.context);
        // A model that counts nothing costs nothing here, however long the conversation is.
        let (asked_for, window) = match usage.input_tokens {
            0 => (0, None),
            _ => (tokens::at_least(messages), way.model.window(self.tag)),
        };
        let is_cut = tokens::is_cut(asked_for, usage.input_tokens, window);
        if received.is_ok() && !is_cut && reshaped.messages.is_none() {
            self.learn(session, usage.input_tokens);
        }
        if received.is_ok() && is_cut {
            let message = format!(
                "the provider counted {} tokens of a request of about {asked_for}: it may have left out the beginning",
                usage.input_tokens
            );
            self.outbox.push(Event::Warning { code: "context_truncated".to_owned(), message });
        }
        self.outbox.push(Event::ModelEnd { iteration, usage, finish: finish.to_owned() });
        match received {
            Ok(Either::First(())) => Asked::Stopped(Some(reply.message).filter(|_| visible)),
            Ok(Either::Second(())) if reply.finish == Finish::Filter => {
                let error =
                    Error::new(ErrorKind::ModelRefused, "the provider's filter stopped the answer");
                let error = error.hint("say it in other words");
                Asked::Failed(error, Some(reply.message).filter(|_| visible))
            }
            Ok(Either::Second(())) if !self.is_hooked() => Asked::Replied(reply),
            Ok(Either::Second(())) => match rarely(self.hook_answer(reply.message.clone())).await {
                Ok(Verdict::GoOn(message)) => Asked::Replied(Reply { message, ..reply }),
                Ok(Verdict::Stop(says)) => Asked::Ended(says),
                Err(error) => Asked::Failed(error, Some(reply.message)),
            },
            Err(error) => Asked::Failed(error, Some(reply.message).filter(|_| visible)),
        }
    }

    /// Receives an answer; the first is a wish to stop.
    async fn receive(
        &self,
        session: &Session,
        way: Way<'_>,
        tools: &[Rc<ToolSpec>],
        reshaped: &Reshaped,
        assembly: &mut Assembly,
    ) -> Result<Either<(), ()>> {
        let timeouts = self.agent.options.timeouts;
        let prompt = self.prompt.borrow().clone();
        let said = reshaped.messages.as_deref().unwrap_or(&session.context);
        let reminded = self.reminder().map(|reminder| [said, &[reminder]].concat());
        let fresh = Lineage::new();
        let given = reshaped.generate.as_ref().unwrap_or(self.generate);
        let generate = match way.max_tokens {
            Some(max_tokens) => Cow::Owned(shortened(given, max_tokens)),
            None => Cow::Borrowed(given),
        };
        let request = Request {
            slot: self.slot,
            tag: self.tag,
            system: reshaped.system.as_deref().unwrap_or(&prompt),
            messages: reminded.as_deref().unwrap_or(said),
            lineage: if reshaped.messages.is_some() { &fresh } else { &session.lineage },
            tools: reshaped.tools.as_deref().unwrap_or(tools),
            generate: generate.as_ref(),
            form: self.output.filter(|_| self.keeps_form(way)).map(|output| output.form()),
        };
        let started = self.agent.host.now_ms();
        let asked =
            self.unless_stopped(Wait::Connect(timeouts.model), way.model.ask(request)).await;
        if reminded.is_some() {
            // Whoever has the conversation outside has the reminder behind it: that is no part of it.
            session.lineage.changed(session.context.len());
        }
        let Either::Second(mut deltas) = asked? else { return Ok(Either::First(())) };
        let left = timeouts.model.saturating_sub((self.agent.host.now_ms() - started) as u64);
        let mut patience = Wait::FirstByte(left);
        loop {
            let arrived = match self.unless_stopped(patience, deltas.next()).await {
                // Whatever happens after the model has said why it ended is no loss.
                Err(_) if assembly.is_finished() => return Ok(Either::Second(())),
                arrived => arrived?,
            };
            let Either::Second(arrived) = arrived else { return Ok(Either::First(())) };
            if arrived.is_empty() {
                return Ok(Either::Second(()));
            }
            patience = Wait::Idle(timeouts.idle);
            let mut events = Vec::new();
            arrived.into_iter().for_each(|delta| assembly.push(delta, &mut events));
            events.into_iter().for_each(|event| self.show(event));
            self.breathe().await;
        }
    }

    /// A model that was about to be asked, and was not.
    fn unasked(&self, iteration: u32, asked: Asked) -> Asked {
        let (usage, finish) = (Usage::default(), "unasked".to_owned());
        self.outbox.push(Event::ModelEnd { iteration, usage, finish });
        asked
    }

    /// What the model may call: in a closing answer, only the tool that gives it its form.
    fn offered_tools(&self, way: Way<'_>) -> Vec<Rc<ToolSpec>> {
        let tools = match way.asking {
            Asking::WithTools => self.visible_tools(),
            Asking::ToClose => Vec::new(),
        };
        let hidden = self.output.filter(|_| !self.keeps_form(way));
        tools.into_iter().chain(hidden.map(|output| Rc::clone(output.spec()))).collect()
    }

    /// Whether the model keeps to the form asked for by itself.
    fn keeps_form(&self, way: Way<'_>) -> bool {
        let beside_tools = way.asking == Asking::WithTools && !self.visible_tools().is_empty();
        let may = self.output.is_some_and(|output| !output.is_by_tool());
        may && way.model.keeps_form(self.tag, beside_tools)
    }

    fn show(&self, event: Event) {
        if !self.output.is_some_and(|output| output.hides(&event)) {
            self.outbox.push(event);
        }
    }

    /// Lets whoever pulls the call see what there is before the model is asked for more.
    async fn breathe(&self) {
        let mut shown = !self.outbox.is_wanted();
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
        wait: Wait,
        work: Local<'_, Result<T>>,
    ) -> Result<Either<(), T>> {
        let (Wait::Connect(ms) | Wait::FirstByte(ms) | Wait::Idle(ms)) = wait;
        let timed = race(work, self.agent.host.sleep(ms));
        match race(self.cancel.asked(), timed).await {
            Either::First(()) => Ok(Either::First(())),
            Either::Second(Either::First(done)) => done.map(Either::Second),
            Either::Second(Either::Second(())) => {
                let what = match wait {
                    Wait::Connect(_) => "took no request",
                    Wait::FirstByte(_) => "did not begin its answer",
                    Wait::Idle(_) => "fell silent in its answer",
                };
                let message = format!("the model {what} for {ms} ms");
                Err(Error::new(ErrorKind::ModelTimeout, message)
                    .hint("try again, or raise timeouts.model"))
            }
        }
    }

    /// A random number in 0..1.
    fn chance(&self) -> f64 {
        let mut bytes = [0; 2];
        self.agent.host.random(&mut bytes);
        f64::from(u16::from_le_bytes(bytes)) / 65_536.0
    }
}

/// The options with an answer of at most so many tokens.
fn shortened(generate: &Value, max_tokens: u64) -> Value {
    let mut shortened = generate.as_object().cloned().unwrap_or_default();
    shortened.insert("maxTokens".into(), max_tokens.into());
    Value::Object(shortened)
}
