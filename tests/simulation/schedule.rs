//! One schedule: nodes over one store, clients that ask, stop, read and delete, and chance that gets in the way.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lockgate::engine::{Agent, Builder, Durability, Options};
use lockgate::policy::compaction::{Compaction, When};
use lockgate::port::Shared;
use lockgate::slot::Slot;

use crate::chance::Tally;
use crate::check::check;
use crate::history::{AGENT, History};
use crate::lock::{SimLock, Table};
use crate::model::{SimModel, SimTool};
use crate::store::{Broken, Rates, Server, SimStore};
use crate::world::{Group, NodeHost, World};

/// Runs the schedule of a seed; what did not hold.
pub fn run(seed: u64, broken: Broken, tally: &Rc<Tally>) -> Vec<String> {
    let schedule = Schedule::new(seed, broken, tally);
    let ended = schedule.storm().and_then(|()| schedule.calm());
    if let Err(why) = ended {
        schedule.history.problem(why);
    }
    schedule.history.problems.take()
}

/// Everything that one schedule is made of.
pub struct Schedule {
    pub world: Rc<World>,
    pub server: Rc<Server>,
    pub history: Rc<History>,
    pub trouble: Rc<Cell<u64>>,
    locks: Option<Rc<Table>>,
    /// The nodes that live: the number of this life, and its agent.
    pub nodes: RefCell<Vec<(u64, Agent)>>,
    pub slots: Vec<Slot>,
    durability: Durability,
    /// How far the clock of each node is from true.
    clocks: [Rc<Cell<i64>>; 2],
}

impl Schedule {
    fn new(seed: u64, broken: Broken, tally: &Rc<Tally>) -> Rc<Schedule> {
        let world = World::new(seed, Rc::clone(tally));
        let chance = &world.chance;
        let rates = Rates {
            lag: chance.pick(&[0, 200, 600]),
            fails: chance.pick(&[0, 20, 80]),
            applies_and_fails: chance.pick(&[0, 20, 80]),
            hangs: chance.pick(&[0, 10, 40]),
        };
        let server = Server::new(&world, rates, broken);
        let history = History::new(&server);
        let unlocked = broken == Broken::IgnoresExpectAndLocks || chance.below(4) == 0;
        // Without locks there are leases in the head, or nothing but revisions.
        if unlocked && chance.below(2) == 0 {
            server.shared.set(Shared::Cluster);
            world.tally.count("leases");
        }
        let locks = Table::new(&world, broken == Broken::KeepsLocksOfTheDead);
        let n_slots = 1 + chance.below(3);
        let slots = (0..n_slots).map(|n| Slot::new(Some("alice"), &format!("s{n}")).unwrap());
        let schedule = Schedule {
            trouble: Rc::new(Cell::new(chance.pick(&[0, 100, 300]))),
            locks: Some(locks).filter(|_| !unlocked),
            nodes: RefCell::default(),
            slots: slots.collect(),
            clocks: [Rc::default(), Rc::new(Cell::new(-7_000))],
            durability: chance.pick(&[Durability::Exit, Durability::Exit, Durability::Step]),
            server,
            history,
            world: Rc::clone(&world),
        };
        schedule.history.compacts.set(chance.below(4) == 0);
        for place in 0..chance.pick(&[1, 2, 2]) {
            let node = schedule.node(place);
            schedule.nodes.borrow_mut().push(node);
        }
        Rc::new(schedule)
    }

