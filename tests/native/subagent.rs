//! Subagents (children): calls on sessions of their own, whose results reach their parent once.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Cause, Options, Subagent};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Stamped};
use lockgate::future::Local;
use lockgate::message::{Block, ResultState};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Deltas, Host, Model, Page, Request, Store, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use lockgate::spec::Effect;
use lockgate::state::{Behavior, PermissionMode, Rule};
use serde_json::{Value, json};

/// An agent with its clock and models.
struct Story {
    agent: Agent,
    host: Rc<TestHost>,
    parent: Rc<ScriptedModel>,
    child: Rc<ScriptedModel>,
    /// Background work after calls, as a host runs it.
    after: RefCell<Vec<Local<'static, ()>>>,
}

impl Story {
    /// The end of a call; background work of earlier calls runs beside it.
    fn ask(&self, text: &str) -> lockgate::engine::Ended {
        let mut call = begin(&self.agent, "s1", text);
        let mut ending = Box::pin(call.finish());
        let ended = block_on(std::future::poll_fn(|context| {
            let mut after = self.after.borrow_mut();
            after.retain_mut(|work| work.as_mut().poll(context).is_pending());
            ending.as_mut().poll(context)
        }));
        if self.agent.has_work() {
            let agent = self.agent.clone();
            self.after.borrow_mut().push(Box::pin(async move { agent.afterwards().await }));
            self.go_on();
        }
        ended
    }

    /// Runs the background work until it waits.
    fn go_on(&self) {
        self.after.borrow_mut().retain_mut(|work| poll_once(work).is_pending());
    }
}

/// A model that thinks for a minute, minus a second, before it begins.
struct Slow(Rc<TestHost>, Rc<ScriptedModel>);

impl Model for Slow {
    fn id(&self, tag: u32) -> String {
        self.1.id(tag)
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        Box::pin(async move {
            HostHandle(Rc::clone(&self.0)).sleep(59_000).await;
            self.1.ask(request).await
        })
    }
}

/// A tool that answers with its session and permissions; as `nap` it takes a minute.
struct WhoAmI(Rc<ToolSpec>, Rc<TestHost>);

impl Tool for WhoAmI {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        let facts = run.desk.facts();
        let denied = facts.permission_context.deny_rules.len();
        let plans = facts.plan_mode_context.plan_active;
        let text = format!("{} denied {denied} plans {plans}", run.slot.session());
        let ms = if self.0.name == "nap" { 60_000 } else { 0 };
        let nap = HostHandle(Rc::clone(&self.1)).sleep(ms);
        Box::pin(async move {
            nap.await;
            Ok(vec![Block::text(text)])
        })
    }
}

fn story(
    store: &Rc<dyn Store>,
    parent: impl IntoIterator<Item = Line>,
    child: impl IntoIterator<Item = Line>,
) -> Story {
    let (parent, child) = (ScriptedModel::new(parent), ScriptedModel::new(child));
    let host = TestHost::new();
    let kind = |name: &str, model: Rc<dyn Model>| Subagent {
        name: name.to_owned(),
        description: "works".to_owned(),
        model: Some(model),
        ..Subagent::default()
    };
    let slow = Rc::new(Slow(Rc::clone(&host), Rc::clone(&child)));
    let kinds = vec![kind("worker", Rc::clone(&child) as Rc<dyn Model>), kind("slow", slow)];
    let options = Options { subagents: Some(kinds), ..Options::new("helper") };
    let tool = |name: &str| {
        let spec = ToolSpec::new(name, "says who you are", json!({ "type": "object" }));
        let spec = ToolSpec { effect: Effect::Reads, ..spec };
        Rc::new(WhoAmI(Rc::new(spec), Rc::clone(&host)))
    };
    let agent = Builder::new(options)
        .model(Rc::clone(&parent) as Rc<dyn Model>)
        .store(Rc::clone(store))
        .host(Rc::new(HostHandle(Rc::clone(&host))))
        .tool(tool("who"))
        .tool(tool("nap"))
        .build()
        .unwrap();
    Story { agent, host, parent, child, after: RefCell::default() }
}

