//! Turns that the provider rejects for their content: they stay in the history, and out of later requests.

use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Call, CallRequest, Cause, Durability, Ended};
use lockgate::engine::{Options, Overlap, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::Event;
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::policy::compaction::When;
use lockgate::policy::rejection::{AskedFor, Rejected, rejected};
use lockgate::port::{Batch, Opinion, OwnDecision, Page, Store, Tool, ToolRun, ToolSpec};
use lockgate::state::Persistence;
use serde_json::json;

const REJECTIONS: [ErrorKind; 3] =
    [ErrorKind::ModelBadRequest, ErrorKind::ModelRefused, ErrorKind::ModelContextOverflow];

/// A tool that asks a person, if that is its name.
struct Asking(Rc<ToolSpec>);

impl Tool for Asking {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own =
            if self.0.name == "asks" { OwnDecision::Ask("why".into()) } else { OwnDecision::Pass };
        Box::pin(ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async {
            yield_once().await;
            Ok(vec![Block::text("poison")])
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
        let mut options = Options::new("helper");
        options.compaction.when = When::Never;
        options.retries.attempts = 1;
        set(&mut options);
        let mut builder = Builder::new(options).model(Rc::clone(&model) as _);
        builder = builder.store(Rc::clone(&store)).host(Rc::new(HostHandle(TestHost::new())));
        for name in ["asks", "looks"] {
            let spec = ToolSpec::new(name, "does it", json!({}));
            builder = builder.tool(Rc::new(Asking(spec.into())));
        }
        World { store, model, agent: builder.build().unwrap() }
    }

    fn asks(&self, text: &str) -> Ended {
        ask(&self.agent, "s1", text)
    }

    /// The last request that the model got, in short.
    fn last_request(&self) -> Vec<String> {
        shorts(self.model.requests().last().unwrap())
    }

    /// The context in the cache and in the store. They are the same.
    fn context(&self) -> Vec<String> {
        let here = block_on(self.agent.state(&slot("s1"))).unwrap().context;
        let stored = agent_on(&self.store, ScriptedModel::new([]));
        let stored = block_on(stored.state(&slot("s1"))).unwrap().context;
        assert_eq!(here, stored);
        shorts(&stored)
    }

    fn turns(&self) -> Vec<String> {
        let history = block_on(self.agent.history(&slot("s1"), None, 100)).unwrap();
        let questions = history.iter().filter(|it| it.is_question());
        questions.map(|it| format!("{}: {}", it.text(), it.turn().unwrap_or("done"))).collect()
    }

    fn confirms(&self) -> Ended {
        let answers = json!([{ "toolCallId": "c1", "approve": true }]);
        let context = RuntimeContext::new("alice", "s1");
        let mut call = self.agent.confirm(answers.as_array().unwrap().clone(), context)?;
        block_on(call.finish())
    }
}

fn short(message: &Message) -> String {
    let blocks = message.content.iter().map(|block| match block {
        Block::ToolUse(call) => format!("call {}", call.id),
        Block::ToolResult(result) => format!("{} = {}", result.id, Block::text_of(&result.output)),
        _ => message.text(),
    });
    blocks.collect::<Vec<_>>().join(", ")
}

fn shorts<T: std::borrow::Borrow<Message>>(messages: &[T]) -> Vec<String> {
    messages.iter().map(|message| short(message.borrow())).collect()
}

fn kind(ended: Ended) -> ErrorKind {
    ended.unwrap_err().error.kind()
}

fn calls(tool: &str) -> Line {
    Line::calls_all(&[("c1", tool, json!({}))])
}

#[test]
fn a_question_that_the_provider_rejects_is_left_out_of_later_requests() {
    for code in REJECTIONS {
        let world = World::new(vec![
            Line::says("one"),
            Line::fails(code),
            Line::says("three"),
            Line::fails(code),
            Line::fails(code),
            Line::says("six"),
        ]);
        world.asks("first").unwrap();
        assert_eq!(kind(world.asks("poison")), code);
        assert_eq!(world.context(), ["first", "one"]);
        world.asks("third").unwrap();
        assert_eq!(world.last_request(), ["first", "one", "third"]);
        world.asks("poison 2").unwrap_err();
        world.asks("poison 3").unwrap_err();
        world.asks("sixth").unwrap();
        assert_eq!(world.last_request(), ["first", "one", "third", "three", "sixth"]);
        let turns = world.turns();
        assert_eq!(turns[..2], ["first: done", "poison: failed"]);
        assert_eq!(turns[3..], ["poison 2: failed", "poison 3: failed", "sixth: done"]);
        let info = block_on(world.agent.session(&slot("s1"))).unwrap().unwrap();
        assert_eq!((info.messages, info.interrupted), (9, false));
    }
}

#[test]
fn the_first_question_of_a_session_may_be_rejected() {
    let world = World::new(vec![Line::fails(REJECTIONS[0]), Line::says("two")]);
    world.asks("poison").unwrap_err();
    assert_eq!(world.context(), [""; 0]);
    world.asks("second").unwrap();
    assert_eq!(world.last_request(), ["second"]);
    assert_eq!(world.context(), ["second", "two"]);
}

#[test]
fn a_question_that_failed_for_another_reason_stays_in_later_requests() {
    for code in [ErrorKind::ModelNetwork, ErrorKind::ModelAuth, ErrorKind::ModelFailed] {
        let lines = vec![Line::fails(code), Line::fails(REJECTIONS[0]), Line::says("three")];
        let world = World::new(lines);
        world.asks("first").unwrap_err();
        world.asks("poison").unwrap_err();
        world.asks("third").unwrap();
        assert_eq!(world.last_request(), ["first", "third"]);
        assert_eq!(world.turns(), ["first: failed", "poison: failed", "third: done"]);
    }
}

#[test]
fn a_rejected_turn_leaves_with_its_tool_calls_and_results() {
    for durability in [Durability::Exit, Durability::Step] {
        let lines = vec![
            Line::says("one"),
            calls("looks"),
            Line::fails(ErrorKind::ModelBadRequest),
            Line::says("three"),
        ];
        let world = World::with(lines, |options| options.durability = durability);
        world.asks("first").unwrap();
        world.asks("look").unwrap_err();
        assert_eq!(world.context(), ["first", "one"]);
        world.asks("third").unwrap();
        assert_eq!(world.last_request(), ["first", "one", "third"]);
        let history = block_on(world.agent.history(&slot("s1"), None, 100)).unwrap();
        let logged = ["first", "one", "look", "call c1", "c1 = poison", "third", "three"];
        assert_eq!(shorts(&history), logged, "the log is whole");
    }
}

#[test]
fn the_question_that_a_person_was_asked_about_stays_and_the_rejected_results_are_hidden() {
    for durability in [Durability::Exit, Durability::Step] {
        let lines = vec![
            calls("asks"),
            Line::calls_all(&[("c2", "looks", json!({}))]),
            Line::fails(ErrorKind::ModelBadRequest),
            Line::says("three"),
        ];
        let world = World::with(lines, |options| options.durability = durability);
        world.asks("first").unwrap();
        world.confirms().unwrap_err();
        assert!(block_on(world.agent.asks(&slot("s1"))).unwrap().is_empty());
        world.asks("third").unwrap();
        let hidden =
            "c1 = [This result is not shown: the provider rejected a request that contained it.]";
        assert_eq!(world.last_request(), ["first", "call c1", hidden, "third"]);
        assert_eq!(world.context(), ["first", "call c1", hidden, "third", "three"]);
        let history = shorts(&block_on(world.agent.history(&slot("s1"), None, 100)).unwrap());
        assert_eq!(history[1..5], ["call c1", "c1 = poison", "call c2", "c2 = poison"]);
    }
}

#[test]
fn a_rejected_question_leaves_the_tool_calls_closed_that_it_has_closed() {
    for durability in [Durability::Exit, Durability::Step] {
        let lines = vec![
            calls("asks"),
            Line::calls_all(&[("c2", "looks", json!({}))]),
            Line::fails(ErrorKind::ModelRefused),
            Line::says("three"),
        ];
        let world = World::with(lines, |options| options.durability = durability);
        world.asks("first").unwrap();
        world.asks("poison").unwrap_err();
        assert!(block_on(world.agent.asks(&slot("s1"))).unwrap().is_empty());
        world.asks("third").unwrap();
        let request = world.last_request();
        assert_eq!((request.len(), &*request[1], &*request[3]), (4, "call c1", "third"));
        assert!(request[2].starts_with("c1 = This call was not allowed"), "{request:?}");
    }
}

#[test]
fn a_resend_answers_the_rejected_question_from_the_state_before_it() {
    let world = World::new(vec![
        Line::says("one"),
        Line::fails(ErrorKind::ModelBadRequest),
        Line::fails(ErrorKind::ModelBadRequest),
        Line::says("two"),
        Line::says("three"),
    ]);
    world.asks("first").unwrap();
    world.asks("poison").unwrap_err();
    let resend = |text: &str| {
        let messages = if text.is_empty() { Vec::new() } else { said(text) };
        let again = CallRequest { messages, resends: true, ..request("s1", "") };
        block_on(world.agent.begin(again).unwrap().finish())
    };
    resend("").unwrap_err();
    assert_eq!(world.last_request(), ["first", "one", "poison"]);
    resend("second").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second"]);
    world.asks("third").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second", "two", "third"]);
    // Each failed try is a branch without the rejected question in its context.
    for branch in block_on(world.agent.branches(&slot("s1"))).unwrap() {
        block_on(world.agent.switch_branch(&slot("s1"), branch.id)).unwrap();
        assert!(!world.context().contains(&"poison".to_owned()));
    }
}

#[test]
fn a_rejected_question_cannot_be_resumed_and_a_rejected_resume_leaves_the_question_out() {
    let resume = |world: &World| {
        let again = CallRequest { messages: Vec::new(), ..request("s1", "") };
        block_on(world.agent.begin(again).unwrap().finish())
    };
    let world = World::new(vec![Line::says("one"), Line::fails(ErrorKind::ModelRefused)]);
    world.asks("first").unwrap();
    world.asks("poison").unwrap_err();
    assert_eq!(kind(resume(&world)), ErrorKind::InputInvalid);

    let lines = vec![
        Line::says("one"),
        Line::Hangs(Vec::new()),
        Line::fails(ErrorKind::ModelRefused),
        Line::says("three"),
    ];
    let world = World::new(lines);
    world.asks("first").unwrap();
    let mut call = begin(&world.agent, "s1", "poison");
    until(&mut call, "model-start");
    call.cancel().ask(Cause::Aborted);
    block_on(call.finish()).unwrap_err();
    assert_eq!(kind(resume(&world)), ErrorKind::ModelRefused);
    assert_eq!(world.context(), ["first", "one"]);
    world.asks("third").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "third"]);
}

