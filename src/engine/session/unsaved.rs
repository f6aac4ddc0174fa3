//! Turns whose save has failed. They are kept in memory, and saved before the next call or change of their session.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::session::{Session, TurnCommit};

/// How many sessions may have such a turn. Beyond this limit the turn is dropped; its input is still in the store.
const MAX_SESSIONS: usize = 100;

/// Turns whose save has failed, at most one per session.
#[derive(Default)]
pub(in crate::engine) struct UnsavedTurns(RefCell<HashMap<Slot, (Session, TurnCommit)>>);

impl UnsavedTurns {
    /// Keeps a turn whose save has failed, if a later save may succeed.
    pub(in crate::engine) fn keep(&self, session: Session, turn: TurnCommit, failed: ErrorKind) {
        let mut turns = self.0.borrow_mut();
        if is_passing(failed) && turns.len() < MAX_SESSIONS {
            // The context is dropped: a save needs only the messages of the turn.
            let session = Session { context: Default::default(), ..session };
            turns.insert(session.slot.clone(), (session, turn));
        }
    }

    /// Saves the turn of a session, if there is one.
    pub(in crate::engine) async fn save(&self, stored: &Sessions, slot: &Slot) -> Result<()> {
        let Some(mut unsaved) = self.0.borrow().get(slot).cloned().map(Box::new) else {
            return Ok(());
        };
        let (session, turn) = &mut *unsaved;
        let saved = stored.save_turn(session, turn).await;
        if let Err(error) = saved
            && is_passing(error.kind())
        {
            return Err(error);
        }
        // The turn is stored, perhaps as a side branch, or it can never be stored, for example because its session is
        // gone.
        self.remove(slot);
        Ok(())
    }

    /// Drops the turn of a session.
    pub(in crate::engine) fn remove(&self, slot: &Slot) {
        self.0.borrow_mut().remove(slot);
    }

    /// Whether there are no turns.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
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
