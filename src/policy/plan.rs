//! Plan mode: which tools may run while the agent only plans, and what the model is told of it.

use crate::spec::ToolSpec;
use crate::state::PlanModeContext;

/// Plan mode, where an agent has it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMode {
    /// Where plans are written.
    pub file: String,
    /// Tools that may run besides those that only look.
    pub extra_tools: Vec<String>,
}

/// Tools that work with children: a child of an agent that plans can only plan itself.
const CHILDREN: &[&str] = &["agent_spawn", "agent_send", "agent_list", "task_output", "task_list"];

/// What a child can do while its parent plans: it has no tools to plan with.
const OF_CHILD: &str = "look around with tools that only read, and say what you have found: \
                        the plan is made by whoever gave you the task";

/// Why a tool may not run now, if it may not. What changes nothing, or only the agent's own notes, may.
pub fn bars(
    plan: &PlanModeContext,
    tool: &ToolSpec,
    extra: &[String],
    is_child: bool,
) -> Option<String> {
    let is_named = CHILDREN.contains(&tool.name.as_str()) || extra.contains(&tool.name);
    let may = tool.effect.is_read_only() || is_named;
    (plan.plan_active && !may).then(|| {
        let own = "look around with tools that only read, write the plan with plan_write, \
                   and call plan_exit to have it approved";
        let instead = if is_child { OF_CHILD } else { own };
        format!("plan mode is on, and {} may change things; {instead}", tool.name)
    })
}

/// What the instructions say of it.
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