fn until(call: &mut Call, wanted: &str) {
    while let Some(event) = block_on(call.next()) {
        if json!(event)["type"] == wanted {
            return;
        }
    }
}

#[test]
fn a_retried_call_asks_its_question_again_and_a_rejected_call_keeps_its_outcome() {
    let lines = vec![
        Line::fails(ErrorKind::ModelNetwork),
        Line::fails(ErrorKind::ModelBadRequest),
        Line::says("other"),
    ];
    let world = World::new(lines);
    let named = || {
        let call = CallRequest { call_id: Some("a".into()), ..request("s1", "poison") };
        block_on(world.agent.begin(call).unwrap().finish())
    };
    assert_eq!(kind(named()), ErrorKind::ModelNetwork);
    assert_eq!(kind(named()), ErrorKind::ModelBadRequest);
    assert_eq!(world.last_request(), ["poison"], "the retry has its input again");
    assert_eq!(kind(named()), ErrorKind::ModelBadRequest, "the outcome is stored");
    assert_eq!(world.model.requests().len(), 2);
    world.asks("other question").unwrap();
    assert_eq!(world.last_request(), ["other question"]);
}

#[test]
fn a_call_that_joined_a_rejected_turn_is_left_out_with_it() {
    let lines =
        vec![calls("looks"), Line::fails(ErrorKind::ModelBadRequest), Line::says("third answer")];
    let world = World::new(lines);
    let mut call = begin(&world.agent, "s1", "look");
    let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "and poison") };
    until(&mut call, "tool-start");
    let mut joined = world.agent.begin(joins).unwrap();
    block_on(call.finish()).unwrap_err();
    assert_eq!(kind(block_on(joined.finish())), ErrorKind::ModelBadRequest);
    world.asks("third").unwrap();
    assert_eq!(world.last_request(), ["third"]);
    assert_eq!(world.turns(), ["look: failed", "and poison: failed", "third: done"]);
}

