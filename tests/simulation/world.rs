//! The simulated world: one thread, one clock, and tasks that are polled in a random order.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use lockgate::future::Local;
use lockgate::port::Host;

use crate::chance::{Chance, Tally};

/// The start time of every schedule.
const BEGINNING: u64 = 1_790_000_000_000;
/// More steps than any schedule without a livelock needs.
const STEPS: u64 = 400_000;

/// A group of tasks that are dropped together when their node dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Never dies: the machine of the store.
    Server,
    /// Never dies: the users, and the source of faults.
    Client,
    /// One lifetime of a node.
    Node(u64),
}

/// The tasks, clock and random numbers of a schedule.
pub struct World {
    /// The source of all decisions.
    pub chance: Chance,
    /// How often each fault and action happened.
    pub tally: Rc<Tally>,
    now: Cell<u64>,
    ticks: Cell<u64>,
    last: Cell<u64>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    woken: Arc<Mutex<Vec<u64>>>,
    /// The frozen lifetimes, and their tasks that are ready.
    frozen: RefCell<BTreeMap<u64, Vec<u64>>>,
    /// The tasks of engines that trapped.
    remains: RefCell<Vec<Local<'static, ()>>>,
    /// The ended lifetimes, by the names of their nodes.
    pub gone: RefCell<BTreeSet<String>>,
}

struct Task {
    group: Group,
    future: Option<Local<'static, ()>>,
    waker: Waker,
    /// Runs when the task is dropped before its end.
    farewell: Option<Box<dyn FnOnce()>>,
}

struct Woken {
    task: u64,
    all: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let mut all = self.all.lock().unwrap();
        if !all.contains(&self.task) {
            all.push(self.task);
        }
    }
}

impl World {
    /// A world that is determined by its seed.
    pub fn new(seed: u64, tally: Rc<Tally>) -> Rc<World> {
        Rc::new(World {
            chance: Chance::new(seed),
            tally,
            now: Cell::new(0),
            ticks: Cell::new(0),
            last: Cell::new(0),
            tasks: RefCell::default(),
            sleepers: RefCell::default(),
            woken: Arc::default(),
            frozen: RefCell::default(),
            remains: RefCell::default(),
            gone: RefCell::default(),
        })
    }

    /// The next moment. Two observations never have the same one.
    pub fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    /// Adds a task, which is ready.
    pub fn spawn(&self, group: Group, future: impl Future<Output = ()> + 'static) {
        self.add(group, Box::pin(future), None);
    }

    /// Runs a future in a group. Returns its result, or nothing if the group dies first. `guard` is dropped at the very
    /// moment at which the future ends or dies.
    pub fn work<T: 'static>(
        &self,
        group: Group,
        guard: impl Sized + 'static,
        work: impl Future<Output = T> + 'static,
    ) -> Receiver<T> {
        let (tell, told) = oneshot();
        let ending = Rc::new(Cell::new(Some((tell, guard))));
        let left = Rc::clone(&ending);
        let future = async move {
            let done = work.await;
            if let Some((tell, guard)) = ending.take() {
                drop(guard);
                tell.send(done);
            }
        };
        self.add(group, Box::pin(future), Some(Box::new(move || drop(left.take()))));
        told
    }

    fn add(&self, group: Group, future: Local<'static, ()>, farewell: Option<Box<dyn FnOnce()>>) {
        let task = self.number();
        let woken = Arc::new(Woken { task, all: Arc::clone(&self.woken) });
        let waker = Waker::from(Arc::clone(&woken));
        let future = Some(future);
        self.tasks.borrow_mut().insert(task, Task { group, future, waker, farewell });
        woken.wake();
    }

    /// Drops all tasks of a lifetime in their current state.
    pub fn kill(&self, life: u64) {
        drop(self.take_tasks(life));
    }

    /// Stops all tasks of a lifetime without dropping them before the end of the schedule, like a trapped engine.
    pub fn trap(&self, life: u64) {
        for task in self.take_tasks(life) {
            self.remains.borrow_mut().extend(task.future);
            task.farewell.into_iter().for_each(|farewell| farewell());
        }
    }

    fn take_tasks(&self, life: u64) -> Vec<Task> {
        self.gone.borrow_mut().insert(name_of(life));
        self.frozen.borrow_mut().remove(&life);
        let is_of_life = |_: &u64, task: &mut Task| task.group == Group::Node(life);
        let mut tasks = self.tasks.borrow_mut();
        tasks.extract_if(.., is_of_life).map(|(_, task)| task).collect()
    }

    /// Freezes a lifetime.
    pub fn freeze(&self, life: u64) {
        self.frozen.borrow_mut().entry(life).or_default();
    }

    /// Resumes a frozen lifetime.
    pub fn thaw(&self, life: u64) {
        let waiting = self.frozen.borrow_mut().remove(&life).unwrap_or_default();
        let mut woken = self.woken.lock().unwrap();
        for task in waiting {
            if !woken.contains(&task) {
                woken.push(task);
            }
        }
    }

    /// Drops everything that refers to the world.
    pub fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        let remains = self.remains.take();
        drop((tasks, remains));
    }

    /// Runs until no task can make progress.
    pub fn run(&self) -> Result<(), String> {
        for _ in 0..STEPS {
            if self.tasks.borrow().is_empty() {
                // The tasks of a trapped engine may still have timers.
                return Ok(());
            } else if let Some(task) = self.pick() {
                if self.chance.below(16) == 0 {
                    self.pass(1 + self.chance.below(3));
                }
                self.step(task);
            } else if let Some((until, _)) = self.first_sleeper() {
                self.pass(until.saturating_sub(self.now.get()));
            } else {
                let groups: Vec<_> = self.tasks.borrow().values().map(|it| it.group).collect();
                return Err(format!("tasks wait, and nothing can wake them: {groups:?}"));
            }
        }
        Err("the schedule does not come to an end".to_owned())
    }

    /// Runs one future, and everything else, to the end.
    pub fn finish<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, String> {
        let told = self.work(Group::Client, (), future);
        self.run()?;
        told.take().ok_or_else(|| "a future did not end".to_owned())
    }

    /// Waits.
    pub fn sleep(self: &Rc<Self>, ms: u64) -> Sleep {
        Sleep { until: self.now.get() + ms, number: self.number(), world: Rc::clone(self) }
    }

    /// Waits for a random time.
    pub fn lag(self: &Rc<Self>) -> Sleep {
        self.sleep(self.chance.wait())
    }

    fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn pick(&self) -> Option<u64> {
        let mut woken = self.woken.lock().unwrap();
        while !woken.is_empty() {
            let index = self.chance.below(woken.len() as u64) as usize;
            let task = woken.swap_remove(index);
            if !self.is_kept_back(task) {
                return Some(task);
            }
        }
        None
    }

    /// Whether a task is frozen with its node.
    fn is_kept_back(&self, task: u64) -> bool {
        let mut frozen = self.frozen.borrow_mut();
        if frozen.is_empty() {
            return false;
        }
        let Some(Group::Node(life)) = self.tasks.borrow().get(&task).map(|it| it.group) else {
            return false;
        };
        frozen.get_mut(&life).map(|waiting| waiting.push(task)).is_some()
    }

    fn step(&self, number: u64) {
        let taken = self.tasks.borrow_mut().get_mut(&number).and_then(|task| {
            let future = task.future.take()?;
            Some((future, task.waker.clone()))
        });
        let Some((mut future, waker)) = taken else { return };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut tasks = self.tasks.borrow_mut();
        if polled.is_ready() {
            let ended = tasks.remove(&number);
            drop(tasks);
            drop(ended);
        } else if let Some(task) = tasks.get_mut(&number) {
            task.future = Some(future);
        }
    }

    fn first_sleeper(&self) -> Option<(u64, u64)> {
        self.sleepers.borrow().keys().next().copied()
    }

    fn pass(&self, ms: u64) {
        self.now.set(self.now.get() + ms);
        let mut due = Vec::new();
        while let Some(first) = self.first_sleeper().filter(|(until, _)| *until <= self.now.get()) {
            due.extend(self.sleepers.borrow_mut().remove(&first));
        }
        due.into_iter().for_each(Waker::wake);
    }
}

