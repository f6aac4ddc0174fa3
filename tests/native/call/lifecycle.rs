//! The life of a call, from its place in the queue to its saved outcome.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Call, CallRequest, Cause};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::message::{Block, Role};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Page, Tool, ToolRun, ToolSpec};
use serde_json::{Value, json};

/// A tool that answers with its input, fails, or hangs.
struct Echo(Rc<ToolSpec>, Rc<Cell<u32>>);

impl Echo {
    fn new(name: &str, parallel: bool) -> Rc<Echo> {
        Echo::build(name, parallel, json!({ "type": "object" }))
    }

    fn with_schema(name: &str, schema: &Value) -> Rc<Echo> {
        Echo::build(name, true, schema.clone())
    }

    fn build(name: &str, parallel: bool, input_schema: Value) -> Rc<Echo> {
        let (name, description) = (name.to_owned(), "echoes".to_owned());
        let spec = ToolSpec {
            parallel,
            timeout_ms: Some(1_000),
            ..ToolSpec::new(name, description, input_schema)
        };
        Rc::new(Echo(Rc::new(spec), Rc::default()))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        self.1.set(self.1.get() + 1);
        match run.input.get("do").and_then(|it| it.as_str()) {
            Some("fail") => Box::pin(async { Err(Error::new(ErrorKind::Internal, "it broke")) }),
            Some("hang") => Box::pin(std::future::pending()),
            Some("wait") => Box::pin(async {
                yield_once().await;
                Ok(vec![Block::text("waited")])
            }),
            _ => Box::pin(async { Ok(vec![Block::text(run.input.to_string())]) }),
        }
    }
}

fn names(call: &mut Call) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(event) = block_on(call.next()) {
        names.push(json!(event)["type"].as_str().unwrap().to_owned());
    }
    names
}

#[test]
fn an_answer_is_saved_and_can_be_read_back() {
    let agent = agent(ScriptedModel::new([Line::says("Hello Alice.")]));
    let reply = ask(&agent, "s1", "Hello?").unwrap();
    assert_eq!((reply.reason, reply.text.as_str()), (Reason::Stop, "Hello Alice."));
    assert_eq!(told(&agent, "s1"), ["user: hello?", "assistant: hello alice."]);
}

#[test]
fn events_come_in_order() {
    let agent = agent(ScriptedModel::new([Line::says("a b")]));
    let events = names(&mut begin(&agent, "s1", "Hello?"));
    let expected = "call-start accepted model-start text-start text-delta text-delta text-end model-end saved call-end";
    assert_eq!(events.join(" "), expected);
}

#[test]
fn the_input_is_stored_before_the_model_is_asked() {
    let model = ScriptedModel::new([Line::Hangs(Vec::new())]);
    let agent = agent(Rc::clone(&model) as _);
    let mut call = begin(&agent, "s1", "Hello?");
    let mut seen = Vec::new();
    while let std::task::Poll::Ready(Some(event)) = poll_once(&mut Box::pin(call.next())) {
        seen.push((json!(event)["type"].clone(), model.requests().len()));
    }
    let accepted = seen.iter().find(|(name, _)| name == "accepted");
    assert!(accepted.is_some() && model.requests().len() == 1);
    assert_eq!(block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap().len(), 1);
}

#[test]
fn r2_each_call_of_a_session_sees_the_calls_before_it() {
    let model = ScriptedModel::new((0..5).map(|n| Line::says(&format!("answer {n}"))));
    let agent = agent(Rc::clone(&model) as _);
    let mut calls: Vec<_> = (0..5).map(|n| begin(&agent, "s1", &format!("question {n}"))).collect();
    let mut last = begin(&agent, "s1", "never mind");
    block_on(last.next());
    assert!(matches!(block_on(last.next()).unwrap().event, Event::Queued { ahead: 5 }));
    drop(last);
    calls.iter_mut().for_each(|call| drop(block_on(call.finish()).unwrap()));
    let seen: Vec<_> = model.requests().iter().map(Vec::len).collect();
    assert_eq!(seen, [1, 3, 5, 7, 9]);
    assert_eq!(agent.n_busy(), 0);
}

/// A call that is stopped while it waits.
fn begin_and_stop(agent: &Agent) -> Call {
    let call = begin(agent, "s1", "never mind");
    call.cancel().ask(Cause::Stopped(Vec::new()));
    call
}

