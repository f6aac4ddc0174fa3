//! Which parts of a session are kept, and which of them go back to an earlier state together with the conversation.

use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};
use crate::state::{Facts, ToolContext};

/// How a part of a session is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Not at all: each call begins with the first state of the session.
    No,
    /// It belongs to the session. A resend and a switch of branches leave it as it is.
    Always,
    /// It belongs to the conversation. A resend and a switch of branches roll it back.
    RolledBack,
}

impl Kept {
    fn from_json(value: &Value) -> Read<Kept> {
        match value {
            Value::Bool(false) => Ok(Kept::No),
            Value::Bool(true) => Ok(Kept::RolledBack),
            value if value == "keep" => Ok(Kept::Always),
            _ => Err(Misread::new("true, false or \"keep\"")),
        }
    }
}

/// Whether the caller of a change may change what the tools of a session may do. The host decides this for its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionRight {
    /// The caller may change permissions, and end plan mode.
    #[default]
    Given,
    /// The change leaves the permissions as they are, and plan mode on, or it is refused.
    Missing,
}

/// How each part of a session is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Whether the messages are kept.
    pub conversation: bool,
    /// The agent's task list.
    pub tasks: Kept,
    /// Plan mode and the file of the plan.
    pub plan: Kept,
    /// The active tool groups.
    pub tool_groups: Kept,
    /// The active skills.
    pub skills: Kept,
    /// The permissions of tools.
    pub permissions: Kept,
    /// Whether a roll back may bring back permissions, and end plan mode.
    pub right: PermissionRight,
}

impl Default for Persistence {
    /// Every part belongs to the conversation, except the permissions.
    fn default() -> Persistence {
        Persistence { permissions: Kept::Always, ..Persistence::ALL }
    }
}

impl Persistence {
    /// Every part belongs to the conversation.
    pub const ALL: Persistence = Persistence::every(Kept::RolledBack);

    /// Every part is kept in the same way.
    pub const fn every(kept: Kept) -> Persistence {
        Persistence {
            conversation: !matches!(kept, Kept::No),
            tasks: kept,
            plan: kept,
            tool_groups: kept,
            skills: kept,
            permissions: kept,
            right: PermissionRight::Given,
        }
    }

    /// The same, for a caller with or without the right to change permissions.
    pub fn with_right(self, right: PermissionRight) -> Persistence {
        Persistence { right, ..self }
    }

    /// The facts that a call saves: the parts that are kept as they are `now`, the others as they were `before`.
    pub fn saved(self, now: &Facts, before: &Facts) -> Facts {
        self.pick(now, before, |kept| kept != Kept::No)
    }

    /// The facts after a roll back: the parts of the conversation as they were `then`, the others as they are `now`.
    pub fn rolled_back(self, then: &Facts, now: &Facts) -> Facts {
        let mut facts = self.pick(then, now, |kept| kept == Kept::RolledBack);
        if self.right == PermissionRight::Missing {
            facts.permission_context = now.permission_context.clone();
            if now.plan_mode_context.plan_active && !facts.plan_mode_context.plan_active {
                facts.plan_mode_context = now.plan_mode_context.clone();
            }
        }
        facts
    }

    /// Takes the selected parts from `on` and all other parts from `off`. Unknown members belong to the conversation.
    fn pick(self, on: &Facts, off: &Facts, selects: impl Fn(Kept) -> bool) -> Facts {
        let of = |kept: Kept| if selects(kept) { on } else { off };
        let tools = &of(self.tool_groups).tool_context;
        let skills = &of(self.skills).tool_context;
        Facts {
            permission_context: of(self.permissions).permission_context.clone(),
            plan_mode_context: of(self.plan).plan_mode_context.clone(),
            tasks_context: of(self.tasks).tasks_context.clone(),
            tool_context: ToolContext {
                activated_skills: skills.activated_skills.clone(),
                ..tools.clone()
            },
            shutdown_interrupted: on.shutdown_interrupted,
            rest: if self.conversation { on } else { off }.rest.clone(),
        }
    }

    /// Reads how the parts are kept. A part that is not named is kept as by default.
    pub fn from_json(value: &Value) -> Read<Persistence> {
        let fields = Fields::of(value)?;
        let defaults = Persistence::default();
        let part = |name, default| Ok(fields.optional(name, Kept::from_json)?.unwrap_or(default));
        Ok(Persistence {
            conversation: fields.optional("conversation", json::boolean)?.unwrap_or(true),
            tasks: part("tasks", defaults.tasks)?,
            plan: part("plan", defaults.plan)?,
            tool_groups: part("toolGroups", defaults.tool_groups)?,
            skills: part("skills", defaults.skills)?,
            permissions: part("permissions", defaults.permissions)?,
            right: defaults.right,
        })
    }
}