/// A wait in simulated time.
pub struct Sleep {
    world: Rc<World>,
    until: u64,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.world.now.get() >= self.until {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        self.world.sleepers.borrow_mut().insert((self.until, self.number), waker);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.world.sleepers.borrow_mut().remove(&(self.until, self.number));
    }
}

/// The clock and random numbers of one node. The clocks of nodes differ.
pub struct NodeHost {
    pub world: Rc<World>,
    /// The error of the node's clock, which can jump.
    pub ahead_ms: Rc<Cell<i64>>,
    /// The name of the node for other nodes of the machine; "" if the nodes do not know each other.
    pub name: String,
}

/// The name of a node in this lifetime.
pub fn name_of(life: u64) -> String {
    format!("node-{life}")
}

impl Host for NodeHost {
    fn now_ms(&self) -> f64 {
        (BEGINNING + self.world.now.get()).saturating_add_signed(self.ahead_ms.get()) as f64
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.world.chance.next() as u8);
    }

    fn sleep(&self, ms: u64) -> Local<'static, ()> {
        Box::pin(self.world.sleep(ms))
    }

    fn node(&self) -> String {
        self.name.clone()
    }

    fn is_gone(&self, node: &str) -> bool {
        !self.name.is_empty() && self.world.gone.borrow().contains(node)
    }
}

struct Letter<T> {
    value: Option<T>,
    lost: bool,
    waker: Option<Waker>,
}

/// Sends one value. If it is dropped without a value, the receiver gets `None`.
pub struct Sender<T>(Rc<RefCell<Letter<T>>>);
/// Waits for the value.
pub struct Receiver<T>(Rc<RefCell<Letter<T>>>);

/// A channel for one value.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let letter = Rc::new(RefCell::new(Letter { value: None, lost: false, waker: None }));
    (Sender(Rc::clone(&letter)), Receiver(letter))
}

impl<T> Sender<T> {
    pub fn send(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.borrow_mut().lost = true;
        let waker = self.0.borrow_mut().waker.take();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Receiver<T> {
    /// The value, or `None` if the sender is gone.
    pub fn wait(self) -> impl Future<Output = Option<T>> {
        poll_fn(move |context| {
            let mut letter = self.0.borrow_mut();
            if letter.lost {
                return Poll::Ready(letter.value.take());
            }
            letter.waker = Some(context.waker().clone());
            Poll::Pending
        })
    }

    fn take(&self) -> Option<T> {
        self.0.borrow_mut().value.take()
    }
}
