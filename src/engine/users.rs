//! Everything that one user has: listed, and deleted also while calls run.

use std::collections::BTreeSet;

use crate::engine::Agent;
use crate::engine::alter::Changing;
use crate::engine::cancel::Cause;
use crate::error::Result;
use crate::port::Page;
use crate::slot::Slot;
use crate::store::users::UserInfo;

/// Sessions read from the list at a time.
const PAGE: usize = 100;

impl Agent {
    /// The users that have sessions, in the order of their keys.
    pub async fn list_users(&self, page: Page) -> Result<Vec<UserInfo>> {
        self.0.sessions.list_users(page).await
    }

    /// Deletes all that a user has. Running calls end without being saved, waiting ones with NO_SUCH_SESSION.
    pub fn delete_user(&self, user: Option<&str>) -> Changing<()> {
        let busy: Vec<Slot> = {
            let cancels = self.0.cancels.borrow();
            let of_user = cancels.iter().filter(|(slot, _)| slot.user() == user);
            let told = of_user.inspect(|(_, calls)| {
                calls.iter().for_each(|(_, cancel)| cancel.ask(Cause::Deleted));
            });
            told.map(|(slot, _)| slot.clone()).collect()
        };
        // The sessions that have calls take their tickets now, before any call that comes later.
        let deleting: Vec<_> = busy.iter().map(|slot| self.delete_session(slot)).collect();
        let (agent, user) = (self.clone(), user.map(str::to_owned));
        Box::pin(async move {
            for deletion in deleting {
                deletion.await?;
            }
            let mut deleted: BTreeSet<String> =
                busy.iter().map(|slot| slot.session().to_owned()).collect();
            let mut after = None;
            loop {
                let page = Page { after, limit: Some(PAGE), keys_only: false };
                let found = agent.0.sessions.list_sessions(user.as_deref(), page).await?;
                after = found.last().map(|info| info.cursor.clone());
                let is_last = found.len() < PAGE;
                for info in found {
                    if deleted.insert(info.session_id.clone()) {
                        let slot = Slot::new(user.as_deref(), &info.session_id)?;
                        agent.delete_session(&slot).await?;
                    }
                }
                if is_last {
                    return agent.0.sessions.remove_user(user.as_deref()).await;
                }
            }
        })
    }
}
