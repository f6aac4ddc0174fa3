//! Changes of a session outside a call. Like a call, a change waits in the queue, and recovers the session first.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::cancel::Cause;
use crate::engine::call::outcome::shutting_down;
use crate::engine::session::lease::open;
use crate::engine::session::recovery::recover;
use crate::engine::session::{
    ATTEMPTS, AgentSessions, changes_too_fast, no_such, refuse_if_pending,
};
use crate::engine::stamp::all_stamped;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Read};
use crate::message::{FoundBy, Message};
use crate::slot::Slot;
use crate::state::{AgentState, Facts, PermissionContext, PermissionRight, PlanModeContext};
use crate::store::format::session_info::SessionInfo;
use crate::store::session::{Alteration, ContextChange, NewContext, NewSummary, Session, is_alike};
use crate::store::tasks::TaskFilter;

/// Decides how a session changes, from its loaded state.
pub(in crate::engine) type Decide = Box<dyn Fn(&Session) -> Result<Alteration>>;

/// A change. It is queued when it is requested, not when it is first polled.
pub(in crate::engine) type Changing<T> = Local<'static, Result<T>>;

/// Whether a change may create a session that does not exist.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::engine) enum Creates {
    Session,
    Nothing,
}

/// Changes a session while holding its gate and lock.
pub(in crate::engine) fn alter(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    creates: Creates,
    decide: Decide,
) -> Changing<()> {
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        if sessions.calls().is_closing() {
            return Err(shutting_down());
        }
        let _exclusive = exclusive.await?;
        sessions.take_cached(&slot);
        for _ in 0..ATTEMPTS {
            sessions.save_unsaved(&slot).await?;
            let mut session = open(&sessions, &slot, None, None).await?;
            if !recover(&sessions, &mut session).await? {
                continue;
            }
            let alteration = decide(&session)?;
            if alteration.is_empty() {
                return Ok(());
            }
            let n_bytes = session.bytes;
            let nothing_there = session.head.is_none() && creates == Creates::Nothing;
            if nothing_there || sessions.stored().alter(&mut session, &alteration).await? {
                sessions.note_written(&session, session.bytes - n_bytes);
                return Ok(());
            }
        }
        Err(changes_too_fast(&slot))
    })
}

/// See `Agent::clear_context`.
pub(in crate::engine) fn clear_context(sessions: &Rc<AgentSessions>, slot: &Slot) -> Changing<()> {
    let clear = |session: &Session| {
        refuse_if_pending(session)?;
        let is_clear = session.context.is_empty();
        let empty = || ContextChange::Replaced(NewContext::default());
        let context = if is_clear { ContextChange::Kept } else { empty() };
        Ok(Alteration { context, ..Alteration::default() })
    };
    alter(sessions, slot, Creates::Nothing, Box::new(clear))
}

/// See `Agent::append`.
pub(in crate::engine) fn append(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    messages: Vec<Message>,
) -> Changing<Vec<Rc<Message>>> {
    let messages = all_stamped(messages, &**sessions.host());
    let grown = ContextChange::Grown(messages.clone());
    let grow = move |session: &Session| {
        refuse_if_pending(session)?;
        Ok(Alteration { context: grown.clone(), ..Alteration::default() })
    };
    let altered = alter(sessions, slot, Creates::Session, Box::new(grow));
    Box::pin(async move { altered.await.map(|()| messages) })
}

/// See `Agent::rename_session`.
pub(in crate::engine) fn rename(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    title: String,
) -> Changing<()> {
    let rename = move |session: &Session| match session.head {
        Some(_) => Ok(Alteration { title: Some(title.clone()), ..Alteration::default() }),
        None => Err(no_such(&session.slot)),
    };
    alter(sessions, slot, Creates::Nothing, Box::new(rename))
}

/// See `Agent::change_permissions`.
pub(in crate::engine) fn change_permissions(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    change: impl Fn(&mut PermissionContext) + 'static,
) -> Changing<()> {
    let decide = move |session: &Session| {
        let mut facts = session.facts();
        change(&mut facts.permission_context);
        Ok(Alteration { facts: Some(facts), ..Alteration::default() })
    };
    alter(sessions, slot, Creates::Session, Box::new(decide))
}

