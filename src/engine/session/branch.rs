//! Branches of a session: going back for a resend, switching to another branch, and forking into another session.

use std::rc::Rc;

use crate::engine::session::edit::{Changing, info};
use crate::engine::session::recovery::with_open_turns;
use crate::engine::session::transfer::write_copy;
use crate::engine::session::{
    ATTEMPTS, AgentSessions, changes_too_fast, no_such, refuse_if_pending,
};
use crate::engine::stamp::{all_stamped, now, stamped};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::rarely;
use crate::message::Message;
use crate::run::{open as open_calls, result_message};
use crate::slot::Slot;
use crate::state::{Facts, PermissionRight};
use crate::store::format::input::Input;
use crate::store::format::session_info::SessionInfo;
use crate::store::session::Session;
use crate::store::transfer::SessionCopy;

/// See `Agent::switch_branch`.
pub(in crate::engine) fn switch(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    branch: String,
    right: PermissionRight,
) -> Changing<()> {
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        let _exclusive = exclusive.await?;
        let persistence = sessions.options().persistence.with_right(right);
        for _ in 0..ATTEMPTS {
            let session = sessions.open_for_change(&slot).await?;
            refuse_if_pending(&session)?;
            if sessions.stored().switch(&session, &branch, persistence).await? {
                return Ok(());
            }
        }
        Err(changes_too_fast(&slot))
    })
}

/// See `Agent::fork`.
pub(in crate::engine) fn fork(
    sessions: &Rc<AgentSessions>,
    from: &Slot,
    to: &Slot,
    (up_to, right): (Option<String>, PermissionRight),
) -> Changing<Option<SessionInfo>> {
    let (sessions, from, to) = (Rc::clone(sessions), from.clone(), to.clone());
    // Both places are taken now, so that earlier calls of both sessions run first.
    let (reading, writing) = (sessions.gate().enter(&from), sessions.exclusive(&to));
    Box::pin(async move {
        reading.admitted().await;
        let fork = read_fork(&sessions, &from, up_to.as_deref(), right).await?;
        drop(reading);
        let exclusive = writing.await?;
        write_copy(&sessions, &to, fork, "fork to").await?;
        drop(exclusive);
        info(&sessions, &to).await
    })
}

/// Reads the contents of a fork.
async fn read_fork(
    sessions: &AgentSessions,
    slot: &Slot,
    up_to: Option<&str>,
    right: PermissionRight,
) -> Result<SessionCopy> {
    let persistence = sessions.options().persistence.with_right(right);
    sessions.save_unsaved(slot).await?;
    let at = now(&**sessions.host());
    let close = |said: &[Rc<Message>]| {
        let results = open_calls::passed_over(said).into_iter().map(result_message);
        results.map(|message| stamped(message, &**sessions.host(), &at)).collect()
    };
    for _ in 0..ATTEMPTS {
        let (session, turns) = rarely(with_open_turns(sessions, slot)).await?;
        refuse_if_pending(&session)?;
        let upto = up_to.map(|id| (id, persistence));
        let part = sessions.stored().read_fork(&session, turns, upto, &close).await;
        // If the session was changed or deleted meanwhile, its log entries may be missing.
        if part.is_ok() || !sessions.stored().has_moved_on(&session).await? {
            return part?.ok_or_else(|| no_such(slot));
        }
    }
    Err(changes_too_fast(slot))
}

/// Takes a session back to the state before a question, and returns the messages to ask now, with the facts before the
/// question before it if they differ. `None`: the session was changed or deleted meanwhile, so its log entries may be missing.
/// Load it again.
pub(in crate::engine) async fn rewind(
    sessions: &AgentSessions,
    session: &mut Session,
    input: &Input,
) -> Result<Option<(Vec<Rc<Message>>, Option<Facts>)>> {
    let rewound = rewind_loaded(sessions, session, input).await;
    if rewound.is_err() && sessions.stored().has_moved_on(session).await? {
        return Ok(None);
    }
    rewound.map(Some)
}

async fn rewind_loaded(
    sessions: &AgentSessions,
    session: &mut Session,
    input: &Input,
) -> Result<(Vec<Rc<Message>>, Option<Facts>)> {
    refuse_if_pending(session)?;
    let right =
        if input.holds_permissions { PermissionRight::Missing } else { PermissionRight::Given };
    let persistence = sessions.options().persistence.with_right(right);
    let rewound = sessions.stored().rewind(session, persistence, input).await?;
    let (asked, earlier) = rewound.unwrap_or_default();
    if asked.is_empty() {
        let message = format!("{} has no question to send again", session.slot);
        return Err(Error::new(ErrorKind::NoAnchor, message).hint("make a call with an input"));
    }
    if !input.messages.is_empty() {
        return Ok((input.messages.clone(), earlier));
    }
    if persistence.conversation {
        return Ok((asked, earlier));
    }
    // The old question stays in the log of this branch, so its copy needs new ids.
    let again = asked.iter().map(|message| Message { id: String::new(), ..(**message).clone() });
    Ok((all_stamped(again, &**sessions.host()), earlier))
}
