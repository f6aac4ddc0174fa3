//! The sessions of one agent in one store: the fields that all operations use.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::port::{Host, Liveness, Store};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::keys::SlotKeys;
use crate::store::records::Records;
use crate::store::session::Session;

/// How often a commit is tried because another writer was first.
pub(in crate::store) const ATTEMPTS: u32 = 5;

/// The sessions of one agent in one store.
pub struct Sessions {
    agent: String,
    records: Records,
    template: Rc<Facts>,
    on_conflict: OnConflict,
    liveness: Option<Rc<dyn Liveness>>,
}

/// What to do with a turn if another turn was saved first, by a writer that does not share our lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Store it on top of the other if that is allowed, otherwise as a side branch.
    #[default]
    Rebase,
    /// Store it as a side branch.
    Fail,
    /// Store it in place of the other turn. The other turn stays in the log as a branch.
    Overwrite,
}

impl Sessions {
    /// The sessions of the agent with this name.
    pub fn new(agent: &str, store: Rc<dyn Store>, host: Rc<dyn Host>, timeout_ms: u64) -> Sessions {
        Sessions {
            agent: agent.to_owned(),
            records: Records::new(store, host, timeout_ms),
            template: Rc::default(),
            on_conflict: OnConflict::default(),
            liveness: None,
        }
    }

    /// Sets whether other nodes share the store.
    pub fn with_leases(mut self, shared: bool) -> Sessions {
        self.records = self.records.with_nodes(shared);
        self
    }

    /// Sets what to do with a turn if another turn was saved first.
    pub fn with_policy(mut self, on_conflict: OnConflict) -> Sessions {
        self.on_conflict = on_conflict;
        self
    }

    /// Sets the AgentState fields of a new session.
    pub fn with_template(mut self, template: Facts) -> Sessions {
        self.template = Rc::new(template);
        self
    }

    /// Sets who tells which calls are alive. Without it, only leases do.
    pub fn with_liveness(mut self, liveness: Rc<dyn Liveness>) -> Sessions {
        self.liveness = Some(liveness);
        self
    }

    /// The sessions of the same agent in another store, which nobody else uses.
    pub(in crate::store) fn over(&self, store: Rc<dyn Store>) -> Sessions {
        Sessions {
            agent: self.agent.clone(),
            records: self.records.over(store),
            template: Rc::clone(&self.template),
            on_conflict: self.on_conflict,
            liveness: None,
        }
    }

    /// Tells which calls are alive.
    pub(super) fn liveness(&self) -> Option<&Rc<dyn Liveness>> {
        self.liveness.as_ref()
    }

    /// The name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The records of the store.
    pub(in crate::store) fn records(&self) -> &Records {
        &self.records
    }

    /// What to do with a turn if another turn was saved first.
    pub(super) fn on_conflict(&self) -> OnConflict {
        self.on_conflict
    }

    /// The keys of a slot.
    pub fn keys(&self, slot: &Slot) -> SlotKeys {
        SlotKeys::new(&self.agent, slot)
    }

    pub(in crate::store) fn absent(
        &self,
        slot: &Slot,
        keys: SlotKeys,
        revision: Option<String>,
    ) -> Session {
        Session::absent(slot, keys, revision, Rc::clone(&self.template))
    }
}

pub(in crate::store) fn superseded(slot: &Slot, why: &str) -> Error {
    Error::new(ErrorKind::Superseded, format!("{slot}: {why}"))
}