/// See `Agent::enter_plan_mode`.
pub(in crate::engine) fn enter_plan_mode(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
) -> Changing<()> {
    let Some(mode) = &sessions.options().plan_mode else {
        let error = Error::new(ErrorKind::Options, "the agent has no plan mode")
            .hint("create the agent with planMode: true");
        return Box::pin(std::future::ready(Err(error)));
    };
    let file = mode.file.clone();
    change_plan(sessions, slot, Creates::Session, move |plan| plan.enter(&file))
}

/// See `Agent::exit_plan_mode`.
pub(in crate::engine) fn exit_plan_mode(sessions: &Rc<AgentSessions>, slot: &Slot) -> Changing<()> {
    change_plan(sessions, slot, Creates::Nothing, |plan| plan.plan_active = false)
}

fn change_plan(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    creates: Creates,
    change: impl Fn(&mut PlanModeContext) + 'static,
) -> Changing<()> {
    let switch = move |session: &Session| {
        refuse_if_pending(session)?;
        let mut facts = session.facts();
        change(&mut facts.plan_mode_context);
        Ok(Alteration { facts: Some(facts), ..Alteration::default() })
    };
    alter(sessions, slot, creates, Box::new(switch))
}

/// See `Agent::put_state`.
pub(in crate::engine) fn put_state(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    state: &Value,
    right: PermissionRight,
) -> Result<Changing<()>> {
    let put = StateToPut::from_json(state).map_err(|misread| {
        let hint = "pass the state from getAgentState, with your changes";
        misread.into_error(ErrorKind::InputInvalid, "the state").hint(hint)
    })?;
    let found_by = sessions.options().found_by();
    let decide = move |session: &Session| {
        let alteration = put.decide(session, found_by)?;
        if right == PermissionRight::Missing {
            check_held(&session.facts(), &put.facts)?;
        }
        Ok(alteration)
    };
    Ok(alter(sessions, slot, Creates::Session, Box::new(decide)))
}

/// Refuses fields that change permissions, or end plan mode. In plan mode the plan file must stay too: the model may write to it.
fn check_held(now: &Facts, put: &Facts) -> Result<()> {
    if now.permission_context != put.permission_context {
        return Err(forbidden("the state has other permissions than the session"));
    }
    if now.plan_mode_context.plan_active && now.plan_mode_context != put.plan_mode_context {
        return Err(forbidden("the state would change or end plan mode"));
    }
    Ok(())
}

/// The error for a caller without the right to change permissions.
pub(in crate::engine) fn forbidden(why: &str) -> Error {
    Error::new(ErrorKind::Forbidden, why).hint(
        "this caller needs the right \"permissions\"; leave permission_context and plan_mode_context as they are",
    )
}

/// A state that a caller puts.
struct StateToPut {
    revision: String,
    context: Vec<Rc<Message>>,
    summary: Option<String>,
    facts: Facts,
}

impl StateToPut {
    fn from_json(state: &Value) -> Read<StateToPut> {
        let messages =
            |value: &Value| json::list(value, |item| Message::from_json(item).map(Rc::new));
        let fields = Fields::of(state)?;
        Ok(StateToPut {
            revision: fields.or_default("revision", json::text)?,
            context: fields.required("context", messages)?,
            summary: fields.optional("summary", json::text)?,
            facts: AgentState::facts_of(state)?,
        })
    }

