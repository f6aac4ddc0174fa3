//! A call under way: from its place in the queue to its saved outcome.
//!
//! Nothing happens between two [`Call::next`]: whoever holds the call pulls it along. The order is that of the
//! design: gate, lock, load and recover, a call seen before, accept, the loop (in `turn.rs`), commit; then the lock
//! and the gate are let go of, and only then does the caller hear that it was saved.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::gate::Ticket;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{Ended, Failed, aborted, answer_of, gone, same_input, told_again};
use crate::engine::turn::{Spoken, Turn};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reason, Reply, SerializedError, Stamped};
use crate::future::{Either, Local, race};
use crate::message::{Message, Role, Usage, rfc3339};
use crate::port::Held;
use crate::slot::Slot;
use crate::store::entry::{EntryKind, Outcome};
use crate::store::id;
use crate::store::session::Turn as StoredTurn;
use crate::store::session::{Input, Session};

const CUT_OFF: &str =
    "The answer to this was cut off before it could be saved. Tools may have run.";

/// What a caller asks for.
pub struct CallRequest {
    /// Whose conversation, and which.
    pub slot: Slot,
    /// What is said.
    pub messages: Vec<Message>,
    /// The caller's own name for the call: the same again answers with the stored outcome.
    pub call_id: Option<String>,
    /// What models and tools are to know the call by; free for the caller, never stored.
    pub tag: u32,
}

/// A call under way.
pub struct Call {
    id: Rc<str>,
    slot: Slot,
    agent: Rc<Inner>,
    outbox: Rc<Outbox>,
    cancel: Cancel,
    drive: Option<Local<'static, Ended>>,
    ended: Option<Ended>,
    n_events: u64,
}

impl Call {
    pub(super) fn begin(agent: Rc<Inner>, request: CallRequest) -> Call {
        let CallRequest { slot, messages, call_id, tag } = request;
        let named = call_id.is_some();
        let id: Rc<str> = call_id.unwrap_or_else(|| id::mint(&*agent.host)).into();
        let outbox = Rc::<Outbox>::default();
        let cancel = Cancel::default();
        let at = rfc3339(agent.host.now_ms());
        let messages =
            messages.into_iter().map(|message| Rc::new(stamped(message, &agent, &at))).collect();
        let driver = Driver {
            number: agent.register(&slot, &cancel),
            ticket: Some(agent.gate.enter(&slot)),
            held: None,
            slot: slot.clone(),
            tag,
            input: Input { call_id: id.to_string(), named, messages, rest: Default::default() },
            outbox: Rc::clone(&outbox),
            cancel: cancel.clone(),
            agent: Rc::clone(&agent),
        };
        let drive: Local<'static, Ended> = Box::pin(driver.drive());
        Call { id, slot, agent, outbox, cancel, drive: Some(drive), ended: None, n_events: 0 }
    }

    /// Its id.
    pub fn id(&self) -> &Rc<str> {
        &self.id
    }

    /// Its session.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// The handle that ends it, which does not need the call itself.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Where tools put what they show while they run.
    pub fn outbox(&self) -> Rc<Outbox> {
        Rc::clone(&self.outbox)
    }

    /// Moves the call until it has something to show; `None` after the last event.
    pub async fn next(&mut self) -> Option<Stamped> {
        if self.outbox.is_empty() {
            poll_fn(|context| self.poll(context)).await;
        }
        let event = self.outbox.pop()?;
        let seq = self.n_events;
        self.n_events += 1;
        let at = rfc3339(self.agent.host.now_ms());
        Some(Stamped { event, slot: self.slot.clone(), call_id: Rc::clone(&self.id), seq, at })
    }

    /// Moves the call and takes everything it has to show; none after the last event.
    pub fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<VecDeque<Event>> {
        self.poll(context).map(|()| self.outbox.take())
    }

