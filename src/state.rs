//! AgentState: all that makes a session restartable.

mod persistence;

pub use persistence::Persistence;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::Message;
use crate::slot::Slot;
use std::rc::Rc;

/// The format that this version writes.
pub const FORMAT: u64 = 1;

/// A session as callers see it.
#[derive(Clone, Debug, Serialize)]
pub struct AgentState {
    /// The format of this document.
    pub format: u64,
    /// How many commits made it; 0 is a session that is not stored.
    pub version: u64,
    /// Exactly which commit made it; empty for a session that is not stored.
    pub revision: String,
    /// Which conversation.
    pub session_id: String,
    /// Whose; null is the anonymous user.
    pub user_id: Option<String>,
    /// What the model is shown.
    pub context: Vec<Rc<Message>>,
    /// The summary that stands at the head of the context, or "".
    pub summary: String,
    /// Everything else.
    #[serde(flatten)]
    pub facts: Facts,
}

impl AgentState {
    /// The state of a session that is not there.
    pub fn fresh(slot: &Slot) -> AgentState {
        AgentState {
            format: FORMAT,
            version: 0,
            revision: String::new(),
            session_id: slot.session().to_owned(),
            user_id: slot.user().map(str::to_owned),
            context: Vec::new(),
            summary: String::new(),
            facts: Facts::default(),
        }
    }
}

/// Every AgentState field but identity and messages: what a head keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// What tools may do.
    pub permission_context: PermissionContext,
    /// Whether the agent plans or acts.
    pub plan_mode_context: PlanModeContext,
    /// The agent's own list of things to do.
    pub tasks_context: TasksContext,
    /// Which tool groups and skills are on.
    pub tool_context: ToolContext,
    /// Whether a shutdown cut the last call off.
    pub shutdown_interrupted: bool,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

/// The names of [`Facts`]' own members.
const FACTS: &[&str] = &[
    "permission_context",
    "plan_mode_context",
    "tasks_context",
    "tool_context",
    "shutdown_interrupted",
];

impl Facts {
    /// What becomes of `base` when both sides have changed it; `None` if both have changed the same member.
    pub fn merged(base: &Facts, ours: &Facts, theirs: &Facts) -> Option<Facts> {
        fn one<T: PartialEq + Clone>(base: &T, ours: &T, theirs: &T) -> Option<T> {
            let theirs_only = ours == base || ours == theirs;
            let fits = theirs_only || theirs == base;
            fits.then(|| if theirs_only { theirs } else { ours }.clone())
        }
        Some(Facts {
            permission_context: one(
                &base.permission_context,
                &ours.permission_context,
                &theirs.permission_context,
            )?,
            plan_mode_context: one(
                &base.plan_mode_context,
                &ours.plan_mode_context,
                &theirs.plan_mode_context,
            )?,
            tasks_context: one(&base.tasks_context, &ours.tasks_context, &theirs.tasks_context)?,
            tool_context: one(&base.tool_context, &ours.tool_context, &theirs.tool_context)?,
            shutdown_interrupted: one(
                &base.shutdown_interrupted,
                &ours.shutdown_interrupted,
                &theirs.shutdown_interrupted,
            )?,
            rest: one(&base.rest, &ours.rest, &theirs.rest)?,
        })
    }

    /// Reads the facts of a head.
    pub fn from_json(value: &Value) -> Read<Facts> {
        let fields = Fields::of(value)?;
        Ok(Facts {
            permission_context: fields
                .or_default("permission_context", PermissionContext::from_json)?,
            plan_mode_context: fields
                .or_default("plan_mode_context", PlanModeContext::from_json)?,
            tasks_context: fields.or_default("tasks_context", TasksContext::from_json)?,
            tool_context: fields.or_default("tool_context", ToolContext::from_json)?,
            shutdown_interrupted: fields.or_default("shutdown_interrupted", json::boolean)?,
            rest: fields.rest(FACTS),
        })
    }
}

/// How permissive a session is where no rule speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Ask.
    #[default]
    Default,
    /// Edits need no question.
    AcceptEdits,
    /// Only reading.
    Explore,
    /// No questions.
    Bypass,
    /// No questions, and no instead of a question.
    DontAsk,
}

impl PermissionMode {
    /// Reads it from its word.
    pub fn from_json(value: &Value) -> Read<PermissionMode> {
        match value.as_str() {
            Some("default") => Ok(PermissionMode::Default),
            Some("accept_edits") => Ok(PermissionMode::AcceptEdits),
            Some("explore") => Ok(PermissionMode::Explore),
            Some("bypass") => Ok(PermissionMode::Bypass),
            Some("dont_ask") => Ok(PermissionMode::DontAsk),
            _ => Err(Misread::new("default, accept_edits, explore, bypass or dont_ask")),
        }
    }
}

/// What to do with a tool call that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// Run it.
    Allow,
    /// Ask a person.
    Ask,
    /// Refuse it.
    Deny,
}

