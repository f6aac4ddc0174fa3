//! Having a session to oneself: the lock that tabs share, and, where machines share a store, the lease in its head.

use std::convert::Infallible;
use std::rc::Rc;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::outbox::Outbox;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, race};
use crate::message::Message;
use crate::mutants;
use crate::port::Held;
use crate::slot::Slot;
use crate::store::Kept;
use crate::store::lease::{LEASE_MS, Open};
use crate::store::session::Session;

/// How long to wait before a session is looked at again: at first, and at most.
const LOOK_MS: (u64, u64) = (8, 250);

/// How often a call looks whether somebody elsewhere wants it to stop.
const WATCH_MS: u64 = 1_000;

impl Agent {
    /// Stops the call that another node runs on the session; whether one was told and has ended.
    pub async fn interrupt_elsewhere(&self, slot: &Slot, says: Vec<Message>) -> Result<bool> {
        let says: Vec<Rc<Message>> = says.into_iter().map(Rc::new).collect();
        let sessions = &self.0.sessions;
        if !sessions.are_shared() {
            return Ok(false);
        }
        let Some(call_id) = sessions.ask_to_stop(slot, &says).await? else { return Ok(false) };
        let given_up = self.0.host.now_ms() + self.0.options.timeouts.lock as f64;
        while sessions.still_runs(slot, &call_id).await? {
            if self.0.host.now_ms() > given_up {
                return Ok(false);
            }
            self.0.host.sleep(LOOK_MS.1).await;
        }
        Ok(true)
    }
}

impl Inner {
    /// Keeps other tabs and agents out of a session.
    pub(super) async fn hold(&self, slot: &Slot) -> Result<Option<Box<dyn Held>>> {
        let lock = self.lock.as_ref().filter(|_| !mutants::is("no-lock"));
        let Some(lock) = lock else { return Ok(None) };
        let name = self.sessions.keys(slot).lock();
        let timeout = self.options.timeouts.lock;
        match race(lock.acquire(&name), self.host.sleep(timeout)).await {
            Either::First(held) => held.map(Some),
            Either::Second(()) => Err(busy_elsewhere(slot, timeout)),
        }
    }

    /// The session, once no other node has it open. What is `known` of it is read again only as far as it has changed.
    pub(super) async fn open(
        &self,
        slot: &Slot,
        known: Option<Session>,
        outbox: Option<&Outbox>,
    ) -> Result<Session> {
        let began = self.host.now_ms();
        let mut session = self.sessions.load(slot, known).await?;
        session.check_format()?;
        let (mut pause, mut told) = (LOOK_MS.0, outbox.is_none());
        let mut seen: Option<(Open, f64)> = None;
        while let Some((open, ahead)) = self.sessions.barred(&session) {
            // A clock that is far ahead may promise more than its node can keep: what is not renewed is over.
            let now = self.host.now_ms();
            match &seen {
                Some((same, since)) if same.is_same(&open) => {
                    if now - since > LEASE_MS as f64 {
                        break;
                    }
                }
                _ => seen = Some((open, now)),
            }
            if let Some(outbox) = outbox.filter(|_| !told) {
                outbox.push(Event::Queued { ahead });
                told = true;
            }
            if now - began > self.options.timeouts.lock as f64 {
                return Err(busy_elsewhere(slot, self.options.timeouts.lock));
            }
            // A place in line is worth trying for at once: a holder with many calls would be faster again and again.
            if self.sessions.join_line(&mut session).await? {
                self.host.sleep(pause).await;
                pause = (pause * 2).min(LOOK_MS.1);
            }
            session = self.sessions.load(slot, Some(session)).await?;
        }
        Ok(session)
    }

    /// Whether to try once more to get a session that others are always faster to get, after a moment. Where a store is
    /// shared they may be for long: a node that calls without a pause leaves others little time to get in line.
    pub(super) async fn go_on_trying(&self, began: f64) -> bool {
        let waited = self.host.now_ms() - began;
        if !self.sessions.are_shared() || waited > self.options.timeouts.lock as f64 {
            return false;
        }
        self.host.sleep(LOOK_MS.0).await;
        true
    }

    /// Keeps the session open for a call, and lets it hear what other nodes say to it. Ends only by being dropped.
    pub(super) async fn keep_open(
        &self,
        slot: &Slot,
        call_id: &str,
        cancel: &Cancel,
    ) -> Infallible {
        if !self.sessions.are_shared() {
            return std::future::pending().await;
        }
        loop {
            self.host.sleep(WATCH_MS).await;
            // A store that fails now fails the call's own commit too, if it goes on failing.
            match Box::pin(self.sessions.keep_open(slot, call_id)).await {
                Ok(Kept::ToStop(says)) => cancel.ask(Cause::Stopped(says)),
                Ok(Kept::Lost) => cancel.ask(Cause::Robbed),
                Ok(Kept::Ours) | Err(_) => {}
            }
        }
    }
}

/// A session that others had for as long as we would wait.
pub(super) fn busy_elsewhere(slot: &Slot, timeout: u64) -> Error {
    let message = format!("{slot} was busy elsewhere for {timeout} ms");
    Error::new(ErrorKind::Timeout, message)
        .hint("nothing was stored; try again, or raise timeouts.lock")
}
