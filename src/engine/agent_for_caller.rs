//! The methods of an agent that can change what tools may do, for callers who may lack the right to change it.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::session::edit::Changing;
use crate::engine::session::{AgentSessions, branch, edit, transfer};
use crate::error::Result;
use crate::slot::Slot;
use crate::state::PermissionRight;
use crate::store::format::session_info::SessionInfo;

/// An agent, as a caller with or without the right to change permissions may use it.
pub struct AgentForCaller<'a> {
    sessions: &'a Rc<AgentSessions>,
    right: PermissionRight,
}

impl<'a> AgentForCaller<'a> {
    pub(in crate::engine) fn new(sessions: &'a Rc<AgentSessions>, right: PermissionRight) -> Self {
        AgentForCaller { sessions, right }
    }

    /// Replaces the state of a session, if the session has not changed since the state was read. Without the right, a state
    /// with other permissions is refused with FORBIDDEN.
    pub fn put_state(&self, slot: &Slot, state: &Value) -> Result<Changing<()>> {
        edit::put_state(self.sessions, slot, state, self.right)
    }

    /// Makes another branch current. Without the right, the permissions stay as they are.
    pub fn switch_branch(&self, slot: &Slot, branch: String) -> Changing<()> {
        branch::switch(self.sessions, slot, branch, self.right)
    }

    /// Copies a session into a new one. Without the right, the copy has the permissions that the session has now.
    pub fn fork(
        &self,
        slot: &Slot,
        to: &Slot,
        up_to: Option<String>,
    ) -> Changing<Option<SessionInfo>> {
        branch::fork(self.sessions, slot, to, (up_to, self.right))
    }

    /// Creates a session from a document. Without the right, a document with other permissions than the agent's own is
    /// refused with FORBIDDEN.
    pub fn import_session(&self, slot: &Slot, text: &str) -> Result<Changing<Option<SessionInfo>>> {
        transfer::import(self.sessions, slot, text, self.right)
    }
}
