//! Answering the last question again, and the branches that come of it.

use std::rc::Rc;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::alter::{CUT_OFF, Changing};
use crate::engine::call::{Call, CallRequest};
use crate::engine::context::{RuntimeContext, Said};
use crate::engine::drive::stamped;
use crate::engine::meet::{Met, nothing_open};
use crate::engine::outcome::shutting_down;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Reason;
use crate::message::{Message, rfc3339};
use crate::run::open::Answered;
use crate::run::{open, result_message};
use crate::slot::Slot;
use crate::store::branch::Branch;
use crate::store::entry::{EntryKind, Outcome};
use crate::store::fork::Fork;
use crate::store::id;
use crate::store::info::SessionInfo;
use crate::store::input::Input;
use crate::store::session::{Session, Turn};

/// How often a session that moves on is read again.
const ATTEMPTS: u32 = 8;

impl Agent {
    /// Answers the last question again, from the state before it was asked; or another question in its place, if one is
    /// given. The old answer is a branch from then on. One that fails leaves the old answer where it is.
    pub fn resend(&self, input: Option<Said>, context: RuntimeContext) -> Result<Call> {
        let messages = input.map(|said| said.0).unwrap_or_default();
        self.begin(CallRequest { messages, resends: true, ..self.request(context)? })
    }

    /// The branches of a session, each behind the one that it parts from; none of one that is not there.
    pub async fn branches(&self, slot: &Slot) -> Result<Vec<Branch>> {
        self.0.sessions.branches(slot).await
    }

    /// The newest messages of a branch before a message, oldest first, whole.
    pub async fn history_of(
        &self,
        slot: &Slot,
        branch: Option<&str>,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.0.sessions.history_of(slot, branch, before, limit).await
    }

    /// Goes on from the end of another branch, with the state that it was left with.
    pub fn switch_branch(&self, slot: &Slot, branch: String) -> Changing<()> {
        let (agent, slot, ticket) = (Rc::clone(&self.0), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.hold(&slot).await?;
            for _ in 0..ATTEMPTS {
                let session = agent.opened(&slot).await?;
                nothing_open(&session)?;
                if agent.sessions.switch(&session, &branch, agent.options.persistence).await? {
                    return Ok(());
                }
            }
            let message = format!("{slot} changes faster than it can be changed by hand");
            Err(Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again"))
        })
    }
}

impl Agent {
    /// Makes another session of what was said up to and with a message; of all, if none is named. The first one stays
    /// as it is, and one that is there and has messages is not replaced.
    pub fn fork(
        &self,
        slot: &Slot,
        to: &Slot,
        up_to: Option<String>,
    ) -> Changing<Option<SessionInfo>> {
        let (agent, slot, to) = (self.clone(), slot.clone(), to.clone());
        // Whatever was asked of either session before comes first.
        let (reading, ticket) = (self.0.gate.enter(&slot), self.0.gate.enter(&to));
        Box::pin(async move {
            reading.admitted().await;
            let fork = agent.0.part_of(&slot, up_to.as_deref()).await?;
            drop(reading);
            ticket.admitted().await;
            let _held = agent.0.hold(&to).await?;
            agent.0.plant(&to, fork).await?;
            agent.session(&to).await
        })
    }
}

impl Inner {
    /// What a fork of a session holds.
    async fn part_of(&self, slot: &Slot, up_to: Option<&str>) -> Result<Fork> {
        self.save_unsaved(slot).await?;
        nothing_open(&self.sessions.load(slot, None).await?)?;
        let at = rfc3339(self.host.now_ms());
        let close = |said: &[Rc<Message>]| {
            let results = open::passed_over(said).into_iter().map(result_message);
            results.map(|message| Rc::new(stamped(message, self, &at))).collect()
        };
        let part = self.sessions.part(slot, up_to, &close).await?;
        part.ok_or_else(|| Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}")))
    }

    /// Writes a fork where there is nothing yet.
    async fn plant(&self, slot: &Slot, fork: Fork) -> Result<()> {
        if self.closing.get() {
            return Err(shutting_down());
        }
        self.cache.borrow_mut().take(slot);
        self.save_unsaved(slot).await?;
        let mut session = self.open(slot, None, None).await?;
        let is_whole = self.recover(&mut session).await?;
        if session.head.as_ref().is_some_and(|head| head.card.messages > 0) {
            let message = format!("{slot} is there already and has messages");
            let hint = "fork to another session, or delete this one first";
            return Err(Error::new(ErrorKind::InputInvalid, message).hint(hint));
        }
        let weight = fork.weight();
        if is_whole && self.sessions.plant(&mut session, fork).await? {
            self.note(&session, weight);
            return Ok(());
        }
        let message = format!("{slot} was made elsewhere meanwhile");
        Err(Error::new(ErrorKind::Superseded, message).hint("fork to another session"))
    }

    /// Takes a session back to before its last question: what is asked now, and what that meets. `None`: the session has
    /// moved on, or is gone, and what it needs of its log with it; load it again.
    pub(super) async fn take_back(
        &self,
        session: &mut Session,
        input: &Input,
    ) -> Result<Option<(Met, Input)>> {
        let taken = self.taken_back(session, input).await;
        if taken.is_err() && self.sessions.has_moved_on(session).await? {
            return Ok(None);
        }
        taken.map(Some)
    }

    async fn taken_back(&self, session: &mut Session, input: &Input) -> Result<(Met, Input)> {
        nothing_open(session)?;
        let rolls_back = self.options.persistence;
        let asked = self.sessions.rewind(session, rolls_back).await?.unwrap_or_default();
        if asked.is_empty() {
            let message = format!("nothing was asked yet in {}", session.slot);
            return Err(Error::new(ErrorKind::NoAnchor, message).hint("call it with an input"));
        }
        let is_again = input.messages.is_empty();
        let mut messages = if is_again { asked } else { input.messages.clone() };
        if is_again && !rolls_back.conversation {
            // The question stays where it is: the path has each message once.
            let at = rfc3339(self.host.now_ms());
            let anew = |message: &Rc<Message>| Message { id: String::new(), ..(**message).clone() };
            let anew = messages.iter().map(|message| Rc::new(stamped(anew(message), self, &at)));
            messages = anew.collect();
        }
        let results = open::passed_over(&session.context);
        let answered = Answered { results, ..Answered::default() };
        let input = Input { messages, ..input.clone() };
        Ok((Met { answered, is_again, ..Met::default() }, input))
    }

    /// The call of a resend is gone: it appends nothing to the path, and the log has what was asked beside it.
    pub(super) async fn recover_resend(&self, session: &mut Session, input: Input) -> Result<bool> {
        let at = rfc3339(self.host.now_ms());
        let stamp = |message| Rc::new(stamped(message, self, &at));
        let mut messages = input.messages.clone();
        messages.push(stamp(Message::note(CUT_OFF)));
        let turn = Turn {
            id: id::mint(&*self.host),
            kind: EntryKind::Recovered,
            input,
            joined: Vec::new(),
            messages,
            changes: Vec::new(),
            outcome: Some(Outcome::ended(Reason::Interrupted)),
            facts: session.facts(),
            reshaping: Default::default(),
            is_forgotten: false,
            heard: Vec::new(),
        };
        let close = |said: &[Rc<Message>]| {
            let results = open::cut_off(said, &[]).into_iter();
            results.map(|result| stamp(result_message(result))).collect()
        };
        self.sessions.recover_resend(session, &turn, &close).await
    }

    /// Whether the next call is not to see this one.
    pub(super) fn forgets(&self, outcome: &Outcome) -> bool {
        !self.options.persistence.conversation && !outcome.is_open()
    }
}
