//! The children (calls of subagents) that run in this process, per agent and per call.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::engine::call::Call;
use crate::engine::call::cancel::{Cancel, Cause};
use crate::engine::call::live::Live;
use crate::engine::call::outbox::Outbox;
use crate::event::{Event, Stamped};
use crate::future::Local;
use crate::slot::Slot;
use crate::store::format::task::TaskRecord;

/// A child that runs in this process.
pub struct Child {
    /// The record of its task.
    pub task: TaskRecord,
    /// Its session.
    pub slot: Slot,
    /// The tag of its call.
    pub tag: u32,
    /// The tag of the call that started it.
    pub parent_tag: u32,
    /// Cancels it.
    pub cancel: Cancel,
    /// Its events.
    pub outbox: Rc<Outbox>,
    /// The part of its session that its tools and hooks can read and change.
    pub live: Rc<Live>,
    /// The events of the parent session's running call, if there is one. The child's events are added to them.
    shown: RefCell<Weak<Outbox>>,
    is_accepted: Cell<bool>,
    /// The reason why it could not start.
    failed: RefCell<Option<String>>,
}

impl Child {
    fn new(
        task: TaskRecord,
        call: &Call,
        (tag, parent_tag): (u32, u32),
        shown: Weak<Outbox>,
    ) -> Child {
        Child {
            task,
            slot: call.slot().clone(),
            tag,
            parent_tag,
            cancel: call.cancel(),
            outbox: call.outbox(),
            live: call.live(),
            shown: RefCell::new(shown),
            is_accepted: Cell::new(false),
            failed: RefCell::default(),
        }
    }

    /// Whether the input of the child is stored.
    pub(in crate::engine) fn is_accepted(&self) -> bool {
        self.is_accepted.get()
    }

    /// The reason why it could not start, if it could not.
    pub(in crate::engine) fn refusal(&self) -> Option<String> {
        self.failed.borrow().clone().filter(|_| !self.is_accepted.get())
    }

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

/// A child, and the future that runs it.
pub(in crate::engine) type MovingChild = (Rc<Child>, Local<'static, ()>);

/// The children of an agent that run in this process.
#[derive(Default)]
pub(in crate::engine) struct RunningChildren {
    running: RefCell<Vec<Rc<Child>>>,
    /// The calls that may have children, by session.
    parents: RefCell<HashMap<Slot, Weak<CallChildren>>>,
    /// Children whose parent's call has ended: they continue as background work.
    left: RefCell<Vec<MovingChild>>,
    n_changes: Cell<u64>,
    wakers: RefCell<Vec<Waker>>,
}

impl RunningChildren {
    /// Records that a call has started its turn. From now on it may have children, and it shows the events of children
    /// that earlier calls of its session have started.
    pub(in crate::engine) fn add_parent(&self, slot: &Slot, own: &Rc<CallChildren>) {
        self.parents.borrow_mut().insert(slot.clone(), Rc::downgrade(own));
        let running = self.running.borrow();
        let of_session = running.iter().filter(|child| child.is_of(slot));
        of_session.for_each(|child| drop(child.shown.replace(own.outbox.clone())));
    }

    /// Records that a call has ended.
    pub(in crate::engine) fn remove_parent(&self, slot: &Slot, own: &Rc<CallChildren>) {
        // A call that never started its turn must not remove the running call.
        let mut parents = self.parents.borrow_mut();
        if parents.get(slot).is_some_and(|parent| parent.as_ptr() == Rc::as_ptr(own)) {
            parents.remove(slot);
        }
    }

    /// The children of the session's running call.
    pub(in crate::engine) fn of_parent(&self, slot: &Slot) -> Option<Rc<CallChildren>> {
        self.parents.borrow().get(slot).and_then(Weak::upgrade)
    }

    /// A text that reminds the model of the running children of its session.
    pub(in crate::engine) fn reminder(&self, slot: &Slot) -> Option<String> {
        let running = self.running.borrow();
        let of_session = running.iter().filter(|child| child.is_of(slot));
        let line = |child: &Rc<Child>| {
            let TaskRecord { id, agent, label, .. } = &child.task;
            let label = label.as_ref().map(|label| [", ", label].concat()).unwrap_or_default();
            ["\n- ", id, " (", agent, &label, ")"].concat()
        };
        let lines: String = of_session.map(line).collect();
        (!lines.is_empty()).then(|| ["Tasks that run in the background:", &lines].concat())
    }

    /// The child with this task, if it runs in this process.
    pub(in crate::engine) fn find(&self, task: &str) -> Option<Rc<Child>> {
        self.running.borrow().iter().find(|child| child.task.id == task).cloned()
    }

    /// The child whose call has this tag.
    pub(in crate::engine) fn find_by_tag(&self, tag: u32) -> Option<Rc<Child>> {
        self.running.borrow().iter().find(|child| child.tag == tag).cloned()
    }

    /// Adds children whose parent's call has ended.
    pub(in crate::engine) fn leave(&self, left: Vec<MovingChild>) {
        self.left.borrow_mut().extend(left);
    }

    /// Takes the children whose parent's call has ended.
    pub(in crate::engine) fn take_left(&self) -> Vec<MovingChild> {
        self.left.take()
    }

    /// Whether there are children whose parent's call has ended.
    pub(in crate::engine) fn has_left(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// How many children have started or ended so far. For comparison only.
    pub(in crate::engine) fn n_changes(&self) -> u64 {
        self.n_changes.get()
    }

    /// Waits until the next child starts or ends.
    pub(in crate::engine) fn changed(&self) -> impl Future<Output = ()> + '_ {
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

    fn notify(&self) {
        self.n_changes.set(self.n_changes.get() + 1);
        self.wakers.take().into_iter().for_each(Waker::wake);
    }
}

/// Counts a child as running until this value is dropped, even if the child has not ended then.
struct RunningChild {
    children: Rc<RunningChildren>,
    child: Rc<Child>,
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.children.running.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.child));
        self.children.notify();
    }
}

