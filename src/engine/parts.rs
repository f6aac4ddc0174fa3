//! The parts of an agent that all its calls share. Each call gets only the parts that it needs.

use std::cell::Cell;
use std::rc::Rc;

use crate::engine::call::joining::JoinQueue;
use crate::engine::call::running::RunningCalls;
use crate::engine::compaction::summarise::Summariser;
use crate::engine::instructions::Sources;
use crate::engine::memory::UserMemory;
use crate::engine::models::Models;
use crate::engine::options::Options;
use crate::engine::session::AgentSessions;
use crate::engine::session::lookup::SessionLookup;
use crate::engine::subagent::children::RunningChildren;
use crate::engine::subagent::kinds::SubagentKinds;
use crate::engine::subagent::role::ChildRole;
use crate::error::Result;
use crate::port::{Hook, Host};
use crate::slot::Slot;
use crate::store::format::task::kind_of;
use crate::store::workspace::files::Files;
use crate::tool::Registry;

/// The parts of an agent. All fields are visible, because this is only a list: each part keeps its own state private.
pub(in crate::engine) struct AgentParts {
    pub(in crate::engine) options: Rc<Options>,
    pub(in crate::engine) host: Rc<dyn Host>,
    pub(in crate::engine) models: Rc<Models>,
    pub(in crate::engine) sessions: Rc<AgentSessions>,
    /// The stored sessions, for the search and the session tools.
    pub(in crate::engine) lookup: Rc<SessionLookup>,
    pub(in crate::engine) tools: Registry,
    /// The workspace, if the agent has one.
    pub(in crate::engine) files: Option<Rc<Files>>,
    /// The memory of facts about users, if the agent has one.
    pub(in crate::engine) memory: Option<Rc<UserMemory>>,
    pub(in crate::engine) hooks: Vec<Rc<dyn Hook>>,
    pub(in crate::engine) calls: Rc<RunningCalls>,
    /// The calls that wait to join a running call.
    pub(in crate::engine) joining: JoinQueue,
    /// The subagents that run in this process.
    pub(in crate::engine) children: Rc<RunningChildren>,
    /// Whether a call has warned about the parts of tool schemas that are not checked.
    pub(in crate::engine) has_warned: Cell<bool>,
}

impl AgentParts {
    /// The sources of the instructions of a call with these options.
    pub(in crate::engine) fn sources<'a>(&'a self, options: &'a Options) -> Sources<'a> {
        Sources {
            options,
            host: &*self.host,
            tools: &self.tools,
            files: self.files.as_deref(),
            memory: self.memory.as_deref(),
            children: &self.children,
        }
    }

    /// The workspace, if the agent has the tool `read_file`.
    pub(in crate::engine) fn readable_files(&self) -> Option<&Files> {
        let Options { workspace, plan_mode, .. } = &*self.options;
        self.files.as_deref().filter(|_| workspace.is_some() || plan_mode.is_some())
    }

    /// The summariser. It uses the agent's own options, even in the call of a subagent.
    pub(in crate::engine) fn summariser(&self) -> Summariser<'_> {
        Summariser::new(&self.models, self.sessions.stored(), &*self.host, &self.options)
    }

    /// The role of a subagent that the application continues; `None` if the session is not one of a subagent.
    pub(in crate::engine) async fn role_of(&self, slot: &Slot) -> Result<Option<ChildRole>> {
        let kind = kind_of(slot.session()).filter(|_| self.options.subagents.is_some());
        let Some(kind) = kind else { return Ok(None) };
        let kinds = SubagentKinds::new(&self.options, self.files.as_deref());
        Ok(Some(ChildRole::alone(&self.options, kinds.find(slot, kind).await?)))
    }
}
