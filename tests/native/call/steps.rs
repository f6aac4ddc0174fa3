//! Calls stored by steps, calls that join another call, and turns that conflict with another turn.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Call, CallRequest, Durability, Options, Overlap};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Page, Store, Tool, ToolRun, ToolSpec};
use lockgate::state::Facts;
use lockgate::store::format::entry::{EntryKind, Outcome};
use lockgate::store::format::input::Input;
use lockgate::store::session::{Session, TurnCommit};
use lockgate::store::{OnConflict, Saved, Sessions};
use serde_json::json;

/// A tool that waits once.
struct Waits(Rc<ToolSpec>);

impl Tool for Waits {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async {
            yield_once().await;
            Ok(vec![Block::text("waited")])
        })
    }
}

fn agent_of(
    store: &Rc<dyn Store>,
    lines: impl IntoIterator<Item = Line>,
    set: impl FnOnce(&mut Options),
) -> (Agent, Rc<ScriptedModel>) {
    let model = ScriptedModel::new(lines);
    let mut options = Options::new("helper");
    set(&mut options);
    let spec = Rc::new(ToolSpec::new("waits", "waits", json!({ "type": "object" })));
    let agent = lockgate::engine::Builder::new(options)
        .model(Rc::clone(&model) as _)
        .store(Rc::clone(store))
        .host(Rc::new(HostHandle(TestHost::new())))
        .tool(Rc::new(Waits(spec)))
        .build()
        .unwrap();
    (agent, model)
}

fn calls_tool() -> Line {
    Line::calls("waits", &json!({}))
}

fn until(call: &mut Call, wanted: &str) {
    while let Some(event) = block_on(call.next()) {
        if json!(event)["type"] == wanted {
            return;
        }
    }
    panic!("there was no {wanted}");
}

/// How many records of a kind there are.
fn count(store: &Rc<dyn Store>, kind: &str) -> usize {
    let records = block_on(store.list("", Page::default())).unwrap();
    records.iter().filter(|(key, _)| key.contains(&format!("/{kind}/"))).count()
}

#[test]
fn a_call_stored_by_steps_reads_like_any_other_call() {
    let store = memory();
    let lines = [calls_tool(), Line::says("done"), Line::says("again")];
    let (agent, model) = agent_of(&store, lines, |it| it.durability = Durability::Step);
    let named = || CallRequest { call_id: Some("mine".into()), ..request("s1", "go") };
    let mut call = agent.begin(named()).unwrap();
    let mut n_saved = 0;
    while let Some(event) = block_on(call.next()) {
        n_saved += u32::from(matches!(event.event, Event::Saved { .. }));
    }
    assert_eq!(n_saved, 3, "after the answer, after the tool, at the end");
    let reply = call.ended().unwrap().clone().unwrap();
    assert_eq!((reply.messages.len(), count(&store, "log"), count(&store, "input")), (4, 3, 0));
    let again = block_on(agent.begin(named()).unwrap().finish()).unwrap();
    assert_eq!(json!(again.messages), json!(reply.messages));
    ask(&agent, "s1", "more").unwrap();
    assert!(json!(model.requests().last().unwrap()).to_string().contains("finished"));
    // Read from the store alone: the context has the changes that later entries made to earlier messages.
    let (fresh, model) = agent_of(&store, [Line::says("fresh")], |_| ());
    ask(&fresh, "s1", "and you?").unwrap();
    assert!(!json!(model.requests()[0]).to_string().contains("pending"));
}

