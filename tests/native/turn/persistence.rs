//! Parts of a session that a resend and a switch of branches leave as they are.

use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Ended, Format, Options, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::Reason;
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use lockgate::state::{Kept, PermissionMode, PermissionRight, Persistence, Task, TaskState};
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

fn set_mode(agent: &Agent, mode: PermissionMode) {
    block_on(agent.change_permissions(&slot("s1"), move |context| context.mode = mode)).unwrap();
}

fn mode_of(agent: &Agent, session: &str) -> PermissionMode {
    block_on(agent.state(&slot(session))).unwrap().facts.permission_context.mode
}

/// A session whose left branch has the mode "bypass", and whose current one has not. Returns the question before the branches.
fn narrowed(persistence: Persistence) -> (Agent, String, String) {
    let lines = ["one", "two", "three", "four", "five"].map(Line::says).into();
    let agent = agent_with(persistence, lines);
    ask(&agent, "s1", "first").unwrap();
    set_mode(&agent, PermissionMode::Bypass);
    let second = ask(&agent, "s1", "second").unwrap();
    resend(&agent).unwrap();
    set_mode(&agent, PermissionMode::Default);
    let left = block_on(agent.branches(&slot("s1"))).unwrap().into_iter().find(|it| !it.current);
    (agent, left.unwrap().id, second.messages[0].id.clone())
}

#[test]
fn a_caller_without_the_right_gets_no_other_permissions_back_by_a_branch_a_resend_or_a_fork() {
    for persistence in [Persistence::ALL, Persistence::default()] {
        let right = PermissionRight::Missing;
        let (agent, branch, question) = narrowed(persistence);
        let fork = agent.with_right(right).fork(&slot("s1"), &slot("s2"), Some(question));
        block_on(fork).unwrap();
        assert_eq!(mode_of(&agent, "s2"), PermissionMode::Default, "by a fork");
        block_on(agent.with_right(right).switch_branch(&slot("s1"), branch)).unwrap();
        assert_eq!(mode_of(&agent, "s1"), PermissionMode::Default, "by a branch");
        let again = CallRequest { messages: Vec::new(), resends: true, right, ..request("s1", "") };
        block_on(agent.begin(again).unwrap().finish()).unwrap();
        assert_eq!(mode_of(&agent, "s1"), PermissionMode::Default, "by a resend");
    }
}

#[test]
fn permissions_that_belong_to_the_session_are_those_of_now_in_a_fork_of_a_branch_that_was_left() {
    let (agent, _, question) = narrowed(Persistence::default());
    block_on(agent.fork(&slot("s1"), &slot("s2"), Some(question))).unwrap();
    assert_eq!(mode_of(&agent, "s2"), PermissionMode::Default);
}

#[test]
fn a_state_or_a_document_with_other_permissions_is_refused_without_the_right() {
    let right = PermissionRight::Missing;
    let (agent, ..) = narrowed(Persistence::ALL);
    let mut state = serde_json::to_value(block_on(agent.state(&slot("s1"))).unwrap()).unwrap();
    block_on(agent.with_right(right).put_state(&slot("s1"), &state).unwrap()).unwrap();
    state["revision"] = json!(block_on(agent.state(&slot("s1"))).unwrap().revision);
    state["permission_context"]["mode"] = json!("bypass");
    let put = block_on(agent.with_right(right).put_state(&slot("s1"), &state).unwrap());
    assert_eq!(put.unwrap_err().kind(), ErrorKind::Forbidden);
    let document = block_on(agent.export_session(&slot("s1"), Format::Lockgate)).unwrap();
    // The branch that was left has the mode "bypass".
    let imported = agent.with_right(right).import_session(&slot("s3"), &document);
    assert_eq!(imported.err().map(|error| error.kind()), Some(ErrorKind::Forbidden));
    block_on(agent.import_session(&slot("s3"), &document).unwrap()).unwrap();
}
