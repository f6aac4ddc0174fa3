//! A hook revises the context: its messages are kept from then on, and the log stays whole.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Durability, Format, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::policy::compaction::When;
use lockgate::port::{Hook, HookRun, Point, Store, ToolSpec};
use serde_json::{Value, json};

type Revise = Box<dyn Fn(&[Rc<Message>]) -> Value>;

struct Revising(Revise);

impl Hook for Revising {
    fn name(&self) -> &str {
        "own compaction"
    }

    fn is_at(&self, point: Point) -> bool {
        point == Point::ReviseContext
    }

    fn at<'a>(&'a self, _: Point, _: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
        let answer = (self.0)(run.messages);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

struct World {
    store: Rc<dyn Store>,
    model: Rc<ScriptedModel>,
    agent: Agent,
}

impl World {
    fn new(lines: Vec<Line>, revise: impl Fn(&[Rc<Message>]) -> Value + 'static) -> World {
        World::with(lines, revise, |_| {})
    }

    fn with(
        lines: Vec<Line>,
        revise: impl Fn(&[Rc<Message>]) -> Value + 'static,
        set: impl Fn(&mut Options),
    ) -> World {
        let (store, model) = (memory(), ScriptedModel::new(lines));
        let mut options = Options::new("helper");
        options.compaction.when = When::Never;
        set(&mut options);
        let spec = ToolSpec::new("looks", "looks", json!({ "type": "object" }));
        let agent = Builder::new(options)
            .model(Rc::clone(&model) as _)
            .store(Rc::clone(&store))
            .host(Rc::new(HostHandle(TestHost::new())))
            .tool(Rc::new(Named(Rc::new(spec))))
            .hook(Rc::new(Revising(Box::new(revise))))
            .build()
            .unwrap();
        World { store, model, agent }
    }

    fn asks(&self, text: &str) {
        ask(&self.agent, "s1", text).unwrap();
    }

    fn requests(&self) -> Vec<Vec<String>> {
        self.model.requests().iter().map(|it| shorts(it)).collect()
    }

    fn context(&self) -> Vec<String> {
        let here = block_on(self.agent.state(&slot("s1"))).unwrap();
        let stored = agent_on(&self.store, ScriptedModel::new([]));
        let stored = block_on(stored.state(&slot("s1"))).unwrap();
        assert_eq!(json!(here), json!(stored));
        shorts(&stored.context)
    }

    fn undo(&self) {
        block_on(self.agent.undo_compaction(&slot("s1"))).unwrap();
    }

