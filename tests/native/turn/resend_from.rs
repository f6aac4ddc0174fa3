//! Resend of an earlier question: it is answered again from the state before it, and everything after it stays as a branch.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Durability, Ended, Options, Overlap};
use lockgate::engine::{Call, Cause, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::policy::compaction::When;
use lockgate::port::{Batch, Capabilities, Committed, Page, Record};
use lockgate::port::{Opinion, OwnDecision, Store, Tool, ToolRun, ToolSpec};
use lockgate::state::{Persistence, Task, TaskState};
use serde_json::{Value, json};

/// A tool that adds a task. It asks a person first if that is its name.
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
            let id = (facts.tasks_context.tasks.len() + 1).to_string();
            let (subject, state) = (format!("task {id}"), TaskState::Pending);
            let task = Task { id, subject, state, priority: None, rest: Default::default() };
            facts.tasks_context.tasks.push(task);
        });
        Box::pin(async {
            yield_once().await;
            Ok(vec![Block::text("added")])
        })
    }
}

struct World {
    store: Rc<dyn Store>,
    model: Rc<ScriptedModel>,
    agent: Agent,
}

impl World {
    fn new(lines: Vec<Line>) -> World {
        World::with(lines, |_| {})
    }

    fn with(lines: Vec<Line>, set: impl Fn(&mut Options)) -> World {
        let (store, model) = (memory(), ScriptedModel::new(lines));
        let agent = agent_on_with(&store, &model, set);
        World { store, model, agent }
    }

    fn asks(&self, text: &str) -> Ended {
        ask(&self.agent, "s1", text)
    }

    /// The id of the question with this text.
    fn id(&self, text: &str) -> String {
        let found = self.history().into_iter().find(|it| it.is_question() && it.text() == text);
        found.unwrap().id.clone()
    }

    fn history(&self) -> Vec<Rc<Message>> {
        block_on(self.agent.history(&slot("s1"), None, 1_000)).unwrap()
    }

    fn from(&self, text: &str) -> Ended {
        let call = resending(&self.id(text), None);
        block_on(self.agent.begin(call).unwrap().finish())
    }

    fn last_request(&self) -> Vec<String> {
        shorts(self.model.requests().last().unwrap())
    }

    fn state(&self) -> Value {
        let here = json!(block_on(self.agent.state(&slot("s1"))).unwrap());
        let stored = agent_on(&self.store, ScriptedModel::new([]));
        assert_eq!(here, json!(block_on(stored.state(&slot("s1"))).unwrap()));
        here
    }

    fn tasks(&self) -> usize {
        self.state()["tasks_context"]["tasks"].as_array().unwrap().len()
    }

    fn info(&self) -> (u64, u64) {
        let info = block_on(self.agent.session(&slot("s1"))).unwrap().unwrap();
        (info.messages, info.branches)
    }

    fn switch_back(&self) {
        let branches = block_on(self.agent.branches(&slot("s1"))).unwrap();
        let other = branches.iter().find(|branch| !branch.current).unwrap();
        block_on(self.agent.switch_branch(&slot("s1"), other.id.clone())).unwrap();
    }
}

fn agent_on_with(
    store: &Rc<dyn Store>,
    model: &Rc<ScriptedModel>,
    set: impl Fn(&mut Options),
) -> Agent {
    let mut options = Options::new("helper");
    options.compaction.when = When::Never;
    options.retries.attempts = 1;
    set(&mut options);
    let mut builder = Builder::new(options).model(Rc::clone(model) as _);
    builder = builder.store(Rc::clone(store)).host(Rc::new(HostHandle(TestHost::new())));
    for name in ["asks", "adds"] {
        builder = builder.tool(Rc::new(Adds(ToolSpec::new(name, "adds", json!({})).into())));
    }
    builder.build().unwrap()
}

fn resending(from: &str, text: Option<&str>) -> CallRequest {
    let messages = text.map(said).unwrap_or_default();
    let from = Some(from.to_owned());
    CallRequest { messages, resends: true, from, ..request("s1", "") }
}

