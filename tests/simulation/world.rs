//! One thread, one clock: tasks that are ready are moved in an order that chance picks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use lockgate::future::Local;
use lockgate::port::Host;

use crate::chance::{Chance, Tally};

/// The time at which every schedule begins.
const BEGINNING: u64 = 1_790_000_000_000;
/// More steps than any schedule that gets somewhere.
const STEPS: u64 = 400_000;

/// Who dies together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Never dies: the store's machine.
    Server,
    /// Never dies: people, and chance itself.
    Client,
    /// One life of a node.
    Node(u64),
}

/// Everything that moves in a schedule.
pub struct World {
    /// What decides.
    pub chance: Chance,
    /// What happened, in numbers.
    pub tally: Rc<Tally>,
    now: Cell<u64>,
    ticks: Cell<u64>,
    last: Cell<u64>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    woken: Arc<Mutex<Vec<u64>>>,
}

struct Task {
    group: Group,
    future: Option<Local<'static, ()>>,
    waker: Waker,
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
    /// A world that follows from its seed.
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
        })
    }

    /// The next moment: no two observations share one.
    pub fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    /// Adds a task; it is ready.
    pub fn spawn(&self, group: Group, future: impl Future<Output = ()> + 'static) {
        let task = self.number();
        let woken = Arc::new(Woken { task, all: Arc::clone(&self.woken) });
        let waker = Waker::from(Arc::clone(&woken));
        let future: Local<'static, ()> = Box::pin(future);
        self.tasks.borrow_mut().insert(task, Task { group, future: Some(future), waker });
        woken.wake();
    }

    /// Drops all tasks of a group where they stand.
    pub fn kill(&self, group: Group) {
        let dead: Vec<_> =
            self.tasks.borrow_mut().extract_if(.., |_, task| task.group == group).collect();
        drop(dead);
    }

    /// Moves until nothing can move any more.
    pub fn run(&self) -> Result<(), String> {
        for _ in 0..STEPS {
            if let Some(task) = self.pick() {
                if self.chance.below(16) == 0 {
                    self.pass(1 + self.chance.below(3));
                }
                self.step(task);
            } else if let Some((until, _)) = self.first_sleeper() {
                self.pass(until.saturating_sub(self.now.get()));
            } else if self.tasks.borrow().is_empty() {
                return Ok(());
            } else {
                let groups: Vec<_> = self.tasks.borrow().values().map(|it| it.group).collect();
                return Err(format!("tasks wait for something that nobody does: {groups:?}"));
            }
        }
        Err("the schedule does not come to an end".to_owned())
    }

    /// Runs one future, and everything else, to the end.
    pub fn finish<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, String> {
        let (tell, told) = oneshot();
        self.spawn(Group::Client, async move { tell.send(future.await) });
        self.run()?;
        told.take().ok_or_else(|| "a future did not end".to_owned())
    }

    /// Waits.
    pub fn sleep(self: &Rc<Self>, ms: u64) -> Sleep {
        Sleep { until: self.now.get() + ms, number: self.number(), world: Rc::clone(self) }
    }

    /// Waits as long as chance says.
    pub fn lag(self: &Rc<Self>) -> Sleep {
        self.sleep(self.chance.wait())
    }

    fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn pick(&self) -> Option<u64> {
        let mut woken = self.woken.lock().unwrap();
        if woken.is_empty() {
            return None;
        }
        let index = self.chance.below(woken.len() as u64) as usize;
        Some(woken.swap_remove(index))
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

/// Time and chance of one node; their clocks do not agree.
pub struct NodeHost {
    pub world: Rc<World>,
    /// How far its clock is from the others'; it leaps.
    pub ahead_ms: Rc<Cell<i64>>,
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
}

struct Letter<T> {
    value: Option<T>,
    lost: bool,
    waker: Option<Waker>,
}

/// Sends one value; dropped without one, the other side hears that there is none.
pub struct Sender<T>(Rc<RefCell<Letter<T>>>);
/// Waits for the value.
pub struct Receiver<T>(Rc<RefCell<Letter<T>>>);

/// A way for one value.
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
