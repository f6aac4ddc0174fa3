//! Calls that end before they are accepted: nothing of them is stored.

use std::rc::Rc;

use crate::engine::cancel::Cause;
use crate::engine::drive::Driver;
use crate::engine::outcome::{Failed, aborted, gone, robbed, shutting_down, timed_out};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Reason, Reply};
use crate::message::Usage;
use crate::store::session::Session;

impl Driver {
    /// Does not wish to join any more.
    pub(super) fn withdraw(&self) {
        let Some(steered) = &self.steered else { return };
        let mut steering = self.agent.steering.borrow_mut();
        if let Some(waiting) = steering.get_mut(&self.slot) {
            waiting.retain(|other| !Rc::ptr_eq(other, steered));
            if waiting.is_empty() {
                steering.remove(&self.slot);
            }
        }
    }

    /// Told to end before its own turn: one that has joined another stops that one, or leaves it.
    pub(super) async fn ended_while_waiting(&self) -> std::result::Result<Reply, Failed> {
        self.withdraw();
        let joined = self.steered.as_ref().and_then(|steered| Some((steered, steered.holder()?)));
        let Some((steered, holder)) = joined else { return self.ended_before_acceptance() };
        let Some(Cause::Stopped(says)) = self.cancel.cause() else {
            return self.ended_before_acceptance();
        };
        holder.ask(Cause::Stopped(says));
        steered.ended().await.map(|reply| (*reply).clone())
    }

    /// An acceptance that was refused may have arrived all the same, from this number on, and been taken for one that was
    /// cut off.
    pub(super) async fn not_taken_up(&self, session: &Session, tried: Option<u64>) -> Result<()> {
        if let Some(first) = tried
            && !self.input.named
            && self.agent.sessions.is_recovered(session, &self.input.call_id, first).await?
        {
            let message = format!("{}: the input was taken up elsewhere", self.slot);
            return Err(Error::new(ErrorKind::Superseded, message)
                .hint("the input is kept in the log; no model was asked"));
        }
        Ok(())
    }

    /// Stopped, aborted or deleted while it waited: nothing is stored.
    pub(super) fn ended_before_acceptance(&self) -> std::result::Result<Reply, Failed> {
        match self.cancel.cause() {
            Some(Cause::Deleted) => Err(gone(&self.slot).into()),
            Some(Cause::Aborted) => Err(aborted().into()),
            Some(Cause::Robbed) => Err(robbed(&self.slot).into()),
            Some(Cause::TimedOut) => Err(timed_out().into()),
            Some(Cause::Shutdown) | None => Err(shutting_down().into()),
            Some(Cause::Stopped(_)) => Ok(Reply {
                call_id: self.input.call_id.as_str().into(),
                reason: Reason::Interrupted,
                message: self.silence(),
                text: String::new(),
                messages: Vec::new(),
                usage: Usage::default(),
                output: None,
                asks: Vec::new(),
                version: 0,
            }),
        }
    }
}