#[test]
fn t_09_a_call_that_dies_after_a_tool_keeps_its_steps_and_says_that_the_outcome_is_unknown() {
    let store = memory();
    for (wanted, known) in
        [("tool-start", "not known what became of this call"), ("tool-end", "waited")]
    {
        let lines = [calls_tool(), Line::Hangs(Vec::new())];
        let (agent, _) = agent_of(&store, lines, |it| it.durability = Durability::Step);
        let mut call = begin(&agent, wanted, "go");
        until(&mut call, wanted);
        drop(call);
        let (agent, model) = agent_of(&store, [Line::says("I see")], |_| ());
        ask(&agent, wanted, "what happened?").unwrap();
        let told = told(&agent, wanted);
        assert_eq!(told.iter().filter(|line| *line == "user: go").count(), 1, "{told:?}");
        let shown = json!(model.requests()[0]).to_string();
        assert!(shown.contains(known) && shown.contains("Tools may have run"), "{shown}");
    }
}

#[test]
fn a_steering_message_joins_the_call_at_its_next_step() {
    let store = memory();
    let lines = [calls_tool(), Line::says("both heard")];
    let (agent, model) = agent_of(&store, lines, |_| ());
    let mut first = begin(&agent, "s1", "go");
    until(&mut first, "tool-start");
    let steer = CallRequest { overlap: Overlap::Steer, ..request("s1", "and quickly") };
    let mut second = agent.begin(CallRequest { call_id: Some("second".into()), ..steer }).unwrap();
    let mut queued = begin(&agent, "s1", "later");
    assert!(poll_once(&mut Box::pin(second.next())).is_ready());
    assert_eq!(block_on(first.finish()).unwrap().text, "both heard");
    let reply = block_on(second.finish()).unwrap();
    assert_eq!((reply.text.as_str(), &*reply.call_id), ("both heard", "second"));
    let told = told(&agent, "s1");
    assert_eq!(told[3..], ["user: and quickly", "assistant: both heard"]);
    assert_eq!(json!(model.requests()[1].last().unwrap())["role"], "user");
    assert_eq!((count(&store, "input"), count(&store, "log")), (0, 1));
    // The outcome of the second call is also stored under its own id.
    let again = CallRequest { call_id: Some("second".into()), ..request("s1", "and quickly") };
    queued.cancel().ask(lockgate::engine::Cause::Aborted);
    block_on(queued.finish()).unwrap_err();
    assert_eq!(block_on(agent.begin(again).unwrap().finish()).unwrap().text, "both heard");
}

#[test]
fn a_steering_message_with_the_id_of_an_ended_call_is_not_added_again() {
    let lines = [Line::says("once"), calls_tool(), Line::says("done")];
    let (agent, model) = agent_of(&memory(), lines, |_| ());
    let named = |overlap| {
        let again = CallRequest { call_id: Some("mine".into()), ..request("s1", "hello") };
        agent.begin(CallRequest { overlap, ..again }).unwrap()
    };
    block_on(named(Overlap::Queue).finish()).unwrap();
    let mut running = begin(&agent, "s1", "go");
    until(&mut running, "tool-start");
    let mut again = named(Overlap::Steer);
    block_on(running.finish()).unwrap();
    assert_eq!(block_on(again.finish()).unwrap().text, "once");
    assert_eq!(told(&agent, "s1").iter().filter(|line| *line == "user: hello").count(), 1);
    assert_eq!(model.n_left(), 0);
}

#[test]
fn a_steering_message_sent_twice_under_one_call_id_is_added_once() {
    let lines = [calls_tool(), calls_tool(), Line::says("done")];
    let (agent, model) = agent_of(&memory(), lines, |_| ());
    let mut running = begin(&agent, "s1", "go");
    let steer = || {
        let named = CallRequest { call_id: Some("mine".into()), ..request("s1", "faster") };
        agent.begin(CallRequest { overlap: Overlap::Steer, ..named }).unwrap()
    };
    until(&mut running, "tool-start");
    let mut first = steer();
    until(&mut running, "tool-start");
    let mut again = steer();
    block_on(running.finish()).unwrap();
    for call in [&mut first, &mut again] {
        assert_eq!(block_on(call.finish()).unwrap().text, "done");
    }
    assert_eq!(told(&agent, "s1").iter().filter(|line| *line == "user: faster").count(), 1);
    assert_eq!(model.n_left(), 0);
}

