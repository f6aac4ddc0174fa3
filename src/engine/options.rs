//! The options of an agent that are plain values, not ports.

use std::fmt;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::message::FoundBy;
use crate::policy::compaction::Compaction;
use crate::policy::eviction::Eviction;
use crate::policy::memory::Memory;
use crate::policy::plan::PlanMode;
use crate::policy::retry::Retries;
use crate::port::{Model, Shared};
use crate::state::{Facts, PermissionContext, Persistence, ToolContext};
use crate::store::OnConflict;
use crate::store::workspace::files::Workspace;
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
    /// For one hook of a middleware.
    pub hook: u64,
    /// For one operation of the store.
    pub store: u64,
    /// For the lock of a session.
    pub lock: u64,
    /// For a whole call; `None` means no limit.
    pub call: Option<u64>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            model: 120_000,
            idle: 60_000,
            tool: 120_000,
            hook: 30_000,
            store: 10_000,
            lock: 60_000,
            call: None,
        }
    }
}

/// When a call is stored, besides the input at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At its end.
    #[default]
    Exit,
    /// At its end, and after every answer of the model and every batch of tools.
    Step,
}

/// How often what is new in a running answer is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointRate {
    /// Every second. On stores that several processes or machines share, where writes are dearer, every five seconds.
    #[default]
    ByStore,
    /// Each time that this many milliseconds have passed.
    EveryMs(u64),
    /// Never.
    Never,
}

impl CheckpointRate {
    /// The time between two checkpoints in a store, in milliseconds.
    pub fn ms(self, shared: Shared) -> Option<u64> {
        match self {
            CheckpointRate::ByStore if matches!(shared, Shared::Host | Shared::Cluster) => {
                Some(5_000)
            }
            CheckpointRate::ByStore => Some(1_000),
            CheckpointRate::EveryMs(ms) => Some(ms),
            CheckpointRate::Never => None,
        }
    }
}

/// What a call does if its session has a call already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Waits in the queue.
    #[default]
    Queue,
    /// Is refused with BUSY.
    Reject,
    /// Interrupts the running call, and waits in the queue.
    Interrupt,
    /// Joins the running call at its next step, and ends with it. Without a running call it waits in the queue.
    Steer,
}

/// How many sessions are kept in memory between calls.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of their messages.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { sessions: 1_000, bytes: 64 << 20 }
    }
}

/// A kind of subagent. Members that are `None` are the same as for the agent itself.
#[derive(Clone, Default)]
pub struct Subagent {
    /// Its name.
    pub name: String,
    /// Its purpose. The model reads it when it chooses a kind.
    pub description: String,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The model that answers.
    pub model: Option<Rc<dyn Model>>,
    /// The names of its tools.
    pub tools: Option<Vec<String>>,
    /// How many model requests a call may make before it asks for a closing answer.
    pub max_iterations: Option<u32>,
    /// How its conversations are compacted to fit the model's window.
    pub compaction: Option<Compaction>,
}

impl fmt::Debug for Subagent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// The options of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the agent: the first part of every key that the agent writes.
    pub name: String,
    /// Its purpose: the description of the subagents that are configured like the agent itself.
    pub description: Option<String>,
    /// The system prompt.
    pub system_prompt: String,
    /// How many model requests a call may make before it asks for a closing answer.
    pub max_iterations: u32,
    /// How many tool calls of one answer may run.
    pub max_tool_calls: usize,
    /// How many calls may wait for one session.
    pub queue_limit: usize,
    /// What a call does if its session has a call already.
    pub overlap: Overlap,
    /// The session of a call without a sessionId.
    pub default_session_id: Option<String>,
    /// Whether a call must have a userId.
    pub require_user_id: bool,
    /// What to do with a turn whose session another writer has changed.
    pub on_conflict: OnConflict,
    /// When a call is stored: only at its end, or after each step too.
    pub durability: Durability,
    /// How often what is new in a running answer is stored.
    pub checkpoints: CheckpointRate,
    /// Whether leases are written even if the store is not shared by several processes.
    pub leases: bool,
    /// Groups of tools that can be on or off in a session.
    pub tool_groups: Vec<ToolGroup>,
    /// Whether the model may switch groups itself.
    pub meta_tool: bool,
    /// The permissions of tools. New sessions begin with them. Their deny and ask rules apply in every session.
    pub permissions: Option<PermissionContext>,
    /// The workspace, if the agent has one.
    pub workspace: Option<Workspace>,
    /// The memory of facts about users, if the agent has one.
    pub memory: Option<Memory>,
    /// Whether the model may read earlier messages of its user, in this session and in others.
    pub session_tools: bool,
    /// The other agents in the same store whose sessions of the same user the model may read.
    pub session_agents: Vec<String>,
    /// Whether the agent has a task list.
    pub task_list: bool,
    /// Plan mode, if the agent has it.
    pub plan_mode: Option<PlanMode>,
    /// The skills of the application. A workspace may have more.
    pub skills: Rc<[Skill]>,
    /// Which parts of a session a resend rolls back and a call's save keeps.
    pub persistence: Persistence,
    /// The kinds of subagents besides those of a workspace. `None`: the agent has no subagents.
    pub subagents: Option<Vec<Subagent>>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// When a failed model request is retried.
    pub retries: Retries,
    /// How many sessions are kept in memory.
    pub cache: Bounds,
    /// Temperature and the like, for every request.
    pub generate: Value,
    /// How conversations are compacted to fit the model's window.
    pub compaction: Compaction,
    /// When a large tool result is shortened.
    pub eviction: Option<Eviction>,
}

impl Options {
    /// The defaults, for an agent of this name.
    pub fn new(name: impl Into<String>) -> Options {
        Options {
            name: name.into(),
            description: None,
            system_prompt: String::new(),
            max_iterations: 10,
            max_tool_calls: 64,
            queue_limit: 64,
            overlap: Overlap::Queue,
            default_session_id: None,
            require_user_id: false,
            on_conflict: OnConflict::Rebase,
            durability: Durability::Exit,
            checkpoints: CheckpointRate::ByStore,
            leases: false,
            tool_groups: Vec::new(),
            meta_tool: false,
            permissions: None,
            workspace: None,
            memory: None,
            session_tools: true,
            session_agents: Vec::new(),
            task_list: false,
            plan_mode: None,
            skills: Rc::default(),
            persistence: Persistence::default(),
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
    /// How the model finds the messages that a summary replaces.
    pub fn found_by(&self) -> FoundBy {
        match self.compaction.offload && self.session_tools {
            true => FoundBy::SessionTools,
            false => FoundBy::Nothing,
        }
    }

    /// The AgentState fields that a fresh session begins with.
    pub fn fresh_facts(&self) -> Facts {
        let active = self.tool_groups.iter().filter(|group| group.active);
        let activated_groups = active.map(|group| group.name.clone()).collect();
        let tool_context = ToolContext { activated_groups, ..ToolContext::default() };
        let permission_context = self.permissions.clone().unwrap_or_default();
        Facts { tool_context, permission_context, ..Facts::default() }
    }
}
