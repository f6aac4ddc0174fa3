//! Changing a session by hand: each change takes a ticket like a call, and recovers like one.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::cancel::Cause;
use crate::engine::drive::stamped;
use crate::engine::meet::{nothing_open, placed};
use crate::engine::outcome::shutting_down;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Reason;
use crate::future::Local;
use crate::json::{self, Fields, Read};
use crate::message::{CallState, Message, ToolResult, rfc3339};
use crate::mutants;
use crate::run::open;
use crate::run::result_message;
use crate::slot::Slot;
use crate::state::{Facts, PermissionContext};
use crate::store::entry::{EntryKind, Later, Outcome};
use crate::store::id;
use crate::store::info::SessionInfo;
use crate::store::session::{Alteration, Context, Session, Turn};
use crate::store::task::Which;

pub(super) const CUT_OFF: &str =
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
            nothing_open(session)?;
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
        let grow = move |session: &Session| {
            nothing_open(session)?;
            Ok(Alteration { context: grown.clone(), ..Alteration::default() })
        };
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

    /// Changes what the tools of a session may do. What waits for an answer goes on waiting, and is seen by the new rules
    /// when it comes.
    pub fn change_permissions(
        &self,
        slot: &Slot,
        change: impl Fn(&mut PermissionContext) + 'static,
    ) -> Changing<()> {
        let decide = move |session: &Session| {
            let mut facts = session.facts();
            change(&mut facts.permission_context);
            Ok(Alteration { facts: Some(facts), ..Alteration::default() })
        };
        self.0.alter(slot, Makes::Session, Box::new(decide))
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
        let (agent, slot, ticket) = (self.clone(), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.0.hold(&slot).await?;
            agent.0.cache.borrow_mut().take(&slot);
            agent.0.unsaved.borrow_mut().remove(&slot);
            for task in agent.0.sessions.tasks(&slot, Which::All).await? {
                let child = Slot::new(slot.user(), &task.session)?;
                agent.delete_session(&child).await?;
            }
            agent.0.sessions.delete(&slot).await
        })
    }

    /// Makes a session usable again whose records cannot all be read: from its log, with every byte kept. One that can
    /// be read stays as it is.
    pub fn repair_session(&self, slot: &Slot) -> Changing<Option<SessionInfo>> {
        let (agent, slot, ticket) = (self.clone(), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.0.hold(&slot).await?;
            agent.0.cache.borrow_mut().take(&slot);
            agent.0.sessions.repair(&slot).await?;
            agent.session(&slot).await
        })
    }

    /// The session's line in a list, or nothing.
    pub async fn session(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        let info = self.0.sessions.info(slot).await?;
        let here = self.0.gate.length(slot) > 0;
        Ok(info.map(|info| SessionInfo { running: here || info.running, ..info }))
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
        nothing_open(session)?;
        let same = *session.context == context;
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
                agent.save_unsaved(&slot).await?;
                let mut session = agent.open(&slot, None, None).await?;
                if !agent.recover(&mut session).await? {
                    continue;
                }
                let alteration = decide(&session)?;
                let n_bytes = session.bytes;
                let nothing_there = session.head.is_none() && makes == Makes::Nothing;
                if nothing_there || agent.sessions.alter(&mut session, &alteration).await? {
                    agent.note(&session, session.bytes - n_bytes);
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
            if input.resends {
                if !Box::pin(self.recover_resend(session, input)).await? {
                    return Ok(false);
                }
                continue;
            }
            let at = rfc3339(self.host.now_ms());
            let stamp = |message| Rc::new(stamped(message, self, &at));
            let mut results = open::cut_off(&session.context, &input.answers);
            if !input.answers.is_empty() && mutants::is("unspent-approval") {
                results.clear();
            }
            let finished = |result: &ToolResult| {
                let later = Later::new(&result.id, CallState::Finished);
                placed(&session.context, later).map(|it| it.1)
            };
            let changes: Vec<Later> = results.iter().filter_map(finished).collect();
            let mut messages: Vec<_> = results.into_iter().map(result_message).map(stamp).collect();
            if !mutants::is("mute-recovery") {
                messages.extend(input.messages.iter().cloned());
            }
            messages.push(stamp(Message::note(CUT_OFF)));
            let mut facts = session.facts();
            for rule in open::remembered(&input.answers) {
                facts.permission_context.remember(rule);
            }
            let turn = Turn {
                id: id::mint(&*self.host),
                kind: EntryKind::Recovered,
                input,
                joined: Vec::new(),
                messages: messages.clone(),
                changes: changes.clone(),
                outcome: Some(Outcome::ended(Reason::Interrupted)),
                facts,
                reshaping: Default::default(),
                is_forgotten: false,
                heard: Vec::new(),
            };
            if !self.sessions.recover(session, &turn).await? {
                return Ok(false);
            }
            session.amend(&changes);
            session.context_mut().extend(messages);
        }
        Ok(true)
    }
}
