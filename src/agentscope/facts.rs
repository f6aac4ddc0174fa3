//! All parts of a document except its messages: tasks, plan, tools and the top-level members.

use serde_json::{Value, json};

use super::block::lower;
use super::message::text_or_null;
use super::{permission, remainder};
use crate::json::{self, Fields, Object, Read};
use crate::state::{Facts, PlanModeContext, Task, TaskState, TasksContext, ToolContext};

/// Reads the facts of a document.
pub(super) fn read(fields: &Fields<'_>) -> Read<Facts> {
    // The last four are our names. A member of AgentScope with one of these names means something else.
    const KNOWN: &[&str] = &[
        "session_id",
        "user_id",
        "summary",
        "context",
        "shutdown_interrupted",
        "permission_context",
        "plan_mode_context",
        "tasks_context",
        "tool_context",
        "format",
        "version",
        "revision",
        remainder::MEMBER,
    ];
    let mut facts = Facts {
        permission_context: fields.or_default("permission_context", permission::read)?,
        plan_mode_context: fields.or_default("plan_mode_context", read_plan)?,
        tasks_context: fields.or_default("tasks_context", read_tasks)?,
        tool_context: fields.or_default("tool_context", read_tools)?,
        shutdown_interrupted: fields.or_default("shutdown_interrupted", json::boolean)?,
        rest: fields.rest(KNOWN),
    };
    remainder::thin(&mut facts.rest, &defaults());
    Ok(facts)
}

/// Writes the facts. The caller restores the whole document.
pub(super) fn write(facts: &Facts) -> Object {
    let mut members = remainder::members(&facts.rest);
    remainder::fill(&mut members, &defaults());
    let permissions = permission::write(&facts.permission_context);
    members.insert("permission_context".into(), Value::Object(permissions));
    members.insert("plan_mode_context".into(), Value::Object(write_plan(&facts.plan_mode_context)));
    members.insert("tasks_context".into(), Value::Object(write_tasks(&facts.tasks_context)));
    members.insert("tool_context".into(), Value::Object(write_tools(&facts.tool_context)));
    members.insert("shutdown_interrupted".into(), facts.shutdown_interrupted.into());
    members
}

/// The defaults of AgentScope for members that we do not use. For a null `reply_id`, AgentScope makes an id.
fn defaults() -> Value {
    json!({ "reply_id": null, "cur_iter": 0 })
}

fn read_plan(value: &Value) -> Read<PlanModeContext> {
    let fields = Fields::of(value)?;
    let mut plan = PlanModeContext {
        plan_active: fields.or_default("plan_active", json::boolean)?,
        current_plan_file: fields.optional("current_plan_file", json::text)?,
        rest: fields.rest(&["plan_active", "current_plan_file", remainder::MEMBER]),
    };
    let written = write_plan(&plan);
    remainder::keep(&mut plan.rest, &written, value);
    Ok(plan)
}

fn write_plan(plan: &PlanModeContext) -> Object {
    let mut members = remainder::members(&plan.rest);
    members.insert("plan_active".into(), plan.plan_active.into());
    members.insert("current_plan_file".into(), json!(plan.current_plan_file));
    remainder::restore(&mut members, &plan.rest);
    members
}

fn read_tools(value: &Value) -> Read<ToolContext> {
    let fields = Fields::of(value)?;
    let mut tools = ToolContext {
        activated_groups: fields.or_default("activated_groups", json::texts)?,
        activated_skills: fields.or_default("activated_skills", json::texts)?,
        rest: fields.rest(&["activated_groups", "activated_skills", remainder::MEMBER]),
    };
    remainder::thin(&mut tools.rest, &tool_defaults());
    let written = write_tools(&tools);
    remainder::keep(&mut tools.rest, &written, value);
    Ok(tools)
}

fn write_tools(tools: &ToolContext) -> Object {
    let mut members = remainder::members(&tools.rest);
    remainder::fill(&mut members, &tool_defaults());
    members.insert("activated_groups".into(), json!(tools.activated_groups));
    // AgentScope has no such list and ignores ours.
    if !tools.activated_skills.is_empty() {
        members.insert("activated_skills".into(), json!(tools.activated_skills));
    }
    remainder::restore(&mut members, &tools.rest);
    members
}

fn tool_defaults() -> Value {
    json!({ "max_cache_files": 100, "max_cache_bytes": 25000.0, "spawn_registry": {} })
}

fn read_tasks(value: &Value) -> Read<TasksContext> {
    let fields = Fields::of(value)?;
    let mut tasks = TasksContext {
        tasks: fields.or_default("tasks", |value| json::list(value, read_task))?,
        rest: fields.rest(&["tasks", remainder::MEMBER]),
    };
    let written = write_tasks(&tasks);
    remainder::keep(&mut tasks.rest, &written, value);
    Ok(tasks)
}

fn write_tasks(tasks: &TasksContext) -> Object {
    let mut members = remainder::members(&tasks.rest);
    let list = tasks.tasks.iter().map(|task| Value::Object(write_task(task)));
    members.insert("tasks".into(), list.collect());
    remainder::restore(&mut members, &tasks.rest);
    members
}

fn read_task(value: &Value) -> Read<Task> {
    const KNOWN: &[&str] = &["id", "subject", "state", "metadata", "priority", remainder::MEMBER];
    let fields = Fields::of(value)?;
    let mut metadata = fields.or_default("metadata", json::object)?;
    let priority = metadata.get("priority").and_then(Value::as_str).map(str::to_owned);
    if priority.is_some() {
        metadata.remove("priority");
    }
    let state = |value: &Value| TaskState::from_json(&lower(value));
    let mut task = Task {
        id: fields.or_default("id", json::text)?,
        subject: fields.required("subject", json::text)?,
        state: fields.optional("state", state)?.unwrap_or(TaskState::Pending),
        priority,
        rest: fields.rest(KNOWN),
    };
    if !metadata.is_empty() {
        task.rest.insert("metadata".into(), Value::Object(metadata));
    }
    remainder::thin(&mut task.rest, &task_defaults(&task.subject));
    let written = write_task(&task);
    remainder::keep(&mut task.rest, &written, value);
    Ok(task)
}

fn write_task(task: &Task) -> Object {
    let mut members = remainder::members(&task.rest);
    remainder::fill(&mut members, &task_defaults(&task.subject));
    if let (Some(Value::Object(metadata)), Some(priority)) =
        (members.get_mut("metadata"), &task.priority)
    {
        metadata.insert("priority".into(), json!(priority));
    }
    members.insert("id".into(), text_or_null(&task.id));
    members.insert("subject".into(), json!(task.subject));
    members.insert("state".into(), json!(task.state));
    remainder::restore(&mut members, &task.rest);
    members
}

/// `created_at` has no fixed default: if it is missing, AgentScope uses the time of reading.
fn task_defaults(subject: &str) -> Value {
    json!({ "description": subject, "metadata": {}, "owner": null, "blocks": [], "blocked_by": [] })
}