    fn decide(&self, session: &Session, found_by: FoundBy) -> Result<Alteration> {
        let current = session.head.as_ref().and(session.revision.as_deref());
        if current.unwrap_or_default() != self.revision {
            let message = format!("{} has changed since this state was read", session.slot);
            return Err(Error::new(ErrorKind::Superseded, message)
                .hint("read the state again and change it"));
        }
        refuse_if_pending(session)?;
        let old = session.context.first().filter(|_| session.has_summary());
        let summary = self.summary.as_deref();
        let new = with_summary(old, self.context.clone(), summary, found_by);
        let old_messages = session.context.get(usize::from(old.is_some())..).unwrap_or_default();
        let is_same_summary = match new.summary {
            NewSummary::Kept => true,
            NewSummary::None => old.is_none(),
            NewSummary::Text(_) => false,
        };
        let is_same = is_same_summary
            && old_messages.len() == new.messages.len()
            && old_messages.iter().zip(&new.messages).all(|(one, other)| is_alike(one, other));
        let context = if is_same { ContextChange::Kept } else { ContextChange::Replaced(new) };
        let is_same = session.head.is_some() && session.facts() == self.facts;
        let facts = Some(self.facts.clone()).filter(|_| !is_same);
        Ok(Alteration { context, facts, title: None })
    }
}

/// A context whose first message may hold the summary `text`. `old` is the message with the summary of the session.
pub(in crate::engine) fn with_summary(
    old: Option<&Rc<Message>>,
    mut messages: Vec<Rc<Message>>,
    text: Option<&str>,
    found_by: FoundBy,
) -> NewContext {
    let is_old = |message: &Message| old.is_some_and(|old| old.id == message.id);
    let holds = |message: &Message| {
        is_old(message) || message.is_summary() && text == Some(message.summary().as_str())
    };
    let holder = messages.first().filter(|message| holds(message)).cloned();
    messages.retain(|message| !is_old(message));
    messages.drain(..usize::from(holder.as_ref().is_some_and(|it| !is_old(it))));
    let of_old = old.map(|old| old.summary()).unwrap_or_default();
    let of_holder = holder.as_ref().map(|holder| holder.summary());
    // Of two places where the summary can be changed, the one that was changed counts.
    let text = match (text, of_holder) {
        (Some(text), Some(changed)) if text == of_old => changed,
        (Some(text), _) => text.to_owned(),
        (None, changed) => changed.unwrap_or_default(),
    };
    // A note that turns were left out stands in the place of a summary, and has no text of a summary.
    let is_note = of_old.is_empty() && holder.as_ref().is_some_and(|holder| is_old(holder));
    let summary = if text.is_empty() && !is_note {
        NewSummary::None
    } else if old.is_some() && text == of_old {
        NewSummary::Kept
    } else {
        let holder = holder.filter(|it| !is_old(it) && it.summary() == text);
        NewSummary::Text(holder.unwrap_or_else(|| Message::of_summary(&text, found_by).into()))
    };
    NewContext { messages, summary }
}

/// Deletes a session with the sessions of its subagents. Its running call ends without being saved; its waiting calls
/// end with NO_SUCH_SESSION.
pub(in crate::engine) fn delete(sessions: &Rc<AgentSessions>, slot: &Slot) -> Changing<()> {
    sessions.calls().end_all(slot, &Cause::Deleted);
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        let _exclusive = exclusive.await?;
        sessions.take_cached(&slot);
        sessions.drop_unsaved(&slot);
        for task in sessions.stored().tasks(&slot, TaskFilter::All).await? {
            let child = Slot::new(slot.user(), &task.session)?;
            delete(&sessions, &child).await?;
        }
        sessions.stored().delete(&slot).await
    })
}

/// See `Agent::repair_session`.
pub(in crate::engine) fn repair(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
) -> Changing<Option<SessionInfo>> {
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        let _exclusive = exclusive.await?;
        sessions.take_cached(&slot);
        sessions.stored().repair(&slot).await?;
        info(&sessions, &slot).await
    })
}

/// The entry of a session in the session list; `None` if there is no such session.
pub(in crate::engine) async fn info(
    sessions: &AgentSessions,
    slot: &Slot,
) -> Result<Option<SessionInfo>> {
    let info = sessions.stored().info(slot).await?;
    let here = sessions.calls().first(slot).is_some();
    Ok(info.map(|info| SessionInfo { running: here || info.running, ..info }))
}