fn shorts<T: std::borrow::Borrow<Message>>(messages: &[T]) -> Vec<String> {
    let short = |message: &Message| match message.role {
        Role::Tool => "result".to_owned(),
        _ if message.tool_uses().next().is_some() => "call".to_owned(),
        _ => message.text(),
    };
    messages.iter().map(|message| short(message.borrow())).collect()
}

fn kind(ended: Ended) -> ErrorKind {
    ended.unwrap_err().error.kind()
}

fn says<const N: usize>(texts: [&str; N]) -> Vec<Line> {
    texts.map(Line::says).into()
}

fn adds() -> Line {
    Line::calls_all(&[("c1", "adds", json!({}))])
}

#[test]
fn an_earlier_question_is_answered_again_from_the_state_before_it() {
    let world = World::new(says(["one", "two", "three", "two again", "four"]));
    let texts = ["first", "second", "third"];
    texts.iter().for_each(|text| drop(world.asks(text).unwrap()));
    let (old, asked) = (shorts(&world.history()), world.id("second"));
    assert_eq!(world.from("second").unwrap().text, "two again");
    let requests = world.model.requests();
    assert_eq!(requests[3], requests[1], "the model gets the same request again");
    assert_eq!(shorts(&world.history()), ["first", "one", "second", "two again"]);
    assert_eq!(world.id("second"), asked, "the question keeps its id");
    assert_eq!(world.info(), (4, 1));
    world.asks("fourth").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second", "two again", "fourth"]);
    world.state();
    world.switch_back();
    assert_eq!(shorts(&world.history()), old, "everything after it is a branch");
}

#[test]
fn the_first_and_the_last_question_can_be_chosen_and_replaced() {
    let world = World::new(says(["one", "two", "two b", "one b", "one c"]));
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    world.from("second").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second"]);
    let edited = resending(&world.id("first"), Some("first, please"));
    block_on(world.agent.begin(edited).unwrap().finish()).unwrap();
    assert_eq!(world.last_request(), ["first, please"]);
    // A resend without an id repeats the question that was answered last.
    let again = CallRequest { from: None, ..resending("", None) };
    block_on(world.agent.begin(again).unwrap().finish()).unwrap();
    assert_eq!(world.last_request(), ["first, please"]);
    assert_eq!(shorts(&world.history()), ["first, please", "one c"]);
    assert_eq!(world.info(), (2, 3));
}

#[test]
fn an_unknown_id_and_an_id_of_another_message_are_refused_with_a_hint() {
    let world = World::new(says(["one", "two", "one b"]));
    let early = block_on(world.agent.begin(resending("x", None)).unwrap().finish());
    assert_eq!(kind(early), ErrorKind::InputInvalid);
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    let gone = world.id("second");
    world.from("first").unwrap();
    let answer = world.history()[1].id.clone();
    for id in ["", "unknown", &answer, &gone] {
        let failed = block_on(world.agent.begin(resending(id, None)).unwrap().finish());
        let error = failed.unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::InputInvalid, "{id}");
        assert!(error.hint_text().unwrap().contains("history(slot)"));
    }
    assert_eq!(world.info(), (2, 1), "nothing is stored");
}

#[test]
fn a_failed_resend_of_an_earlier_question_is_a_side_branch() {
    for durability in [Durability::Exit, Durability::Step] {
        let mut lines = says(["one", "two"]);
        lines.extend([adds(), Line::fails(ErrorKind::ModelFailed)]);
        let world = World::with(lines, |options| options.durability = durability);
        world.asks("first").unwrap();
        world.asks("second").unwrap();
        let before = world.state();
        assert_eq!(kind(world.from("first")), ErrorKind::ModelFailed);
        assert_eq!(world.state()["context"], before["context"]);
        assert_eq!(world.tasks(), 0);
        assert_eq!(world.info(), (4, 1));
        world.switch_back();
        assert_eq!(shorts(&world.history())[..2], ["first", "call"]);
    }
}