/// Runs a child to its end.
async fn run_to_end(running: RunningChild, mut call: Call) {
    let RunningChild { children, child } = &running;
    while let Some(event) = call.next().await {
        if matches!(event.event, Event::Accepted { .. }) {
            child.is_accepted.set(true);
            children.notify();
        }
        child.show(event);
    }
    if let Some(Err(failed)) = call.ended() {
        child.failed.replace(Some(failed.error.message().to_owned()));
    }
}

/// The children that run together with one call.
pub(in crate::engine) struct CallChildren {
    /// How many parents the call has. A call that the application makes has 0.
    depth: Cell<u32>,
    /// The part of the session that the call's own tools and hooks can read and change.
    live: Rc<Live>,
    /// The call's own events.
    outbox: Weak<Outbox>,
    moving: RefCell<Vec<MovingChild>>,
    /// Labels that are reserved for new children.
    labels: RefCell<Vec<String>>,
    /// Tasks whose end was reported, each with the id of the message or the tool call that reported it.
    told: RefCell<Vec<(String, TaskRecord)>>,
    /// The number of changes in [`RunningChildren`] when this call last looked for ended tasks.
    n_seen: Cell<Option<u64>>,
    is_over: Cell<bool>,
}

impl CallChildren {
    pub(in crate::engine) fn new(depth: u32, live: &Rc<Live>, outbox: &Rc<Outbox>) -> CallChildren {
        CallChildren {
            depth: Cell::new(depth),
            live: Rc::clone(live),
            outbox: Rc::downgrade(outbox),
            moving: RefCell::default(),
            labels: RefCell::default(),
            told: RefCell::default(),
            n_seen: Cell::new(None),
            is_over: Cell::new(false),
        }
    }

    /// How many parents the call has.
    pub(in crate::engine) fn depth(&self) -> u32 {
        self.depth.get()
    }

    pub(in crate::engine) fn set_depth(&self, depth: u32) {
        self.depth.set(depth);
    }

    /// The part of the session that the call's own tools and hooks can read and change.
    pub(in crate::engine) fn live(&self) -> &Live {
        &self.live
    }

    /// Adds a child, which now runs together with the call.
    pub(in crate::engine) fn add(
        &self,
        children: &Rc<RunningChildren>,
        (task, call): (TaskRecord, Call),
        tags: (u32, u32),
    ) -> Rc<Child> {
        let child = Rc::new(Child::new(task, &call, tags, self.outbox.clone()));
        children.running.borrow_mut().push(Rc::clone(&child));
        let running = RunningChild { children: Rc::clone(children), child: Rc::clone(&child) };
        let moving = (Rc::clone(&child), Box::pin(run_to_end(running, call)) as Local<'static, ()>);
        self.moving.borrow_mut().push(moving);
        child
    }

    /// Reserves a label for a new child. Returns `false` if another new child has reserved it.
    pub(in crate::engine) fn reserve_label(&self, label: &str) -> bool {
        let mut labels = self.labels.borrow_mut();
        let is_free = !labels.iter().any(|other| other == label);
        if is_free {
            labels.push(label.to_owned());
        }
        is_free
    }

    /// Runs `work` and the children at the same time.
    pub(in crate::engine) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
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

    /// Cancels the children, and waits for their end.
    pub(in crate::engine) async fn end(&self) {
        let stop = |(child, _): &MovingChild| child.cancel.ask(Cause::Stopped(Vec::new()));
        self.moving.borrow().iter().for_each(stop);
        poll_fn(|context| {
            self.poll(context);
            if self.moving.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// The call has ended. Returns the children that continue as background work.
    pub(in crate::engine) fn leave(&self) -> Vec<MovingChild> {
        self.is_over.set(true);
        self.moving.take()
    }

    /// Adopts the children that a child of this call has left. If this call has ended too, it returns them.
    pub(in crate::engine) fn adopt(&self, left: Vec<MovingChild>) -> Vec<MovingChild> {
        if self.is_over.get() {
            return left;
        }
        self.moving.borrow_mut().extend(left);
        Vec::new()
    }

    /// Whether children have started or ended since the last call of this method.
    pub(in crate::engine) fn has_changes(&self, children: &RunningChildren) -> bool {
        let now = Some(children.n_changes());
        self.n_seen.replace(now) != now
    }

    /// Records that a message, or the result of a tool call, reports how a task ended.
    pub(in crate::engine) fn note_told(&self, by: String, task: TaskRecord, status: &str) {
        let task = TaskRecord { ended: Some(status.to_owned()), ..task };
        self.told.borrow_mut().push((by, task));
    }

    /// Whether the end of a task was reported in this call.
    pub(in crate::engine) fn is_told(&self, task: &str) -> bool {
        self.told.borrow().iter().any(|(_, told)| told.id == task)
    }

    /// Each reported task with the id of the message or the tool call that reported it.
    pub(in crate::engine) fn told(&self) -> Vec<(String, TaskRecord)> {
        self.told.borrow().clone()
    }

    fn poll(&self, context: &mut Context<'_>) {
        let mut moved = Vec::new();
        // Children that start or are adopted during a poll are polled too.
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
