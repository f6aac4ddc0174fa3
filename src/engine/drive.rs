//! The stations of a call: from its place in the queue to its saved outcome.
//!
//! The order is that of the design: gate, lock, load and recover, a call seen before, accept, the loop (in `turn.rs`),
//! commit; then the lock and the gate are let go of, and only then does the caller hear that it was saved.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::crew::Post;
use crate::engine::gate::Ticket;
use crate::engine::live::Live;
use crate::engine::meet::{Met, meet};
use crate::engine::outbox::Outbox;
use crate::engine::outcome::{Ended, Failed, answer_of, gone, same_input, timed_out, told_again};
use crate::engine::output::Output;
use crate::engine::steer::{Joined, Steered};
use crate::engine::turn::{Spoken, Turn};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reply, SerializedError};
use crate::future::{Either, race, rarely};
use crate::message::{Message, Role, rfc3339};
use crate::port::Held;
use crate::slot::Slot;
use crate::store::Saved;
use crate::store::entry::{EntryKind, Later, Outcome};
use crate::store::id;
use crate::store::input::Input;
use crate::store::session::{Session, Turn as StoredTurn};

/// How often a session that moves on is read again before its input is given back.
const ATTEMPTS: u32 = 16;

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
    pub(super) attributes: Attributes,
    pub(super) outbox: Rc<Outbox>,
    pub(super) cancel: Cancel,
    pub(super) number: u64,
    pub(super) ticket: Option<Ticket>,
    pub(super) held: Option<Box<dyn Held>>,
    /// What others know it by, if it would join the call that runs.
    pub(super) steered: Option<Rc<Steered>>,
    /// The calls that have joined it.
    pub(super) joined: Joined,
    /// What its tools and hooks see of the session.
    pub(super) live: Rc<Live>,
    /// What is different because another call has begun it.
    pub(super) post: Option<Rc<Post>>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.withdraw();
        self.agent.unregister(&self.slot, self.number);
    }
}

