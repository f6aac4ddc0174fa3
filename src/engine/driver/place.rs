//! A call's place in the queue of its session, and its lock on the session.

use std::future::pending;

use crate::engine::call::gate::Ticket;
use crate::engine::call::outbox::Outbox;
use crate::engine::parts::AgentParts;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, race};
use crate::port::Held;
use crate::slot::Slot;

/// After this wait the caller is told for which tool the call waits.
const LONG_WAIT_MS: u64 = 5_000;

/// A call's place in the queue. The lock is `None` until the call has it.
pub(in crate::engine) struct QueuePlace {
    lock: Option<Box<dyn Held>>,
    ticket: Option<Ticket>,
}

impl QueuePlace {
    pub(in crate::engine) fn new(ticket: Ticket) -> QueuePlace {
        QueuePlace { lock: None, ticket: Some(ticket) }
    }

    /// Waits for the gate, then for the lock.
    pub(in crate::engine) async fn enter(
        &mut self,
        parts: &AgentParts,
        slot: &Slot,
        outbox: &Outbox,
    ) -> Result<()> {
        let Some(ticket) = &self.ticket else { return Ok(()) };
        let ahead = ticket.ahead();
        if ahead > 0 {
            outbox.push(Event::Queued { ahead });
        }
        // A timer runs during the whole wait: edge workers abort a request that has no timer, because it looks hung.
        let mut is_told = false;
        while let Either::Second(()) = race(ticket.admitted(), parts.host.sleep(LONG_WAIT_MS)).await
        {
            if !std::mem::replace(&mut is_told, true) {
                for tool in parts.calls.tools_of(slot) {
                    let code = "waiting".to_owned();
                    let message =
                        format!("this call waits for the tool \"{tool}\" of another call");
                    outbox.push(Event::Warning { code, message });
                }
            }
        }
        self.lock = parts.sessions.lock(slot).await?;
        Ok(())
    }

    /// Waits until another tab or process has taken the lock over.
    pub(in crate::engine) async fn lost(&self) {
        match &self.lock {
            Some(lock) => lock.lost().await,
            None => pending().await,
        }
    }

    /// Releases the lock and the place, so that the next call can run.
    pub(in crate::engine) fn leave(&mut self) {
        self.lock = None;
        self.ticket = None;
    }
}