#[test]
fn compaction_its_undo_and_appended_messages_keep_a_rejected_question_out() {
    let mut lines = vec![Line::says("one"), Line::fails(ErrorKind::ModelBadRequest)];
    lines.extend(["three", "four", "the summary"].map(Line::says));
    let world = World::with(lines, |options| options.compaction.keep_messages = 2);
    let long = |text: &str| format!("{text} {}", "word ".repeat(200));
    world.asks(&long("first")).unwrap();
    world.asks("poison").unwrap_err();
    let appended = block_on(world.agent.append(&slot("s1"), said("by hand"))).unwrap();
    assert_eq!(appended.len(), 1);
    world.asks(&long("third")).unwrap();
    world.asks("fourth").unwrap();
    let before = world.context();
    assert_eq!(before.len(), 7);
    block_on(world.agent.compact(&slot("s1"))).unwrap();
    assert_eq!(world.context().len(), 3);
    block_on(world.agent.undo_compaction(&slot("s1"))).unwrap();
    assert_eq!(world.context(), before);
    assert!(!before.contains(&"poison".to_owned()));
}

#[test]
fn a_question_that_does_not_fit_takes_its_summary_with_it() {
    let overflows = || Line::fails(ErrorKind::ModelContextOverflow);
    let lines = vec![
        Line::says("one"),
        overflows(),
        Line::says("the summary"),
        overflows(),
        overflows(),
        Line::says("three"),
    ];
    let world = World::with(lines, |options| options.compaction.when = When::OnOverflow);
    let long = "word ".repeat(400);
    world.asks(&long).unwrap();
    world.asks("poison").unwrap_err();
    assert_eq!(world.context(), [&*long, "one"], "nothing was gained, so nothing is summarised");
    world.asks("third").unwrap();
    assert_eq!(world.last_request(), [&*long, "one", "third"]);
}

