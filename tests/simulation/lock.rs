//! One table of locks for all nodes. Sometimes a lock is taken from a living holder, who may or may not be told.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::port::{Held, Lock};

use crate::world::World;

/// The holders and waiters of each lock: the first of a queue is the holder.
pub struct Table {
    world: Rc<World>,
    queues: RefCell<BTreeMap<String, VecDeque<Place>>>,
    /// Every lock that was ever taken from its holder.
    pub taken_over: RefCell<BTreeSet<String>>,
    /// The holders that lost a lock and were not told.
    unaware: RefCell<BTreeSet<u64>>,
    /// How many of a thousand lock requests fail.
    pub fails: Cell<u64>,
    keeps: bool,
}

struct Place {
    number: u64,
    /// The lifetime of the node: a restarted node has another one.
    life: u64,
    /// The waker to call when the place in the queue changes or is lost.
    waker: Option<Waker>,
}

impl Table {
    /// An empty table. With `keeps` it never releases a lock.
    pub fn new(world: &Rc<World>, keeps: bool) -> Rc<Table> {
        Rc::new(Table {
            world: Rc::clone(world),
            queues: RefCell::default(),
            taken_over: RefCell::default(),
            unaware: RefCell::default(),
            fails: Cell::new(0),
            keeps,
        })
    }

    /// Takes a lock from its holder.
    pub fn steal(&self) {
        let names: Vec<String> = self.queues.borrow().keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = &names[self.world.chance.below(names.len() as u64) as usize];
        let holder = self.queues.borrow()[name][0].number;
        self.rob(name, holder);
    }

    /// Takes all locks from a node that does not respond.
    pub fn steal_from(&self, life: u64) {
        let holds = |queue: &VecDeque<Place>| queue.front().filter(|it| it.life == life).is_some();
        let queues = self.queues.borrow();
        let held = queues.iter().filter(|(_, queue)| holds(queue));
        let held: Vec<_> = held.map(|(name, queue)| (name.clone(), queue[0].number)).collect();
        drop(queues);
        held.iter().for_each(|(name, number)| self.rob(name, *number));
    }

    /// Releases everything that a dead node holds or waits for.
    pub fn bury(&self, life: u64) {
        let queues = self.queues.borrow();
        let of_life = |(name, queue): (&String, &VecDeque<Place>)| {
            let theirs = queue.iter().filter(|it| it.life == life);
            theirs.map(|it| (name.clone(), it.number)).collect::<Vec<_>>()
        };
        let theirs: Vec<_> = queues.iter().flat_map(of_life).collect();
        drop(queues);
        theirs.iter().for_each(|(name, number)| self.leave(name, *number));
    }

    fn rob(&self, name: &str, number: u64) {
        self.taken_over.borrow_mut().insert(name.to_owned());
        if self.world.chance.below(2) == 0 {
            self.world.tally.count("lock stolen");
            self.unaware.borrow_mut().insert(number);
        } else {
            self.world.tally.count("lock lost");
        }
        self.leave(name, number);
    }

    fn join(&self, name: &str, life: u64, number: u64) {
        let mut queues = self.queues.borrow_mut();
        let queue = queues.entry(name.to_owned()).or_default();
        queue.push_back(Place { number, life, waker: None });
    }

    fn leave(&self, name: &str, number: u64) {
        let mut told = Vec::new();
        {
            let mut queues = self.queues.borrow_mut();
            let Some(queue) = queues.get_mut(name) else { return };
            let Some(index) = queue.iter().position(|it| it.number == number) else { return };
            told.extend(queue.remove(index).and_then(|it| it.waker));
            told.extend(queue.front_mut().and_then(|it| it.waker.take()));
            if queue.is_empty() {
                queues.remove(name);
            }
        }
        told.into_iter().for_each(Waker::wake);
    }

    /// The number of waiters before a place, and the waker to store for changes. None if the place is lost.
    fn ahead(&self, name: &str, number: u64, waker: &Waker) -> Option<usize> {
        let mut queues = self.queues.borrow_mut();
        let mut places = queues.get_mut(name)?.iter_mut().enumerate();
        let (ahead, place) = places.find(|(_, it)| it.number == number)?;
        place.waker = Some(waker.clone());
        Some(ahead)
    }
}

/// The lock port of a node.
pub struct SimLock {
    pub table: Rc<Table>,
    pub life: u64,
}

struct Ticket {
    table: Rc<Table>,
    name: String,
    number: u64,
}

impl Held for Ticket {
    fn lost(&self) -> Local<'_, ()> {
        Box::pin(poll_fn(|context| {
            let is_unaware = self.table.unaware.borrow().contains(&self.number);
            match self.table.ahead(&self.name, self.number, context.waker()) {
                None if !is_unaware => Poll::Ready(()),
                _ => Poll::Pending,
            }
        }))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.table.keeps {
            self.table.leave(&self.name, self.number);
        }
    }
}

impl Lock for SimLock {
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>> {
        Box::pin(async move {
            let world = &self.table.world;
            if world.chance.below(4) == 0 {
                world.tally.count("lock delay");
                world.lag().await;
            }
            if world.chance.permille(self.table.fails.get()) {
                world.tally.count("lock error");
                return Err(Error::new(ErrorKind::StoreBlocked, "the simulation says so"));
            }
            let number = world.tick();
            let (table, owned) = (Rc::clone(&self.table), name.to_owned());
            let ticket = Ticket { table, name: owned, number };
            self.table.join(name, self.life, number);
            poll_fn(|context| match self.table.ahead(name, number, context.waker()) {
                Some(ahead) if ahead > 0 => Poll::Pending,
                _ => Poll::Ready(()),
            })
            .await;
            Ok(Box::new(ticket) as Box<dyn Held>)
        })
    }
}