#[test]
fn g_02_r4_a_call_stopped_while_it_waits_stores_nothing_and_blocks_no_other_call() {
    let agent = agent(ScriptedModel::new([Line::says("one"), Line::says("two")]));
    let (mut first, mut stopped, mut third) =
        (begin(&agent, "s1", "first"), begin_and_stop(&agent), begin(&agent, "s1", "third"));
    assert_eq!(block_on(stopped.finish()).unwrap().reason, Reason::Interrupted);
    assert!(poll_once(&mut Box::pin(third.finish())).is_pending());
    block_on(first.finish()).unwrap();
    block_on(third.finish()).unwrap();
    assert_eq!(
        told(&agent, "s1"),
        ["user: first", "assistant: one", "user: third", "assistant: two"]
    );
}

#[test]
fn r3_a_failing_call_does_not_block_the_next_and_keeps_its_question() {
    let agent = agent(ScriptedModel::new([Line::fails(ErrorKind::ModelAuth), Line::says("fine")]));
    let failed = ask(&agent, "s1", "first").unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::ModelAuth);
    ask(&agent, "s1", "second").unwrap();
    assert_eq!(told(&agent, "s1"), ["user: first", "user: second", "assistant: fine"]);
}

#[test]
fn a_model_that_fails_midway_leaves_its_text_in_the_log() {
    let agent =
        agent(ScriptedModel::new([Line::Breaks(words("so far "), ErrorKind::ModelNetwork)]));
    let failed = ask(&agent, "s1", "hello").unwrap_err();
    assert_eq!(failed.partial.unwrap().text(), "so far ");
    assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: so far "]);
}

#[test]
fn a_passing_failure_before_the_first_word_is_tried_again() {
    let host = TestHost::new();
    let model =
        ScriptedModel::new([Line::fails(ErrorKind::ModelOverloaded), Line::says("at last")]);
    let agent =
        builder_on(&memory(), model).host(Rc::new(HostHandle(Rc::clone(&host)))).build().unwrap();
    let mut call = begin(&agent, "s1", "hello");
    let mut events = Vec::new();
    while let std::task::Poll::Ready(Some(event)) = poll_once(&mut Box::pin(call.next())) {
        events.push(event.event);
    }
    assert!(events.iter().any(|event| matches!(event, Event::Retry { attempt: 2, .. })));
    host.pass(30_000.0);
    assert_eq!(block_on(call.finish()).unwrap().text, "at last");
}

#[test]
fn r23_a_stopped_answer_keeps_its_text_and_the_users_next_message() {
    let agent = agent(ScriptedModel::new([Line::Hangs(words("one two ")), Line::says("ok")]));
    let mut call = begin(&agent, "s1", "count");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    call.cancel().ask(Cause::Stopped(said("stop, please")));
    let reply = block_on(call.finish()).unwrap();
    assert_eq!((reply.reason, reply.text.as_str()), (Reason::Interrupted, "one two "));
    assert_eq!(told(&agent, "s1"), ["user: count", "assistant: one two ", "user: stop, please"]);
}

#[test]
fn g_03_an_aborted_call_rejects_and_is_saved() {
    let agent = agent(ScriptedModel::new([Line::Hangs(words("one "))]));
    let mut call = begin(&agent, "s1", "count");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    call.cancel().ask(Cause::Aborted);
    let failed = block_on(call.finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Aborted);
    assert_eq!(failed.partial.unwrap().text(), "one ");
    assert_eq!(told(&agent, "s1"), ["user: count", "assistant: one "]);
}

#[test]
fn tools_run_and_their_results_go_back() {
    let model = ScriptedModel::new([Line::calls("echo", &json!({ "a": 1 })), Line::says("done")]);
    let agent = builder_on(&memory(), Rc::clone(&model) as _)
        .tool(Echo::new("echo", true))
        .build()
        .unwrap();
    let reply = ask(&agent, "s1", "go").unwrap();
    let roles: Vec<_> = reply.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(model.requests()[1].len(), 3);
}