#[test]
fn a_turn_that_is_not_kept_stays_out_of_the_context_of_a_turn_that_asks() {
    let lines = vec![Line::says("one"), calls("asks"), Line::says("two")];
    let world = World::with(lines, |options| {
        options.persistence = Persistence { conversation: false, ..Persistence::ALL };
    });
    world.asks("first").unwrap();
    world.asks("second").unwrap();
    assert_eq!(world.context(), ["second", "call c1"]);
    world.confirms().unwrap();
    assert_eq!(world.context(), [""; 0]);
}

#[test]
fn a_rejected_turn_is_cut_between_results_and_the_question() {
    let message = |role, text: &str| Rc::new(Message::draft(role, vec![Block::text(text)]));
    let asked = [
        message(Role::User, "q1"),
        message(Role::Assistant, "a1"),
        message(Role::Tool, "closed"),
        message(Role::User, "q2"),
        message(Role::Assistant, "a2"),
    ];
    let all = |start, hidden| Rejected { start, hidden };
    assert_eq!(rejected(&asked, 2, AskedFor::Question), all(3, 3..3));
    assert_eq!(rejected(&asked, 5, AskedFor::EarlierQuestion), all(3, 3..3));
    assert_eq!(rejected(&asked[..3], 2, AskedFor::Answers), all(3, 2..3));
    assert_eq!(rejected(&[], 0, AskedFor::EarlierQuestion), all(0, 0..0));
}

#[test]
fn a_repeated_call_leaves_with_the_partial_answer_that_it_had_before() {
    let world = World::new(vec![
        Line::says("one"),
        Line::Breaks(words("half an ans"), ErrorKind::ModelNetwork),
        Line::fails(ErrorKind::ModelBadRequest),
        Line::says("three"),
        Line::fails(ErrorKind::ModelNetwork),
        Line::says("five"),
        Line::fails(ErrorKind::ModelBadRequest),
    ]);
    let named = |text: &str| {
        let call = CallRequest { call_id: Some(text.into()), ..request("s1", text) };
        block_on(world.agent.begin(call).unwrap().finish())
    };
    world.asks("first").unwrap();
    named("poison").unwrap_err();
    named("poison").unwrap_err();
    assert_eq!(world.last_request(), ["first", "one", "poison", "half an ans"]);
    world.asks("third").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "third"]);
    // A turn that was answered in between stays.
    named("late").unwrap_err();
    world.asks("fifth").unwrap();
    named("late").unwrap_err();
    assert_eq!(world.context(), ["first", "one", "third", "three", "late", "fifth", "five"]);
}