#[test]
fn the_fields_before_an_earlier_question_come_back() {
    for durability in [Durability::Exit, Durability::Step] {
        // The second and the third question add a task.
        let mut lines = says(["one"]);
        lines.extend([adds(), Line::says("two"), adds(), Line::says("three")]);
        lines.extend(says(["four", "five", "four b", "three b", "two b", "one b"]));
        let world = World::with(lines, |options| options.durability = durability);
        let texts = ["first", "second", "third", "fourth", "fifth"];
        texts.iter().for_each(|text| drop(world.asks(text).unwrap()));
        assert_eq!(world.tasks(), 2);
        for (text, n) in [("fourth", 2), ("third", 1), ("second", 0), ("first", 0)] {
            world.from(text).unwrap();
            assert_eq!(world.tasks(), n, "before {text}");
        }
    }
}

#[test]
fn fields_that_were_changed_by_hand_between_questions_come_back_too() {
    let world = World::new(says(["one", "two", "three", "two b", "one b"]));
    let plan = |world: &World| world.state()["plan_mode_context"]["plan_active"] == true;
    let put = |on: bool| {
        let mut put = world.state();
        put["plan_mode_context"]["plan_active"] = json!(on);
        block_on(world.agent.put_state(&slot("s1"), &put).unwrap()).unwrap();
    };
    world.asks("first").unwrap();
    put(true);
    world.asks("second").unwrap();
    put(false);
    world.asks("third").unwrap();
    world.from("second").unwrap();
    assert!(plan(&world));
    world.from("first").unwrap();
    assert!(!plan(&world));
}

#[test]
fn fields_that_belong_to_the_session_stay() {
    let world = World::with(says(["one", "two", "one b"]), |options| {
        options.persistence = Persistence::default();
    });
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    let mut put = world.state();
    put["permission_context"]["mode"] = json!("bypass");
    block_on(world.agent.put_state(&slot("s1"), &put).unwrap()).unwrap();
    world.from("first").unwrap();
    assert_eq!(world.state()["permission_context"]["mode"], "bypass");
}

#[test]
fn a_question_inside_a_summarised_span_is_answered_from_the_log() {
    let long = |n: usize| format!("question {n} {}", "word ".repeat(100));
    let mut lines: Vec<Line> = (0..6).map(|n| Line::says(&format!("answer {n}"))).collect();
    lines.extend(says(["a summary", "answer 6", "another summary", "again", "again"]));
    let world = World::with(lines, |options| options.compaction.keep_messages = 2);
    (0..6).for_each(|n| drop(world.asks(&long(n)).unwrap()));
    block_on(world.agent.compact(&slot("s1"))).unwrap();
    world.asks(&long(6)).unwrap();
    block_on(world.agent.compact(&slot("s1"))).unwrap();
    assert!(!world.state()["summary"].as_str().unwrap().is_empty());
    world.from(&long(2)).unwrap();
    let requests = world.model.requests();
    assert_eq!(requests.last(), requests.get(2), "the same request as then");
    assert_eq!(world.state()["summary"], "");
    assert_eq!(world.history().len(), 6);
    world.switch_back();
    assert!(!world.state()["summary"].as_str().unwrap().is_empty());
    assert_eq!(world.history().len(), 14);
    world.from(&long(6)).unwrap();
    let requests = world.model.requests();
    assert_eq!(requests.last(), requests.get(7), "with the first summary in place");
}

#[test]
fn a_question_in_the_middle_of_an_entry_keeps_what_stands_before_it() {
    let world = World::new(says(["again", "and again", "other"]));
    let talk =
        [(Role::User, "u1"), (Role::Assistant, "a1"), (Role::User, "u2"), (Role::Assistant, "a2")];
    let message = |(role, text)| Message::draft(role, vec![Block::text(text)]);
    let talk: Vec<Message> = talk.into_iter().map(message).collect();
    block_on(world.agent.append(&slot("s1"), talk)).unwrap();
    world.from("u2").unwrap();
    assert_eq!(world.last_request(), ["u1", "a1", "u2"]);
    assert_eq!(shorts(&world.history()), ["u1", "a1", "u2", "again"]);
    assert_eq!(world.info(), (4, 1));
    world.state();
    let again = CallRequest { from: None, ..resending("", None) };
    block_on(world.agent.begin(again).unwrap().finish()).unwrap();
    assert_eq!(world.last_request(), ["u1", "a1", "u2"]);
    world.from("u1").unwrap();
    assert_eq!(world.last_request(), ["u1"]);
    assert_eq!(shorts(&world.history()), ["u1", "other"]);
    world.switch_back();
    assert_eq!(shorts(&world.history()), ["u1", "a1", "u2", "a2"]);
}

