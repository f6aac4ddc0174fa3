//! The differences between a child's call and other calls: its options, model, tools, and the limits set by its parent.

use std::rc::{Rc, Weak};

use crate::engine::options::{Options, Subagent};
use crate::engine::subagent::children::CallChildren;
use crate::port::{Model, ToolSpec};
use crate::state::{Facts, PermissionContext};
use crate::tool::subagents;

/// The maximum depth of children.
pub(in crate::engine) const MAX_DEPTH: u32 = 3;

/// Only the parent can switch plan mode and write the plan.
const PLAN_TOOLS: &[&str] = &["plan_enter", "plan_write", "plan_exit"];

/// The differences between a child's call and other calls.
pub(in crate::engine) struct ChildRole {
    options: Options,
    model: Option<Rc<dyn Model>>,
    tools: Option<Vec<String>>,
    depth: u32,
    /// The children of the parent's call.
    parent: Weak<CallChildren>,
    /// The AgentState fields of the parent's call. `None` if the application continues the child: then the child keeps
    /// its own fields.
    facts: Option<Facts>,
}

impl ChildRole {
    /// The role of a child that another call starts.
    pub(in crate::engine) fn under(
        parent: &Rc<CallChildren>,
        agent: &Options,
        kind: Subagent,
    ) -> ChildRole {
        ChildRole {
            depth: parent.depth() + 1,
            parent: Rc::downgrade(parent),
            facts: Some(parent.live().with_facts(Facts::clone)),
            ..ChildRole::alone(agent, kind)
        }
    }

    /// The role of a child that the application continues.
    pub(in crate::engine) fn alone(agent: &Options, kind: Subagent) -> ChildRole {
        let options = Options {
            system_prompt: kind.system_prompt.unwrap_or_else(|| agent.system_prompt.clone()),
            max_iterations: kind.max_iterations.unwrap_or(agent.max_iterations),
            compaction: kind.compaction.unwrap_or_else(|| agent.compaction.clone()),
            ..agent.clone()
        };
        ChildRole {
            options,
            model: kind.model,
            tools: kind.tools,
            depth: 1,
            parent: Weak::new(),
            facts: None,
        }
    }

    /// The agent's options with the changes of the kind.
    pub(in crate::engine) fn options(&self) -> &Options {
        &self.options
    }

    /// The model of the kind, if it has its own.
    pub(in crate::engine) fn model(&self) -> Option<&dyn Model> {
        self.model.as_deref()
    }

    /// How many parents the child's call has.
    pub(in crate::engine) fn depth(&self) -> u32 {
        self.depth
    }

    /// The children of the parent's call, while that call exists.
    pub(in crate::engine) fn parent(&self) -> Option<Rc<CallChildren>> {
        self.parent.upgrade()
    }

    /// The fields with which the child's call starts.
    pub(in crate::engine) fn limit(&self, own: Facts) -> Facts {
        match &self.facts {
            Some(parent) => limited(own, parent, self.options.permissions.as_ref()),
            None => own,
        }
    }

    /// Whether the child may use a tool.
    pub(in crate::engine) fn has(&self, tool: &ToolSpec) -> bool {
        let is_named = self.tools.as_ref().is_none_or(|names| names.contains(&tool.name));
        let is_barred = self.depth >= MAX_DEPTH && subagents::is_one(&tool.name);
        is_named && !is_barred && !PLAN_TOOLS.contains(&tool.name.as_str())
    }
}

/// The fields of a child, limited by those of its parent: a child has no permission that its parent does not have.
fn limited(own: Facts, parent: &Facts, host: Option<&PermissionContext>) -> Facts {
    let mut facts = own;
    facts.permission_context.limit(&parent.permission_context, host);
    if parent.plan_mode_context.plan_active {
        facts.plan_mode_context = parent.plan_mode_context.clone();
    }
    facts
}