#[test]
fn t_03_t_08_r33_every_failure_in_a_tool_becomes_a_result() {
    let calls = [
        ("a", "echo", json!({ "do": "fail" })),
        ("b", "nobody", json!({})),
        ("c", "constructor", json!({})),
        ("d", "echo", json!({})),
    ];
    let model = ScriptedModel::new([Line::calls_all(&calls), Line::says("done")]);
    let agent = builder_on(&memory(), model).tool(Echo::new("echo", true)).build().unwrap();
    let reply = ask(&agent, "s1", "go").unwrap();
    let results =
        reply.messages.iter().flat_map(|message| &message.content).filter_map(
            |block| match block {
                Block::ToolResult(result) => {
                    Some(format!("{} {}", result.id, json!(result.state).as_str().unwrap()))
                }
                _ => None,
            },
        );
    assert_eq!(results.collect::<Vec<_>>(), ["a error", "b error", "c error", "d success"]);
}

#[test]
fn t_04_a_tool_does_not_run_with_invalid_arguments_and_the_model_is_told() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = Echo::with_schema("echo", &schema);
    let lines = [Line::calls("echo", &json!({ "n": "five" })), Line::says("sorry")];
    let agent = builder_on(&memory(), ScriptedModel::new(lines))
        .tool(Rc::clone(&tool) as _)
        .build()
        .unwrap();
    let reply = ask(&agent, "s1", "go").unwrap();
    let text = serde_json::to_string(&reply.messages).unwrap();
    assert!(text.contains("n: ") && text.contains("\"error\"") && tool.1.get() == 0, "{text}");
}

#[test]
fn r34_null_for_an_optional_property_counts_as_absent() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let lines = [Line::calls("echo", &json!({ "n": null })), Line::says("fine")];
    let builder =
        builder_on(&memory(), ScriptedModel::new(lines)).tool(Echo::with_schema("echo", &schema));
    let reply = ask(&builder.build().unwrap(), "s1", "go").unwrap();
    assert!(serde_json::to_string(&reply.messages).unwrap().contains("\"success\""));
}

#[test]
fn a_warning_names_the_unchecked_parts_of_a_schema_once() {
    let schema = json!({ "type": "object", "unevaluatedProperties": false });
    let builder = builder_on(&memory(), ScriptedModel::new([Line::says("a"), Line::says("b")]));
    let agent = builder.tool(Echo::with_schema("echo", &schema)).build().unwrap();
    let warned = |call: &mut Call| names(call).iter().filter(|name| *name == "warning").count();
    assert_eq!(warned(&mut begin(&agent, "s1", "one")), 1);
    assert_eq!(warned(&mut begin(&agent, "s1", "two")), 0);
}

#[test]
fn g_04_t_06_a_tool_that_hangs_is_stopped_at_its_deadline() {
    let host = TestHost::new();
    let model = ScriptedModel::new([
        Line::calls("echo", &json!({ "do": "hang" })),
        Line::says("never mind"),
    ]);
    let builder = builder_on(&memory(), model).tool(Echo::new("echo", true));
    let agent = builder.host(Rc::new(HostHandle(Rc::clone(&host)))).build().unwrap();
    let mut call = begin(&agent, "s1", "go");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    host.pass(1_000.0);
    assert_eq!(block_on(call.finish()).unwrap().text, "never mind");
}

#[test]
fn t_13_r5_r22_a_call_stopped_in_a_tool_leaves_no_open_call() {
    let calls = [("a", "echo", json!({})), ("b", "echo", json!({ "do": "hang" }))];
    let agent =
        builder_on(&memory(), ScriptedModel::new([Line::calls_all(&calls), Line::says("next")]))
            .tool(Echo::new("echo", true))
            .build()
            .unwrap();
    let mut call = begin(&agent, "s1", "go");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    call.cancel().ask(Cause::Stopped(Vec::new()));
    assert_eq!(block_on(call.finish()).unwrap().reason, Reason::Interrupted);
    let state = block_on(agent.state(&slot("s1"))).unwrap();
    let text = serde_json::to_string(&state.context).unwrap();
    assert_eq!(
        (text.matches("tool_result").count(), text.matches("\"interrupted\"").count()),
        (2, 1)
    );
    assert!(!text.contains("\"pending\""));
    assert_eq!(ask(&agent, "s1", "again").unwrap().text, "next");
}