    fn history(&self) -> Vec<String> {
        shorts(&block_on(self.agent.history(&slot("s1"), None, 1_000)).unwrap())
    }
}

fn shorts(messages: &[Rc<Message>]) -> Vec<String> {
    let short = |message: &Rc<Message>| match message.role {
        Role::Tool => "result".to_owned(),
        _ if message.tool_uses().next().is_some() => "call".to_owned(),
        _ if message.is_summary() => format!("[{}]", message.summary()),
        _ => message.text(),
    };
    messages.iter().map(short).collect()
}

fn says<const N: usize>(texts: [&str; N]) -> Vec<Line> {
    texts.map(Line::says).into()
}

fn calls(id: &str) -> Line {
    Line::calls_all(&[(id, "looks", json!({}))])
}

fn text(role: Role, id: &str, text: &str) -> Message {
    let message = Message::draft(role, vec![Block::text(text)]);
    Message { id: id.to_owned(), at: "2026-11-19T00:00:00.000Z".to_owned(), ..message }
}

#[test]
fn a_window_over_the_last_messages_is_kept_and_undone() {
    let window = |context: &[Rc<Message>]| match context.len() > 3 {
        true => json!({ "context": &context[context.len() - 3..] }),
        false => Value::Null,
    };
    let world = World::new(says(["one", "two", "three", "four"]), window);
    ["first", "second", "third"].into_iter().for_each(|it| world.asks(it));
    let requests = world.requests();
    assert_eq!(requests[1], ["first", "one", "second"]);
    assert_eq!(requests[2], ["second", "two", "third"]);
    assert_eq!(world.context(), ["second", "two", "third", "three"]);
    assert_eq!(world.history().len(), 6, "the log is whole");
    world.asks("fourth");
    assert_eq!(world.context(), ["third", "three", "fourth", "four"]);
    // Each undo takes back one revision.
    world.undo();
    assert_eq!(world.context()[..2], ["second", "two"]);
    world.undo();
    assert_eq!(world.context(), world.history());
    world.undo();
    assert_eq!(world.context(), world.history(), "there is nothing left to undo");
}

#[test]
fn a_summary_and_a_suffix_are_kept_like_our_own_compaction() {
    let compact = |context: &[Rc<Message>]| match context.len() {
        5 => json!({ "context": &context[4..], "summary": "they talked" }),
        _ => Value::Null,
    };
    let world = World::new(says(["one", "two", "three", "four"]), compact);
    ["first", "second", "third"].into_iter().for_each(|it| world.asks(it));
    assert_eq!(world.requests()[2], ["[they talked]", "third"]);
    world.asks("fourth");
    assert_eq!(world.context()[..3], ["[they talked]", "third", "three"]);
    let state = block_on(world.agent.state(&slot("s1"))).unwrap();
    assert_eq!(state.summary, "they talked");
    let info = block_on(world.agent.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!(info.messages, 8);
    world.undo();
    assert_eq!(world.context(), world.history());
    assert_eq!(block_on(world.agent.state(&slot("s1"))).unwrap().summary, "");
}

#[test]
fn a_summary_alone_is_set_changed_and_removed() {
    let count = std::cell::Cell::new(0);
    let revise = move |_: &[Rc<Message>]| {
        count.set(count.get() + 1);
        match count.get() {
            1 | 2 => json!({ "summary": "the user is Ann" }),
            3 => json!({ "summary": "the user is Bob" }),
            4 => json!({ "summary": "" }),
            _ => Value::Null,
        }
    };
    let world = World::new(says(["1", "2", "3", "4", "5"]), revise);
    ["q1", "q2", "q3", "q4", "q5"].into_iter().for_each(|it| world.asks(it));
    let requests = world.requests();
    assert_eq!(requests[0], ["[the user is Ann]", "q1"]);
    assert_eq!(requests[1], ["[the user is Ann]", "q1", "1", "q2"]);
    assert_eq!(requests[2][0], "[the user is Bob]");
    assert_eq!(requests[3][..2], ["q1", "1"]);
    assert_eq!(world.context(), world.history());
}

#[test]
fn new_changed_and_kept_messages_stand_where_the_hook_puts_them() {
    let revise = |context: &[Rc<Message>]| {
        if context.len() != 5 {
            return Value::Null;
        }
        let note = json!(text(Role::User, "note", "a note"));
        let changed = json!(text(Role::Assistant, &context[1].id, "one, in short"));
        json!({ "context": [context[0], changed, note, context[3], context[4]] })
    };
    let world = World::new(says(["one", "two", "three", "four"]), revise);
    ["first", "second", "third"].into_iter().for_each(|it| world.asks(it));
    let shown = ["first", "one, in short", "a note", "two", "third"];
    assert_eq!(world.requests()[2], shown);
    world.asks("fourth");
    assert_eq!(world.context()[..5], shown);
    assert_eq!(world.history()[..4], ["first", "one", "second", "two"]);
    // A fork before the revision has the messages as they were said.
    let ids: Vec<String> = block_on(world.agent.history(&slot("s1"), None, 10))
        .unwrap()
        .iter()
        .map(|it| it.id.clone())
        .collect();
    let fork = world.agent.fork(&slot("s1"), &slot("s2"), Some(ids[3].clone()));
    block_on(fork).unwrap();
    let fork = block_on(world.agent.state(&slot("s2"))).unwrap();
    assert_eq!(shorts(&fork.context), ["first", "one", "second", "two"]);
    let from = Some(ids[4].clone());
    let again = CallRequest { messages: Vec::new(), resends: true, from, ..request("s1", "") };
    world.model.add([Line::says("three again")]);
    block_on(world.agent.begin(again).unwrap().finish()).unwrap();
    assert_eq!(world.requests()[4], shown, "the resend is revised again");
    world.undo();
    assert_eq!(world.context(), world.history());
}

#[test]
fn a_turn_may_be_revised_between_its_tool_calls() {
    // The question and the results of the running turn leave the context too.
    let last_step = |context: &[Rc<Message>]| match context.len() > 2 {
        true => json!({ "context": &context[context.len() - 2..], "summary": "so far" }),
        false => Value::Null,
    };
    for durability in [Durability::Exit, Durability::Step] {
        let lines =
            vec![calls("c1"), calls("c2"), calls("c3"), Line::says("done"), Line::says("and more")];
        let world = World::with(lines, last_step, |options| options.durability = durability);
        let reply = ask(&world.agent, "s1", "do it").unwrap();
        let all = ["do it", "call", "result", "call", "result", "call", "result", "done"];
        assert_eq!(shorts(&reply.messages), all);
        assert_eq!(world.requests()[3], ["[so far]", "call", "result"]);
        assert_eq!(world.context(), ["[so far]", "call", "result", "done"]);
        assert_eq!(world.history(), all);
        world.asks("more");
        assert_eq!(world.context(), ["[so far]", "done", "more", "and more"]);
        (0..4).for_each(|_| world.undo());
        assert_eq!(world.context(), world.history());
    }
}

#[test]
fn an_invalid_answer_fails_the_call_with_the_name_of_the_hook() {
    let wrong: Vec<(&str, Revise)> = vec![
        ("a result", Box::new(|it| json!({ "context": &it[..it.len() - 1] }))),
        ("the tool call", Box::new(|it| json!({ "context": &it[it.len() - 1..] }))),
        ("different ids", Box::new(|it| json!({ "context": [it[0], it[0]] }))),
        (
            "user, assistant",
            Box::new(
                |_| json!({ "context": [{ "id": "x", "role": "robot", "content": [], "at": "" }] }),
            ),
        ),
        ("a list", Box::new(|_| json!({ "context": "all" }))),
        ("a string", Box::new(|_| json!({ "summary": 7 }))),
        ("at least one message", Box::new(|_| json!({ "context": [] }))),
    ];
    for (expected, revise) in wrong {
        let after_tools = move |it: &[Rc<Message>]| match it.len() {
            3 => revise(it),
            _ => Value::Null,
        };
        let world = World::new(vec![calls("c1"), Line::says("never")], after_tools);
        let failed = ask(&world.agent, "s1", "do it").unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::Middleware, "{expected}");
        let message = failed.error.message();
        assert!(message.contains("own compaction") && message.contains(expected), "{message}");
        assert_eq!(world.context(), ["do it", "call", "result"], "nothing has changed");
    }
}

#[test]
fn our_own_compaction_works_beside_a_hook() {
    let drop_note = |context: &[Rc<Message>]| {
        let kept: Vec<_> = context.iter().filter(|it| !it.text().contains("junk")).collect();
        json!({ "context": kept })
    };
    let long = "word ".repeat(60);
    let mut lines = vec![Line::says("junk"), Line::says(&long)];
    lines.extend(says(["the summary", "three", "four", "junk", "six"]));
    let world = World::with(lines, drop_note, |options| {
        options.compaction.when = When::ByTrigger;
        (options.compaction.trigger_messages, options.compaction.keep_messages) = (4, 2);
    });
    world.asks(&format!("{long}1"));
    world.asks(&format!("{long}2"));
    world.asks("third");
    assert_eq!(world.requests().last().unwrap()[0], "[the summary]");
    for question in ["fourth", "fifth"] {
        world.model.add([Line::says("more")]);
        world.asks(question);
        world.context();
    }
    let history = world.history();
    assert_eq!(history.iter().filter(|it| it.contains("junk")).count(), 2);
    assert!(!world.requests().last().unwrap().iter().any(|it| it == "junk"));
    (0..8).for_each(|_| world.undo());
    assert_eq!(world.context(), history, "everything can be undone");
}

#[test]
fn a_rejected_turn_leaves_also_a_revised_context() {
    let window = |context: &[Rc<Message>]| match context.len() > 3 {
        true => json!({ "context": &context[context.len() - 3..] }),
        false => Value::Null,
    };
    let mut lines = says(["one", "two"]);
    lines.push(Line::fails(ErrorKind::ModelBadRequest));
    lines.extend(says(["four"]));
    let world = World::new(lines, window);
    world.asks("first");
    world.asks("second");
    ask(&world.agent, "s1", "poison").unwrap_err();
    world.asks("fourth");
    assert_eq!(world.requests()[3], ["second", "two", "fourth"]);
    assert_eq!(world.context(), ["second", "two", "fourth", "four"]);
}

#[test]
fn a_rejected_question_stays_out_when_the_revision_of_its_last_try_is_undone() {
    let note = |context: &[Rc<Message>]| match context {
        [_, _, asked, part] => {
            json!({ "context": [json!(text(Role::User, "note", "a note")), json!(asked), json!(part)] })
        }
        _ => Value::Null,
    };
    let mut lines = says(["one"]);
    lines.push(Line::Breaks(words("half an ans"), ErrorKind::ModelNetwork));
    lines.push(Line::fails(ErrorKind::ModelBadRequest));
    lines.extend(says(["three"]));
    let world = World::with(lines, note, |options| options.retries.attempts = 1);
    world.asks("first");
    for _ in 0..2 {
        let call = CallRequest { call_id: Some("a".into()), ..request("s1", "poison") };
        block_on(world.agent.begin(call).unwrap().finish()).unwrap_err();
    }
    assert_eq!(world.requests()[2], ["a note", "poison", "half an ans"]);
    assert_eq!(world.context(), ["a note"]);
    world.undo();
    assert_eq!(world.context(), ["first", "one"]);
    world.asks("third");
    assert_eq!(world.requests()[3], ["first", "one", "third"]);
    assert!(world.history().contains(&"poison".to_owned()));
}

#[test]
fn our_own_compaction_may_cut_between_messages_of_a_revision() {
    let shorten = |context: &[Rc<Message>]| {
        let shorter = |it: &Rc<Message>| match it.text().starts_with("long") {
            true => json!(text(it.role, &it.id, &it.text()["long ".len()..])),
            false => json!(it),
        };
        json!({ "context": context.iter().map(shorter).collect::<Vec<_>>() })
    };
    let long = |n: u32| format!("long {} {n}", "word ".repeat(60));
    let mut lines: Vec<Line> = (0..4).map(|n| Line::says(&long(n))).collect();
    lines.push(Line::says("the summary"));
    let world = World::with(lines, shorten, |options| options.compaction.keep_messages = 3);
    (10..14).for_each(|n| world.asks(&long(n)));
    let before = world.context();
    block_on(world.agent.compact(&slot("s1"))).unwrap();
    let after = world.context();
    assert_eq!(after[0], "[the summary]");
    assert!(before.ends_with(&after[1..]) && after.len() > 2, "{after:?}");
    world.undo();
    assert_eq!(world.context(), before);
    (0..6).for_each(|_| world.undo());
    assert_eq!(world.context(), world.history());
}

#[test]
fn a_summary_that_is_put_over_a_revision_is_undone_without_showing_a_message_twice() {
    let revise = |messages: &[Rc<Message>]| match messages {
        [.., last] if messages.len() == 5 => json!({ "context": [last], "summary": "they talked" }),
        _ => Value::Null,
    };
    let world = World::new(says(["one", "two", "three", "four"]), revise);
    ["a", "b", "c", "d"].iter().for_each(|text| world.asks(text));
    assert_eq!(world.context(), ["[they talked]", "c", "three", "d", "four"]);
    let mut state = json!(block_on(world.agent.state(&slot("s1"))).unwrap());
    state["summary"] = "put by hand".into();
    block_on(world.agent.put_state(&slot("s1"), &state).unwrap()).unwrap();
    assert_eq!(world.context(), ["[put by hand]", "c", "three", "d", "four"]);
    world.undo();
    assert_eq!(world.context(), ["a", "one", "b", "two", "c", "three", "d", "four"]);
    assert_eq!(world.history(), world.context());
}

#[test]
fn a_revised_session_moves_whole_through_a_document_and_its_revision_is_undone_there() {
    let revise = |messages: &[Rc<Message>]| match messages {
        [first, .., last] if messages.len() == 5 && !first.is_summary() => {
            json!({ "context": [text(Role::User, "note", "a note"), (**last).clone()], "summary": "they talked" })
        }
        _ => Value::Null,
    };
    let world = World::new(says(["one", "two", "three", "four"]), revise);
    ["a", "b", "c", "d"].iter().for_each(|text| world.asks(text));
    let revised = world.context();
    assert_eq!(revised[..3], ["[they talked]", "a note", "c"]);
    let export = |session: &str| {
        block_on(world.agent.export_session(&slot(session), Format::Lockgate)).unwrap()
    };
    let copy = slot("copy");
    let other = agent_on(&world.store, ScriptedModel::new([]));
    block_on(other.import_session(&copy, &export("s1")).unwrap()).unwrap();
    assert_eq!(export("copy").replace("\"copy\"", "\"s1\""), export("s1"));
    let context = || shorts(&block_on(other.state(&copy)).unwrap().context);
    assert_eq!(context(), revised);
    block_on(other.undo_compaction(&copy)).unwrap();
    world.undo();
    assert_eq!(context(), world.context());
    assert_eq!(context(), world.history());
}