fn spawns(extra: &Value) -> Line {
    let mut input = json!({ "agent_id": "worker", "task": "count the boats" });
    input.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    Line::calls("agent_spawn", &input)
}

fn in_background() -> Line {
    spawns(&json!({ "timeout_seconds": 0 }))
}

/// A child that still runs when its parent's call has ended.
fn slowly() -> Line {
    spawns(&json!({ "agent_id": "slow", "timeout_seconds": 0 }))
}

/// Lets the slow children end.
fn a_minute_later(it: &Story) {
    it.go_on();
    it.host.pass(59_000.0);
    it.go_on();
}

/// The text of a session's last tool result.
fn last_result(agent: &Agent) -> (ResultState, String) {
    let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    let mut results = history.iter().rev().flat_map(|message| message.tool_results());
    let last = results.next().unwrap();
    (last.state, Block::text_of(&last.output))
}

/// The messages about tasks in a session.
fn notes(agent: &Agent) -> Vec<String> {
    let history = block_on(agent.history(&slot("s1"), None, 1_000)).unwrap();
    let told = history.iter().filter(|message| note_kind(message) == Some("task-result"));
    told.map(|message| message.text()).collect()
}

/// One field of the text of a tool or a message.
fn field(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn keys(store: &Rc<dyn Store>, part: &str) -> Vec<String> {
    let records = block_on(store.list("", Page::default())).unwrap();
    records.into_iter().map(|(key, _)| key).filter(|key| key.contains(part)).collect()
}

/// The events of a call, to its end.
fn events(call: &mut lockgate::engine::Call) -> Vec<Stamped> {
    let mut events = Vec::new();
    while let Some(event) = block_on(call.next()) {
        events.push(event);
    }
    events
}

#[test]
fn r64_a_child_that_ends_in_time_answers_as_a_tool_result_and_sends_no_message() {
    let store = memory();
    let parent = [spawns(&json!({ "label": "boats" })), Line::says("seven"), Line::says("yes")];
    let it = story(&store, parent, [Line::says("7 boats")]);
    assert_eq!(ask(&it.agent, "s1", "how many boats?").unwrap().text, "seven");
    let (state, text) = last_result(&it.agent);
    assert_eq!((state, field(&text, "status").as_str()), (ResultState::Success, "completed"));
    assert!(text.ends_with("\n\n7 boats"), "{text}");
    assert_eq!(field(&text, "label"), "boats");
    ask(&it.agent, "s1", "sure?").unwrap();
    assert_eq!(notes(&it.agent), Vec::<String>::new(), "the tool result has reported it already");
    assert_eq!((keys(&store, "/open.").len(), keys(&store, "/told.").len()), (0, 1));
    let child = Slot::new(Some("alice"), &field(&text, "agent_key")).unwrap();
    assert_eq!(block_on(it.agent.history(&child, None, 10)).unwrap().len(), 2);
    let listed = block_on(it.agent.list_sessions(Some("alice"), Page::default())).unwrap();
    assert_eq!(listed.len(), 1, "lists leave children out");
}

#[test]
fn r64_a_child_past_its_timeout_continues_in_the_background_and_is_not_restarted() {
    let store = memory();
    let parent = [
        spawns(&json!({ "timeout_seconds": 5 })),
        Line::says("it takes a while"),
        Line::says("seven"),
    ];
    let it = story(&store, parent, [Line::Hangs(words("7 boats"))]);
    let mut call = begin(&it.agent, "s1", "how many boats?");
    while let Some(event) = block_on(call.next()) {
        // From here on the child's model sends nothing.
        if matches!(&event.event, Event::Subagent { event, .. } if matches!(event.event, Event::TextDelta { .. }))
        {
            break;
        }
    }
    it.host.pass(5_000.0);
    assert_eq!(block_on(call.finish()).unwrap().text, "it takes a while");
    assert_eq!(field(&last_result(&it.agent).1, "status"), "running");
    assert!(it.agent.has_work(), "the child continues as background work");
    assert_eq!(it.child.requests().len(), 1);
    // The child's model times out; the next call reports the failure.
    let mut after = Box::pin(it.agent.afterwards());
    assert!(poll_once(&mut after).is_pending());
    it.host.pass(60_000.0);
    block_on(after);
    assert_eq!(ask(&it.agent, "s1", "and now?").unwrap().text, "seven");
    assert_eq!(it.child.requests().len(), 1, "it was not begun again");
    let told = notes(&it.agent);
    assert_eq!((told.len(), field(&told[0], "status").as_str()), (1, "failed"));
}

#[test]
fn r64_a_background_result_arrives_once_as_a_message_even_after_a_restart() {
    let store = memory();
    let it = story(&store, [slowly(), Line::says("begun")], [Line::says("7 boats")]);
    it.ask("how many boats?").unwrap();
    a_minute_later(&it);
    assert_eq!(keys(&store, "/open.").len(), 1);
    // Another process, with nothing but the store.
    let it = story(&store, [Line::says("seven"), Line::says("yes")], []);
    ask(&it.agent, "s1", "and?").unwrap();
    let told = notes(&it.agent);
    assert_eq!((told.len(), field(&told[0], "status").as_str()), (1, "completed"));
    assert!(told[0].ends_with("7 boats"));
    let shown = it.parent.requests()[0].last().unwrap().text();
    assert_eq!(shown, told[0], "the model has seen it");
    assert_eq!((keys(&store, "/open.").len(), keys(&store, "/told.").len()), (0, 1));
    let it = story(&store, [Line::says("yes")], []);
    ask(&it.agent, "s1", "sure?").unwrap();
    assert_eq!(notes(&it.agent).len(), 1);
}

#[test]
fn r64_a_child_of_a_dead_process_is_reported_as_lost_and_never_run_again() {
    let store = memory();
    let it = story(&store, [in_background(), Line::says("begun")], [Line::Hangs(words("7 "))]);
    ask(&it.agent, "s1", "how many boats?").unwrap();
    drop(it);
    let it = story(&store, [Line::says("a pity"), Line::says("yes")], []);
    ask(&it.agent, "s1", "and?").unwrap();
    let told = notes(&it.agent);
    assert_eq!((told.len(), field(&told[0], "status").as_str()), (1, "lost"));
    ask(&it.agent, "s1", "sure?").unwrap();
    assert_eq!((notes(&it.agent).len(), it.child.requests().len()), (1, 0));
}

#[test]
fn r64_a_parent_that_dies_before_its_commit_gets_the_results_of_its_children_at_its_next_call() {
    let store = memory();
    let it = story(&store, [in_background(), Line::Hangs(words("so "))], [Line::says("7 boats")]);
    let mut call = begin(&it.agent, "s1", "how many boats?");
    while let Some(event) = block_on(call.next()) {
        if matches!(event.event, Event::TextDelta { .. }) {
            break;
        }
    }
    drop(call);
    let it = story(&store, [Line::says("seven")], []);
    ask(&it.agent, "s1", "and?").unwrap();
    let told = notes(&it.agent);
    assert_eq!((told.len(), field(&told[0], "status").as_str()), (1, "completed"));
}

#[test]
fn r65_an_abort_of_the_parent_ends_the_child_and_every_start_has_its_end() {
    for wait in [30, 0] {
        let store = memory();
        let parent = [spawns(&json!({ "timeout_seconds": wait })), Line::Hangs(words("hm "))];
        let it = story(&store, parent, [Line::Hangs(words("7 boats"))]);
        let mut call = begin(&it.agent, "s1", "how many boats?");
        let mut seen = Vec::new();
        while let Some(event) = block_on(call.next()) {
            let is_said = matches!(&event.event, Event::Subagent { event, .. } if matches!(event.event, Event::TextDelta { .. }));
            seen.push(event);
            if is_said {
                break;
            }
        }
        call.cancel().ask(Cause::Aborted);
        seen.extend(events(&mut call));
        assert_eq!(call.ended().unwrap().as_ref().unwrap_err().error.kind(), ErrorKind::Aborted);
        let of_child = |event: &Stamped| match &event.event {
            Event::Subagent { event, .. } => Some(event.event.clone()),
            _ => None,
        };
        let inner: Vec<_> = seen.iter().filter_map(of_child).collect();
        assert!(matches!(inner.first(), Some(Event::CallStart { .. })));
        assert!(matches!(inner.last(), Some(Event::CallEnd { .. })), "{:?}", inner.last());
        let starts = inner.iter().filter(|it| matches!(it, Event::ModelStart { .. })).count();
        let ends = inner.iter().filter(|it| matches!(it, Event::ModelEnd { .. })).count();
        assert_eq!((starts, ends), (1, 1));
        assert!(matches!(seen.last().unwrap().event, Event::Error { .. }));
        assert_eq!((it.agent.n_busy(), it.agent.has_work()), (0, false));
    }
}

#[test]
fn r65_a_child_has_no_permission_that_its_parent_lacks() {
    let store = memory();
    let parent = [Line::says("hello"), spawns(&json!({})), Line::says("done")];
    let it = story(&store, parent, [Line::calls("who", &json!({})), Line::says("me")]);
    ask(&it.agent, "s1", "hello").unwrap();
    let mut state = block_on(it.agent.state(&slot("s1"))).unwrap();
    let may = &mut state.facts.permission_context;
    may.mode = PermissionMode::Explore;
    may.deny_rules.push(Rule {
        tool_name: "write_file".to_owned(),
        rule_content: None,
        behavior: Behavior::Deny,
        source: "session".to_owned(),
        rest: Default::default(),
    });
    state.facts.plan_mode_context.plan_active = true;
    let state = serde_json::to_value(&state).unwrap();
    block_on(it.agent.put_state(&slot("s1"), &state).unwrap()).unwrap();
    ask(&it.agent, "s1", "go").unwrap();
    let key = field(&last_result(&it.agent).1, "agent_key");
    let child = Slot::new(Some("alice"), &key).unwrap();
    let history = block_on(it.agent.history(&child, None, 10)).unwrap();
    let result = history.iter().flat_map(|message| message.tool_results()).next().unwrap();
    assert_eq!(Block::text_of(&result.output), format!("{key} denied 1 plans true"));
    let kept = block_on(it.agent.state(&child)).unwrap().facts;
    assert_eq!(kept.permission_context.mode, PermissionMode::Explore);
}

#[test]
fn a_shutdown_ends_children_like_calls_and_they_are_reported_as_lost() {
    let store = memory();
    let it = story(&store, [in_background(), Line::says("begun")], [Line::Hangs(words("7 "))]);
    ask(&it.agent, "s1", "how many boats?").unwrap();
    let mut after = Box::pin(it.agent.afterwards());
    assert!(poll_once(&mut after).is_pending());
    it.agent.shut_down_now();
    block_on(after);
    assert_eq!(it.agent.n_busy(), 0);
    let it = story(&store, [Line::says("a pity")], []);
    ask(&it.agent, "s1", "and?").unwrap();
    assert_eq!(field(&notes(&it.agent)[0], "status"), "lost");
}

#[test]
fn children_can_nest_only_up_to_a_limit() {
    let store = memory();
    let spawn = || spawns(&json!({}));
    let child = [
        spawn(),
        spawn(),
        spawn(),
        Line::says("no deeper"),
        Line::says("third"),
        Line::says("second"),
    ];
    let it = story(&store, [spawn(), Line::says("first")], child);
    ask(&it.agent, "s1", "go").unwrap();
    let deepest = it.child.requests();
    let refused = deepest[3].last().unwrap().tool_results().next().cloned().unwrap();
    assert_eq!(refused.state, ResultState::Error);
    let text = Block::text_of(&refused.output);
    assert!(text.starts_with("The tool \"agent_spawn\" is not on in this session"), "{text}");
    assert!(last_result(&it.agent).1.ends_with("\n\nsecond"));
}

#[test]
fn deleting_a_session_deletes_its_tasks_and_its_children() {
    let store = memory();
    let it = story(&store, [spawns(&json!({})), Line::says("seven")], [Line::says("7")]);
    ask(&it.agent, "s1", "how many boats?").unwrap();
    assert_eq!(keys(&store, "/task/").len(), 1);
    block_on(it.agent.delete_session(&slot("s1"))).unwrap();
    assert_eq!(keys(&store, "/task/"), Vec::<String>::new());
    let left = keys(&store, "");
    assert_eq!(left.len(), 2, "two tombstones: {left:?}");
    assert!(left.iter().all(|key| key.ends_with("/head")));
}

#[test]
fn labels_and_tasks_belong_to_one_session() {
    let store = memory();
    let label = || spawns(&json!({ "label": "boats" }));
    let parent =
        [label(), Line::says("one"), label(), Line::says("two"), label(), Line::says("three")];
    let it = story(&store, parent, [Line::says("7"), Line::says("8")]);
    ask(&it.agent, "s1", "go").unwrap();
    ask(&it.agent, "s1", "again").unwrap();
    let (state, text) = last_result(&it.agent);
    assert_eq!(state, ResultState::Error);
    assert!(text.starts_with("There is an agent \"boats\" in this session already"), "{text}");
    ask(&it.agent, "s2", "go").unwrap();
    assert_eq!(it.child.requests().len(), 2, "another session has labels of its own");
}

#[test]
fn the_result_of_a_child_that_ends_during_its_parents_answer_comes_before_the_next_question() {
    let store = memory();
    let parent = [slowly(), Line::calls("nap", &json!({})), Line::says("seven")];
    let it = story(&store, parent, [Line::says("7 boats")]);
    let mut call = begin(&it.agent, "s1", "how many boats?");
    while let Some(event) = block_on(call.next()) {
        if matches!(&event.event, Event::ToolStart { name, .. } if name == "nap") {
            break;
        }
    }
    it.host.pass(59_000.0);
    while poll_once(&mut Box::pin(call.next())).is_ready() {}
    it.host.pass(1_000.0);
    assert_eq!(block_on(call.finish()).unwrap().text, "seven");
    assert_eq!(notes(&it.agent).len(), 1);
    assert_eq!(it.parent.requests()[2].last().unwrap().text(), notes(&it.agent)[0]);
}

/// The tool results of the last call, in order.
fn results(agent: &Agent, n: usize) -> Vec<(ResultState, String)> {
    let history = block_on(agent.history(&slot("s1"), None, 1_000)).unwrap();
    let all: Vec<_> = history.iter().flat_map(|message| message.tool_results()).collect();
    let last = all[all.len() - n..].iter();
    last.map(|result| (result.state, Block::text_of(&result.output))).collect()
}

/// Lets the model call tools one after the other, and returns their results.
fn uses(it: &Story, calls: &[(&str, Value)]) -> Vec<(ResultState, String)> {
    it.parent.add(calls.iter().map(|(name, input)| Line::calls(name, input)));
    it.parent.add([Line::says("done")]);
    it.ask("go on").unwrap();
    results(&it.agent, calls.len())
}

#[test]
fn tasks_can_be_listed_read_cancelled_and_waited_for() {
    let it = story(&memory(), [], [Line::says("7 boats")]);
    let spawn = || json!({ "agent_id": "slow", "task": "count", "timeout_seconds": 0 });
    let begun = uses(&it, &[("agent_spawn", spawn()), ("agent_spawn", spawn())]);
    let ids: Vec<_> = begun.iter().map(|(_, text)| field(text, "task_id")).collect();
    let running = json!({ "status_filter": "running" });
    let seen = uses(
        &it,
        &[
            ("task_list", running.clone()),
            ("task_output", json!({ "task_id": ids[0], "block": false })),
            ("wait_async_results", json!({ "timeout_seconds": 0 })),
            ("task_cancel", json!({ "task_id": ids[0] })),
            ("task_list", running),
            ("task_cancel", json!({ "task_id": ids[0] })),
            ("agent_list", json!({})),
        ],
    );
    let texts: Vec<_> = seen.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts[0].lines().count(), 2);
    assert_eq!(field(texts[1], "status"), "running");
    assert_eq!(texts[2].matches("status: running").count(), 2);
    assert_eq!(field(texts[3], "status"), "cancelled");
    assert_eq!(texts[4], format!("- {} (slow): running", ids[1]));
    let ended = format!("Task {} has ended already: cancelled.", ids[0]);
    assert_eq!(seen[5], (ResultState::Error, ended));
    assert!(texts[6].contains("- worker: works") && texts[6].contains("(slow): cancelled"));
    a_minute_later(&it);
    let waited = uses(
        &it,
        &[
            ("wait_async_results", json!({ "task_ids": [ids[1]] })),
            ("wait_async_results", json!({})),
            ("task_output", json!({ "task_id": ids[1] })),
        ],
    );
    assert_eq!(notes(&it.agent).len(), 1, "the result of the first child came with the question");
    assert!(waited[0].1.ends_with("7 boats") && waited[2].1.ends_with("7 boats"));
    let nothing = "There is nothing to wait for: you have heard of the end of every task.";
    assert_eq!(waited[1], (ResultState::Error, nothing.to_owned()));
}

