//! The stations of a call: from its place in the queue to its saved outcome.
//!
//! The order is that of the design: gate, lock, load and recover, a call seen before, accept, the loop (in `turn.rs`),
//! commit; then the lock and the gate are let go of, and only then does the caller hear that it was saved.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::gate::Ticket;
use crate::engine::hooks::{Told, failed};
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{
    Ended, Failed, aborted, answer_of, gone, same_input, shutting_down, timed_out, told_again,
};
use crate::engine::output::Output;
use crate::engine::turn::{Spoken, Turn};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reason, Reply, SerializedError};
use crate::future::{Either, race};
use crate::json;
use crate::message::{Message, Role, Usage, rfc3339};
use crate::port::{Held, HookRun, Lineage, Point};
use crate::slot::Slot;
use crate::store::entry::{EntryKind, Outcome};
use crate::store::id;
use crate::store::session::Turn as StoredTurn;
use crate::store::session::{Input, Session};

/// How often a session that moves on is read again before its input is given back.
const ATTEMPTS: u32 = 8;

/// After so long a wait the caller is told what it waits for.
const LONG_WAIT_MS: u64 = 5_000;

/// Carries one call through its stations.
pub(super) struct Driver {
    pub(super) agent: Rc<Inner>,
    pub(super) slot: Slot,
    pub(super) tag: u32,
    pub(super) input: Input,
    pub(super) output: Option<Output>,
    pub(super) generate: Value,
    pub(super) outbox: Rc<Outbox>,
    pub(super) cancel: Cancel,
    pub(super) number: u64,
    pub(super) ticket: Option<Ticket>,
    pub(super) held: Option<Box<dyn Held>>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.agent.unregister(&self.slot, self.number);
    }
}

impl Driver {
    pub(super) async fn drive(mut self) -> Ended {
        let message_ids = self.input.messages.iter().map(|message| message.id.clone()).collect();
        self.outbox.push(Event::CallStart { message_ids });
        self.warn();
        let ended = self.timed().await.map(Rc::new);
        self.tell_hooks(&ended).await;
        // The gate is let go of before anybody hears of the end, or the next call could find it still closed.
        self.held = None;
        self.ticket = None;
        match &ended {
            Ok(reply) => self.outbox.push(Event::CallEnd { reply: Rc::clone(reply) }),
            Err(failed) => {
                let error = SerializedError::new(&failed.error, failed.partial.clone());
                self.outbox.push(Event::Error { error });
            }
        }
        ended
    }

    /// The stations within the call's deadline: when it has passed the call is told to end, and still commits.
    async fn timed(&mut self) -> std::result::Result<Reply, Failed> {
        let limit = self.agent.options.timeouts.call.map(|ms| self.agent.host.sleep(ms));
        let cancel = self.cancel.clone();
        let watch = async {
            if let Some(limit) = limit {
                limit.await;
                cancel.ask(Cause::TimedOut);
            }
            std::future::pending::<()>().await;
        };
        match race(self.stations(), watch).await {
            Either::First(ended) => ended,
            Either::Second(()) => Err(timed_out().into()),
        }
    }

    /// Hooks hear how it ended, once it is saved; what they fail with then is only a warning.
    async fn tell_hooks(&self, ended: &Ended) {
        let lineage = Lineage::new();
        for hook in self.agent.hooks.iter().filter(|hook| hook.is_at(Point::OnEnd)) {
            let told = match ended {
                Ok(reply) => Told::Reply(reply),
                Err(failed) => {
                    Told::Error(SerializedError::new(&failed.error, failed.partial.clone()))
                }
            };
            let given = json::to_text(&told);
            let run = HookRun { tag: self.tag, tool_call_id: "", messages: &[], lineage: &lineage };
            if let Err(error) = hook.at(Point::OnEnd, &given, run).await {
                let message = failed(&**hook, &error).message().to_owned();
                self.outbox.push(Event::Warning { code: "middleware".to_owned(), message });
            }
        }
    }

    async fn stations(&mut self) -> std::result::Result<Reply, Failed> {
        let cancel = self.cancel.clone();
        match race(cancel.asked(), self.enter()).await {
            Either::First(()) => return self.ended_before_acceptance(),
            Either::Second(entered) => entered?,
        }
        // In a box of its own: a call that waits takes little memory, however much it takes to run.
        Box::pin(self.admitted()).await
    }

