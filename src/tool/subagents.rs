//! The tools with which a model starts subagents, sends messages to them and gets their results.

use std::rc::Rc;

use serde_json::Value;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Block;
use crate::port::{Tool, ToolRun, ToolSpec};
use crate::spec::Effect;

/// The descriptions and schemas for the model.
const SPECS: &str = include_str!("subagents.json");

/// Their names.
const NAMES: &[&str] = &[
    "agent_spawn",
    "agent_send",
    "agent_list",
    "task_output",
    "task_list",
    "task_cancel",
    "wait_async_results",
];

/// Timeout of a tool that waits for a subagent: a little longer than the longest wait that a model can ask for.
const TIMEOUT_MS: u64 = 630_000;

/// A request of the model about its subagents.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the members are described to the model, in subagents.json")]
pub enum Order<'a> {
    /// Starts a new child session.
    Spawn { agent: &'a str, says: &'a str, label: Option<&'a str>, wait_ms: u64 },
    /// Continues a child session.
    Send { to: &'a str, says: &'a str, wait_ms: u64 },
    /// Lists the kinds of subagents and the child sessions.
    Agents,
    /// Lists tasks; with a status, only tasks with that status.
    Tasks(Option<&'a str>),
    /// Reads the result of a task.
    Output { task: &'a str, wait_ms: u64 },
    /// Stops a task.
    Cancel(&'a str),
    /// Waits until one of these tasks has ended, or all. Without tasks: every task whose end was not reported.
    Wait { tasks: &'a [String], all: bool, wait_ms: u64 },
}

/// The engine's services for these tools.
pub trait Subagents {
    /// Carries out an order and returns the text for the model. The model can read an error too.
    fn take<'a>(&'a self, order: Order<'a>, run: ToolRun<'a>) -> Local<'a, Result<String>>;
}

/// All subagent tools. `kinds` describes the kinds of subagents in the agent's options.
pub fn tools(subagents: &Rc<dyn Subagents>, kinds: &str) -> Result<Vec<Rc<dyn Tool>>> {
    let specs = json::list(&json::parse(SPECS.as_bytes(), "subagents.json")?, ToolSpec::from_json)
        .map_err(|misread| misread.into_error(ErrorKind::Internal, "subagents.json"))?;
    let tool = |mut spec: ToolSpec| {
        spec.timeout_ms = Some(TIMEOUT_MS);
        // The permissions of a child session are checked in that session.
        spec.effect = Effect::Notes;
        if spec.name == "agent_spawn" {
            spec.description.push_str(kinds);
        }
        Rc::new(SubagentTool { spec: Rc::new(spec), subagents: Rc::clone(subagents) })
            as Rc<dyn Tool>
    };
    Ok(specs.into_iter().map(tool).collect())
}

/// Whether this is the name of a subagent tool.
pub fn is_one(name: &str) -> bool {
    NAMES.contains(&name)
}

struct SubagentTool {
    spec: Rc<ToolSpec>,
    subagents: Rc<dyn Subagents>,
}

impl SubagentTool {
    async fn run(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let text = |name| run.input.get(name).and_then(Value::as_str);
        let flag = |name| run.input.get(name).and_then(Value::as_bool);
        let wait_ms = |default| {
            let seconds = run.input.get("timeout_seconds").and_then(Value::as_f64);
            (seconds.unwrap_or(default) * 1_000.0) as u64
        };
        let says = text("message").unwrap_or_default();
        let task = text("task_id").unwrap_or_default();
        let tasks = json::texts(run.input.get("task_ids").unwrap_or(&Value::Null));
        let tasks = tasks.unwrap_or_default();
        let order = match self.spec.name.as_str() {
            "agent_spawn" => Order::Spawn {
                agent: text("agent_id").unwrap_or_default(),
                says: text("task").unwrap_or_default(),
                label: text("label"),
                wait_ms: wait_ms(30.0),
            },
            "agent_send" => Order::Send {
                to: text("agent_key").unwrap_or_default(),
                says,
                wait_ms: wait_ms(30.0),
            },
            "agent_list" => Order::Agents,
            "task_list" => Order::Tasks(text("status_filter")),
            "task_output" => {
                let waits = flag("block").unwrap_or(true);
                Order::Output { task, wait_ms: if waits { wait_ms(30.0) } else { 0 } }
            }
            "task_cancel" => Order::Cancel(task),
            _ => {
                let all = flag("wait_all").unwrap_or_default();
                Order::Wait { tasks: &tasks, all, wait_ms: wait_ms(60.0) }
            }
        };
        Ok(vec![Block::text(self.subagents.take(order, run).await?)])
    }
}

impl Tool for SubagentTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(self.run(run))
    }
}