/// One rule about one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// The tool.
    pub tool_name: String,
    /// Which inputs, as the tool understands it; null is all.
    pub rule_content: Option<String>,
    /// What to do.
    pub behavior: Behavior,
    /// Who made the rule.
    pub source: String,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Rule {
    /// Reads a rule.
    pub fn from_json(value: &Value) -> Read<Rule> {
        let fields = Fields::of(value)?;
        Ok(Rule {
            tool_name: fields.required("tool_name", json::text)?,
            rule_content: fields.optional("rule_content", json::text)?,
            behavior: fields.required("behavior", behavior)?,
            source: fields.or_default("source", json::text)?,
            rest: fields.rest(&["tool_name", "rule_content", "behavior", "source"]),
        })
    }
}

fn behavior(value: &Value) -> Read<Behavior> {
    match value.as_str() {
        Some("allow") => Ok(Behavior::Allow),
        Some("ask") => Ok(Behavior::Ask),
        Some("deny") => Ok(Behavior::Deny),
        _ => Err(Misread::new("allow, ask or deny")),
    }
}

/// What a session's tools may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PermissionContext {
    /// Where no rule speaks.
    pub mode: PermissionMode,
    /// What runs without a question.
    pub allow_rules: Vec<Rule>,
    /// What always asks.
    pub ask_rules: Vec<Rule>,
    /// What never runs.
    pub deny_rules: Vec<Rule>,
    /// Folders that tools may treat as their own.
    pub working_directories: Vec<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl PermissionContext {
    /// Reads what a session's tools may do.
    pub fn from_json(value: &Value) -> Read<PermissionContext> {
        const KNOWN: &[&str] =
            &["mode", "allow_rules", "ask_rules", "deny_rules", "working_directories"];
        let rules = |value: &Value| json::list(value, Rule::from_json);
        let fields = Fields::of(value)?;
        Ok(PermissionContext {
            mode: fields.or_default("mode", PermissionMode::from_json)?,
            allow_rules: fields.or_default("allow_rules", rules)?,
            ask_rules: fields.or_default("ask_rules", rules)?,
            deny_rules: fields.or_default("deny_rules", rules)?,
            working_directories: fields.or_default("working_directories", json::texts)?,
            rest: fields.rest(KNOWN),
        })
    }
}

/// Whether the agent plans or acts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanModeContext {
    /// It plans.
    pub plan_active: bool,
    /// Where the plan is written.
    pub current_plan_file: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl PlanModeContext {
    fn from_json(value: &Value) -> Read<PlanModeContext> {
        let fields = Fields::of(value)?;
        Ok(PlanModeContext {
            plan_active: fields.or_default("plan_active", json::boolean)?,
            current_plan_file: fields.optional("current_plan_file", json::text)?,
            rest: fields.rest(&["plan_active", "current_plan_file"]),
        })
    }
}

/// The agent's own list of things to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TasksContext {
    /// The tasks, in order.
    pub tasks: Vec<Task>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl TasksContext {
    fn from_json(value: &Value) -> Read<TasksContext> {
        let tasks = |value: &Value| json::list(value, Task::from_json);
        let fields = Fields::of(value)?;
        Ok(TasksContext {
            tasks: fields.or_default("tasks", tasks)?,
            rest: fields.rest(&["tasks"]),
        })
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    /// Stays the same while the list is rewritten.
    pub id: String,
    /// What is to be done.
    pub subject: String,
    /// How far it is.
    pub state: TaskState,
    /// How much it matters, if somebody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

impl Task {
    fn from_json(value: &Value) -> Read<Task> {
        let fields = Fields::of(value)?;
        Ok(Task {
            id: fields.required("id", json::text)?,
            subject: fields.required("subject", json::text)?,
            state: fields.required("state", TaskState::from_json)?,
            priority: fields.optional("priority", json::text)?,
            rest: fields.rest(&["id", "subject", "state", "priority"]),
        })
    }
}

impl TaskState {
    /// Reads it from its word.
    pub fn from_json(value: &Value) -> Read<TaskState> {
        match value.as_str() {
            Some("pending") => Ok(TaskState::Pending),
            Some("in_progress") => Ok(TaskState::InProgress),
            Some("completed") => Ok(TaskState::Completed),
            _ => Err(Misread::new("pending, in_progress or completed")),
        }
    }
}

/// Which tool groups and skills a session has on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolContext {
    /// The groups.
    pub activated_groups: Vec<String>,
    /// The skills.
    pub activated_skills: Vec<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl ToolContext {
    fn from_json(value: &Value) -> Read<ToolContext> {
        let fields = Fields::of(value)?;
        Ok(ToolContext {
            activated_groups: fields.or_default("activated_groups", json::texts)?,
            activated_skills: fields.or_default("activated_skills", json::texts)?,
            rest: fields.rest(&["activated_groups", "activated_skills"]),
        })
    }
}
