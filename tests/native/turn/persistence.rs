//! Parts of a session that a resend and a switch of branches leave as they are.

use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Ended, Options, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::Reason;
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use lockgate::state::{Kept, Persistence, Task, TaskState};
use serde_json::{Value, json};

/// A tool that asks a person unless a rule allows it, and adds a task.
struct Adds(Rc<ToolSpec>);

impl Tool for Adds {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own =
            if self.0.name == "asks" { OwnDecision::Ask("why".into()) } else { OwnDecision::Pass };
        Box::pin(ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        run.desk.change(&mut |facts| {
            let n = facts.tasks_context.tasks.len() + 1;
            facts.tasks_context.tasks.push(Task {
                id: n.to_string(),
                subject: format!("task {n}"),
                state: TaskState::Pending,
                priority: None,
                rest: Default::default(),
            });
        });
        Box::pin(ready(Ok(vec![Block::text("added")])))
    }
}

fn agent_with(persistence: Persistence, lines: Vec<Line>) -> Agent {
    let options = Options { persistence, ..Options::new("helper") };
    let mut builder = Builder::new(options).model(ScriptedModel::new(lines)).store(memory());
    builder = builder.host(Rc::new(HostHandle(TestHost::new())));
    for name in ["asks", "adds"] {
        builder = builder.tool(Rc::new(Adds(ToolSpec::new(name, "adds", json!({})).into())));
    }
    builder.build().unwrap()
}

fn calls(tool: &str) -> Line {
    Line::calls_all(&[("c1", tool, json!({}))])
}

fn resend(agent: &Agent) -> Ended {
    let again = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    block_on(agent.begin(again).unwrap().finish())
}

/// Allows the open tool call, now and always.
fn allow_always(agent: &Agent) {
    let rule = json!({ "tool_name": "asks", "behavior": "allow" });
    let answer = json!({ "toolCallId": "c1", "approve": true, "remember": [rule] });
    let mut call = agent.confirm(vec![answer], RuntimeContext::new("alice", "s1")).unwrap();
    block_on(call.finish()).unwrap();
}

fn state(agent: &Agent) -> Value {
    json!(block_on(agent.state(&slot("s1"))).unwrap())
}

fn allowed(agent: &Agent) -> usize {
    state(agent)["permission_context"]["allow_rules"].as_array().unwrap().len()
}

fn revoke(agent: &Agent) {
    let mut put = state(agent);
    put["permission_context"]["allow_rules"] = json!([]);
    block_on(agent.put_state(&slot("s1"), &put).unwrap()).unwrap();
}

#[test]
fn a_resend_does_not_take_back_that_a_tool_is_always_allowed() {
    let says = Line::says;
    let lines = vec![calls("asks"), says("one"), calls("asks"), says("two"), says("three")];
    let agent = agent_with(Persistence::default(), lines);
    ask(&agent, "s1", "first").unwrap();
    allow_always(&agent);
    assert_eq!(allowed(&agent), 1);
    assert_eq!(resend(&agent).unwrap().reason, Reason::Stop, "nobody is asked again");
    assert_eq!(allowed(&agent), 1);
    let tasks = state(&agent)["tasks_context"]["tasks"].as_array().unwrap().len();
    assert_eq!(tasks, 1, "the tasks are rolled back");
}

#[test]
fn a_revoked_permission_does_not_come_back_with_its_branch() {
    let lines = vec![calls("asks"), Line::says("one"), Line::says("two")];
    let agent = agent_with(Persistence::default(), lines);
    ask(&agent, "s1", "first").unwrap();
    allow_always(&agent);
    resend(&agent).unwrap();
    revoke(&agent);
    let branches = block_on(agent.branches(&slot("s1"))).unwrap();
    let other = branches.iter().find(|branch| !branch.current).unwrap();
    block_on(agent.switch_branch(&slot("s1"), other.id.clone())).unwrap();
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: one");
    assert_eq!(allowed(&agent), 0);
    let tasks = state(&agent)["tasks_context"]["tasks"].as_array().unwrap().len();
    assert_eq!(tasks, 1, "the tasks come back with the branch");
}

#[test]
fn with_all_a_resend_rolls_permissions_back() {
    let lines = vec![calls("asks"), Line::says("one"), Line::says("two")];
    let agent = agent_with(Persistence::ALL, lines);
    ask(&agent, "s1", "first").unwrap();
    allow_always(&agent);
    resend(&agent).unwrap();
    assert_eq!(allowed(&agent), 0);
}

#[test]
fn a_kept_part_that_a_failed_resend_has_changed_stays_changed() {
    for (tasks, n) in [(Kept::Always, 2), (Kept::RolledBack, 1)] {
        let lines = vec![
            calls("adds"),
            Line::says("one"),
            calls("adds"),
            Line::fails(ErrorKind::ModelFailed),
        ];
        let agent = agent_with(Persistence { tasks, ..Persistence::default() }, lines);
        ask(&agent, "s1", "first").unwrap();
        resend(&agent).unwrap_err();
        assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: one");
        assert_eq!(state(&agent)["tasks_context"]["tasks"].as_array().unwrap().len(), n);
    }
}

#[test]
fn permissions_are_kept_unless_something_else_is_said() {
    let read = |value: Value| Persistence::from_json(&value).unwrap();
    assert_eq!(read(json!({})), Persistence::default());
    assert_eq!(Persistence::default().permissions, Kept::Always);
    assert_eq!(read(json!({ "permissions": true })), Persistence::ALL);
    assert_eq!(read(json!({ "tasks": "keep" })).tasks, Kept::Always);
    assert_eq!(read(json!({ "skills": false })).skills, Kept::No);
    assert!(Persistence::from_json(&json!({ "plan": "sometimes" })).is_err());
    assert!(Persistence::from_json(&json!({ "conversation": "keep" })).is_err());
}
