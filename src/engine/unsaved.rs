//! Turns that the store would not take: kept in memory, and saved before anything else happens to their session.

use crate::engine::Inner;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::slot::Slot;
use crate::store::session::{Session, Turn};

/// So many sessions may have a turn that waits; of others, the log has the question once they are asked again.
const MOST: usize = 100;

impl Inner {
    /// Keeps a turn whose save has failed, unless the store has refused it for good.
    pub(super) fn keep_unsaved(&self, session: Session, turn: Turn, failed: ErrorKind) {
        let mut unsaved = self.unsaved.borrow_mut();
        if is_passing(failed) && unsaved.len() < MOST {
            // What was said before is in the store.
            let session = Session { context: Default::default(), ..session };
            unsaved.insert(session.slot.clone(), (session, turn));
        }
    }

    /// Saves the turn that waits, if there is one. Whoever calls this holds the session, and has not read it yet.
    pub(super) async fn save_unsaved(&self, slot: &Slot) -> Result<()> {
        let Some(mut unsaved) = self.unsaved.borrow().get(slot).cloned().map(Box::new) else {
            return Ok(());
        };
        let (session, turn) = &mut *unsaved;
        let saved = self.sessions.finish(session, turn).await;
        if let Err(error) = saved
            && is_passing(error.kind())
        {
            return Err(error);
        }
        // Also a turn that was kept beside the path, or whose session is gone, waits no longer.
        self.unsaved.borrow_mut().remove(slot);
        Ok(())
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::StoreUnavailable
            | ErrorKind::StoreTimeout
            | ErrorKind::StoreQuota
            | ErrorKind::StoreBlocked
    )
}
