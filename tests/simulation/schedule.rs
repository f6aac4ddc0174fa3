//! One schedule: nodes over one store, clients that ask, stop, read and delete, and random faults.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lockgate::engine::{Agent, Builder, CheckpointRate, Durability, Options};
use lockgate::policy::compaction::{Compaction, When};
use lockgate::port::Shared;
use lockgate::slot::Slot;
use lockgate::store::keys::SlotKeys;

use crate::chance::Tally;
use crate::check::check;
use crate::history::{AGENT, History};
use crate::lock::{SimLock, Table};
use crate::model::{SimModel, SimTool};
use crate::replay;
use crate::store::{Broken, Health, Kind, Rates, Server, SimStore};
use crate::world::{Group, NodeHost, World, name_of};

/// The largest error of a clock, in milliseconds.
const WRONG_CLOCKS: &[i64] = &[-3_600_000, -40_000, 0, 9_000, 86_400_000];

/// How often what is new in an answer is stored.
const RATES: &[CheckpointRate] = &[
    CheckpointRate::ByStore,
    CheckpointRate::EveryMs(0),
    CheckpointRate::EveryMs(20),
    CheckpointRate::EveryMs(100),
];

/// Runs the schedule of a seed. Returns the broken promises.
pub fn run(seed: u64, broken: Broken, tally: &Rc<Tally>) -> Vec<String> {
    run_with(seed, broken, tally, Schedule::storm)
}

/// Runs a schedule whose main part is `storm`. Returns the broken promises.
pub fn run_with(
    seed: u64,
    broken: Broken,
    tally: &Rc<Tally>,
    storm: impl FnOnce(&Rc<Schedule>) -> Result<(), String>,
) -> Vec<String> {
    let schedule = Schedule::new(seed, broken, tally);
    let ended = storm(&schedule).and_then(|()| schedule.calm());
    if let Err(why) = ended {
        schedule.history.problem(why);
    }
    if crate::number("LOCKGATE_SEED").is_some() {
        replay::tell(&schedule);
    }
    schedule.world.end();
    schedule.history.problems.take()
}

/// Where the nodes run, and how they are coordinated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// Tabs of one browser, with locks.
    Tabs,
    /// Tabs of a browser without locks: coordinated only by revisions.
    UnlockedTabs,
    /// One node at a time with its own store.
    Alone,
    /// Processes of one machine, which know the dead ones; with leases in the head.
    Host,
    /// Machines that do not know each other; with leases in the head.
    Cluster,
}

