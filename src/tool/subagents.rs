//! The tools with which a model gives work to children, and hears of it.

use std::rc::Rc;

use serde_json::Value;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Block;
use crate::port::{Tool, ToolRun, ToolSpec};
use crate::spec::Effect;

/// What a model is told of each.
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

/// How long a tool may take that waits for a child: a little more than a model may wait.
const PATIENCE_MS: u64 = 630_000;

/// What a model asks of its children.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the members are described to the model, in subagents.json")]
pub enum Order<'a> {
    /// A new child begins.
    Spawn { agent: &'a str, says: &'a str, label: Option<&'a str>, wait_ms: u64 },
    /// A child goes on.
    Send { to: &'a str, says: &'a str, wait_ms: u64 },
    /// Which kinds there are, and which children.
    Agents,
    /// What they were given to do; only what stands so, if that is said.
    Tasks(Option<&'a str>),
    /// How a task ended.
    Output { task: &'a str, wait_ms: u64 },
    /// A task is to end.
    Cancel(&'a str),
    /// Waits for the end of one of these, or of all; none is every task whose end was not told.
    Wait { tasks: &'a [String], all: bool, wait_ms: u64 },
}

/// Whoever has children.
pub trait Crew {
    /// Does what a model asks, and tells it what came of that. What it refuses, the model can read.
    fn take<'a>(&'a self, order: Order<'a>, run: ToolRun<'a>) -> Local<'a, Result<String>>;
}

/// All of them; `kinds` are the children that the options name.
pub fn tools(crew: &Rc<dyn Crew>, kinds: &str) -> Result<Vec<Rc<dyn Tool>>> {
    let specs = json::list(&json::parse(SPECS.as_bytes(), "subagents.json")?, ToolSpec::from_json)
        .map_err(|misread| misread.into_error(ErrorKind::Internal, "subagents.json"))?;
    let tool = |mut spec: ToolSpec| {
        spec.timeout_ms = Some(PATIENCE_MS);
        // What a child does is ruled on where it does it.
        spec.effect = Effect::Notes;
        if spec.name == "agent_spawn" {
            spec.description.push_str(kinds);
        }
        Rc::new(SubagentTool { spec: Rc::new(spec), crew: Rc::clone(crew) }) as Rc<dyn Tool>
    };
    Ok(specs.into_iter().map(tool).collect())
}

/// Whether that is one of them.
pub fn is_one(name: &str) -> bool {
    NAMES.contains(&name)
}

struct SubagentTool {
    spec: Rc<ToolSpec>,
    crew: Rc<dyn Crew>,
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
        Ok(vec![Block::text(self.crew.take(order, run).await?)])
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
