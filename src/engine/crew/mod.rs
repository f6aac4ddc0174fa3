//! Children: calls of the same agent, on sessions of their own, that another call has begun.
//!
//! A child moves with the call that began it, and goes on as work that nobody waits for when that call has ended. What
//! it was given to do is a record of its parent's session; how that ended is in the child's own log, and is told to the
//! parent once: see `tell.rs`.

mod inherit;
mod kinds;
mod orders;
mod tell;

pub use kinds::Subagent;
pub(super) use kinds::{DEEPEST, Post};
pub(super) use orders::Foreman;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::call::Call;
use crate::engine::cancel::{Cancel, Cause};
use crate::engine::live::Live;
use crate::engine::outbox::Outbox;
use crate::event::{Event, Stamped};
use crate::future::Local;
use crate::slot::Slot;
use crate::store::task::Task;

/// A child that runs in this process.
pub struct Child {
    /// What it does.
    pub task: Task,
    /// Its session.
    pub slot: Slot,
    /// What models and tools know its call by.
    pub tag: u32,
    /// What they know its parent's by.
    pub parent_tag: u32,
    /// Ends it.
    pub cancel: Cancel,
    /// Its own events.
    pub outbox: Rc<Outbox>,
    /// What its tools and hooks see of its session.
    pub live: Rc<Live>,
    /// Whom its events are shown to: the call of its parent's that runs, if one does.
    shown: RefCell<Weak<Outbox>>,
    is_accepted: Cell<bool>,
    /// Why it could not begin.
    failed: RefCell<Option<String>>,
}

impl Child {
    fn show(&self, event: Stamped) {
        if let Some(outbox) = self.shown.borrow().upgrade() {
            let (task_id, agent) = (self.task.id.clone(), self.task.agent.clone());
            outbox.push(Event::Subagent { task_id, agent, event: Box::new(event) });
        }
    }

    fn is_of(&self, slot: &Slot) -> bool {
        self.task.parent == slot.session() && self.slot.user() == slot.user()
    }
}

/// A child, and what moves it.
pub(super) type Moving = (Rc<Child>, Local<'static, ()>);

/// The children of an agent that run in this process.
#[derive(Default)]
pub(super) struct Crew {
    running: RefCell<Vec<Rc<Child>>>,
    /// The calls that may have children, by their session.
    parents: RefCell<HashMap<Slot, Weak<Live>>>,
    n_changes: Cell<u64>,
    wakers: RefCell<Vec<Waker>>,
}

impl Crew {
    /// A call begins its turn: it may have children, and sees what those of earlier calls do.
    pub(super) fn attend(&self, slot: &Slot, live: &Rc<Live>, outbox: &Rc<Outbox>) {
        live.brood.outbox.replace(Rc::downgrade(outbox));
        self.parents.borrow_mut().insert(slot.clone(), Rc::downgrade(live));
        let running = self.running.borrow();
        let own = running.iter().filter(|child| child.is_of(slot));
        own.for_each(|child| drop(child.shown.replace(Rc::downgrade(outbox))));
    }

    /// The call has ended.
    pub(super) fn dismiss(&self, slot: &Slot, live: &Rc<Live>) {
        // One that never had its turn leaves the call that has.
        let mut parents = self.parents.borrow_mut();
        if parents.get(slot).is_some_and(|parent| parent.as_ptr() == Rc::as_ptr(live)) {
            parents.remove(slot);
        }
    }

    /// What a model is reminded of: the children of its session that run.
    pub(super) fn reminder(&self, slot: &Slot) -> Option<String> {
        let running = self.running.borrow();
        let own = running.iter().filter(|child| child.is_of(slot));
        let line = |child: &Rc<Child>| {
            let Task { id, agent, label, .. } = &child.task;
            let label = label.as_ref().map(|label| [", ", label].concat()).unwrap_or_default();
            ["\n- ", id, " (", agent, &label, ")"].concat()
        };
        let lines: String = own.map(line).collect();
        (!lines.is_empty()).then(|| ["Tasks that run in the background:", &lines].concat())
    }

    /// The child that does a task, if it runs here.
    fn find(&self, task: &str) -> Option<Rc<Child>> {
        self.running.borrow().iter().find(|child| child.task.id == task).cloned()
    }

    fn ring(&self) {
        self.n_changes.set(self.n_changes.get() + 1);
        self.wakers.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until a child begins or ends, from now on.
    fn changed(&self) -> impl Future<Output = ()> + '_ {
        let seen = self.n_changes.get();
        poll_fn(move |context| {
            if self.n_changes.get() != seen {
                return Poll::Ready(());
            }
            let mut wakers = self.wakers.borrow_mut();
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
    }
}

impl Agent {
    /// The child whose call models and tools know by this.
    pub fn child(&self, tag: u32) -> Option<Rc<Child>> {
        self.0.crew.running.borrow().iter().find(|child| child.tag == tag).cloned()
    }
}

/// A child that is among those that run until this is dropped, also if it is dropped before its end.
struct Present(Rc<Inner>, Rc<Child>);

impl Drop for Present {
    fn drop(&mut self) {
        let crew = &self.0.crew;
        crew.running.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.1));
        crew.ring();
    }
}

/// What moves a child to its end.
async fn moved(present: Present, mut call: Call) {
    let Present(agent, child) = &present;
    while let Some(event) = call.next().await {
        if matches!(event.event, Event::Accepted { .. }) {
            child.is_accepted.set(true);
            agent.crew.ring();
        }
        child.show(event);
    }
    if let Some(Err(failed)) = call.ended() {
        child.failed.replace(Some(failed.error.message().to_owned()));
    }
}

/// The children that move with one call.
#[derive(Default)]
pub(super) struct Brood {
    /// How deep the call stands itself; 0 is one that a host has made.
    pub(super) depth: Cell<u32>,
    outbox: RefCell<Weak<Outbox>>,
    moving: RefCell<Vec<Moving>>,
    /// Names that its children are being given.
    labels: RefCell<Vec<String>>,
    /// Tasks whose end was told, each with the message or the tool call that told it.
    heard: RefCell<Vec<(String, Task)>>,
    /// Up to which change it has looked for ends.
    n_looked: Cell<Option<u64>>,
    is_over: Cell<bool>,
}

impl Brood {
    /// Does something while the children move.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            if done.is_pending() {
                self.poll(context);
            }
            done
        })
        .await
    }

    /// Ends the children, and waits for that.
    pub(super) async fn end(&self) {
        let stop = |(child, _): &Moving| child.cancel.ask(Cause::Stopped(Vec::new()));
        self.moving.borrow().iter().for_each(stop);
        poll_fn(|context| {
            self.poll(context);
            if self.moving.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// What goes on after the call.
    pub(super) fn leave(&self) -> Vec<Moving> {
        self.is_over.set(true);
        self.moving.take()
    }

    /// Takes on children that a child of this call has left; gives them back if the call is over itself.
    pub(super) fn adopt(&self, left: Vec<Moving>) -> Vec<Moving> {
        if self.is_over.get() {
            return left;
        }
        self.moving.borrow_mut().extend(left);
        Vec::new()
    }

    fn poll(&self, context: &mut Context<'_>) {
        let mut moved = Vec::new();
        // Those that are begun or left while others are polled are polled too.
        loop {
            let mut coming = self.moving.take();
            if coming.is_empty() {
                break;
            }
            coming.retain_mut(|(_, moving)| moving.as_mut().poll(context).is_pending());
            moved.append(&mut coming);
        }
        self.moving.replace(moved);
    }
}