#[test]
fn a_child_agent_remembers_its_earlier_tasks() {
    let it = story(&memory(), [], [Line::says("7 boats"), Line::says("3 are red")]);
    let spawn = json!({ "agent_id": "worker", "task": "count", "label": "boats" });
    let sent = json!({ "agent_key": "boats", "message": "how many are red?" });
    let done = uses(&it, &[("agent_spawn", spawn), ("agent_send", sent)]);
    assert!(done[1].1.ends_with("3 are red"), "{}", done[1].1);
    assert_eq!(field(&done[0].1, "agent_key"), field(&done[1].1, "agent_key"));
    assert_eq!(it.child.requests()[1].len(), 3, "the child sees its earlier messages");
}

#[test]
fn a_wrong_request_of_a_model_is_refused_with_a_reason() {
    let it = story(&memory(), [], []);
    let refused = uses(
        &it,
        &[
            ("agent_spawn", json!({ "agent_id": "captain", "task": "sail" })),
            ("agent_send", json!({ "agent_key": "captain", "message": "sail" })),
            ("task_output", json!({ "task_id": "x" })),
            ("task_cancel", json!({ "task_id": "x" })),
            ("wait_async_results", json!({ "task_ids": ["x"] })),
            ("agent_spawn", json!({ "agent_id": "worker" })),
            ("agent_spawn", json!({ "agent_id": "worker", "task": "x", "timeout_seconds": 601 })),
        ],
    );
    assert!(refused.iter().all(|(state, _)| *state == ResultState::Error));
    let texts: Vec<_> = refused.iter().map(|(_, text)| text.as_str()).collect();
    let agents = "The agents are: worker, slow, general-purpose.";
    assert_eq!(texts[0], format!("There is no agent \"captain\". {agents}"));
    assert_eq!(texts[1], "There is no agent \"captain\" in this session. See agent_list.");
    for text in &texts[2..5] {
        assert_eq!(*text, "There is no task \"x\" in this session. See task_list.");
    }
    assert!(texts[5].contains("task") && texts[6].contains("timeout_seconds"), "{texts:?}");
    assert_eq!(it.child.requests().len(), 0);
}
