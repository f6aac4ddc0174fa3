//! Building an agent: its options are checked, and its parts are made.

use std::cell::Cell;
use std::rc::Rc;

use crate::engine::agent::Agent;
use crate::engine::built_in_tools::{BuiltIn, files_of, notebook_of};
use crate::engine::call::joining::JoinQueue;
use crate::engine::call::outcome::shutting_down;
use crate::engine::call::running::{KnownCalls, RunningCalls};
use crate::engine::driver::begin::begin_child;
use crate::engine::memory::UserMemory;
use crate::engine::models::{Counter, GivenModels, Models};
use crate::engine::options::Options;
use crate::engine::parts::AgentParts;
use crate::engine::session::AgentSessions;
use crate::engine::session::lookup::SessionLookup;
use crate::engine::subagent::children::RunningChildren;
use crate::engine::subagent::tools::SubagentTools;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::{Hook, Host, Lock, Model, Shared, Store, Tool};
use crate::slot;
use crate::store::Sessions;
use crate::store::backend::capabilities;
use crate::store::backend::chunks;

impl Agent {
    /// A builder with the default options.
    pub fn builder() -> Builder {
        Builder::new(Options::new(""))
    }
}

/// Builds an agent; [`build`](Builder::build) checks the options.
pub struct Builder {
    options: Options,
    model: Option<Rc<dyn Model>>,
    fallback: Option<Rc<dyn Model>>,
    summariser: Option<Rc<dyn Model>>,
    memory: Option<Rc<dyn Model>>,
    counter: Option<Counter>,
    store: Option<Rc<dyn Store>>,
    host: Option<Rc<dyn Host>>,
    lock: Option<Rc<dyn Lock>>,
    tools: Vec<Rc<dyn Tool>>,
    hooks: Vec<Rc<dyn Hook>>,
}

impl Builder {
    /// A builder with these options. It still needs a model, a store and a host.
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