    /// A new life of the node in this place.
    fn node(&self, place: u64) -> (u64, Agent) {
        let model = SimModel {
            world: Rc::clone(&self.world),
            history: Rc::clone(&self.history),
            trouble: Rc::clone(&self.trouble),
        };
        let tools = SimTool::all(&model);
        let ahead_ms = Rc::clone(&self.clocks[place as usize]);
        let host = NodeHost { world: Rc::clone(&self.world), ahead_ms };
        let (max_iterations, durability) = (3, self.durability);
        let when = if self.history.compacts.get() { When::ByTrigger } else { When::OnOverflow };
        let (trigger_messages, keep_messages) = (6, 2);
        let compaction =
            Compaction { when, trigger_messages, keep_messages, ..Compaction::default() };
        let options = Options { max_iterations, durability, compaction, ..Options::new(AGENT) };
        let builder = Builder::new(options)
            .model(Rc::new(model))
            // A summary is always shorter than what it stands for.
            .token_counter(Rc::new(|text| if text.contains("<summary>") { 1 } else { 10 }))
            .store(Rc::new(SimStore(Rc::clone(&self.server))))
            .host(Rc::new(host));
        let builder = tools.into_iter().fold(builder, Builder::tool);
        let builder = match &self.locks {
            Some(table) => builder.lock(Rc::new(SimLock(Rc::clone(table)))),
            None => builder,
        };
        (self.world.tick(), builder.build().unwrap())
    }

    /// Everything at once, with faults.
    fn storm(self: &Rc<Self>) -> Result<(), String> {
        for _ in 0..2 + self.world.chance.below(3) {
            self.world.spawn(Group::Client, Rc::clone(self).client());
        }
        self.world.spawn(Group::Client, Rc::clone(self).chaos());
        self.world.run()
    }

    /// No more faults: every session answers on every node, and every name answers as before.
    fn calm(self: &Rc<Self>) -> Result<(), String> {
        self.server.rates.set(Rates::default());
        self.trouble.set(0);
        for slot in &self.slots {
            for place in 0..self.nodes.borrow().len() {
                let question = self.history.question(slot, false);
                let attempt = self.world.finish(Rc::clone(self).ask_on(place, question))?;
                let attempts = self.history.attempts.borrow();
                if attempts[attempt].reply().is_none() {
                    let ended = attempts[attempt].ended.as_ref().map(|it| it.1.clone().err());
                    self.history.problem(format!("{slot} has no answer in the end: {ended:?}"));
                }
            }
        }
        let named: Vec<usize> = {
            let (attempts, questions) =
                (self.history.attempts.borrow(), self.history.questions.borrow());
            let told =
                |n: &usize| attempts.iter().any(|it| it.question == *n && it.reply().is_some());
            (0..questions.len()).filter(|n| questions[*n].name.is_some()).filter(told).collect()
        };
        for question in named {
            self.world.finish(Rc::clone(self).ask_on(0, question))?;
        }
        for slot in self.slots.clone() {
            self.world.finish(Rc::clone(self).read(0, slot))?;
        }
        for (_, agent) in self.nodes.borrow().iter() {
            if agent.n_busy() > 0 {
                self.history.problem(format!("{} gates stay closed", agent.n_busy()));
            }
        }
        self.history.check_events();
        check(&self.history, &self.server, &self.slots);
        Ok(())
    }

    /// Crashes nodes, steals locks and lets clocks leap.
    async fn chaos(self: Rc<Self>) {
        let chance = &self.world.chance;
        let n = chance.pick(&[0, 1, 2, 5]);
        for _ in 0..n {
            self.world.sleep(chance.wait() + chance.below(300)).await;
            if chance.below(3) == 0 {
                self.world.tally.count("clock leap");
                let clock = &self.clocks[chance.below(2) as usize];
                clock.set(chance.pick(&[-3_600_000, -40_000, 0, 9_000, 86_400_000]));
                continue;
            }
            if let Some(table) = self.locks.as_ref().filter(|_| chance.below(2) == 0) {
                table.steal();
                continue;
            }
            self.world.tally.count("crash");
            let place = chance.below(self.nodes.borrow().len() as u64) as usize;
            let (life, agent) = self.nodes.borrow()[place].clone();
            self.world.kill(Group::Node(life));
            drop(agent);
            let reborn = self.node(place as u64);
            self.nodes.borrow_mut()[place] = reborn;
        }
    }
}
