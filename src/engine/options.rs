//! How an agent is set up.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::engine::Agent;
use crate::engine::archive::Shelves;
use crate::engine::cache::Bounds;
use crate::engine::call::Overlap;
use crate::engine::crew::{Foreman, Subagent};
use crate::engine::equip::equip;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::compaction::Compaction;
use crate::policy::eviction::Eviction;
use crate::policy::memory::Memory;
use crate::policy::plan::PlanMode;
use crate::policy::retry::Retries;
use crate::port::{Hook, Host, Lock, Model, Shared, Store, Tool};
use crate::slot;
use crate::state::{Facts, PermissionContext, Persistence, ToolContext};
use crate::store::OnConflict;
use crate::store::Sessions;
use crate::store::capable;
use crate::store::chunks;
use crate::store::files::Workspace;
use crate::tool::group::ToolGroup;
use crate::tool::skill::Skill;

/// Deadlines, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the model's first byte.
    pub model: u64,
    /// Between two pieces of an answer.
    pub idle: u64,
    /// For a tool.
    pub tool: u64,
    /// For one operation of the store.
    pub store: u64,
    /// For the lock of a session.
    pub lock: u64,
    /// For a whole call; none is no limit.
    pub call: Option<u64>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            model: 120_000,
            idle: 60_000,
            tool: 120_000,
            store: 10_000,
            lock: 60_000,
            call: None,
        }
    }
}

/// When a call is stored besides its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At its end.
    #[default]
    Exit,
    /// After every answer of the model and every batch of tools, too.
    Step,
}

/// Everything about an agent that is a value.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: the first part of every key it writes.
    pub name: String,
    /// What the model is told first.
    pub system_prompt: String,
    /// How often a call asks the model before it closes.
    pub max_iterations: u32,
    /// How many calls may wait for one session.
    pub queue_limit: usize,
    /// What a call does that finds its session busy.
    pub overlap: Overlap,
    /// The session of a call that names none.
    pub default_session_id: Option<String>,
    /// Whether a call must name its user.
    pub require_user_id: bool,
    /// What to do with a turn that meets another's.
    pub on_conflict: OnConflict,
    /// When a call is stored besides its beginning and end.
    pub durability: Durability,
    /// Whether other nodes are told through the store who has a session open, also where it is not shared by machines.
    pub leases: bool,
    /// Groups of tools that sessions have on or off.
    pub tool_groups: Vec<ToolGroup>,
    /// Whether the model may switch groups itself.
    pub meta_tool: bool,
    /// What tools may do: what fresh sessions begin with, and what no session may go beyond.
    pub permissions: Option<PermissionContext>,
    /// The files that a model works on, if it does.
    pub workspace: Option<Workspace>,
    /// How facts about users are kept from one session to the next, if they are.
    pub memory: Option<Memory>,
    /// Whether the model may read what its user said before, in this session and others.
    pub session_tools: bool,
    /// Whether the agent keeps a list of things to do.
    pub task_list: bool,
    /// Plan mode, if the agent has it.
    pub plan_mode: Option<PlanMode>,
    /// Instructions for particular jobs; a workspace may have more.
    pub skills: Rc<[Skill]>,
    /// Which parts of a session a resend rolls back and a call's save keeps.
    pub persistence: Persistence,
    /// The kinds of children that it may have besides those of a workspace; none at all if this is absent.
    pub subagents: Option<Vec<Subagent>>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Asking a model again.
    pub retries: Retries,
    /// What is kept in memory.
    pub cache: Bounds,
    /// Temperature and the like, for every request.
    pub generate: Value,
    /// How conversations are kept within a model's window.
    pub compaction: Compaction,
    /// Whether huge results of tools are shown only in part.
    pub eviction: Option<Eviction>,
}

impl Options {
    /// The defaults, for an agent of this name.
    pub fn new(name: impl Into<String>) -> Options {
        Options {
            name: name.into(),
            system_prompt: String::new(),
            max_iterations: 10,
            queue_limit: 64,
            overlap: Overlap::Queue,
            default_session_id: None,
            require_user_id: false,
            on_conflict: OnConflict::Rebase,
            durability: Durability::Exit,
            leases: false,
            tool_groups: Vec::new(),
            meta_tool: false,
            permissions: None,
            workspace: None,
            memory: None,
            session_tools: true,
            task_list: false,
            plan_mode: None,
            skills: Rc::default(),
            persistence: Persistence::ALL,
            subagents: None,
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            cache: Bounds::default(),
            generate: Value::Object(Map::new()),
            compaction: Compaction::default(),
            eviction: None,
        }
    }
}

impl Options {
    /// What a fresh session begins with.
    pub fn fresh_facts(&self) -> Facts {
        let active = self.tool_groups.iter().filter(|group| group.active);
        let activated_groups = active.map(|group| group.name.clone()).collect();
        let tool_context = ToolContext { activated_groups, ..ToolContext::default() };
        let permission_context = self.permissions.clone().unwrap_or_default();
        Facts { tool_context, permission_context, ..Facts::default() }
    }
}

