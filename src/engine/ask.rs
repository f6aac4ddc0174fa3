//! Asking the model: with patience, again where that helps, and showing the answer as it comes.

use std::rc::Rc;

use crate::engine::hooks::{Reshaped, Verdict};
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, Local, race};
use crate::message::{Message, Usage};
use crate::policy::retry;
use crate::port::{Lineage, Request, ToolSpec};
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

impl Turn<'_> {
    /// Asks the model, again where the failure is a passing one and nothing of an answer was seen.
    pub(super) async fn ask(&self, session: &Session, asking: Asking, iteration: u32) -> Asked {
        let mut attempt = 1;
        loop {
            let model = self.agent.model.id(self.tag);
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
        let tools = self.offered_tools(asking);
        let reshaped = match self.hook_request(session, &tools).await {
            Ok(Verdict::GoOn(reshaped)) => reshaped,
            Ok(Verdict::Stop(says)) => return self.unasked(iteration, Asked::Ended(says)),
            Err(error) => return self.unasked(iteration, Asked::Failed(error, None)),
        };
        let started = self.agent.host.now_ms();
        let mut assembly = Assembly::new(id::mint(&*self.agent.host));
        let received = self.receive(session, &tools, &reshaped, &mut assembly).await;
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
        self.outbox.push(Event::ModelEnd { iteration, usage, finish: finish.to_owned() });
        match received {
            Ok(Either::First(())) => Asked::Stopped(Some(reply.message).filter(|_| visible)),
            Ok(Either::Second(())) => match self.hook_answer(reply.message.clone()).await {
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
        tools: &[Rc<ToolSpec>],
        reshaped: &Reshaped,
        assembly: &mut Assembly,
    ) -> Result<Either<(), ()>> {
        let timeouts = self.agent.options.timeouts;
        let prompt = self.prompt.borrow().clone();
        let messages = reshaped.messages.as_deref().unwrap_or(&session.context);
        let fresh = Lineage::new();
        let request = Request {
            slot: self.slot,
            tag: self.tag,
            system: reshaped.system.as_deref().unwrap_or(&prompt),
            messages,
            lineage: if reshaped.messages.is_some() { &fresh } else { &session.lineage },
            tools: reshaped.tools.as_deref().unwrap_or(tools),
            generate: reshaped.generate.as_ref().unwrap_or(self.generate),
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
    fn offered_tools(&self, asking: Asking) -> Vec<Rc<ToolSpec>> {
        let tools = match asking {
            Asking::WithTools => self.visible_tools(),
            Asking::ToClose => Vec::new(),
        };
        tools.into_iter().chain(self.output.map(|output| Rc::clone(output.spec()))).collect()
    }

    fn show(&self, event: Event) {
        if !self.output.is_some_and(|output| output.hides(&event)) {
            self.outbox.push(event);
        }
    }

    /// The tools that this session has on, in the order they were given.
    fn visible_tools(&self) -> Vec<Rc<ToolSpec>> {
        self.agent.tools.visible(&self.facts.borrow().tool_context.activated_groups)
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

    /// A random number in 0..1.
    fn chance(&self) -> f64 {
        let mut bytes = [0; 2];
        self.agent.host.random(&mut bytes);
        f64::from(u16::from_le_bytes(bytes)) / 65_536.0
    }
}
