//! One table of locks for all nodes; now and then a lock is stolen from a holder that lives.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::port::{Held, Lock};

use crate::world::World;

type Queue = VecDeque<(u64, Option<Waker>)>;

/// Who holds which name, and who waits for it: the first of a queue is the holder.
pub struct Table {
    world: Rc<World>,
    queues: RefCell<BTreeMap<String, Queue>>,
    keeps: bool,
}

impl Table {
    /// An empty table; one that `keeps` never lets go.
    pub fn new(world: &Rc<World>, keeps: bool) -> Rc<Table> {
        Rc::new(Table { world: Rc::clone(world), queues: RefCell::default(), keeps })
    }

    /// Takes a lock from whoever holds it.
    pub fn steal(&self) {
        let names: Vec<String> = self.queues.borrow().keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = &names[self.world.chance.below(names.len() as u64) as usize];
        self.world.tally.count("lock stolen");
        let holder = self.queues.borrow()[name][0].0;
        self.leave(name, holder);
    }

    fn join(&self, name: &str, number: u64) {
        let mut queues = self.queues.borrow_mut();
        queues.entry(name.to_owned()).or_default().push_back((number, None));
    }

    fn leave(&self, name: &str, number: u64) {
        let next = {
            let mut queues = self.queues.borrow_mut();
            let Some(queue) = queues.get_mut(name) else { return };
            queue.retain(|(other, _)| *other != number);
            let next = queue.front_mut().and_then(|(_, waker)| waker.take());
            if queue.is_empty() {
                queues.remove(name);
            }
            next
        };
        next.into_iter().for_each(Waker::wake);
    }
}

/// A node's way to the table.
pub struct SimLock(pub Rc<Table>);

struct Ticket {
    table: Rc<Table>,
    name: String,
    number: u64,
}

impl Held for Ticket {}

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
            if self.0.world.chance.below(4) == 0 {
                self.0.world.lag().await;
            }
            let number = self.0.world.tick();
            let ticket = Ticket { table: Rc::clone(&self.0), name: name.to_owned(), number };
            self.0.join(name, number);
            poll_fn(|context| {
                let mut queues = self.0.queues.borrow_mut();
                let queue = queues.get_mut(name);
                let place =
                    queue.and_then(|it| it.iter_mut().enumerate().find(|it| it.1.0 == number));
                match place {
                    Some((ahead, waiting)) if ahead > 0 => {
                        waiting.1 = Some(context.waker().clone());
                        Poll::Pending
                    }
                    _ => Poll::Ready(()),
                }
            })
            .await;
            Ok(Box::new(ticket) as Box<dyn Held>)
        })
    }
}