#[test]
fn the_event_of_a_rejected_question_says_that_it_was_saved() {
    let world = World::new(vec![Line::Breaks(words("par"), ErrorKind::ModelRefused)]);
    let mut call = begin(&world.agent, "s1", "poison");
    let mut n_saved = 0;
    while let Some(event) = block_on(call.next()) {
        n_saved += usize::from(matches!(event.event, Event::Saved { .. }));
    }
    assert_eq!(n_saved, 1);
    assert_eq!(told(&world.agent, "s1"), ["user: poison", "assistant: par"]);
    assert_eq!(world.context(), [""; 0]);
}

#[test]
fn a_repeated_call_leaves_with_all_questions_of_its_turn() {
    for durability in [Durability::Exit, Durability::Step] {
        let world = World::with(
            vec![
                Line::says("one"),
                calls("looks"),
                Line::Breaks(words("half an ans"), ErrorKind::ModelNetwork),
                Line::fails(ErrorKind::ModelBadRequest),
                Line::says("three"),
            ],
            |options| options.durability = durability,
        );
        world.asks("first").unwrap();
        let named = || CallRequest { call_id: Some("a".into()), ..request("s1", "poison") };
        let mut call = world.agent.begin(named()).unwrap();
        until(&mut call, "tool-start");
        let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "joined") };
        let mut joined = world.agent.begin(joins).unwrap();
        block_on(call.finish()).unwrap_err();
        block_on(joined.finish()).unwrap_err();
        block_on(world.agent.begin(named()).unwrap().finish()).unwrap_err();
        let asked = ["first", "one", "poison", "call c1", "c1 = poison", "joined", "half an ans"];
        assert_eq!(world.last_request(), asked);
        assert_eq!(world.context(), ["first", "one"]);
        world.asks("third").unwrap();
        assert_eq!(world.last_request(), ["first", "one", "third"]);
    }
}

/// Worlds in each of which a provider has rejected a turn in another way.
fn rejected_worlds(durability: Durability) -> Vec<World> {
    let rejects = || Line::fails(ErrorKind::ModelBadRequest);
    let breaks = || Line::Breaks(words("half an ans"), ErrorKind::ModelNetwork);
    let world = |mut lines: Vec<Line>| {
        lines.extend(["the last answer", "the last answer again"].map(Line::says));
        World::with(lines, |options| options.durability = durability)
    };
    let named = |world: &World, text: &str| {
        let call = CallRequest { call_id: Some(text.into()), ..request("s1", text) };
        block_on(world.agent.begin(call).unwrap().finish())
    };
    let begin_with = |lines: Vec<Line>| {
        let mut all = vec![Line::says("one")];
        all.extend(lines);
        let world = world(all);
        world.asks("first").unwrap();
        world
    };
    let question = begin_with(vec![rejects(), rejects()]);
    question.asks("poison").unwrap_err();
    question.asks("poison 2").unwrap_err();

    let tools = begin_with(vec![calls("looks"), rejects()]);
    tools.asks("poison").unwrap_err();

    let results = begin_with(vec![calls("asks"), calls("looks"), rejects()]);
    results.asks("second").unwrap();
    results.confirms().unwrap_err();

    let closing = begin_with(vec![calls("asks"), rejects()]);
    closing.asks("second").unwrap();
    closing.asks("poison").unwrap_err();

    let repeated = begin_with(vec![breaks(), rejects()]);
    named(&repeated, "poison").unwrap_err();
    named(&repeated, "poison").unwrap_err();

    let passed = begin_with(vec![breaks(), Line::says("three"), rejects()]);
    named(&passed, "second").unwrap_err();
    passed.asks("third").unwrap();
    named(&passed, "second").unwrap_err();

    let joined = begin_with(vec![breaks(), calls("looks"), rejects()]);
    named(&joined, "poison").unwrap_err();
    let call = CallRequest { call_id: Some("poison".into()), ..request("s1", "poison") };
    let mut call = joined.agent.begin(call).unwrap();
    until(&mut call, "tool-start");
    let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "joined poison") };
    let mut other = joined.agent.begin(joins).unwrap();
    block_on(call.finish()).unwrap_err();
    block_on(other.finish()).unwrap_err();

    let late = begin_with(vec![calls("looks"), breaks(), rejects()]);
    let call = || CallRequest { call_id: Some("poison".into()), ..request("s1", "poison") };
    let mut first = late.agent.begin(call()).unwrap();
    until(&mut first, "tool-start");
    let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "joined poison") };
    let mut other = late.agent.begin(joins).unwrap();
    block_on(first.finish()).unwrap_err();
    block_on(other.finish()).unwrap_err();
    block_on(late.agent.begin(call()).unwrap().finish()).unwrap_err();

    let resumed = begin_with(vec![Line::Hangs(Vec::new()), rejects()]);
    let mut call = begin(&resumed.agent, "s1", "poison");
    until(&mut call, "model-start");
    call.cancel().ask(Cause::Aborted);
    block_on(call.finish()).unwrap_err();
    let resume = CallRequest { messages: Vec::new(), ..request("s1", "") };
    block_on(resumed.agent.begin(resume).unwrap().finish()).unwrap_err();
    vec![question, tools, results, closing, repeated, passed, joined, late, resumed]
}