    /// The name of the agent: the first part of every key that the agent writes.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// The system prompt.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.options.system_prompt = prompt.into();
        self
    }

    /// The model that answers.
    pub fn model(mut self, model: Rc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// The model that answers if the first model fails before its first delta.
    pub fn fallback_model(mut self, model: Rc<dyn Model>) -> Self {
        self.fallback = Some(model);
        self
    }

    /// The model that writes summaries. Default: the model that answers.
    pub fn compaction_model(mut self, model: Rc<dyn Model>) -> Self {
        self.summariser = Some(model);
        self
    }

    /// The model that finds facts to remember. Default: the model that answers.
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

    /// The clock and the random numbers.
    pub fn host(mut self, host: Rc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// The lock that keeps other tabs and agents out of a session during a call. Without a lock, no other tab or agent
    /// may use the store.
    pub fn lock(mut self, lock: Rc<dyn Lock>) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Rc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a hook. It runs inside the hooks that were added before.
    pub fn hook(mut self, hook: Rc<dyn Hook>) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Builds the agent. The error says which option is wrong.
    pub fn build(self) -> Result<Agent> {
        let missing = |what: &str, hint: &str| {
            Error::new(ErrorKind::Options, format!("{what} is missing")).hint(hint)
        };
        slot::check("name", &self.options.name).map_err(|error| as_option(&error))?;
        let model = self
            .model
            .ok_or_else(|| missing("model", "give the agent a model, such as demoModel()"))?;
        let store = self
            .store
            .ok_or_else(|| missing("store", "give the agent a store, such as memoryStore()"))?;
        let host = self
            .host
            .ok_or_else(|| missing("host", "give the agent a clock and random numbers"))?;
        capabilities::check(store.capabilities())?;
        let options = Rc::new(self.options);
        let given = GivenModels {
            own: model,
            fallback: self.fallback,
            summariser: self.summariser,
            memory: self.memory,
            counter: self.counter,
        };
        let models = Rc::new(Models::new(given, Rc::clone(&host), options.timeouts));
        let agent = CheckedBuilder { options, models, host, lock: self.lock };
        agent.assemble(&chunks::above(store), self.tools, self.hooks)
    }
}

/// The checked options and ports from which the parts of an agent are made.
struct CheckedBuilder {
    options: Rc<Options>,
    models: Rc<Models>,
    host: Rc<dyn Host>,
    lock: Option<Rc<dyn Lock>>,
}

impl CheckedBuilder {
    fn assemble(
        self,
        store: &Rc<dyn Store>,
        own_tools: Vec<Rc<dyn Tool>>,
        hooks: Vec<Rc<dyn Hook>>,
    ) -> Result<Agent> {
        let CheckedBuilder { options, models, host, lock } = self;
        let calls = Rc::<RunningCalls>::default();
        let liveness = KnownCalls::new(Rc::clone(&calls), lock.clone());
        let stored = stored_sessions(&options, Rc::clone(store), &host);
        let stored = Rc::new(stored.with_liveness(Rc::new(liveness)));
        let others = other_sessions(&options, store, &host)?;
        let lookup = Rc::new(SessionLookup::new(&stored, store.capabilities().shared, others));
        let sessions = AgentSessions::new(
            Rc::clone(&stored),
            (Rc::clone(&host), lock),
            Rc::clone(&options),
            Rc::clone(&calls),
        );
        let (sessions, children) = (Rc::new(sessions), Rc::<RunningChildren>::default());
        let files = files_of(&options, store, &host)?.map(Rc::new);
        let notebook = notebook_of(&options, files.as_ref(), &host);
        let subagents = Rc::new(SubagentTools::new(&sessions, &children, files.as_ref()));
        let built_in = BuiltIn {
            options: &options,
            host: &host,
            lookup: &lookup,
            files: files.as_ref(),
            notebook: notebook.as_ref(),
        };
        let tools = built_in.registry(own_tools, subagents.tools(&options)?)?;
        let memory = notebook.zip(options.memory.clone()).map(|notes| {
            Rc::new(UserMemory::new(notes, stored, Rc::clone(&models), Rc::clone(&host)))
        });
        let parts = Rc::new(AgentParts {
            options,
            host,
            models,
            sessions,
            lookup,
            tools,
            files,
            memory,
            hooks,
            calls,
            joining: JoinQueue::default(),
            children,
            has_warned: Cell::new(false),
        });
        let weak = Rc::downgrade(&parts);
        subagents.begin_with(Box::new(move |request, role| match weak.upgrade() {
            Some(parts) => begin_child(&parts, request, role),
            None => Err(shutting_down()),
        }));
        Ok(Agent::new(parts))
    }
}

/// The sessions of other agents in the same store that the tools may read, by the agent's name.
fn other_sessions(
    options: &Options,
    store: &Rc<dyn Store>,
    host: &Rc<dyn Host>,
) -> Result<Vec<(String, Sessions)>> {
    let sessions = |name: &String| {
        slot::check("a name in sessionTools.agents", name).map_err(|error| as_option(&error))?;
        let timeout = options.timeouts.store;
        Ok((name.clone(), Sessions::new(name, Rc::clone(store), Rc::clone(host), timeout)))
    };
    options.session_agents.iter().map(sessions).collect()
}

/// The error of a check, as an error of the options.
fn as_option(error: &Error) -> Error {
    Error::new(ErrorKind::Options, error.message()).hint(error.hint_text().unwrap_or_default())
}

/// The sessions of an agent in its store.
fn stored_sessions(options: &Options, store: Rc<dyn Store>, host: &Rc<dyn Host>) -> Sessions {
    let shared = store.capabilities().shared;
    let leases = matches!(shared, Shared::Host | Shared::Cluster) || options.leases;
    Sessions::new(&options.name, store, Rc::clone(host), options.timeouts.store)
        .with_template(options.fresh_facts())
        .with_policy(options.on_conflict)
        .with_leases(leases)
}
