//! Changing a session by hand: each change takes a ticket like a call, and recovers like one.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::cancel::Cause;
use crate::engine::drive::stamped;
use crate::engine::outcome::shutting_down;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Reason;
use crate::future::Local;
use crate::json::{self, Fields, Read};
use crate::message::{Message, rfc3339};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::entry::{EntryKind, Outcome};
use crate::store::id;
use crate::store::info::SessionInfo;
use crate::store::session::{Alteration, Context, Session, Turn};

const CUT_OFF: &str =
    "The answer to this was cut off before it could be saved. Tools may have run.";

/// How often a session that moves on is read again.
const ATTEMPTS: u32 = 8;

/// Looks at a session and says how it is to change.
pub(super) type Decide = Box<dyn Fn(&Session) -> Result<Alteration>>;

/// A change takes its place in the queue when it is asked for, not when it is first waited for.
pub(super) type Changing<T> = Local<'static, Result<T>>;

impl Agent {
    /// Empties the context; the log keeps what was said, and everything else stays as it is.
    pub fn clear_context(&self, slot: &Slot) -> Changing<()> {
        let clear = |session: &Session| {
            let is_clear = session.context.is_empty();
            let context = if is_clear { Context::Kept } else { Context::Replaced(Vec::new(), 0) };
            Ok(Alteration { context, ..Alteration::default() })
        };
        self.0.alter(slot, Makes::Nothing, Box::new(clear))
    }

    /// Puts messages into the log and the context without asking the model.
    pub fn append(&self, slot: &Slot, messages: Vec<Message>) -> Changing<Vec<Rc<Message>>> {
        let at = rfc3339(self.0.host.now_ms());
        let stamp = |message| Rc::new(stamped(message, &self.0, &at));
        let messages: Vec<_> = messages.into_iter().map(stamp).collect();
        let grown = Context::Grown(messages.clone());
        let grow =
            move |_: &Session| Ok(Alteration { context: grown.clone(), ..Alteration::default() });
        let altered = self.0.alter(slot, Makes::Session, Box::new(grow));
        Box::pin(async move { altered.await.map(|()| messages) })
    }

    /// Calls a session something else.
    pub fn rename_session(&self, slot: &Slot, title: String) -> Changing<()> {
        let rename = move |session: &Session| match session.head {
            Some(_) => Ok(Alteration { title: Some(title.clone()), ..Alteration::default() }),
            None => {
                Err(Error::new(ErrorKind::NoSuchSession, format!("there is no {}", session.slot)))
            }
        };
        self.0.alter(slot, Makes::Nothing, Box::new(rename))
    }

    /// Replaces the state of a session, if it is still the one that was read.
    pub fn put_state(&self, slot: &Slot, state: &Value) -> Result<Changing<()>> {
        let put = putting(state).map_err(|misread| {
            let hint = "change what getAgentState answered with";
            misread.into_error(ErrorKind::InputInvalid, "the state").hint(hint)
        })?;
        Ok(self.0.alter(slot, Makes::Session, put))
    }

    /// Deletes a session. Its running call ends without being saved, its waiting calls end with NO_SUCH_SESSION.
    pub fn delete_session(&self, slot: &Slot) -> Changing<()> {
        let cancels = self.0.cancels.borrow().get(slot).cloned().unwrap_or_default();
        cancels.iter().for_each(|(_, cancel)| cancel.ask(Cause::Deleted));
        let (agent, slot, ticket) = (Rc::clone(&self.0), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.hold(&slot).await?;
            agent.cache.borrow_mut().take(&slot);
            agent.sessions.delete(&slot).await
        })
    }

    /// The session's line in a list, or nothing.
    pub async fn session(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        let info = self.0.sessions.info(slot).await?;
        Ok(info.map(|info| SessionInfo { running: self.0.gate.length(slot) > 0, ..info }))
    }
}

/// Whether a change may make a session that is not there.
#[derive(PartialEq)]
pub(super) enum Makes {
    Session,
    Nothing,
}

/// How a state that a caller wrote is put.
fn putting(state: &Value) -> Read<Decide> {
    let fields = Fields::of(state)?;
    let revision = fields.or_default("revision", json::text)?;
    let messages = |value: &Value| json::list(value, |item| Message::from_json(item).map(Rc::new));
    let context = fields.required("context", messages)?;
    let known = ["format", "version", "revision", "session_id", "user_id", "context", "summary"];
    let facts = Facts::from_json(&Value::Object(fields.rest(&known)))?;
    Ok(Box::new(move |session| {
        let current = session.head.as_ref().and(session.revision.as_deref());
        if current.unwrap_or_default() != revision {
            let message = format!("{} has moved on since this state was read", session.slot);
            return Err(
                Error::new(ErrorKind::Superseded, message).hint("read it again and change that")
            );
        }
        let same = session.context == context;
        let context = if same { Context::Kept } else { Context::Replaced(context.clone(), 0) };
        Ok(Alteration { context, facts: Some(facts.clone()), title: None })
    }))
}

impl Inner {
    /// Changes a session behind gate and lock.
    pub(super) fn alter(
        self: &Rc<Self>,
        slot: &Slot,
        makes: Makes,
        decide: Decide,
    ) -> Changing<()> {
        let (agent, slot, ticket) = (Rc::clone(self), slot.clone(), self.gate.enter(slot));
        Box::pin(async move {
            if agent.closing.get() {
                return Err(shutting_down());
            }
            ticket.admitted().await;
            let _held = agent.hold(&slot).await?;
            agent.cache.borrow_mut().take(&slot);
            for _ in 0..ATTEMPTS {
                let mut session = agent.sessions.load(&slot, None).await?;
                if !agent.recover(&mut session).await? {
                    continue;
                }
                let alteration = decide(&session)?;
                let nothing_there = session.head.is_none() && makes == Makes::Nothing;
                if nothing_there || agent.sessions.alter(&mut session, &alteration).await? {
                    return Ok(());
                }
            }
            let message = format!("{slot} changes faster than it can be changed by hand");
            Err(Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again"))
        })
    }

    /// Inputs that were accepted and never logged belong to calls that are gone, since we hold gate and lock.
    /// `false`: the session has moved on meanwhile; load it again.
    pub(super) async fn recover(&self, session: &mut Session) -> Result<bool> {
        for input in self.sessions.inputs(&session.slot).await? {
            let at = rfc3339(self.host.now_ms());
            let note = Rc::new(stamped(Message::note(CUT_OFF), self, &at));
            let messages: Vec<_> = input.messages.iter().cloned().chain([note]).collect();
            let turn = Turn {
                id: id::mint(&*self.host),
                kind: EntryKind::Recovered,
                input,
                messages: messages.clone(),
                outcome: Outcome::ended(Reason::Interrupted),
                facts: session.facts(),
            };
            if !self.sessions.recover(session, &turn).await? {
                return Ok(false);
            }
            session.context.extend(messages);
        }
        Ok(true)
    }
}
