//! Which parts of a session follow its conversation back and forth.

use serde_json::Value;

use crate::json::{self, Fields, Read};
use crate::state::{Facts, ToolContext};

/// Which parts of a session a resend rolls back and a call's save keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// The messages.
    pub conversation: bool,
    /// The agent's own list of things to do.
    pub tasks: bool,
    /// Whether it plans, and where.
    pub plan: bool,
    /// Which groups of tools are on.
    pub tool_groups: bool,
    /// Which skills are on.
    pub skills: bool,
    /// What tools may do.
    pub permissions: bool,
}

impl Persistence {
    /// Every part.
    pub const ALL: Persistence = Persistence::every(true);

    /// Every part, or none.
    pub const fn every(on: bool) -> Persistence {
        Persistence {
            conversation: on,
            tasks: on,
            plan: on,
            tool_groups: on,
            skills: on,
            permissions: on,
        }
    }

    /// The parts that are on from one side, all others from the other. What we do not know goes with the conversation.
    pub fn pick(self, on: &Facts, off: &Facts) -> Facts {
        let of = |is_on: bool| if is_on { on } else { off };
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
            rest: of(self.conversation).rest.clone(),
        }
    }

    /// Reads it; a part that is not named is on.
    pub fn from_json(value: &Value) -> Read<Persistence> {
        let fields = Fields::of(value)?;
        let part = |name| Ok(fields.optional(name, json::boolean)?.unwrap_or(true));
        Ok(Persistence {
            conversation: part("conversation")?,
            tasks: part("tasks")?,
            plan: part("plan")?,
            tool_groups: part("toolGroups")?,
            skills: part("skills")?,
            permissions: part("permissions")?,
        })
    }
}
