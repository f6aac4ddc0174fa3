//! AgentState: everything that is needed to continue a session.

mod persistence;

pub use persistence::{Kept, PermissionRight, Persistence};

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::Message;
use crate::slot::Slot;
use std::rc::Rc;

/// The format version that this version writes.
pub const FORMAT: u64 = 1;

/// A session in the form that callers see.
#[derive(Clone, Debug, Serialize)]
pub struct AgentState {
    /// The format of this document.
    pub format: u64,
    /// The number of commits; 0 if the session is not stored.
    pub version: u64,
    /// The id of the commit that wrote this state; empty if the session is not stored.
    pub revision: String,
    /// The session id.
    pub session_id: String,
    /// The user id; null is the anonymous user.
    pub user_id: Option<String>,
    /// The messages that the model sees.
    pub context: Vec<Rc<Message>>,
    /// The summary at the start of the context, or "".
    pub summary: String,
    /// All other fields.
    #[serde(flatten)]
    pub facts: Facts,
}

impl AgentState {
    /// The state of a session that does not exist yet.
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

    /// Reads the other fields of a state that a caller gives: all but its identity, its messages and its summary.
    pub fn facts_of(state: &Value) -> Read<Facts> {
        const KNOWN: &[&str] =
            &["format", "version", "revision", "session_id", "user_id", "context", "summary"];
        Facts::from_json(&Value::Object(Fields::of(state)?.rest(KNOWN)))
    }
}

/// All AgentState fields except identity and messages. The head record keeps them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The permissions of tools.
    pub permission_context: PermissionContext,
    /// Whether plan mode is on.
    pub plan_mode_context: PlanModeContext,
    /// The agent's task list.
    pub tasks_context: TasksContext,
    /// The active tool groups and skills.
    pub tool_context: ToolContext,
    /// Whether a shutdown interrupted the last call.
    pub shutdown_interrupted: bool,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

/// The names of the known members of [`Facts`].
const FACTS: &[&str] = &[
    "permission_context",
    "plan_mode_context",
    "tasks_context",
    "tool_context",
    "shutdown_interrupted",
];

impl Facts {
    /// Merges two changes of `base`. `None` if both sides changed the same member in different ways.
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

/// What is permitted when no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Ask a person.
    #[default]
    Default,
    /// Edits are allowed without a question.
    AcceptEdits,
    /// Only tools that read are allowed.
    Explore,
    /// Everything is allowed without a question.
    Bypass,
    /// Nobody is asked: a call that needs a question is denied.
    DontAsk,
}

impl PermissionMode {
    /// Reads the JSON word.
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
    /// The inputs that the rule matches, in the tool's own notation; null matches every input.
    pub rule_content: Option<String>,
    /// What to do.
    pub behavior: Behavior,
    /// Where the rule comes from.
    pub source: String,
    /// Unknown members, kept unchanged.
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

/// The permissions of a session's tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PermissionContext {
    /// The mode when no rule matches.
    pub mode: PermissionMode,
    /// Rules that allow without a question.
    pub allow_rules: Vec<Rule>,
    /// Rules that always ask.
    pub ask_rules: Vec<Rule>,
    /// Rules that deny.
    pub deny_rules: Vec<Rule>,
    /// Folders in which tools may work freely.
    pub working_directories: Vec<String>,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

impl PermissionContext {
    /// Reads the permissions of a session's tools.
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

/// Whether plan mode is on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanModeContext {
    /// Whether plan mode is on.
    pub plan_active: bool,
    /// The file of the plan.
    pub current_plan_file: Option<String>,
    /// Unknown members, kept unchanged.
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

/// The agent's task list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TasksContext {
    /// The tasks, in order.
    pub tasks: Vec<Task>,
    /// Unknown members, kept unchanged.
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

/// One task of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    /// The id. It stays the same when the list is rewritten.
    pub id: String,
    /// What must be done.
    pub subject: String,
    /// The state of the task.
    pub state: TaskState,
    /// The priority, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    pub rest: Object,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not started.
    Pending,
    /// In progress.
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
    /// Reads the JSON word.
    pub fn from_json(value: &Value) -> Read<TaskState> {
        match value.as_str() {
            Some("pending") => Ok(TaskState::Pending),
            Some("in_progress") => Ok(TaskState::InProgress),
            Some("completed") => Ok(TaskState::Completed),
            _ => Err(Misread::new("pending, in_progress or completed")),
        }
    }
}

/// The active tool groups and skills of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolContext {
    /// The groups.
    pub activated_groups: Vec<String>,
    /// The skills.
    pub activated_skills: Vec<String>,
    /// Unknown members, kept unchanged.
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