    /// What a call does once it has its session to itself.
    async fn admitted(&mut self) -> std::result::Result<Reply, Failed> {
        // A session that moves on while its input is being accepted is read again: no token has been spent.
        let mut tried: Option<u64> = None;
        for _ in 0..ATTEMPTS {
            let known = self.agent.cache.borrow_mut().take(&self.slot);
            let mut session = self.agent.sessions.load(&self.slot, known).await?;
            if !self.agent.recover(&mut session).await? {
                continue;
            }
            // An acceptance that was refused may have arrived all the same, and been taken for one that was cut off.
            if let Some(first) = tried
                && !self.input.named
                && self.agent.sessions.is_recovered(&session, &self.input.call_id, first).await?
            {
                let message = format!("{}: the input was taken up elsewhere", self.slot);
                return Err(Error::new(ErrorKind::Superseded, message)
                    .hint("the input is kept in the log; no model was asked")
                    .into());
            }
            let before = match self.made_before(&session).await? {
                Before::Ended(ended) => {
                    self.agent.cache.borrow_mut().put(session);
                    return ended;
                }
                before => before,
            };
            if self.cancel.cause().is_some() || self.agent.closing.get() {
                self.agent.cache.borrow_mut().put(session);
                return self.ended_before_acceptance();
            }
            let cut_off =
                session.facts().shutdown_interrupted && asks_the_same(&session, &self.input);
            let known = cut_off || matches!(before, Before::Retryable);
            let input = if known { self.input.again() } else { self.input.clone() };
            tried.get_or_insert(session.head.as_ref().map_or(0, |head| head.next));
            if self.agent.sessions.accept(&mut session, &input).await? {
                self.outbox.push(Event::Accepted { messages: self.input.messages.clone() });
                return Box::pin(self.turn(session, input)).await;
            }
        }
        let message = format!("{} changes faster than it can be read", self.slot);
        Err(Error::new(ErrorKind::Superseded, message).hint("nothing was stored; try again").into())
    }

    /// The loop, then the commit.
    async fn turn(&self, mut session: Session, input: Input) -> std::result::Result<Reply, Failed> {
        let turn = Turn {
            agent: &self.agent,
            slot: &self.slot,
            tag: self.tag,
            outbox: &self.outbox,
            cancel: &self.cancel,
            facts: RefCell::new(session.facts()),
            output: self.output.as_ref(),
            generate: &self.generate,
            prompt: RefCell::default(),
        };
        let spoken = turn.speak(&mut session, input.messages.clone()).await;
        self.commit(session, spoken, input).await
    }

    /// What became of an earlier call of the same id.
    async fn made_before(&self, session: &Session) -> std::result::Result<Before, Failed> {
        if !self.input.named {
            return Ok(Before::Never);
        }
        let made = self.agent.sessions.outcome(session, &self.input.call_id).await?;
        let Some((entry, asked)) = made else { return Ok(Before::Never) };
        same_input(&self.input, &entry, asked.as_deref())?;
        let told = told_again(&entry, session.version(), &self.silence());
        Ok(told.map_or(Before::Retryable, Before::Ended))
    }

    /// The first call of an agent tells what of its tools' schemas is not checked.
    fn warn(&self) {
        if !self.agent.warned.replace(true) {
            for message in self.agent.tools.unchecked() {
                self.outbox.push(Event::Warning { code: "schema".to_owned(), message });
            }
        }
    }

    /// The gate, then the lock.
    async fn enter(&mut self) -> Result<()> {
        let Some(ticket) = &self.ticket else { return Ok(()) };
        let ahead = ticket.ahead();
        if ahead > 0 {
            self.outbox.push(Event::Queued { ahead });
        }
        // There is always a timer while it waits: an edge worker would take a request without one for hung.
        let mut warned = false;
        while let Either::Second(()) =
            race(ticket.admitted(), self.agent.host.sleep(LONG_WAIT_MS)).await
        {
            let tools = self.agent.running_tools.borrow();
            for (_, tool) in tools.iter().filter(|it| it.0 == self.slot && !warned) {
                let message = format!("this call waits behind the tool \"{tool}\" of another call");
                self.outbox.push(Event::Warning { code: "waiting".to_owned(), message });
            }
            warned = true;
        }
        self.held = self.agent.hold(&self.slot).await?;
        Ok(())
    }

