//! Resend: answers the last question again from the exact state before it, any number of times, and keeps every answer.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Cause, Durability, Ended, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::message::{Block, Role};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::policy::compaction::When;
use lockgate::port::{Hook, HookRun, Point, Store, Tool, ToolRun, ToolSpec};
use lockgate::state::{Kept, Persistence, Task, TaskState};
use lockgate::store::operations::branches::Branch;
use serde_json::{Value, json};

/// A tool that changes every part of the state that a tool can change, and counts its runs.
struct Meddler {
    spec: Rc<ToolSpec>,
    n: RefCell<usize>,
}

impl Meddler {
    fn new() -> Rc<Meddler> {
        let spec = ToolSpec::new("meddle", "changes things", json!({ "type": "object" }));
        // Read-only, so that it also runs in plan mode.
        let spec = Rc::new(ToolSpec { effect: lockgate::spec::Effect::Reads, ..spec });
        Rc::new(Meddler { spec, n: RefCell::default() })
    }
}

impl Tool for Meddler {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        *self.n.borrow_mut() += 1;
        let n = *self.n.borrow();
        run.desk.change(&mut |facts| {
            let task = Task {
                id: format!("task-{n}"),
                subject: format!("thing {n}"),
                state: TaskState::Pending,
                priority: None,
                rest: Default::default(),
            };
            facts.tasks_context.tasks.push(task);
            facts.plan_mode_context.plan_active = !facts.plan_mode_context.plan_active;
            facts.plan_mode_context.current_plan_file = Some(format!("plans/{n}.md"));
            facts.tool_context.activated_groups.push(format!("group-{n}"));
            facts.tool_context.activated_skills.push(format!("skill-{n}"));
            facts.permission_context.working_directories.push(format!("folder-{n}"));
        });
        Box::pin(ready(Ok(vec![Block::text(format!("meddled {n}"))])))
    }
}

fn set_up(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>, options: Options) -> Builder {
    Builder::new(options)
        .model(Rc::clone(model) as _)
        .store(Rc::clone(store))
        .host(Rc::new(HostHandle(TestHost::new())))
}

fn agent_with(lines: Vec<Line>) -> (Agent, Rc<ScriptedModel>) {
    let model = ScriptedModel::new(lines);
    (agent(Rc::clone(&model) as _), model)
}

fn resending(text: Option<&str>) -> CallRequest {
    let messages = text.map(said).unwrap_or_default();
    CallRequest { messages, resends: true, ..request("s1", "") }
}

fn resend(agent: &Agent, text: Option<&str>) -> Ended {
    block_on(agent.begin(resending(text)).unwrap().finish())
}

fn kind(ended: Ended) -> ErrorKind {
    ended.unwrap_err().error.kind()
}

fn branches(agent: &Agent) -> Vec<Branch> {
    block_on(agent.branches(&slot("s1"))).unwrap()
}

/// The state without its version and revision.
fn state(agent: &Agent) -> Value {
    let mut state = json!(block_on(agent.state(&slot("s1"))).unwrap());
    let members = state.as_object_mut().unwrap();
    members.remove("version");
    members.remove("revision");
    state
}