/// An agent being set up; `build` checks it.
pub struct Builder {
    pub(super) options: Options,
    pub(super) model: Option<Rc<dyn Model>>,
    pub(super) fallback: Option<Rc<dyn Model>>,
    pub(super) summariser: Option<Rc<dyn Model>>,
    pub(super) memory: Option<Rc<dyn Model>>,
    pub(super) counter: Option<Counter>,
    pub(super) store: Option<Rc<dyn Store>>,
    pub(super) host: Option<Rc<dyn Host>>,
    pub(super) lock: Option<Rc<dyn Lock>>,
    pub(super) tools: Vec<Rc<dyn Tool>>,
    pub(super) hooks: Vec<Rc<dyn Hook>>,
}

impl Builder {
    /// An agent of these options that still wants a model, a store and a host.
    pub fn new(options: Options) -> Builder {
        Builder {
            options,
            model: None,
            fallback: None,
            summariser: None,
            memory: None,
            counter: None,
            store: None,
            host: None,
            lock: None,
            tools: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// Its name: the first part of every key it writes.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// What the model is told first.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.options.system_prompt = prompt.into();
        self
    }

    /// Who answers.
    pub fn model(mut self, model: Rc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Who answers where the model fails before anything of an answer was seen.
    pub fn fallback_model(mut self, model: Rc<dyn Model>) -> Self {
        self.fallback = Some(model);
        self
    }

    /// Who writes summaries, if not the model itself.
    pub fn compaction_model(mut self, model: Rc<dyn Model>) -> Self {
        self.summariser = Some(model);
        self
    }

    /// Who looks for facts to be remembered, if not the model itself.
    pub fn memory_model(mut self, model: Rc<dyn Model>) -> Self {
        self.memory = Some(model);
        self
    }

    /// Counts the tokens of a text, in place of our estimate.
    pub fn token_counter(mut self, counter: Counter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Where sessions are kept.
    pub fn store(mut self, store: Rc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Time and chance.
    pub fn host(mut self, host: Rc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// What keeps other tabs and agents out of a session while a call has it. None: there are no others.
    pub fn lock(mut self, lock: Rc<dyn Lock>) -> Self {
        self.lock = Some(lock);
        self
    }

    /// One more tool.
    pub fn tool(mut self, tool: Rc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// One more hook, inside those before it.
    pub fn hook(mut self, hook: Rc<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// The agent, or what is wrong with the options.
    pub fn build(self) -> Result<Agent> {
        let missing = |what: &str, hint: &str| {
            Error::new(ErrorKind::Options, format!("{what} is missing")).hint(hint)
        };
        slot::check("name", &self.options.name).map_err(|error| {
            Error::new(ErrorKind::Options, error.message())
                .hint(error.hint_text().unwrap_or_default())
        })?;
        let model = self
            .model
            .ok_or_else(|| missing("model", "give the agent a model, such as demoModel()"))?;
        let store = self
            .store
            .ok_or_else(|| missing("store", "give the agent a store, such as memoryStore()"))?;
        let host = self
            .host
            .ok_or_else(|| missing("host", "give the agent a clock and random numbers"))?;
        capable::check(store.capabilities())?;
        let store = chunks::above(store);
        let shelves = Rc::new(shelves(&self.options, Rc::clone(&store), &host));
        let foreman = Rc::<Foreman>::default();
        let mut tools = self.tools;
        tools.extend(foreman.tools(&self.options)?);
        let tools = equip(&self.options, tools, (&store, &host), &shelves)?;
        let (fallback, summariser, counter) = (self.fallback, self.summariser, self.counter);
        let models = Models { own: model, fallback, summariser, memory: self.memory, counter };
        let agent =
            Agent::assemble(self.options, models, shelves, host, self.lock, tools, self.hooks);
        foreman.serve(&agent.0);
        Ok(agent)
    }
}

/// Counts the tokens of a text.
pub type Counter = Rc<dyn Fn(&str) -> u64>;

/// Who answers, who summarises, who remembers, and who counts.
pub(super) struct Models {
    pub(super) own: Rc<dyn Model>,
    pub(super) fallback: Option<Rc<dyn Model>>,
    pub(super) summariser: Option<Rc<dyn Model>>,
    pub(super) memory: Option<Rc<dyn Model>>,
    pub(super) counter: Option<Counter>,
}

/// The sessions of an agent in its store.
fn shelves(options: &Options, store: Rc<dyn Store>, host: &Rc<dyn Host>) -> Shelves {
    let shared = store.capabilities().shared;
    let leases = matches!(shared, Shared::Host | Shared::Cluster) || options.leases;
    let sessions = Sessions::new(&options.name, store, Rc::clone(host), options.timeouts.store)
        .with_template(options.fresh_facts())
        .with_policy(options.on_conflict)
        .with_leases(leases);
    Shelves::new(&Rc::new(sessions), shared)
}
