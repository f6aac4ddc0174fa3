//! A call under way, as whoever made it holds it.
//!
//! Nothing happens between two [`Call::next`]: whoever holds the call pulls it along. What it does on the way is in
//! `drive.rs` (its stations) and `turn.rs` (the conversation with the model).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::Inner;
use crate::engine::cancel::Cancel;
use crate::engine::crew::Post;
use crate::engine::drive::{Driver, stamped};
use crate::engine::live::Live;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::Ended;
use crate::engine::output::Output;
use crate::engine::steer::{Joined, Steered};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Stamped};
use crate::future::Local;
use crate::json::Object;
use crate::message::{Block, Message, Role, rfc3339};
use crate::slot::Slot;
use crate::store::id;
use crate::store::input::Input;

/// What a call does that finds its session busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Waits its turn.
    #[default]
    Queue,
    /// Is refused with BUSY.
    Reject,
    /// Interrupts the call that runs, and waits its turn.
    Interrupt,
    /// Joins the call that runs at its next step, and ends with it; waits its turn if there is none.
    Steer,
}

/// What a caller asks for.
pub struct CallRequest {
    /// Whose conversation, and which.
    pub slot: Slot,
    /// What is said. Nothing, and no answers either: the call goes on with what was cut off.
    pub messages: Vec<Message>,
    /// What is answered to open tool calls, in place of messages.
    pub answers: Vec<Value>,
    /// Whether the last question is answered again; messages, if there are some, are asked in its place.
    pub resends: bool,
    /// The caller's own name for the call: the same again answers with the stored outcome.
    pub call_id: Option<String>,
    /// The form that the answer is to have, as JSON Schema.
    pub output: Option<Value>,
    /// Temperature and the like, over the agent's own.
    pub generate: Option<Object>,
    /// What to do if the session has a call already.
    pub overlap: Overlap,
    /// For the tools and hooks of this call.
    pub attributes: Attributes,
    /// What models and tools are to know the call by; free for the caller, never stored.
    pub tag: u32,
}

impl CallRequest {
    /// A user's words, and nothing out of the ordinary.
    pub fn new(slot: Slot, text: impl Into<String>) -> CallRequest {
        CallRequest {
            slot,
            messages: vec![Message::draft(Role::User, vec![Block::text(text)])],
            answers: Vec::new(),
            resends: false,
            call_id: None,
            output: None,
            generate: None,
            overlap: Overlap::Queue,
            attributes: Attributes::default(),
            tag: 0,
        }
    }
}

/// A call under way.
pub struct Call {
    id: Rc<str>,
    slot: Slot,
    agent: Rc<Inner>,
    outbox: Rc<Outbox>,
    cancel: Cancel,
    live: Rc<Live>,
    drive: Option<Local<'static, Ended>>,
    ended: Option<Ended>,
    n_events: u64,
}

impl Call {
    pub(super) fn begin(agent: Rc<Inner>, request: CallRequest) -> Result<Call> {
        Call::begin_as(agent, request, None)
    }

    /// Begins a call of the agent itself, or that of a child in this post.
    pub(super) fn begin_as(
        agent: Rc<Inner>,
        request: CallRequest,
        post: Option<Rc<Post>>,
    ) -> Result<Call> {
        let CallRequest {
            slot,
            messages,
            answers,
            resends,
            call_id,
            tag,
            output,
            generate,
            overlap,
            attributes,
        } = request;
        // Only plain words can join: a form, or options of its own, are for a turn of its own.
        let joins = overlap == Overlap::Steer
            && agent.gate.length(&slot) > 0
            && !messages.is_empty()
            && !resends
            && output.is_none()
            && generate.is_none();
        let output = output.as_ref().map(Output::new).transpose()?;
        let mut options = agent.options.generate.as_object().cloned().unwrap_or_default();
        options.extend(generate.unwrap_or_default());
        let named = call_id.is_some();
        let id: Rc<str> = call_id.unwrap_or_else(|| id::mint(&*agent.host)).into();
        let outbox = Rc::<Outbox>::default();
        let cancel = Cancel::default();
        let at = rfc3339(agent.host.now_ms());
        let messages =
            messages.into_iter().map(|message| Rc::new(stamped(message, &agent, &at))).collect();
        let input = Input {
            call_id: id.to_string(),
            named,
            messages,
            answers,
            asked: None,
            resends,
            rest: Default::default(),
        };
        // Before anything else can be told of it: one that joins another may be accepted before it moves.
        let message_ids = input.messages.iter().map(|message| message.id.clone()).collect();
        outbox.push(Event::CallStart { message_ids });
        let steered =
            joins.then(|| Steered::new(input.clone(), Rc::clone(&outbox), cancel.clone()));
        if let Some(steered) = &steered {
            let mut steering = agent.steering.borrow_mut();
            steering.entry(slot.clone()).or_default().push(Rc::clone(steered));
        }
        let live = Rc::<Live>::default();
        live.brood.depth.set(post.as_ref().map_or(0, |post| post.depth));
        let driver = Driver {
            number: agent.register(&slot, &cancel),
            ticket: Some(agent.gate.enter(&slot)),
            held: None,
            slot: slot.clone(),
            tag,
            output,
            generate: Value::Object(options),
            input,
            attributes,
            steered,
            post,
            joined: Joined::default(),
            live: Rc::clone(&live),
            outbox: Rc::clone(&outbox),
            cancel: cancel.clone(),
            agent: Rc::clone(&agent),
        };
        let drive: Local<'static, Ended> = Box::pin(driver.drive());
        let drive = Some(drive);
        Ok(Call { id, slot, agent, outbox, cancel, live, drive, ended: None, n_events: 0 })
    }

    /// Its id.
    pub fn id(&self) -> &Rc<str> {
        &self.id
    }

    /// Its session.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// The handle that ends it, which does not need the call itself.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Where tools put what they show while they run.
    pub fn outbox(&self) -> Rc<Outbox> {
        Rc::clone(&self.outbox)
    }

    /// What its tools and hooks see of the session.
    pub fn live(&self) -> Rc<Live> {
        Rc::clone(&self.live)
    }

    /// Moves the call until it has something to show; `None` after the last event.
    pub async fn next(&mut self) -> Option<Stamped> {
        if self.outbox.is_empty() {
            poll_fn(|context| self.poll(context)).await;
        }
        let event = self.outbox.pop()?;
        let seq = self.n_events;
        self.n_events += 1;
        let at = rfc3339(self.agent.host.now_ms());
        Some(Stamped { event, slot: self.slot.clone(), call_id: Rc::clone(&self.id), seq, at })
    }

    /// Moves the call and takes everything it has to show; none after the last event.
    pub fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<VecDeque<Event>> {
        self.poll(context).map(|()| self.outbox.take())
    }

    /// Moves the call, and leaves what it has to show; ready when it has ended.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = self.poll(context);
        if self.drive.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Moves the call to its end.
    pub async fn finish(&mut self) -> Ended {
        while self.next().await.is_some() {}
        let unfinished =
            || Err(Error::new(ErrorKind::Internal, "a call ended without an outcome").into());
        self.ended.clone().unwrap_or_else(unfinished)
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Ready when there is something to show, or nothing more to come.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(drive) = &mut self.drive
            && let Poll::Ready(ended) = drive.as_mut().poll(context)
        {
            self.drive = None;
            self.ended = Some(ended);
        }
        if self.outbox.is_empty() && self.drive.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}
