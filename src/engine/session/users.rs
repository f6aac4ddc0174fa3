//! Deletes all data of a user, even while calls run.

use std::collections::HashSet;
use std::rc::Rc;

use crate::engine::session::AgentSessions;
use crate::engine::session::edit::{Changing, delete};
use crate::port::Page;
use crate::slot::Slot;

/// Sessions read from the list at a time.
const PAGE: usize = 100;

/// Deletes all data of a user. Running calls end without being saved; waiting calls end with NO_SUCH_SESSION.
pub(in crate::engine) fn delete_user(
    sessions: &Rc<AgentSessions>,
    user: Option<&str>,
) -> Changing<()> {
    // The deletion of sessions with calls is queued now, before any later call.
    let busy = sessions.calls().slots_of(user);
    let deleting: Vec<_> = busy.iter().map(|slot| delete(sessions, slot)).collect();
    let (sessions, user) = (Rc::clone(sessions), user.map(str::to_owned));
    Box::pin(async move {
        for deletion in deleting {
            deletion.await?;
        }
        let mut deleted: HashSet<String> =
            busy.iter().map(|slot| slot.session().to_owned()).collect();
        let mut after = None;
        loop {
            let page = Page { after, limit: Some(PAGE), keys_only: false };
            let found = sessions.stored().list_sessions(user.as_deref(), page).await?;
            after = found.last().map(|info| info.cursor.clone());
            let is_last = found.len() < PAGE;
            for info in found {
                if deleted.insert(info.session_id.clone()) {
                    let slot = Slot::new(user.as_deref(), &info.session_id)?;
                    delete(&sessions, &slot).await?;
                }
            }
            if is_last {
                return sessions.stored().remove_user(user.as_deref()).await;
            }
        }
    })
}
