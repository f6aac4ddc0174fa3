//! Leases, for stores that several nodes share: waiting for the lease of a session, and renewing it during a call.

use std::convert::Infallible;
use std::rc::Rc;

use crate::engine::call::cancel::{Cancel, Cause};
use crate::engine::call::outbox::Outbox;
use crate::engine::session::{AgentSessions, busy_elsewhere};
use crate::error::Result;
use crate::event::Event;
use crate::message::Message;
use crate::slot::Slot;
use crate::store::LeaseState;
use crate::store::format::lease::{LEASE_MS, Lease};
use crate::store::session::Session;

/// The first and the longest wait before a session is read again.
const POLL_MS: (u64, u64) = (8, 250);

/// How often a call reads its lease, which may contain another node's request to stop.
const WATCH_MS: u64 = 1_000;

/// Reads a session, and waits while another node has its lease. Of a known session, only the changes are read.
pub(in crate::engine) async fn open(
    sessions: &AgentSessions,
    slot: &Slot,
    known: Option<Session>,
    outbox: Option<&Outbox>,
) -> Result<Session> {
    let (stored, host) = (sessions.stored(), sessions.host());
    let timeout_ms = sessions.options().timeouts.lock;
    let began = host.now_ms();
    let mut session = stored.load(slot, known).await?;
    session.check_format()?;
    let (mut pause_ms, mut is_told) = (POLL_MS.0, outbox.is_none());
    let mut seen: Option<(Lease, f64)> = None;
    while let Some((open, ahead)) = stored.other_lease(&session) {
        // A node whose clock is far ahead may write a lease that lasts too long. So a lease that is not renewed in time
        // has expired, even if its own end is later.
        let now = host.now_ms();
        match &seen {
            Some((same, since)) if same.is_same(&open) => {
                if now - since > LEASE_MS as f64 {
                    break;
                }
            }
            _ => seen = Some((open, now)),
        }
        if let Some(outbox) = outbox.filter(|_| !is_told) {
            outbox.push(Event::Queued { ahead });
            is_told = true;
        }
        if now - began > timeout_ms as f64 {
            return Err(busy_elsewhere(slot, timeout_ms));
        }
        // This node joins the queue before it waits. Otherwise a node with many calls would always be faster.
        if stored.wait_for_lease(&mut session).await? {
            host.sleep(pause_ms).await;
            pause_ms = (pause_ms * 2).min(POLL_MS.1);
        }
        session = stored.load(slot, Some(session)).await?;
    }
    Ok(session)
}

/// Whether to try again to accept an input after other nodes have changed the session every time. Waits a moment first,
/// so that other nodes have time to join the queue.
pub(in crate::engine) async fn may_try_again(sessions: &AgentSessions, began: f64) -> bool {
    let host = sessions.host();
    let waited = host.now_ms() - began;
    if !sessions.stored().are_shared() || waited > sessions.options().timeouts.lock as f64 {
        return false;
    }
    host.sleep(POLL_MS.0).await;
    true
}

/// Renews the lease of a call, and stops the call if another node requests it. Never returns: drop the future to stop.
pub(in crate::engine) async fn keep_open(
    sessions: &AgentSessions,
    slot: &Slot,
    call_id: &str,
    cancel: &Cancel,
) -> Infallible {
    if !sessions.stored().are_shared() {
        return std::future::pending().await;
    }
    loop {
        sessions.host().sleep(WATCH_MS).await;
        // An error is ignored here: if the store keeps failing, the commit of the call reports it.
        match Box::pin(sessions.stored().renew_lease(slot, call_id)).await {
            Ok(LeaseState::ToStop(says)) => cancel.ask(Cause::Stopped(says)),
            Ok(LeaseState::Lost) => cancel.ask(Cause::TakenOver),
            Ok(LeaseState::Ours) | Err(_) => {}
        }
    }
}

/// Asks another node to stop its call on the session, and waits for the end of that call. `false`: there is no such
/// call, or it did not stop in time.
pub(in crate::engine) async fn interrupt_elsewhere(
    sessions: &AgentSessions,
    slot: &Slot,
    says: Vec<Message>,
) -> Result<bool> {
    let says: Vec<Rc<Message>> = says.into_iter().map(Rc::new).collect();
    let (stored, host) = (sessions.stored(), sessions.host());
    if !stored.are_shared() {
        return Ok(false);
    }
    let Some(call_id) = stored.ask_to_stop(slot, &says).await? else { return Ok(false) };
    let given_up = host.now_ms() + sessions.options().timeouts.lock as f64;
    while stored.still_runs(slot, &call_id).await? {
        if host.now_ms() > given_up {
            return Ok(false);
        }
        host.sleep(POLL_MS.1).await;
    }
    Ok(true)
}