#[test]
fn a_question_that_joined_a_turn_can_be_answered_again() {
    let mut lines = vec![adds()];
    lines.extend(says(["both", "the second again", "the first again"]));
    let world = World::new(lines);
    let mut call = begin(&world.agent, "s1", "first");
    until(&mut call, "tool-start");
    let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "and this") };
    let mut joined = world.agent.begin(joins).unwrap();
    block_on(call.finish()).unwrap();
    block_on(joined.finish()).unwrap();
    world.from("and this").unwrap();
    assert_eq!(world.last_request(), ["first", "call", "result", "and this"]);
    world.from("first").unwrap();
    assert_eq!(world.last_request(), ["first"]);
}

#[test]
fn messages_that_joined_or_stopped_a_turn_are_not_part_of_its_question() {
    let mut lines = vec![Line::Hangs(Vec::new())];
    lines.extend(says(["alone", "joined", "alone again"]));
    let world = World::new(lines);
    let mut call = begin(&world.agent, "s1", "first");
    let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "and this") };
    let mut joined = world.agent.begin(joins).unwrap();
    until(&mut call, "model-start");
    call.cancel().ask(Cause::Stopped(said("no, wait")));
    block_on(call.finish()).unwrap();
    block_on(joined.finish()).unwrap();
    assert_eq!(shorts(&world.history()), ["first", "and this", "no, wait"]);
    world.from("first").unwrap();
    assert_eq!(shorts(&world.history()), ["first", "alone"]);
    assert_eq!(world.last_request(), ["first"]);
    world.switch_back();
    assert_eq!(shorts(&world.history()), ["first", "and this", "no, wait"]);
    world.from("and this").unwrap();
    assert_eq!(world.last_request(), ["first", "and this", "no, wait"]);
    // The question is the same in the copy of what stood before the other.
    world.from("first").unwrap();
    assert_eq!(world.last_request(), ["first"]);
}

fn until(call: &mut Call, wanted: &str) {
    while let Some(event) = block_on(call.next()) {
        if json!(event)["type"] == wanted {
            return;
        }
    }
}

#[test]
fn a_question_that_closed_an_approval_leaves_it_closed() {
    let mut lines = vec![Line::calls_all(&[("c1", "asks", json!({}))])];
    lines.extend(says(["two", "two b"]));
    let world = World::new(lines);
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    world.from("second").unwrap();
    assert_eq!(world.last_request(), ["first", "call", "result", "second"]);
    let requests = world.model.requests();
    assert_eq!(requests[2], requests[1]);
    assert!(block_on(world.agent.asks(&slot("s1"))).unwrap().is_empty());
    world.state();
}

#[test]
fn open_tool_calls_must_be_answered_before_an_earlier_question() {
    let mut lines = says(["one"]);
    lines.push(Line::calls_all(&[("c1", "asks", json!({}))]));
    let world = World::new(lines);
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    assert_eq!(kind(world.from("first")), ErrorKind::PendingTools);
}

#[test]
fn a_rejected_question_and_a_question_before_clear_can_be_chosen() {
    let mut lines = says(["one"]);
    lines.push(Line::fails(ErrorKind::ModelBadRequest));
    lines.extend(says(["three", "two", "four", "two b", "one b"]));
    let world = World::new(lines);
    world.asks("first").unwrap();
    world.asks("second").unwrap_err();
    world.asks("third").unwrap();
    world.from("second").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second"]);
    block_on(world.agent.clear_context(&slot("s1"))).unwrap();
    world.asks("fourth").unwrap();
    assert_eq!(world.last_request(), ["fourth"]);
    world.from("second").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second"]);
    world.state();
    block_on(world.agent.clear_context(&slot("s1"))).unwrap();
    world.from("first").unwrap();
    assert_eq!(world.last_request(), ["first"]);
    world.state();
}