/// The parts of one schedule.
pub struct Schedule {
    pub world: Rc<World>,
    pub server: Rc<Server>,
    pub history: Rc<History>,
    pub trouble: Rc<Cell<u64>>,
    setting: Setting,
    locks: Option<Rc<Table>>,
    /// The living nodes: the number of the lifetime, and its agent.
    pub nodes: RefCell<Vec<(u64, Agent)>>,
    pub slots: Vec<Slot>,
    durability: Durability,
    checkpoints: CheckpointRate,
    /// Whether each call is stopped as soon as it is accepted.
    pub stops_at_once: Cell<bool>,
    /// The error of each node's clock.
    clocks: Vec<Rc<Cell<i64>>>,
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
            tears: chance.pick(&[0, 20, 80]),
            delivers_twice: chance.pick(&[0, 20, 80]),
        };
        use Setting::{Alone, Cluster, Host, Tabs, UnlockedTabs};
        let setting = match broken {
            Broken::IgnoresExpectAndLocks => chance.pick(&[UnlockedTabs, Host, Cluster]),
            _ => chance.pick(&[Tabs, Tabs, Tabs, Tabs, Tabs, UnlockedTabs, Alone, Host, Cluster]),
        };
        let kind = Kind {
            shared: match setting {
                Tabs | UnlockedTabs => Shared::Origin,
                Alone => Shared::Process,
                Host => Shared::Host,
                Cluster => Shared::Cluster,
            },
            cell: chance.pick(&[None, None, None, Some(300)]),
            has_journal: chance.below(3) == 0,
        };
        world.tally.count(setting.word());
        let server = Server::new(&world, rates, kind, broken);
        let history = History::new(&server);
        let locks = Table::new(&world, broken == Broken::KeepsLocksOfTheDead);
        locks.fails.set(chance.pick(&[0, 20, 40]));
        let n_nodes = if setting == Alone { 1 } else { chance.pick(&[1, 2, 2, 2, 3]) };
        let clock = |_| Rc::new(Cell::new(chance.pick(&[0, 0, -7_000, 40_000])));
        let schedule = Schedule {
            trouble: Rc::new(Cell::new(chance.pick(&[0, 200, 400]))),
            locks: Some(locks).filter(|_| setting == Tabs),
            nodes: RefCell::default(),
            slots: slots(1 + chance.below(3), chance.below(2) == 0),
            clocks: (0..n_nodes).map(clock).collect(),
            durability: chance.pick(&[Durability::Exit, Durability::Exit, Durability::Step]),
            checkpoints: chance.pick(RATES),
            stops_at_once: Cell::new(false),
            setting,
            server,
            history,
            world: Rc::clone(&world),
        };
        schedule.history.compacts.set(chance.below(3) == 0);
        for place in 0..n_nodes {
            let node = schedule.node(place);
            schedule.nodes.borrow_mut().push(node);
        }
        Rc::new(schedule)
    }

    /// Starts a new lifetime of the node in this place.
    fn node(&self, place: usize) -> (u64, Agent) {
        let life = self.world.tick();
        let model = SimModel {
            world: Rc::clone(&self.world),
            history: Rc::clone(&self.history),
            trouble: Rc::clone(&self.trouble),
        };
        let tools = SimTool::all(&model);
        let ahead_ms = Rc::clone(&self.clocks[place]);
        if ahead_ms.get() != 0 {
            self.world.tally.count("skewed clock");
        }
        let name = if self.setting == Setting::Host { name_of(life) } else { String::new() };
        let host = NodeHost { world: Rc::clone(&self.world), ahead_ms, name };
        let (max_iterations, durability) = (3, self.durability);
        let checkpoints = self.checkpoints;
        let when = if self.history.compacts.get() { When::ByTrigger } else { When::OnOverflow };
        let (trigger_messages, keep_messages) = (6, 2);
        let compaction =
            Compaction { when, trigger_messages, keep_messages, ..Compaction::default() };
        let options =
            Options { max_iterations, durability, checkpoints, compaction, ..Options::new(AGENT) };
        let builder = Builder::new(options)
            .model(Rc::new(model))
            // A summary is always shorter than the messages that it replaces.
            .token_counter(Rc::new(|text| if text.contains("<summary>") { 1 } else { 10 }))
            .store(Rc::new(SimStore(Rc::clone(&self.server))))
            .host(Rc::new(host));
        let builder = tools.into_iter().fold(builder, Builder::tool);
        let builder = match &self.locks {
            Some(table) => builder.lock(Rc::new(SimLock { table: Rc::clone(table), life })),
            None => builder,
        };
        (life, builder.build().unwrap())
    }

    /// The main part: all clients at once, with faults.
    fn storm(self: &Rc<Self>) -> Result<(), String> {
        for _ in 0..2 + self.world.chance.below(3) {
            self.world.spawn(Group::Client, Rc::clone(self).client());
        }
        self.world.spawn(Group::Client, Rc::clone(self).chaos());
        self.world.run()
    }

    /// The last part, without faults: every session answers on every node, and every callId returns its stored outcome.
    fn calm(self: &Rc<Self>) -> Result<(), String> {
        self.server.rates.set(Rates::default());
        self.locks.iter().for_each(|table| table.fails.set(0));
        self.trouble.set(0);
        let slots: Vec<Slot> = self.slots.iter().cloned().chain(self.copies()).collect();
        for slot in &slots {
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
        for slot in slots.clone() {
            self.world.finish(Rc::clone(self).read(0, slot))?;
        }
        for (_, agent) in self.nodes.borrow().iter() {
            if agent.n_busy() > 0 {
                self.history.problem(format!("{} gates stay closed", agent.n_busy()));
            }
        }
        self.history.check_events();
        if let Some(table) = &self.locks {
            let lock = |slot: &Slot| SlotKeys::new(AGENT, slot).lock();
            self.history.check_locks(|slot| table.taken_over.borrow().contains(&lock(slot)));
        }
        check(&self.history, &self.server, &slots);
        Ok(())
    }

    /// Causes faults of nodes, locks, clocks and the store.
    async fn chaos(self: Rc<Self>) {
        let chance = &self.world.chance;
        for _ in 0..chance.pick(&[0, 1, 2, 5]) {
            self.world.sleep(chance.wait() + chance.below(300)).await;
            let place = chance.below(self.nodes.borrow().len() as u64) as usize;
            match chance.below(14) {
                0..3 => {
                    self.world.tally.count("clock leap");
                    self.clocks[place].set(chance.pick(WRONG_CLOCKS));
                }
                3..7 if self.locks.is_some() => self.locks.iter().for_each(|it| it.steal()),
                7 => self.trap(place),
                8 => self.freeze(place).await,
                9 => self.shut_down(place).await,
                10 => self.ail().await,
                _ => self.crash(place),
            }
        }
    }

    fn crash(&self, place: usize) {
        self.world.tally.count("crash");
        let (life, agent) = self.nodes.borrow()[place].clone();
        self.world.kill(life);
        drop(agent);
        self.be_reborn(place);
    }

    /// The engine traps. Its host releases its locks and starts another engine.
    fn trap(&self, place: usize) {
        self.world.tally.count("trap");
        let life = self.nodes.borrow()[place].0;
        self.world.trap(life);
        self.locks.iter().for_each(|table| table.bury(life));
        self.be_reborn(place);
    }

    /// A node freezes. Waiting nodes may take its locks.
    async fn freeze(&self, place: usize) {
        self.world.tally.count("freeze");
        let (chance, life) = (&self.world.chance, self.nodes.borrow()[place].0);
        self.world.freeze(life);
        self.world.sleep(chance.below(12_000)).await;
        if chance.below(2) == 0 {
            self.locks.iter().for_each(|table| table.steal_from(life));
            self.world.sleep(chance.below(25_000)).await;
        }
        self.world.thaw(life);
    }

    /// A node shuts down.
    async fn shut_down(&self, place: usize) {
        self.world.tally.count("shutdown");
        let (life, agent) = self.nodes.borrow()[place].clone();
        agent.shut_down();
        self.world.lag().await;
        agent.shut_down_now();
        self.world.lag().await;
        if self.nodes.borrow()[place].0 == life {
            self.world.kill(life);
            drop(agent);
            self.be_reborn(place);
        }
    }

    fn be_reborn(&self, place: usize) {
        let reborn = self.node(place);
        self.nodes.borrow_mut()[place] = reborn;
    }

    /// The store has a temporary condition.
    async fn ail(&self) {
        let chance = &self.world.chance;
        self.server.health.set(chance.pick(&[Health::Down, Health::Full, Health::Blocked]));
        self.world.sleep(chance.below(20_000)).await;
        self.server.health.set(Health::Well);
    }
}

impl Setting {
    fn word(self) -> &'static str {
        match self {
            Setting::Tabs => "in tabs",
            Setting::UnlockedTabs => "in tabs without locks",
            Setting::Alone => "alone",
            Setting::Host => "on a host",
            Setting::Cluster => "in a cluster",
        }
    }
}

/// Sessions of one user, or sessions with the same name of several users.
fn slots(n: u64, of_one_user: bool) -> Vec<Slot> {
    let users = [Some("alice"), Some("bob"), None];
    let slot = |n: u64| match of_one_user {
        true => Slot::new(Some("alice"), &format!("s{n}")),
        false => Slot::new(users[n as usize % 3], "s0"),
    };
    (0..n).map(|n| slot(n).unwrap()).collect()
}