#[test]
fn what_was_rejected_stays_out_when_a_view_is_made_anew_from_the_log() {
    for durability in [Durability::Exit, Durability::Step] {
        for (number, world) in rejected_worlds(durability).into_iter().enumerate() {
            world.asks("last").unwrap();
            let (request, context) = (world.last_request(), world.context());
            let history = block_on(world.agent.history(&slot("s1"), None, 100)).unwrap();
            let last = history.iter().find(|it| it.text() == "last").unwrap().id.clone();

            block_on(world.agent.fork(&slot("s1"), &slot("s2"), Some(last.clone()))).unwrap();
            let forked = block_on(world.agent.state(&slot("s2"))).unwrap().context;
            assert_eq!(shorts(&forked), request, "a fork of {number}");

            let listed = block_on(world.store.list("", Page::default())).unwrap();
            let head = listed.into_iter().find(|(key, _)| key.ends_with("slot/t.s1/head")).unwrap();
            let put = vec![(head.0, b"{".to_vec())];
            let broken = Batch { revision: "x.9.x".into(), put, ..Batch::default() };
            block_on(world.store.commit(&broken)).unwrap();
            block_on(world.agent.repair_session(&slot("s1"))).unwrap();
            assert_eq!(world.context(), context, "a repair of {number}");

            block_on(world.agent.clear_context(&slot("s1"))).unwrap();
            let again =
                CallRequest { messages: Vec::new(), resends: true, ..self::request("s1", "") };
            let again = CallRequest { from: Some(last), ..again };
            block_on(world.agent.begin(again).unwrap().finish()).unwrap();
            assert_eq!(world.last_request(), request, "a resend in {number} after a clear");
            world.context();
        }
    }
}

#[test]
fn a_fork_up_to_a_rejected_message_shows_what_was_there_before_it() {
    let world = World::new(vec![
        Line::says("one"),
        calls("looks"),
        Line::fails(ErrorKind::ModelBadRequest),
        Line::says("three"),
        Line::says("two"),
    ]);
    world.asks("first").unwrap();
    world.asks("poison").unwrap_err();
    world.asks("third").unwrap();
    let history = block_on(world.agent.history(&slot("s1"), None, 100)).unwrap();
    for (number, message) in history[2..4].iter().enumerate() {
        let to = format!("fork-{number}");
        block_on(world.agent.fork(&slot("s1"), &slot(&to), Some(message.id.clone()))).unwrap();
        let forked = block_on(world.agent.state(&slot(&to))).unwrap().context;
        assert_eq!(shorts(&forked), ["first", "one"]);
        assert!(told(&world.agent, &to).contains(&"user: poison".to_owned()));
    }
    ask(&world.agent, "fork-1", "second").unwrap();
    assert_eq!(world.last_request(), ["first", "one", "second"]);
}
