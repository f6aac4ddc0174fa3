//! How an agent is set up.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::engine::Agent;
use crate::engine::cache::Bounds;
use crate::engine::call::Overlap;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::retry::Retries;
use crate::port::{Hook, Host, Lock, Model, Shared, Store, Tool};
use crate::slot;
use crate::state::{Facts, ToolContext};
use crate::tool::Registry;
use crate::tool::group::{ResetTools, ToolGroup};

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
    /// Groups of tools that sessions have on or off.
    pub tool_groups: Vec<ToolGroup>,
    /// Whether the model may switch groups itself.
    pub meta_tool: bool,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Asking a model again.
    pub retries: Retries,
    /// What is kept in memory.
    pub cache: Bounds,
    /// Temperature and the like, for every request.
    pub generate: Value,
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
            tool_groups: Vec::new(),
            meta_tool: false,
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            cache: Bounds::default(),
            generate: Value::Object(Map::new()),
        }
    }
}

impl Options {
    /// What a fresh session begins with.
    pub fn fresh_facts(&self) -> Facts {
        let active = self.tool_groups.iter().filter(|group| group.active);
        let activated_groups = active.map(|group| group.name.clone()).collect();
        let tool_context = ToolContext { activated_groups, ..ToolContext::default() };
        Facts { tool_context, ..Facts::default() }
    }
}

/// An agent being set up; `build` checks it.
pub struct Builder {
    pub(super) options: Options,
    pub(super) model: Option<Rc<dyn Model>>,
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
            store: None,
            host: None,
            lock: None,
            tools: Vec::new(),
            hooks: Vec::new(),
        }
    }

    /// Who answers.
    pub fn model(mut self, model: Rc<dyn Model>) -> Self {
        self.model = Some(model);
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
        let capabilities = store.capabilities();
        if !capabilities.atomic {
            let message = "the store is not atomic: a crash could leave half a turn";
            return Err(Error::new(ErrorKind::Options, message)
                .hint("use a store whose commit is all or nothing"));
        }
        if matches!(capabilities.shared, Shared::Host | Shared::Cluster)
            && !capabilities.compare_and_set
        {
            let message = "the store is shared but cannot compare revisions: turns would overwrite each other";
            return Err(
                Error::new(ErrorKind::Options, message).hint("use a store with compareAndSet")
            );
        }
        let groups: Rc<[ToolGroup]> = self.options.tool_groups.clone().into();
        let mut tools = self.tools;
        if self.options.meta_tool {
            tools.push(Rc::new(ResetTools::new(Rc::clone(&groups))));
        }
        let tools = Registry::new(tools, groups)?;
        Ok(Agent::assemble(self.options, model, store, host, self.lock, tools, self.hooks))
    }
}