#[test]
fn a_call_that_joins_another_before_it_starts_still_reports_call_start_first() {
    let (agent, _) = agent_of(&memory(), [calls_tool(), Line::says("both")], |_| ());
    let mut first = begin(&agent, "s1", "go");
    until(&mut first, "tool-start");
    let steer = CallRequest { overlap: Overlap::Steer, ..request("s1", "faster") };
    let mut second = agent.begin(steer).unwrap();
    block_on(first.finish()).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = block_on(second.next()) {
        seen.push(json!(event)["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.first().map(String::as_str), Some("call-start"), "{seen:?}");
}

#[test]
fn a_steering_message_that_comes_too_late_becomes_the_next_call() {
    let (agent, _) = agent_of(&memory(), [Line::says("one"), Line::says("two")], |_| ());
    let mut first = begin(&agent, "s1", "a");
    until(&mut first, "text-start");
    let steer = CallRequest { overlap: Overlap::Steer, ..request("s1", "b") };
    let mut second = agent.begin(steer).unwrap();
    assert_eq!(block_on(first.finish()).unwrap().text, "one");
    assert_eq!(block_on(second.finish()).unwrap().text, "two");
    assert_eq!(told(&agent, "s1"), ["user: a", "assistant: one", "user: b", "assistant: two"]);
}

#[test]
fn stopping_a_call_that_joined_another_stops_the_other_too() {
    let lines = [calls_tool(), Line::Hangs(words("half "))];
    let (agent, _) = agent_of(&memory(), lines, |_| ());
    let mut first = begin(&agent, "s1", "go");
    until(&mut first, "tool-start");
    let steer = || CallRequest { overlap: Overlap::Steer, ..request("s1", "faster") };
    let (mut second, mut third) = (agent.begin(steer()).unwrap(), agent.begin(steer()).unwrap());
    until(&mut first, "text-delta");
    third.cancel().ask(lockgate::engine::Cause::Aborted);
    assert_eq!(block_on(third.finish()).unwrap_err().error.kind(), ErrorKind::Aborted);
    second.cancel().ask(lockgate::engine::Cause::Stopped(said("stop it")));
    let mut ended = Box::pin(second.finish());
    assert!(poll_once(&mut ended).is_pending());
    assert_eq!(block_on(first.finish()).unwrap().reason, Reason::Interrupted);
    assert_eq!(block_on(ended).unwrap().reason, Reason::Interrupted);
    assert_eq!(told(&agent, "s1").last().unwrap(), "user: stop it");
}

#[test]
fn a_call_that_joined_an_abandoned_call_fails_and_its_message_is_kept() {
    let store = memory();
    let (agent, _) = agent_of(&store, [calls_tool(), Line::Hangs(words("half "))], |_| ());
    let mut first = begin(&agent, "s1", "go");
    until(&mut first, "tool-start");
    let steer = CallRequest { overlap: Overlap::Steer, ..request("s1", "faster") };
    let mut second = agent.begin(steer).unwrap();
    until(&mut first, "text-delta");
    drop(first);
    assert_eq!(block_on(second.finish()).unwrap_err().error.kind(), ErrorKind::Superseded);
    let (agent, _) = agent_of(&store, [Line::says("hello")], |_| ());
    ask(&agent, "s1", "anybody?").unwrap();
    let told = told(&agent, "s1");
    let place = |line: &str| told.iter().position(|it| it == line).unwrap();
    assert!(place("user: go") < place("user: faster"), "{told:?}");
}

/// Two nodes without a lock: the turn of the other node is saved while our turn runs.
fn met(policy: OnConflict, theirs: &[&str]) -> (Agent, Rc<dyn Store>, Result<Saved>) {
    let store = memory();
    let (agent, _) = agent_of(&store, [Line::says("base")], |_| ());
    ask(&agent, "s1", "first").unwrap();
    let host = HostHandle(TestHost::new());
    let sessions = Sessions::new("helper", Rc::clone(&store), Rc::new(host), 1_000);
    let sessions = sessions.with_policy(policy);
    let turn = |name: &str, input: &Input| TurnCommit {
        id: format!("entry-{name}"),
        kind: EntryKind::Turn,
        input: input.clone(),
        joined: Vec::new(),
        messages: input.messages.clone(),
        changes: Vec::new(),
        outcome: Some(Outcome::ended(Reason::Stop)),
        facts: Facts::default(),
        view_change: Default::default(),
        is_forgotten: false,
        left_out: None,
        pieces: Vec::new(),
        told_tasks: Vec::new(),
    };
    let mut hands: Vec<_> =
        ["ours"].iter().chain(theirs).map(|name| (*name, accepted(&sessions, name))).collect();
    for (name, (session, input)) in hands.iter_mut().skip(1) {
        block_on(sessions.save_turn(session, &turn(name, input))).unwrap();
    }
    let (_, (session, input)) = &mut hands[0];
    let ended = block_on(sessions.save_turn(session, &turn("ours", input)));
    (agent, store, ended)
}

fn accepted(sessions: &Sessions, name: &str) -> (Session, Input) {
    let mut message = said(name).pop().unwrap();
    message.id = format!("message-{name}");
    let input = Input {
        call_id: name.to_owned(),
        named: false,
        messages: vec![Rc::new(message)],
        answers: Vec::new(),
        asked: None,
        resends: false,
        from: None,
        holds_permissions: false,
        earlier: None,
        path: None,
        rest: Default::default(),
    };
    let mut session = block_on(sessions.load(&slot("s1"), None)).unwrap();
    assert!(block_on(sessions.accept(&mut session, &input)).unwrap());
    (session, input)
}

#[test]
fn r17_a_turn_that_conflicts_with_another_is_appended_put_aside_or_replaces_it() {
    let (agent, _, ended) = met(OnConflict::Rebase, &["theirs"]);
    assert!(ended.unwrap().overtaken);
    assert_eq!(told(&agent, "s1")[2..], ["user: theirs", "user: ours"]);

    let (agent, store, ended) = met(OnConflict::Fail, &["theirs"]);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Superseded);
    assert_eq!(told(&agent, "s1")[2..], ["user: theirs"]);
    assert_eq!(count(&store, "log"), 3, "the turn is kept beside the path");

    let (agent, store, ended) = met(OnConflict::Overwrite, &["theirs", "more of theirs"]);
    assert!(ended.is_ok());
    assert_eq!(told(&agent, "s1")[2..], ["user: ours"]);
    assert_eq!(
        (count(&store, "log"), count(&store, "branch")),
        (4, 2),
        "the turn of the other node stays in the log"
    );
    assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().branches, 2);
    assert_eq!(count(&store, "input"), 0);
}

#[test]
fn state_parts_changed_by_two_nodes_are_merged_unless_both_changed_the_same_part() {
    let with = |change: fn(&mut Facts)| {
        let mut facts = Facts::default();
        change(&mut facts);
        facts
    };
    let base = Facts::default();
    let plans = with(|it| it.plan_mode_context.plan_active = true);
    let groups = with(|it| it.tool_context.activated_groups.push("a".into()));
    let others = with(|it| it.tool_context.activated_groups.push("b".into()));
    let both = Facts::merged(&base, &plans, &groups).unwrap();
    assert!(both.plan_mode_context.plan_active && both.tool_context == groups.tool_context);
    assert_eq!(Facts::merged(&base, &groups, &base), Some(groups.clone()));
    assert_eq!(Facts::merged(&base, &groups, &groups), Some(groups.clone()));
    assert_eq!(Facts::merged(&base, &groups, &others), None);
}