#[test]
fn r32_tools_that_are_not_parallel_run_alone() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let calls = [
        ("a", "par", json!({ "do": "wait" })),
        ("b", "par", json!({ "do": "wait" })),
        ("c", "solo", json!({ "do": "wait" })),
        ("d", "par", json!({ "do": "wait" })),
    ];
    let agent =
        builder_on(&memory(), ScriptedModel::new([Line::calls_all(&calls), Line::says("done")]))
            .tool(Echo::new("par", true))
            .tool(Echo::new("solo", false))
            .build()
            .unwrap();
    let mut call = begin(&agent, "s1", "go");
    while let Some(event) = block_on(call.next()) {
        match event.event {
            Event::ToolStart { tool_call_id, .. } => {
                seen.borrow_mut().push(format!("+{tool_call_id}"))
            }
            Event::ToolEnd { tool_call_id, .. } => {
                seen.borrow_mut().push(format!("-{tool_call_id}"))
            }
            _ => {}
        }
    }
    assert_eq!(seen.borrow().join(" "), "+a +b -a -b +c -c +d -d");
}

#[test]
fn a_repeated_call_id_is_answered_from_the_log() {
    let model = ScriptedModel::new([Line::says("once")]);
    let agent = agent(Rc::clone(&model) as _);
    let named = |text: &str| CallRequest { call_id: Some("c1".into()), ..request("s1", text) };
    let first = block_on(agent.begin(named("hello")).unwrap().finish()).unwrap();
    let again = block_on(agent.begin(named("hello")).unwrap().finish()).unwrap();
    assert_eq!(
        (first.text.as_str(), again.text.as_str(), model.requests().len()),
        ("once", "once", 1)
    );
    let other = block_on(agent.begin(named("something else")).unwrap().finish()).unwrap_err();
    assert_eq!(other.error.kind(), ErrorKind::InputInvalid);
}

#[test]
fn t_09_an_input_whose_call_died_is_in_the_log_after_the_next_call() {
    let store = memory();
    let dead = agent_on(&store, ScriptedModel::new([Line::Hangs(words("half an ans"))]));
    let mut call = begin(&dead, "s1", "are you there?");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    drop((call, dead));
    let alive = agent_on(&store, ScriptedModel::new([Line::says("I am")]));
    ask(&alive, "s1", "hello?").unwrap();
    let told = told(&alive, "s1");
    assert_eq!(
        (told[0].as_str(), told[2].as_str(), told[3].as_str()),
        ("user: are you there?", "user: hello?", "assistant: i am")
    );
    assert!(told[1].contains("cut off"));
}

#[test]
fn a_deleted_session_is_gone_and_a_running_call_does_not_bring_it_back() {
    let agent = agent(ScriptedModel::new([Line::Hangs(words("one ")), Line::says("fresh")]));
    let mut call = begin(&agent, "s1", "count");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    let slot = slot("s1");
    let mut delete = Box::pin(agent.delete_session(&slot));
    assert!(poll_once(&mut delete).is_pending());
    assert_eq!(block_on(call.finish()).unwrap_err().error.kind(), ErrorKind::NoSuchSession);
    block_on(delete).unwrap();
    assert!(told(&agent, "s1").is_empty());
    assert!(block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap().is_empty());
    ask(&agent, "s1", "hello").unwrap();
    assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: fresh"]);
}

#[test]
fn g_06_too_many_waiting_calls_are_refused() {
    let mut options = lockgate::engine::Options::new("helper");
    options.queue_limit = 2;
    let agent = lockgate::engine::Builder::new(options)
        .model(ScriptedModel::new([]))
        .store(memory())
        .host(Rc::new(HostHandle(TestHost::new())))
        .build()
        .unwrap();
    let _three: Vec<_> = (0..3).map(|_| begin(&agent, "s1", "hi")).collect();
    let refused = agent.begin(request("s1", "hi")).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(agent.begin(request("s2", "hi")).is_ok());
}

#[test]
fn r34_null_for_a_required_property_is_refused_with_its_path() {
    let schema = json!({
        "type": "object",
        "properties": { "place": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] } },
        "required": ["place"],
    });
    let echo = Echo::with_schema("echo", &schema);
    let calls = Line::calls("echo", &json!({ "place": { "city": null } }));
    let model = ScriptedModel::new([calls, Line::says("sorry")]);
    let agent = builder_on(&memory(), model).tool(Rc::clone(&echo) as _).build().unwrap();
    let reply = ask(&agent, "s1", "where?").unwrap();
    let Block::ToolResult(result) = &reply.messages[2].content[0] else { panic!("no result") };
    let text = Block::text_of(&result.output);
    assert!(text.contains("place.city"), "{text}");
    assert_eq!(echo.1.get(), 0, "the tool must not run");
}
