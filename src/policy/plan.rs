//! Plan mode: which tools may run while the agent only plans, and what the instructions tell the model about it.

use crate::spec::ToolSpec;
use crate::state::PlanModeContext;

/// The options of plan mode.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMode {
    /// The file for plans.
    pub file: String,
    /// Tools that may run in plan mode in addition to those that only read.
    pub extra_tools: Vec<String>,
}

/// The instruction for a subagent whose parent is in plan mode. A subagent has no plan tools.
const OF_CHILD: &str = "look around with tools that only read, and say what you have found: \
                        the plan is made by whoever gave you the task";

/// The reason why a tool may not run in this mode, if it may not. Tools may run that only read, or that only change what
/// belongs to the session: tasks, notes, and subagents, which are in plan mode too.
pub fn bars(
    plan: &PlanModeContext,
    tool: &ToolSpec,
    extra: &[String],
    is_child: bool,
) -> Option<String> {
    let may = tool.effect.is_read_only() || extra.contains(&tool.name);
    (plan.plan_active && !may).then(|| {
        let own = "look around with tools that only read, write the plan with plan_write, \
                   and call plan_exit to have it approved";
        let instead = if is_child { OF_CHILD } else { own };
        format!("plan mode is on, and {} may change things; {instead}", tool.name)
    })
}

/// The text about plan mode in the instructions.
pub fn banner(plan: &PlanModeContext, mode: &PlanMode, is_child: bool) -> String {
    if is_child && plan.plan_active {
        return ["Plan mode is on: ", OF_CHILD, "."].concat();
    }
    let file = plan.current_plan_file.as_deref();
    let Some(file) = file.filter(|_| !plan.plan_active) else {
        return if plan.plan_active {
            planning(file.unwrap_or(&mode.file), mode)
        } else {
            String::new()
        };
    };
    format!("A plan was made in {file}. Read it again before you go on with its job.")
}

fn planning(file: &str, mode: &PlanMode) -> String {
    let also = match mode.extra_tools.as_slice() {
        [] => String::new(),
        extra => format!(", and {}", extra.join(", ")),
    };
    format!(
        "Plan mode is on. Look around, think, and change nothing: only tools that read may run{also}. Write the plan to \
         {file} with plan_write. When it is complete, call plan_exit: the user says whether it is carried out."
    )
}