fn texts(messages: &[Rc<lockgate::message::Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}

// R70
#[test]
fn r70_a_resend_answers_the_last_question_from_the_state_before_it() {
    let lines = ["one", "two", "two again"].map(Line::says).into();
    let (agent, model) = agent_with(lines);
    ask(&agent, "s1", "first").unwrap();
    let asked = ask(&agent, "s1", "second").unwrap();
    let reply = resend(&agent, None).unwrap();
    assert_eq!(reply.text, "two again");
    let requests = model.requests();
    assert_eq!(requests[2], requests[1], "the model gets the same request");
    assert_eq!(reply.messages[0].id, asked.messages[0].id, "the question keeps its id");
    assert_eq!(told(&agent, "s1")[2..], ["user: second", "assistant: two again"]);
    let info = block_on(agent.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!((info.messages, info.branches, info.summary.as_str()), (4, 1, "two again"));
}

#[test]
fn r70_a_resend_without_a_question_fails() {
    let (agent, _) = agent_with(vec![Line::says("one")]);
    assert_eq!(kind(resend(&agent, None)), ErrorKind::NoAnchor);
    assert_eq!(kind(resend(&agent, Some("other words"))), ErrorKind::NoAnchor);
    block_on(agent.append(&slot("s1"), said("put there"))).unwrap();
    assert_eq!(kind(resend(&agent, None)), ErrorKind::NoAnchor);
    ask(&agent, "s1", "first").unwrap();
    block_on(agent.clear_context(&slot("s1"))).unwrap();
    assert_eq!(kind(resend(&agent, None)), ErrorKind::NoAnchor, "the question was cleared");
    assert_eq!(told(&agent, "s1").len(), 3, "the refused resends store nothing");
}

#[test]
fn r70_a_resend_can_replace_the_question() {
    let lines = ["one", "two", "three", "four"].map(Line::says).into();
    let (agent, model) = agent_with(lines);
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s1", "secnd").unwrap();
    let mut call = agent.begin(resending(Some("second"))).unwrap();
    assert_eq!(block_on(call.finish()).unwrap().text, "three");
    assert_eq!(texts(&model.requests()[2]), ["first", "one", "second"]);
    assert_eq!(told(&agent, "s1")[2..], ["user: second", "assistant: three"]);
    // A later resend uses the replaced question.
    resend(&agent, None).unwrap();
    assert_eq!(texts(&model.requests()[3]), ["first", "one", "second"]);
    let asked = branches(&agent).iter().map(|it| it.message_id.clone()).collect::<Vec<_>>();
    assert_ne!(asked[0], asked[1]);
    assert_eq!(asked[1], asked[2], "the same question has the same id");
}

#[test]
fn r70_a_resend_restores_tasks_plan_groups_and_skills_from_before_the_question() {
    let (store, meddler) = (memory(), Meddler::new());
    let meddles = || Line::calls("meddle", &json!({}));
    let mut lines = Vec::new();
    (0..4).for_each(|_| lines.extend([meddles(), Line::says("done")]));
    let model = ScriptedModel::new(lines);
    let seen = Rc::new(Seen::default());
    let options = Options { persistence: Persistence::ALL, ..Options::new("helper") };
    let agent = set_up(&store, &model, options)
        .tool(Rc::clone(&meddler) as _)
        .hook(Rc::clone(&seen) as _)
        .build()
        .unwrap();
    ask(&agent, "s1", "first").unwrap();
    let before = state(&agent);
    ask(&agent, "s1", "second").unwrap();
    assert_ne!(state(&agent)["tasks_context"], before["tasks_context"]);
    for n in 3..5 {
        resend(&agent, None).unwrap();
        // The hook has recorded the state at the start of the resend.
        for field in
            ["tasks_context", "plan_mode_context", "tool_context", "permission_context", "summary"]
        {
            assert_eq!(seen.0.borrow().last().unwrap()[field], before[field], "{field}");
        }
        let tasks = &state(&agent)["tasks_context"]["tasks"];
        assert_eq!(tasks[1]["id"], format!("task-{n}"), "what the tool did is not undone");
        assert_eq!(tasks.as_array().unwrap().len(), 2);
    }
    assert_eq!(*meddler.n.borrow(), 4);
}

/// A hook that records the state at the start of each call.
#[derive(Default)]
struct Seen(RefCell<Vec<Value>>);

impl Hook for Seen {
    fn name(&self) -> &str {
        "seen"
    }

    fn is_at(&self, point: Point) -> bool {
        point == Point::OnCall
    }

    fn at<'a>(&'a self, _: Point, _: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
        let mut state = json!(run.desk.state());
        let members = state.as_object_mut().unwrap();
        members.remove("version");
        members.remove("revision");
        self.0.borrow_mut().push(state);
        Box::pin(ready(Ok(Value::Null)))
    }
}

#[test]
fn r70_persistence_says_which_parts_are_rolled_back_and_which_are_kept() {
    let parts = [
        ("tasks_context", "tasks"),
        ("plan_mode_context", "plan"),
        ("tool_context", "toolGroups"),
        ("tool_context", "skills"),
        ("permission_context", "permissions"),
    ];
    for (field, part) in parts {
        let mut off = json!({});
        off[part] = json!(false);
        let persistence = Persistence::from_json(&off).unwrap();
        let lines = [Line::calls("meddle", &json!({})), Line::says("done")];
        let model = ScriptedModel::new(lines);
        let options = Options { persistence, ..Options::new("helper") };
        let agent = set_up(&memory(), &model, options).tool(Meddler::new() as _).build().unwrap();
        let fresh = state(&agent);
        ask(&agent, "s1", "first").unwrap();
        let after = state(&agent);
        // A part that is not persistent has after the call the value from before it.
        for other in parts.map(|it| it.0) {
            let is_kept = after[other] != fresh[other];
            let half = other == "tool_context" && other == field;
            assert_eq!(is_kept, other != field || half, "{other} with {part} off");
        }
        let names = json!([fresh["tool_context"], after["tool_context"]]);
        match part {
            "skills" => assert_eq!(names[0]["activated_skills"], names[1]["activated_skills"]),
            "toolGroups" => assert_eq!(names[0]["activated_groups"], names[1]["activated_groups"]),
            _ => {}
        }
    }
}

#[test]
fn r70_parts_that_are_not_rolled_back_stay_as_they_are_now() {
    let persistence = Persistence { conversation: true, ..Persistence::every(Kept::No) };
    let options = Options { persistence, ..Options::new("helper") };
    let model = ScriptedModel::new(["one", "two"].map(Line::says));
    let agent = set_up(&memory(), &model, options).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    let mut put = json!(block_on(agent.state(&slot("s1"))).unwrap());
    put["tasks_context"]["tasks"] = json!([{ "id": "1", "subject": "x", "state": "pending" }]);
    block_on(agent.put_state(&slot("s1"), &put).unwrap()).unwrap();
    resend(&agent, None).unwrap();
    assert_eq!(state(&agent)["tasks_context"], put["tasks_context"]);
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: two"]);
}

#[test]
fn r70_changes_by_hand_after_the_question_are_rolled_back_too() {
    let (agent, _) = agent_with(["one", "two"].map(Line::says).into());
    ask(&agent, "s1", "first").unwrap();
    let before = state(&agent);
    let mut put = json!(block_on(agent.state(&slot("s1"))).unwrap());
    put["plan_mode_context"]["plan_active"] = json!(true);
    block_on(agent.put_state(&slot("s1"), &put).unwrap()).unwrap();
    resend(&agent, None).unwrap();
    assert_eq!(state(&agent)["plan_mode_context"], before["plan_mode_context"]);
}

#[test]
fn without_a_persistent_conversation_every_call_starts_empty() {
    let options = Options { persistence: Persistence::every(Kept::No), ..Options::new("helper") };
    let model = ScriptedModel::new(["one", "two", "three"].map(Line::says));
    let agent = set_up(&memory(), &model, options).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s1", "second").unwrap();
    resend(&agent, None).unwrap();
    let shown: Vec<_> = model.requests().iter().map(|it| texts(it)).collect();
    assert_eq!(shown, [["first"], ["second"], ["second"]]);
    // Nothing is rolled back, so there is no branch; the log has every message.
    let history = told(&agent, "s1");
    assert_eq!(history[3..], ["assistant: two", "user: second", "assistant: three"]);
    assert_eq!(branches(&agent).len(), 1);
}

#[test]
fn r70_a_failed_resend_keeps_the_old_answer() {
    let half = || Line::Breaks(words("half an "), ErrorKind::ModelRefused);
    for durability in [Durability::Exit, Durability::Step] {
        let store = memory();
        let calls = Line::calls("missing", &json!({}));
        let model = ScriptedModel::new([Line::says("one"), calls, half(), Line::says("two")]);
        let options = Options { durability, ..Options::new("helper") };
        let agent = set_up(&store, &model, options).build().unwrap();
        ask(&agent, "s1", "first").unwrap();
        let before = state(&agent);
        let failed = resend(&agent, None).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::ModelRefused);
        assert_eq!(failed.partial.unwrap().text(), "half an ");
        assert_eq!(state(&agent), before, "{durability:?}");
        assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one"]);
        // The text of the failed resend is kept on a side branch.
        let kept = branches(&agent);
        assert_eq!(kept.len(), 2);
        assert_eq!((kept[0].current, kept[1].current), (true, false));
        let history = block_on(agent.history_of(&slot("s1"), Some(&kept[1].id), None, 10));
        let roles: Vec<_> = history.unwrap().iter().map(|it| it.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
        resend(&agent, None).unwrap();
        assert_eq!(told(&agent, "s1"), ["user: first", "assistant: two"]);
    }
}

#[test]
fn r70_an_aborted_resend_keeps_the_old_answer_and_a_stopped_resend_replaces_it() {
    let hangs = || Line::Hangs(words("so"));
    for (cause, answer) in [(Cause::Aborted, "one"), (Cause::Stopped(Vec::new()), "so")] {
        let (agent, _) = agent_with(vec![Line::says("one"), hangs()]);
        ask(&agent, "s1", "first").unwrap();
        let mut call = agent.begin(resending(None)).unwrap();
        loop {
            let event = block_on(call.next()).unwrap().event;
            if matches!(event, Event::TextDelta { .. }) {
                break;
            }
        }
        let is_stop = matches!(cause, Cause::Stopped(_));
        call.cancel().ask(cause);
        let ended = block_on(call.finish());
        assert_eq!(ended.is_ok(), is_stop);
        assert!(ended.is_err() || ended.unwrap().reason == Reason::Interrupted);
        assert_eq!(told(&agent, "s1"), ["user: first".to_owned(), format!("assistant: {answer}")]);
        assert_eq!(branches(&agent).len(), 2);
    }
}

#[test]
fn r70_a_resend_is_refused_while_tools_wait_for_an_answer() {
    let spec = ToolSpec::new("outside", "done elsewhere", json!({ "type": "object" }));
    let tool = Rc::new(Meddler {
        spec: Rc::new(ToolSpec { external: true, ..spec }),
        n: RefCell::default(),
    });
    let lines = || [Line::calls("outside", &json!({})), Line::says("done")];
    let model = ScriptedModel::new(lines().into_iter().chain(lines()));
    let agent = set_up(&memory(), &model, Options::new("helper")).tool(tool as _).build().unwrap();
    assert_eq!(ask(&agent, "s1", "first").unwrap().reason, Reason::Suspended);
    assert_eq!(kind(resend(&agent, None)), ErrorKind::PendingTools);
    let switched = block_on(agent.switch_branch(&slot("s1"), "x".to_owned()));
    assert_eq!(switched.unwrap_err().kind(), ErrorKind::PendingTools);
    let answer = vec![json!({ "toolCallId": "call-1", "output": "mine" })];
    let confirm = CallRequest { messages: Vec::new(), answers: answer, ..request("s1", "") };
    block_on(agent.begin(confirm).unwrap().finish()).unwrap();
    // A resend of a turn with answers of a person starts from its question too, and asks again.
    let reply = resend(&agent, None).unwrap();
    assert_eq!((reply.reason, reply.messages.len()), (Reason::Suspended, 2));
    assert_eq!(block_on(agent.asks(&slot("s1"))).unwrap().len(), 1);
}

#[test]
fn r70_a_resent_question_closes_the_open_tool_call_again() {
    let spec = ToolSpec::new("outside", "done elsewhere", json!({ "type": "object" }));
    let tool = Rc::new(Meddler {
        spec: Rc::new(ToolSpec { external: true, ..spec }),
        n: RefCell::default(),
    });
    let calls = Line::calls("outside", &json!({}));
    let model = ScriptedModel::new([calls, Line::says("well"), Line::says("well, well")]);
    let agent = set_up(&memory(), &model, Options::new("helper")).tool(tool as _).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s1", "never mind").unwrap();
    resend(&agent, None).unwrap();
    let shown = |n: usize| {
        let of = |it: &Rc<lockgate::message::Message>| json!([it.role, it.content]);
        model.requests()[n].iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(shown(2), shown(1));
    assert_eq!(told(&agent, "s1").len(), 5);
}

#[test]
fn a_resend_with_a_used_call_id_returns_the_stored_answer() {
    let (agent, model) = agent_with(["one", "two", "three"].map(Line::says).into());
    ask(&agent, "s1", "first").unwrap();
    let named = || CallRequest { call_id: Some("again".into()), ..resending(None) };
    for _ in 0..2 {
        let reply = block_on(agent.begin(named()).unwrap().finish()).unwrap();
        assert_eq!(reply.text, "two");
    }
    assert_eq!(model.n_left(), 1);
    assert_eq!(branches(&agent).len(), 2);
    let other = CallRequest { call_id: Some("again".into()), ..resending(Some("else")) };
    let ended = block_on(agent.begin(other).unwrap().finish());
    assert_eq!(kind(ended), ErrorKind::InputInvalid);
}

#[test]
fn a_resend_stored_by_steps_is_found_under_its_call_id() {
    let model = ScriptedModel::new([
        Line::says("one"),
        Line::calls("missing", &json!({})),
        Line::says("two"),
    ]);
    let options = Options { durability: Durability::Step, ..Options::new("helper") };
    let agent = set_up(&memory(), &model, options).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    let named = || CallRequest { call_id: Some("again".into()), ..resending(None) };
    let first = block_on(agent.begin(named()).unwrap().finish()).unwrap();
    assert_eq!(told(&agent, "s1").len(), 4);
    let again = block_on(agent.begin(named()).unwrap().finish()).unwrap();
    assert_eq!(json!(first.messages), json!(again.messages));
}

#[test]
fn a_hook_that_changes_questions_changes_each_once() {
    struct Polite;
    impl Hook for Polite {
        fn name(&self) -> &str {
            "polite"
        }
        fn is_at(&self, point: Point) -> bool {
            point == Point::OnCall
        }
        fn at<'a>(&'a self, _: Point, given: &str, _: HookRun<'a>) -> Local<'a, Result<Value>> {
            let mut given: Value = serde_json::from_str(given).unwrap();
            let text = format!("please, {}", given[0]["content"][0]["text"].as_str().unwrap());
            given[0]["content"][0]["text"] = json!(text);
            Box::pin(ready(Ok(given)))
        }
    }
    let model = ScriptedModel::new(["one", "two", "three", "four"].map(Line::says));
    let agent =
        set_up(&memory(), &model, Options::new("helper")).hook(Rc::new(Polite)).build().unwrap();
    ask(&agent, "s1", "go").unwrap();
    resend(&agent, None).unwrap();
    resend(&agent, None).unwrap();
    resend(&agent, Some("stay")).unwrap();
    let last: Vec<_> = model.requests().iter().map(|it| it.last().unwrap().text()).collect();
    assert_eq!(last, ["please, go", "please, go", "please, go", "please, stay"]);
}

#[test]
fn a_message_that_stopped_an_answer_is_not_part_of_the_question() {
    let (agent, model) = agent_with(vec![Line::Hangs(words("so")), Line::says("two")]);
    let mut call = begin(&agent, "s1", "first");
    while !matches!(block_on(call.next()).unwrap().event, Event::TextDelta { .. }) {}
    call.cancel().ask(Cause::Stopped(said("no, wait")));
    block_on(call.finish()).unwrap();
    assert_eq!(told(&agent, "s1").last().unwrap(), "user: no, wait");
    resend(&agent, None).unwrap();
    assert_eq!(texts(&model.requests()[1]), ["first"]);
    // The same holds when the stopped answer was empty.
    let (agent, model) = agent_with(vec![Line::Hangs(Vec::new()), Line::says("two")]);
    let mut call = begin(&agent, "s1", "first");
    while !matches!(block_on(call.next()).unwrap().event, Event::ModelStart { .. }) {}
    call.cancel().ask(Cause::Stopped(said("no, wait")));
    block_on(call.finish()).unwrap();
    assert_eq!(told(&agent, "s1"), ["user: first", "user: no, wait"]);
    resend(&agent, None).unwrap();
    assert_eq!(texts(&model.requests()[1]), ["first"]);
}

#[test]
fn a_question_that_was_never_answered_is_answered_by_a_resend() {
    let failed = Line::fails(ErrorKind::ModelRefused);
    let (agent, model) = agent_with(vec![failed, Line::says("at last")]);
    ask(&agent, "s1", "first").unwrap_err();
    assert_eq!(resend(&agent, None).unwrap().text, "at last");
    assert_eq!(texts(&model.requests()[1]), ["first"]);
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: at last"]);
}

#[test]
fn r70_a_resend_works_in_another_process() {
    let store = memory();
    let model = ScriptedModel::new(["one", "two", "two again", "two once more"].map(Line::says));
    ask(&agent_on(&store, Rc::clone(&model) as _), "s1", "first").unwrap();
    ask(&agent_on(&store, Rc::clone(&model) as _), "s1", "second").unwrap();
    resend(&agent_on(&store, Rc::clone(&model) as _), None).unwrap();
    let last = agent_on(&store, Rc::clone(&model) as _);
    resend(&last, None).unwrap();
    assert_eq!(model.requests()[3], model.requests()[1]);
    assert_eq!(branches(&last).len(), 3);
}

#[test]
fn a_resend_whose_process_dies_adds_nothing_to_the_current_branch() {
    for durability in [Durability::Exit, Durability::Step] {
        let store = memory();
        let calls = Line::calls("missing", &json!({}));
        let hangs = Line::Hangs(words("so far "));
        let model = ScriptedModel::new([Line::says("one"), calls, hangs, Line::says("two")]);
        let options = || Options { durability, ..Options::new("helper") };
        let agent = set_up(&store, &model, options()).build().unwrap();
        ask(&agent, "s1", "first").unwrap();
        let before = state(&agent);
        let mut call = agent
            .begin(CallRequest { call_id: Some("mine".into()), ..resending(Some("first?")) })
            .unwrap();
        loop {
            let event = block_on(call.next()).unwrap().event;
            if matches!(event, Event::TextDelta { .. }) {
                break;
            }
        }
        drop((call, agent));
        let agent = set_up(&store, &model, options()).build().unwrap();
        block_on(agent.rename_session(&slot("s1"), "x".into())).unwrap();
        assert_eq!(state(&agent), before, "{durability:?}");
        assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one"]);
        // The question is kept on a branch, and its call id returns "interrupted".
        let kept = branches(&agent);
        let history = block_on(agent.history_of(&slot("s1"), Some(&kept[1].id), None, 10));
        let history = history.unwrap();
        assert_eq!(history[0].text(), "first?");
        assert!(history.last().unwrap().text().contains("cut off"));
        let named = CallRequest { call_id: Some("mine".into()), ..resending(Some("first?")) };
        let reply = block_on(agent.begin(named).unwrap().finish()).unwrap();
        assert_eq!(reply.reason, Reason::Interrupted);
        assert_eq!(resend(&agent, None).unwrap().text, "two");
        assert_eq!(told(&agent, "s1"), ["user: first", "assistant: two"]);
    }
}

#[test]
fn a_second_try_of_a_resend_that_dies_has_a_branch_of_its_own() {
    let calls = Line::calls("missing", &json!({}));
    let fails = Line::Breaks(words("so "), ErrorKind::ModelTruncated);
    let hangs = Line::Hangs(words("so far "));
    let model = ScriptedModel::new([Line::says("one"), calls, fails, hangs]);
    let options = Options { durability: Durability::Step, ..Options::new("helper") };
    let agent = set_up(&memory(), &model, options).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    let named = || CallRequest { call_id: Some("mine".into()), ..resending(Some("first?")) };
    assert!(block_on(agent.begin(named()).unwrap().finish()).is_err());
    let mut call = agent.begin(named()).unwrap();
    while !matches!(block_on(call.next()).unwrap().event, Event::TextDelta { .. }) {}
    drop(call);
    block_on(agent.rename_session(&slot("s1"), "x".into())).unwrap();
    for branch in branches(&agent) {
        let said = block_on(agent.history_of(&slot("s1"), Some(&branch.id), None, 10)).unwrap();
        let n_asked = said.iter().filter(|it| it.text().starts_with("first")).count();
        assert_eq!(n_asked, 1, "{said:?}");
    }
}

/// Two nodes without a lock: one resends while the other acts.
fn meanwhile(act: impl FnOnce(&Agent)) -> (Ended, Agent) {
    let store = memory();
    let lines = || ["one", "two", "three"].map(Line::says);
    let [ours, theirs] = [(); 2].map(|()| agent_on(&store, ScriptedModel::new(lines()) as Rc<_>));
    ask(&ours, "s1", "first").unwrap();
    let mut call = ours.begin(resending(None)).unwrap();
    while !matches!(block_on(call.next()).unwrap().event, Event::TextDelta { .. }) {}
    act(&theirs);
    (block_on(call.finish()), ours)
}

#[test]
fn a_resend_that_conflicts_with_another_turn_is_kept_as_a_side_branch() {
    let (ended, agent) = meanwhile(|theirs| drop(ask(theirs, "s1", "second").unwrap()));
    assert_eq!(kind(ended), ErrorKind::Superseded);
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: one");
    assert_eq!(told(&agent, "s1")[2], "user: second");
    let texts: Vec<_> = branches(&agent).into_iter().map(|it| (it.text, it.current)).collect();
    let cut_off = texts.iter().filter(|(text, _)| text.contains("cut off")).count();
    assert_eq!((texts.len(), cut_off), (3, 1), "{texts:?}");
    assert!(texts.contains(&("two".to_owned(), false)), "{texts:?}");
}

#[test]
fn a_resend_whose_input_another_node_recovered_does_not_replace_the_answer() {
    let rename = |theirs: &Agent| {
        block_on(theirs.rename_session(&slot("s1"), "called otherwise".into())).unwrap();
    };
    let (ended, agent) = meanwhile(rename);
    assert_eq!(kind(ended), ErrorKind::Superseded);
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one"]);
    let info = block_on(agent.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!((info.title.as_str(), info.branches), ("called otherwise", 2));
}

/// The states recorded at the start of each call.
fn before_each(seen: &Seen) -> Vec<Value> {
    seen.0.borrow().clone()
}

#[test]
fn r70_fifty_resends_begin_with_the_same_state_even_with_compaction() {
    let store = memory();
    let model = Rc::new(crate::compaction::window::Windowed::default());
    let seen = Rc::new(Seen::default());
    let by_trigger = |options: &mut Options| {
        options.persistence = Persistence::ALL;
        options.compaction.when = When::ByTrigger;
        (options.compaction.trigger_messages, options.compaction.keep_messages) = (8, 2);
    };
    let agent = crate::compaction::window::set_up(&store, &model, by_trigger)
        .tool(Meddler::new() as _)
        .hook(Rc::clone(&seen) as _)
        .build()
        .unwrap();
    // Every turn has four messages, so every third call reaches the trigger.
    for turn in 0..7 {
        model.then_calls(&format!("call-{turn}"), "meddle", &json!({}));
        ask(&agent, "s1", &format!("question {turn}: {}", "words and words ".repeat(10))).unwrap();
    }
    let n_summaries = model.condensed.borrow().len();
    assert!(n_summaries >= 2, "{n_summaries} summaries");
    let before = before_each(&seen).pop().unwrap();
    for n in 0..50 {
        model.then_calls(&format!("again-{n}"), "meddle", &json!({}));
        resend(&agent, None).unwrap();
    }
    assert!(model.condensed.borrow().len() > n_summaries + 10, "resends are compacted too");
    let begun = before_each(&seen);
    assert_eq!(begun.len(), 57);
    for (n, state) in begun[7..].iter().enumerate() {
        for (field, value) in before.as_object().unwrap() {
            assert_eq!(&state[field], value, "{field} before resend {n}");
        }
    }
    let listed = branches(&agent);
    assert_eq!(listed.len(), 51, "fifty side branches and the current one");
    assert_eq!(listed.iter().filter(|it| it.current).count(), 1);
    let of = |id: &str| {
        let history = block_on(agent.history_of(&slot("s1"), Some(id), None, 100)).unwrap();
        assert_eq!(history.len(), 28);
        lockgate::json::to_text(&history)
    };
    let histories: Vec<String> = listed.iter().map(|it| of(&it.id)).collect();
    for (n, text) in histories.iter().enumerate() {
        assert!(histories[..n].iter().all(|other| other != text), "each has its own answer");
    }
    let info = block_on(agent.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!((info.branches, info.messages), (50, 28));
    the_head_is_small(&store);
    switching_changes_nothing(&agent, &listed);
    the_head_is_small(&store);
}

/// Switches between the branches in ten rounds: each stays the same.
fn switching_changes_nothing(agent: &Agent, listed: &[Branch]) {
    let go = |id: &str| block_on(agent.switch_branch(&slot("s1"), id.to_owned())).unwrap();
    let current = listed.iter().find(|it| it.current).unwrap();
    let mut first: Vec<(String, Value, Vec<String>)> = Vec::new();
    for round in 0..10 {
        for (n, branch) in listed.iter().enumerate().filter(|(n, _)| n % 7 == round % 7) {
            go(&branch.id);
            let there = (branch.id.clone(), state(agent), told(agent, "s1"));
            match first.iter().find(|(id, ..)| *id == branch.id) {
                Some(before) => assert_eq!(*before, there, "branch {n} in round {round}"),
                None => first.push(there),
            }
        }
    }
    go(&current.id);
    assert_eq!(branches(agent), listed);
}

fn the_head_is_small(store: &Rc<dyn Store>) {
    let records = block_on(store.list("", Default::default())).unwrap();
    let (_, head) = records.iter().find(|(key, _)| key.ends_with("/head")).unwrap();
    assert!(head.value.len() <= 4_096, "{} bytes", head.value.len());
}