    async fn commit(
        &self,
        mut session: Session,
        spoken: Spoken,
        input: Input,
    ) -> std::result::Result<Reply, Failed> {
        let Spoken { messages, partial, usage, ended, facts } = spoken;
        if matches!(self.cancel.cause(), Some(Cause::Deleted)) {
            return Err(gone(&self.slot).into());
        }
        let output = self.output.as_ref().and_then(Output::given);
        let outcome = match &ended {
            Ok(reason) => Outcome { output: output.clone(), ..Outcome::ended(*reason) },
            Err(error) => Outcome::failed(error.kind().code(), error.message()),
        };
        let id = id::mint(&*self.agent.host);
        let turn = StoredTurn { id, kind: EntryKind::Turn, input, messages, outcome, facts };
        let saved = self.agent.sessions.finish(&mut session, &turn).await;
        let answer = answer_of(&turn.messages);
        let (saved, reason) = match (saved, ended) {
            (Ok(saved), Ok(reason)) => (saved, reason),
            (Ok(saved), Err(error)) => {
                self.keep(session, saved.overtaken);
                self.outbox.push(Event::Saved { version: saved.version, bytes: saved.bytes });
                return Err(Failed { error, partial });
            }
            (Err(unsaved), Ok(_)) => {
                return Err(Failed { error: unsaved, partial: answer });
            }
            (Err(unsaved), Err(error)) => {
                return Err(Failed { error: error.and_then(unsaved), partial });
            }
        };
        self.keep(session, saved.overtaken);
        self.outbox.push(Event::Saved { version: saved.version, bytes: saved.bytes });
        let message = answer.unwrap_or_else(|| self.silence());
        let text = message.text();
        let call_id = self.input.call_id.as_str().into();
        let (messages, version) = (turn.messages, saved.version);
        Ok(Reply {
            call_id,
            reason,
            text,
            message,
            messages,
            usage,
            output,
            asks: Vec::new(),
            version,
        })
    }

    /// Keeps the session in memory, if what is in hand is the whole of it.
    fn keep(&self, session: Session, overtaken: bool) {
        if !overtaken {
            self.agent.cache.borrow_mut().put(session);
        }
    }

    /// Stopped, aborted or deleted while it waited: nothing is stored.
    fn ended_before_acceptance(&self) -> std::result::Result<Reply, Failed> {
        match self.cancel.cause() {
            Some(Cause::Deleted) => Err(gone(&self.slot).into()),
            Some(Cause::Aborted) => Err(aborted().into()),
            Some(Cause::TimedOut) => Err(timed_out().into()),
            Some(Cause::Shutdown) | None => Err(shutting_down().into()),
            Some(Cause::Stopped(_)) => Ok(Reply {
                call_id: self.input.call_id.as_str().into(),
                reason: Reason::Interrupted,
                message: self.silence(),
                text: String::new(),
                messages: Vec::new(),
                usage: Usage::default(),
                output: None,
                asks: Vec::new(),
                version: 0,
            }),
        }
    }

    /// The answer of a call in which the model said nothing.
    fn silence(&self) -> Rc<Message> {
        let at = rfc3339(self.agent.host.now_ms());
        Rc::new(stamped(Message::draft(Role::Assistant, Vec::new()), &self.agent, &at))
    }
}

/// An earlier call of the same id.
enum Before {
    /// There was none.
    Never,
    /// It failed in a way that deserves another try: its question is in the log.
    Retryable,
    /// It has ended like this.
    Ended(std::result::Result<Reply, Failed>),
}

/// Whether the input is the question that the conversation stands at.
fn asks_the_same(session: &Session, input: &Input) -> bool {
    let is_question =
        |it: &&Rc<Message>| it.role == Role::User && it.name.as_deref() != Some("system");
    let asked = session.context.iter().rev().filter(is_question).map(|it| &it.content);
    asked.take(input.messages.len()).eq(input.messages.iter().rev().map(|it| &it.content))
}

/// Gives a draft its id and time.
pub(super) fn stamped(mut message: Message, agent: &Inner, at: &str) -> Message {
    if message.id.is_empty() {
        message.id = id::mint(&*agent.host);
    }
    if message.at.is_empty() {
        message.at = at.to_owned();
    }
    message
}
