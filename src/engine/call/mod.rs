//! A call in progress: its request, its place in the queue, its events, its end, and the handle that its caller holds.
//!
//! A call makes progress only while its caller polls it, for example with [`Call::next`]. The steps of a call are in
//! `engine/driver` (its stations) and `engine/turn` (the conversation with the model).

pub(in crate::engine) mod cancel;
pub(in crate::engine) mod checkpoints;
pub(in crate::engine) mod gate;
pub(in crate::engine) mod joining;
pub(in crate::engine) mod live;
pub(in crate::engine) mod log;
pub(in crate::engine) mod outbox;
pub(in crate::engine) mod outcome;
pub(in crate::engine) mod request;
pub(in crate::engine) mod running;
pub(in crate::engine) mod scope;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::engine::call::cancel::Cancel;
use crate::engine::call::checkpoints::Checkpoints;
use crate::engine::call::live::Live;
use crate::engine::call::outbox::Outbox;
use crate::engine::call::outcome::Ended;
use crate::engine::stamp;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::event::{Event, Stamped};
use crate::future::Local;
use crate::port::Host;
use crate::slot::Slot;

/// What a call shares with the code that watches or stops it.
#[derive(Clone)]
pub(in crate::engine) struct CallHandles {
    pub(in crate::engine) slot: Slot,
    pub(in crate::engine) outbox: Rc<Outbox>,
    pub(in crate::engine) cancel: Cancel,
    pub(in crate::engine) live: Rc<Live>,
    pub(in crate::engine) checkpoints: Rc<Checkpoints>,
}

/// A call in progress.
pub struct Call {
    id: Rc<str>,
    handles: CallHandles,
    host: Rc<dyn Host>,
    drive: Option<Local<'static, Ended>>,
    ended: Option<Ended>,
    n_events: u64,
}

impl Call {
    /// A call that the future `drive` runs.
    pub(in crate::engine) fn new(
        id: Rc<str>,
        handles: CallHandles,
        host: Rc<dyn Host>,
        drive: Local<'static, Ended>,
    ) -> Call {
        Call { id, handles, host, drive: Some(drive), ended: None, n_events: 0 }
    }

    /// Its id.
    pub fn id(&self) -> &Rc<str> {
        &self.id
    }

    /// Its session.
    pub fn slot(&self) -> &Slot {
        &self.handles.slot
    }

    /// A handle that ends the call without access to the call itself.
    pub fn cancel(&self) -> Cancel {
        self.handles.cancel.clone()
    }

    /// The unread events. Tools add their partial output here.
    pub fn outbox(&self) -> Rc<Outbox> {
        Rc::clone(&self.handles.outbox)
    }

    /// The part of the session that tools and hooks see.
    pub fn live(&self) -> Rc<Live> {
        Rc::clone(&self.handles.live)
    }

    /// Runs the call until it has an event; `None` after the last event.
    pub async fn next(&mut self) -> Option<Stamped> {
        if self.handles.outbox.is_empty() {
            poll_fn(|context| self.poll(context)).await;
        }
        let event = self.handles.outbox.pop()?;
        let seq = self.n_events;
        self.n_events += 1;
        let at = stamp::now(&*self.host);
        Some(Stamped {
            event,
            slot: self.handles.slot.clone(),
            call_id: Rc::clone(&self.id),
            seq,
            at,
        })
    }

    /// Polls the call and takes all its unread events; none after the last event.
    pub fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<VecDeque<Event>> {
        self.poll(context).map(|()| self.handles.outbox.take())
    }

    /// Polls the call and leaves its events unread; ready when the call has ended.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = self.poll(context);
        if self.drive.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Runs the call to its end.
    pub async fn finish(&mut self) -> Ended {
        while self.next().await.is_some() {}
        let unfinished =
            || Err(Error::new(ErrorKind::Internal, "a call ended without an outcome").into());
        self.ended.clone().unwrap_or_else(unfinished)
    }

    /// How the call ended, if it has ended.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Ready when there is an unread event, or when the call has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(drive) = &mut self.drive
            && let Poll::Ready(ended) = drive.as_mut().poll(context)
        {
            self.drive = None;
            self.ended = Some(ended);
        }
        if self.handles.outbox.is_empty() && self.drive.is_some() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}