#[test]
fn a_crashed_resend_of_an_earlier_question_becomes_a_branch() {
    for (durability, n) in [(Durability::Exit, 4), (Durability::Step, 6)] {
        let store = memory();
        let mut lines = vec![adds(), Line::Hangs(Vec::new())];
        lines.extend(says(["next"]));
        let model = ScriptedModel::new(lines);
        let set = |options: &mut Options| options.durability = durability;
        let agent = agent_on_with(&store, &model, set);
        let talk = ["u1", "a1", "u2", "a2"].iter().enumerate().map(|(n, text)| {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            Message::draft(role, vec![Block::text(*text)])
        });
        let talk: Vec<Message> = talk.collect();
        let put = block_on(agent.append(&slot("s1"), talk)).unwrap();
        let mut call = agent.begin(resending(&put[2].id, None)).unwrap();
        until(&mut call, "tool-end");
        until(&mut call, "model-start");
        let open = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
        assert_eq!(shorts(&open)[..3], ["u1", "a1", "u2"], "a reader sees the path of the resend");
        drop((call, agent));
        let world = World { agent: agent_on_with(&store, &model, set), store, model };
        world.asks("next question").unwrap();
        assert_eq!(world.last_request(), ["u1", "a1", "u2", "a2", "next question"]);
        world.switch_back();
        let branch = shorts(&world.history());
        assert_eq!(branch[..3], ["u1", "a1", "u2"], "{branch:?}");
        assert_eq!(branch.len(), n, "{branch:?}");
    }
}

/// A store in which another process deletes the session and begins it again, while a crashed resend is recovered.
struct Deleting {
    inner: Rc<dyn Store>,
    other: RefCell<Option<Agent>>,
    has_found_input: Cell<bool>,
}

impl Store for Deleting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            let found = self.inner.list(prefix, page).await?;
            if prefix.contains("/log/")
                && self.has_found_input.get()
                && let Some(other) = self.other.take()
            {
                block_on(other.delete_session(&slot("s1")))?;
                ask(&other, "s1", "anew").unwrap();
            }
            let is_input = prefix.contains("/input/") && !found.is_empty();
            self.has_found_input.set(self.has_found_input.get() || is_input);
            Ok(found)
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        self.inner.commit(batch)
    }
}

#[test]
fn a_session_that_is_deleted_while_a_crashed_resend_is_recovered_is_read_again() {
    let mut lines = says(["one", "two"]);
    lines.push(Line::Hangs(Vec::new()));
    lines.extend(says(["new", "next"]));
    let world = World::new(lines);
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    let mut call = world.agent.begin(resending(&world.id("second"), None)).unwrap();
    until(&mut call, "model-start");
    let World { store, model, agent } = world;
    drop((call, agent));
    let other = RefCell::new(Some(agent_on_with(&store, &model, |_| {})));
    let deleting = Deleting { inner: store, other, has_found_input: Cell::new(false) };
    let store: Rc<dyn Store> = Rc::new(deleting);
    let world = World { agent: agent_on_with(&store, &model, |_| {}), store, model };
    world.asks("next question").unwrap();
    assert_eq!(world.last_request(), ["anew", "new", "next question"]);
}

#[test]
fn without_a_persistent_conversation_an_earlier_question_is_asked_again_at_the_end() {
    let world = World::with(says(["one", "two", "one b"]), |options| {
        options.persistence = Persistence { conversation: false, ..Persistence::default() };
    });
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    world.from("first").unwrap();
    assert_eq!(world.last_request(), ["first"]);
    assert_eq!(shorts(&world.history())[2..], ["second", "two", "first", "one b"]);
}

#[test]
fn a_stopped_resend_of_an_earlier_question_keeps_both_paths() {
    let mut lines = says(["one", "two"]);
    lines.push(Line::Hangs(Vec::new()));
    let world = World::new(lines);
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    let mut call = world.agent.begin(resending(&world.id("first"), None)).unwrap();
    until(&mut call, "model-start");
    call.cancel().ask(Cause::Aborted);
    assert_eq!(kind(block_on(call.finish())), ErrorKind::Aborted);
    assert_eq!(shorts(&world.history()), ["first", "one", "second", "two"]);
    let context = RuntimeContext::new("alice", "s1").from("nothing");
    let mut call = world.agent.resend(None, context).unwrap();
    assert_eq!(kind(block_on(call.finish())), ErrorKind::InputInvalid);
}