impl Driver {
    pub(super) async fn drive(mut self) -> Ended {
        self.warn();
        let ended = self.beside_children().await.map(Rc::new);
        self.tell_hooks(&ended).await;
        self.live.hide();
        self.joined.end(&ended);
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
    pub(super) async fn timed(&mut self) -> std::result::Result<Reply, Failed> {
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

    async fn stations(&mut self) -> std::result::Result<Reply, Failed> {
        let (cancel, steered) = (self.cancel.clone(), self.steered.clone());
        let joined = async {
            match &steered {
                Some(steered) => steered.ended().await,
                None => std::future::pending().await,
            }
        };
        match race(cancel.asked(), race(joined, self.enter())).await {
            Either::First(()) => return self.ended_while_waiting().await,
            Either::Second(Either::First(ended)) => return ended.map(|reply| (*reply).clone()),
            Either::Second(Either::Second(entered)) => entered?,
        }
        self.withdraw();
        // In a box of its own: a call that waits takes little memory, however much it takes to run.
        Box::pin(self.admitted()).await
    }

    /// What a call does once it has its session to itself.
    async fn admitted(&mut self) -> std::result::Result<Reply, Failed> {
        // A session that moves on while its input is being accepted is read again: no token has been spent.
        let mut tried = self.steered.as_ref().and_then(|steered| steered.tried.get());
        let began = self.agent.host.now_ms();
        for attempt in 0.. {
            if attempt >= ATTEMPTS && !self.agent.go_on_trying(began).await {
                break;
            }
            self.agent.save_unsaved(&self.slot).await?;
            let known = self.agent.cache.borrow_mut().take(&self.slot);
            let opening = self.agent.open(&self.slot, known, Some(&self.outbox));
            let Either::Second(opened) = race(self.cancel.asked(), opening).await else {
                return self.ended_before_acceptance();
            };
            let mut session = opened?;
            if !self.agent.recover(&mut session).await? {
                continue;
            }
            self.not_taken_up(&session, tried).await?;
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
            let (met, input) = if self.input.resends {
                let taken = rarely(self.agent.take_back(&mut session, &self.input)).await?;
                let Some(taken) = taken else { continue };
                taken
            } else {
                let met =
                    meet(&self.agent, &session, &self.input, matches!(before, Before::Retryable))?;
                let input = if met.is_known { self.input.again() } else { self.input.clone() };
                (met, input)
            };
            tried.get_or_insert(session.stored_head().map_or(0, |head| head.next));
            if self.agent.sessions.accept(&mut session, &input).await? {
                let said = if met.is_known { &self.input } else { &input };
                self.outbox.push(Event::Accepted { messages: said.messages.clone() });
                return Box::pin(self.turn(session, input, met)).await;
            }
        }
        let message = format!("{} changes faster than it can be read", self.slot);
        Err(Error::new(ErrorKind::Superseded, message).hint("nothing was stored; try again").into())
    }

    /// The loop, then the commit.
    async fn turn(
        &self,
        mut session: Session,
        input: Input,
        met: Met,
    ) -> std::result::Result<Reply, Failed> {
        self.live.facts.replace(self.under_parent(session.facts()));
        self.live.read_from(&self.agent, &self.slot);
        self.agent.crew.attend(&self.slot, &self.live, &self.outbox);
        let turn = Turn {
            agent: &self.agent,
            slot: &self.slot,
            tag: self.tag,
            outbox: &self.outbox,
            cancel: &self.cancel,
            live: &self.live,
            output: self.output.as_ref(),
            generate: &self.generate,
            attributes: &self.attributes,
            post: self.post.as_deref(),
            prompt: RefCell::default(),
            brief: RefCell::default(),
            input: &input,
            joined: &self.joined,
            first: Cell::new(0),
            stored: Cell::new(0),
            unsummarised: Cell::new(false),
            spent: RefCell::default(),
            changes: RefCell::default(),
            approved: RefCell::default(),
            unsaved: RefCell::default(),
            is_aside: Cell::new(false),
        };
        let speaking = turn.speak(&mut session, met);
        let keeping = self.keep(&input.call_id);
        let spoken = match race(speaking, keeping).await {
            Either::First(spoken) => spoken,
            Either::Second(never) => match never {},
        };
        Box::pin(self.commit(session, spoken, &input)).await
    }

    /// Keeps the session ours while the call runs; if somebody takes it all the same, the call is told.
    async fn keep(&self, call_id: &str) -> Infallible {
        let robbed = async {
            if let Some(held) = &self.held {
                held.lost().await;
                self.cancel.ask(Cause::Robbed);
            }
            std::future::pending::<Infallible>().await
        };
        match race(robbed, self.agent.keep_open(&self.slot, call_id, &self.cancel)).await {
            Either::First(never) | Either::Second(never) => never,
        }
    }

    /// What became of an earlier call of the same id.
    async fn made_before(&self, session: &Session) -> std::result::Result<Before, Failed> {
        if !self.input.named {
            return Ok(Before::Never);
        }
        let made = self.agent.sessions.outcome(session, &self.input.call_id).await?;
        let Some((entry, asked)) = made else { return Ok(Before::Never) };
        same_input(&self.input, &entry, asked.as_deref())?;
        let told = told_again(&entry, &self.input, session, &self.silence());
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
        rarely(self.take_post()).await
    }

    async fn commit(
        &self,
        mut session: Session,
        spoken: Spoken,
        input: &Input,
    ) -> std::result::Result<Reply, Failed> {
        let Spoken { messages, mut n_stored, mut changes, is_aside, .. } = spoken;
        let Spoken { unsaved, asks, partial, usage, ended, facts, .. } = spoken;
        if matches!(self.cancel.cause(), Some(Cause::Deleted)) {
            return Err(gone(&self.slot).into());
        }
        // A step that could not go on top of another's turn has taken the whole turn aside already.
        if let Err(error) = &ended
            && is_aside
        {
            return Err(Failed { error: error.clone(), partial });
        }
        // A step that seemed to fail may have arrived: it is saved, or found, before the rest.
        if let Some(step) = unsaved
            && self.agent.sessions.finish(&mut session, &step).await.is_ok()
        {
            let now = messages.get(n_stored..).unwrap_or_default();
            changes.extend(Later::since(&step.messages, now));
            n_stored += step.messages.len();
        }
        let output = self.output.as_ref().and_then(Output::given);
        let outcome = match &ended {
            Ok(reason) => Outcome { output: output.clone(), ..Outcome::ended(*reason) },
            Err(error) => Outcome::failed(error.kind().code(), error.message()),
        };
        let id = id::mint(&*self.agent.host);
        // Where this entry does not hold what was asked, a digest tells it.
        let is_apart = n_stored > 0 || input.messages.is_empty();
        let turn = StoredTurn {
            id,
            kind: EntryKind::Turn,
            input: if is_apart { input.again() } else { input.clone() },
            joined: self.joined.inputs(),
            messages: messages.get(n_stored..).unwrap_or_default().to_vec(),
            changes,
            is_forgotten: self.agent.forgets(&outcome),
            outcome: Some(outcome),
            facts: self.agent.options.persistence.pick(&facts, &session.facts()),
            reshaping: session.reshaping.clone(),
            heard: self.heard_in(messages.get(n_stored..).unwrap_or_default()),
        };
        let saved = self.agent.sessions.finish(&mut session, &turn).await;
        // Until the last hook has heard of the end.
        self.live.facts.replace(turn.facts.clone());
        self.live.put(&session);
        let answer = answer_of(&messages);
        let (saved, reason) = match (saved, ended) {
            (Ok(saved), Ok(reason)) => (saved, reason),
            (Ok(saved), Err(error)) => {
                self.remember(session, saved);
                self.outbox.push(Event::Saved { version: saved.version, bytes: saved.bytes });
                return Err(Failed { error, partial });
            }
            (Err(unsaved), ended) => {
                self.agent.keep_unsaved(session, turn, unsaved.kind());
                return Err(match ended {
                    Ok(_) => Failed { error: unsaved, partial: answer },
                    Err(error) => Failed { error: error.and_then(unsaved), partial },
                });
            }
        };
        self.remember(session, saved);
        self.outbox.push(Event::Saved { version: saved.version, bytes: saved.bytes });
        let message = answer.unwrap_or_else(|| self.silence());
        let text = message.text();
        let call_id = self.input.call_id.as_str().into();
        let version = saved.version;
        Ok(Reply { call_id, reason, text, message, messages, usage, output, asks, version })
    }

    /// Keeps the session in memory, if what is in hand is the whole of it.
    fn remember(&self, session: Session, saved: Saved) {
        self.agent.note(&session, saved.bytes);
        self.agent.note_for_memory(&session.slot);
        if !saved.overtaken {
            self.agent.cache.borrow_mut().put(session);
        }
    }

    /// The answer of a call in which the model said nothing.
    pub(super) fn silence(&self) -> Rc<Message> {
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