    /// Moves the call to its end.
    pub async fn finish(&mut self) -> Ended {
        while self.next().await.is_some() {}
        let unfinished =
            || Err(Error::new(ErrorKind::Internal, "a call ended without an outcome").into());
        self.ended.clone().unwrap_or_else(unfinished)
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Ready when there is something to show, or nothing more to come.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(drive) = &mut self.drive
            && let Poll::Ready(ended) = drive.as_mut().poll(context)
        {
            self.drive = None;
            self.ended = Some(ended);
        }
        if self.outbox.is_empty() && self.drive.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Carries one call through its stations.
struct Driver {
    agent: Rc<Inner>,
    slot: Slot,
    tag: u32,
    input: Input,
    outbox: Rc<Outbox>,
    cancel: Cancel,
    number: u64,
    ticket: Option<Ticket>,
    held: Option<Box<dyn Held>>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.agent.unregister(&self.slot, self.number);
    }
}

impl Driver {
    async fn drive(mut self) -> Ended {
        let message_ids = self.input.messages.iter().map(|message| message.id.clone()).collect();
        self.outbox.push(Event::CallStart { message_ids });
        self.warn();
        let ended = self.stations().await.map(Rc::new);
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

    async fn stations(&mut self) -> std::result::Result<Reply, Failed> {
        let cancel = self.cancel.clone();
        match race(cancel.asked(), self.enter()).await {
            Either::First(()) => return self.ended_before_acceptance(),
            Either::Second(entered) => entered?,
        }
        let known = self.agent.cache.borrow_mut().take(&self.slot);
        let mut session = self.agent.sessions.load(&self.slot, known).await?;
        self.recover(&mut session).await?;
        let mut repeated = false;
        if self.input.named
            && let Some(entry) = self.agent.sessions.outcome(&session, &self.input.call_id).await?
        {
            same_input(&self.input, &entry)?;
            match told_again(&entry, session.version(), &self.silence()) {
                Some(ended) => {
                    self.agent.cache.borrow_mut().put(session);
                    return ended;
                }
                None => repeated = true,
            }
        }
        if self.cancel.cause().is_some() {
            self.agent.cache.borrow_mut().put(session);
            return self.ended_before_acceptance();
        }
        self.accept(&mut session).await?;
        let input = if repeated { Vec::new() } else { self.input.messages.clone() };
        let turn = Turn {
            agent: &self.agent,
            slot: &self.slot,
            tag: self.tag,
            outbox: &self.outbox,
            cancel: &self.cancel,
        };
        let spoken = turn.speak(&mut session, input).await;
        self.commit(session, spoken).await
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
        ticket.admitted().await;
        self.held = self.agent.hold(&self.slot).await?;
        Ok(())
    }

    /// Inputs that were accepted and never logged belong to calls that are gone, since we hold gate and lock.
    async fn recover(&self, session: &mut Session) -> Result<()> {
        for input in self.agent.sessions.inputs(&self.slot).await? {
            let at = rfc3339(self.agent.host.now_ms());
            let note = Rc::new(stamped(Message::note(CUT_OFF), &self.agent, &at));
            let messages: Vec<_> = input.messages.iter().cloned().chain([note]).collect();
            let turn = StoredTurn {
                id: id::mint(&*self.agent.host),
                kind: EntryKind::Recovered,
                input,
                messages: messages.clone(),
                outcome: Outcome::ended(Reason::Interrupted),
                facts: session.facts(),
            };
            self.agent.sessions.finish(session, &turn).await?;
            session.context.extend(messages);
        }
        Ok(())
    }

    /// Stores the input; a session that has moved on meanwhile is read again, since no token has been spent.
    async fn accept(&self, session: &mut Session) -> Result<()> {
        for _ in 0..8 {
            if self.agent.sessions.accept(session, &self.input).await? {
                self.outbox.push(Event::Accepted { messages: self.input.messages.clone() });
                return Ok(());
            }
            *session = self.agent.sessions.load(&self.slot, None).await?;
        }
        Err(Error::new(
            ErrorKind::Superseded,
            format!("{} changes faster than it can be read", self.slot),
        )
        .hint("nothing was stored; try again"))
    }

    async fn commit(
        &self,
        mut session: Session,
        spoken: Spoken,
    ) -> std::result::Result<Reply, Failed> {
        let Spoken { messages, partial, usage, ended, facts } = spoken;
        if matches!(self.cancel.cause(), Some(Cause::Deleted)) {
            return Err(gone(&self.slot).into());
        }
        let outcome = match &ended {
            Ok(reason) => Outcome::ended(*reason),
            Err(error) => Outcome::failed(error.kind().code(), error.message()),
        };
        let id = id::mint(&*self.agent.host);
        let turn = StoredTurn {
            id,
            kind: EntryKind::Turn,
            input: self.input.clone(),
            messages,
            outcome,
            facts,
        };
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
            output: None,
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
            Some(Cause::Stopped(_)) | None => Ok(Reply {
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
