//! The agent's task list: which lists it accepts, and how the model is reminded of it.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Options};
use lockgate::event::Event;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::Store;
use lockgate::state::{Task, TaskState};
use serde_json::{Value, json};

fn agent_of(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>) -> Agent {
    let options = Options { task_list: true, ..Options::new("helper") };
    let host = HostHandle(TestHost::new());
    let builder = lockgate::engine::Builder::new(options).host(Rc::new(host));
    builder.model(Rc::clone(model) as _).store(Rc::clone(store)).build().unwrap()
}

fn todos(list: &[(&str, &str)]) -> Value {
    let item = |(content, status): &(&str, &str)| json!({ "content": content, "status": status });
    json!({ "todos": list.iter().map(item).collect::<Vec<_>>() })
}

fn tasks(agent: &Agent) -> Vec<Task> {
    block_on(agent.state(&slot("s1"))).unwrap().facts.tasks_context.tasks
}

/// The last tool result of a call whose model sends these tool inputs.
fn outcome(agent: &Agent) -> String {
    let reply = ask(agent, "s1", "go").unwrap();
    let results: Vec<_> = reply.messages.iter().flat_map(|it| it.tool_results()).collect();
    let last = results.last().unwrap();
    format!("{:?}: {}", last.state, lockgate::message::Block::text_of(&last.output))
}

// R46
#[test]
fn r46_a_task_with_the_same_text_keeps_its_id_and_the_others_are_replaced() {
    let first = todos(&[("plan", "completed"), ("build", "in_progress"), ("build", "pending")]);
    let second =
        json!({ "todos": [{ "content": "build", "priority": "high" }, { "content": "ship" }] });
    let lines = [Line::calls("todo_write", &first), Line::says("ok")];
    let more = [Line::calls("todo_write", &second), Line::says("ok")];
    let model = ScriptedModel::new(lines.into_iter().chain(more));
    let agent = agent_of(&memory(), &model);
    assert_eq!(outcome(&agent), "Success: [x] plan\n[~] build\n[ ] build");
    let before = tasks(&agent);
    assert_eq!(outcome(&agent), "Success: [ ] build (high)\n[ ] ship");
    let after = tasks(&agent);
    assert_eq!(after[0].id, before[1].id);
    assert_eq!((after[0].state, after[0].priority.as_deref()), (TaskState::Pending, Some("high")));
    assert!(before.iter().all(|task| task.id != after[1].id));
    assert_ne!(before[1].id, before[2].id);
}

// R46
#[test]
fn r46_a_refused_list_leaves_the_old_list_unchanged() {
    let good = todos(&[("plan", "in_progress")]);
    let two = todos(&[("a", "in_progress"), ("b", "in_progress")]);
    let refused = [
        (two, "Error: 2 tasks are in progress, and one at most may be. The list is as it was."),
        (
            todos(&[("a", "pending"), (" ", "pending")]),
            "Error: todos[1] has no content. The list is as it was.",
        ),
        (todos(&[("a", "begun")]), "Error: The arguments do not fit"),
        (json!({ "todos": "all" }), "Error: The arguments do not fit"),
    ];
    let lines =
        refused.iter().flat_map(|(input, _)| [Line::calls("todo_write", input), Line::says("ok")]);
    let model = ScriptedModel::new(
        [Line::calls("todo_write", &good), Line::says("ok")].into_iter().chain(lines),
    );
    let agent = agent_of(&memory(), &model);
    outcome(&agent);
    let before = tasks(&agent);
    for (_, why) in &refused {
        let told = outcome(&agent);
        assert!(told.starts_with(why), "{told}");
        assert_eq!(tasks(&agent), before);
    }
}

// R46
#[test]
fn r46_every_request_ends_with_the_list_and_the_log_never_has_it() {
    let store = memory();
    let (one, two) = (todos(&[("plan", "in_progress")]), todos(&[("plan", "completed")]));
    let lines =
        [Line::calls("todo_write", &one), Line::calls("todo_write", &two), Line::says("ok")];
    let model = ScriptedModel::new(lines.into_iter().chain([Line::says("again")]));
    ask(&agent_of(&store, &model), "s1", "go").unwrap();
    let after_restart = agent_of(&store, &model);
    ask(&after_restart, "s1", "more").unwrap();
    let ends: Vec<_> = model.requests().iter().map(|it| it.last().unwrap().text()).collect();
    assert_eq!(ends[0], "go");
    assert!(ends[1].ends_with("[~] plan") && ends[2].ends_with("[x] plan"), "{ends:?}");
    assert_eq!(ends[3], ends[2]);
    let requests = model.requests();
    let prefix = requests[1].len() - 1;
    assert_eq!(
        requests[1][..prefix],
        requests[2][..prefix],
        "the earlier part of the request is unchanged"
    );
    let log = told(&after_restart, "s1").join("\n")
        + &json!(block_on(after_restart.state(&slot("s1"))).unwrap().context).to_string();
    assert!(!log.contains("reminder"), "{log}");
}

#[test]
fn an_inspection_counts_and_shows_the_reminder() {
    let model = ScriptedModel::new([
        Line::calls("todo_write", &todos(&[("plan", "pending")])),
        Line::says("ok"),
    ]);
    let agent = agent_of(&memory(), &model);
    ask(&agent, "s1", "go").unwrap();
    let report = block_on(agent.inspect(&slot("s1"))).unwrap();
    let last = report.parts.last().unwrap();
    assert_eq!((last.kind, last.tokens > 0), ("reminder", true));
    assert!(last.text.ends_with("[ ] plan"), "{}", last.text);
    assert_eq!(report.tokens, report.parts.iter().map(|part| part.tokens).sum::<u64>());
}

#[test]
fn an_observer_sees_the_list_change_while_the_tool_runs() {
    let list = todos(&[("plan", "pending")]);
    let lines =
        [Line::calls("todo_write", &list), Line::calls("todo_write", &list), Line::says("ok")];
    let agent = agent_of(&memory(), &ScriptedModel::new(lines));
    let mut call = begin(&agent, "s1", "go");
    let mut seen = Vec::new();
    while let Some(event) = block_on(call.next()) {
        match event.event {
            Event::ToolStart { .. } => seen.push("start".to_owned()),
            Event::ToolEnd { .. } => seen.push("end".to_owned()),
            Event::Tasks { tasks } => seen.push(tasks[0].subject.clone()),
            _ => {}
        }
    }
    assert_eq!(seen, ["start", "plan", "end", "start", "end"]);
}
