//! What is seen of a session while a call runs, and after a call was cut off or has failed.

use std::future::ready;
use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use lockgate::agentscope::import;
use lockgate::engine::{
    Agent, Call, CallRequest, Cause, Durability, Format, Options, Overlap, RuntimeContext,
};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Opinion, OwnDecision, Page, Store, Tool, ToolRun, ToolSpec};
use lockgate::store::format::session_info::SessionInfo;
use serde_json::json;

/// A call that is accepted and has half an answer.
fn talking(agent: &Agent, text: &str) -> Call {
    started(begin(agent, "s1", text))
}

/// Runs a call until it waits.
fn started(mut call: Call) -> Call {
    while let Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    call
}

fn agent_that(store: &Rc<dyn Store>, lines: Vec<Line>) -> Agent {
    agent_on(store, ScriptedModel::new(lines))
}

/// A line of the model that never ends.
fn hangs() -> Line {
    Line::Hangs(words("half an ans"))
}

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
        Box::pin(ready(Ok(vec![Block::text("ran")])))
    }
}

/// An agent with the tools "asks", which asks a person, and "looks", which only reads.
fn agent_with_tools(store: &Rc<dyn Store>, durability: Durability, lines: Vec<Line>) -> Agent {
    let host = HostHandle(TestHost::new());
    let options = Options { durability, ..Options::new("helper") };
    let mut builder = lockgate::engine::Builder::new(options).model(ScriptedModel::new(lines));
    builder = builder.store(Rc::clone(store)).host(Rc::new(host));
    for name in ["asks", "looks"] {
        builder = builder.tool(Rc::new(Asking(ToolSpec::new(name, "does it", json!({})).into())));
    }
    builder.build().unwrap()
}

/// The messages of a page, with the state of their turns.
fn page(agent: &Agent, before: Option<&str>, limit: usize) -> Vec<String> {
    let history = block_on(agent.history(&slot("s1"), before, limit)).unwrap();
    let turn = |it: &Message| it.turn().map(|turn| format!(" [{turn}]"));
    let line = |it: &Rc<Message>| it.text() + &turn(it).unwrap_or_default();
    history.iter().map(line).collect()
}

fn shown(agent: &Agent) -> Vec<String> {
    page(agent, None, 100)
}

fn info(agent: &Agent) -> SessionInfo {
    block_on(agent.session(&slot("s1"))).unwrap().unwrap()
}

/// The line of the session in the list; it says the same as `session`.
fn listed(agent: &Agent) -> SessionInfo {
    let mut infos = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
    assert_eq!(infos.len(), 1);
    let (line, info) = (infos.remove(0), info(agent));
    let facts = |it: &SessionInfo| {
        (it.messages, it.running, it.asking, it.interrupted, it.title.clone(), it.summary.clone())
    };
    assert_eq!(facts(&line), facts(&info));
    line
}

fn resume(agent: &Agent) -> lockgate::engine::Ended {
    block_on(agent.resume(RuntimeContext::new("alice", "s1"))?.finish())
}

fn confirm(agent: &Agent, approve: bool) -> Call {
    let answers = vec![json!({ "toolCallId": "call-1", "approve": approve })];
    agent.confirm(answers, RuntimeContext::new("alice", "s1")).unwrap()
}

fn resend(agent: &Agent, text: Option<&str>) -> Call {
    let messages = text.map(said).unwrap_or_default();
    agent.begin(CallRequest { messages, resends: true, ..request("s1", "") }).unwrap()
}

#[test]
fn while_a_call_runs_its_question_is_in_the_history_the_counts_and_the_list() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("hi"), hangs()]);
    ask(&agent, "s1", "hello").unwrap();
    let mut call = talking(&agent, "are you there?");
    assert_eq!(shown(&agent), ["hello", "hi", "are you there? [open]"]);
    let line = listed(&agent);
    assert_eq!((line.messages, line.running, line.interrupted), (3, true, false));
    assert_eq!((&*line.title, &*line.summary), ("hello", "are you there?"));
    call.cancel().ask(Cause::Stopped(Vec::new()));
    block_on(call.finish()).unwrap();
    assert_eq!(shown(&agent), ["hello", "hi", "are you there? [interrupted]", "half an ans"]);
    let line = listed(&agent);
    assert_eq!((line.messages, line.running, line.interrupted), (4, false, false));
}

#[test]
fn after_a_crash_the_question_is_interrupted_before_and_after_it_is_logged() {
    let store = memory();
    drop(talking(&agent_that(&store, vec![hangs()]), "are you there?"));
    let alive = agent_that(&store, vec![Line::says("I am")]);
    assert_eq!(shown(&alive), ["are you there? [interrupted]"]);
    let line = listed(&alive);
    assert_eq!((line.messages, line.running, line.interrupted), (1, false, true));
    block_on(alive.append(&slot("s1"), Vec::new())).unwrap();
    assert_eq!(shown(&alive)[0], "are you there? [interrupted]");
    assert!(listed(&alive).interrupted);
    assert_eq!(resume(&alive).unwrap().text, "I am");
    assert_eq!(shown(&alive)[0], "are you there?");
    assert!(!listed(&alive).interrupted);
}

#[test]
fn a_call_that_waits_does_not_make_the_input_of_a_dead_call_look_alive() {
    let store = memory();
    drop(talking(&agent_that(&store, vec![hangs()]), "are you there?"));
    let alive = agent_that(&store, vec![Line::says("I am")]);
    let waiting = begin(&alive, "s1", "hello?");
    assert_eq!(shown(&alive), ["are you there? [interrupted]"]);
    drop(waiting);
}

#[test]
fn an_error_marks_the_question_as_failed_and_an_abort_as_interrupted() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::fails(ErrorKind::ModelAuth), hangs()]);
    ask(&agent, "s1", "first").unwrap_err();
    let mut call = talking(&agent, "second");
    call.cancel().ask(Cause::Aborted);
    block_on(call.finish()).unwrap_err();
    let shown = shown(&agent);
    assert_eq!((&*shown[0], &*shown[1]), ("first [failed]", "second [interrupted]"));
    let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    assert_eq!(history[0].rest["turnError"]["code"], "MODEL_AUTH");
    assert!(history[0].rest["turnError"]["message"].is_string());
    assert!(!listed(&agent).interrupted);
}

#[test]
fn a_shutdown_interrupts_a_turn_which_resume_continues() {
    let store = memory();
    let agent = agent_that(&store, vec![hangs()]);
    let mut call = talking(&agent, "go on");
    agent.shut_down_now();
    block_on(call.finish()).unwrap_err();
    let alive = agent_that(&store, vec![Line::says("done")]);
    assert_eq!(shown(&alive)[0], "go on [interrupted]");
    assert!(listed(&alive).interrupted);
    resume(&alive).unwrap();
    assert_eq!(shown(&alive)[0], "go on");
    assert!(!listed(&alive).interrupted);
}

#[test]
fn a_question_is_open_while_its_turn_asks_and_while_the_answer_is_worked_on() {
    let store = memory();
    let lines = vec![Line::calls("asks", &json!({})), hangs()];
    let agent = agent_with_tools(&store, Durability::default(), lines);
    ask(&agent, "s1", "send it").unwrap();
    assert_eq!(shown(&agent)[0], "send it [open]");
    let line = listed(&agent);
    assert_eq!((line.asking, line.interrupted, line.running), (true, false, false));
    let call = started(confirm(&agent, true));
    assert_eq!(shown(&agent), ["send it [open]", ""]);
    assert!(listed(&agent).running);
    drop(call);
    assert_eq!(shown(&agent), ["send it [interrupted]", ""]);
    let line = listed(&agent);
    assert_eq!((line.asking, line.interrupted, line.running), (false, true, false));
    let alive = agent_with_tools(&store, Durability::default(), vec![Line::says("sent")]);
    resume(&alive).unwrap();
    assert_eq!(shown(&alive)[0], "send it");
    assert!(!listed(&alive).interrupted);
}

#[test]
fn the_end_of_an_answer_to_a_person_is_the_end_of_the_question() {
    let lines = vec![
        Line::says("hello"),
        Line::calls("asks", &json!({})),
        Line::fails(ErrorKind::ModelAuth),
        Line::calls("asks", &json!({})),
        Line::says("fine"),
    ];
    let agent = agent_with_tools(&memory(), Durability::default(), lines);
    ask(&agent, "s1", "hi").unwrap();
    ask(&agent, "s1", "send it").unwrap();
    block_on(confirm(&agent, true).finish()).unwrap_err();
    assert_eq!(shown(&agent)[..3], ["hi", "hello", "send it [failed]"]);
    ask(&agent, "s1", "send another").unwrap();
    ask(&agent, "s1", "never mind").unwrap();
    let shown = shown(&agent);
    let questions: Vec<_> =
        shown.iter().filter(|it| it.contains("another") || it.contains("never")).collect();
    assert_eq!(questions, ["send another", "never mind"]);
}

#[test]
fn a_question_whose_steps_are_stored_is_open_while_its_call_runs_and_interrupted_after_a_crash() {
    let store = memory();
    let lines = vec![Line::calls("looks", &json!({})), hangs()];
    let agent = agent_with_tools(&store, Durability::Step, lines);
    let call = talking(&agent, "look it up");
    assert_eq!(shown(&agent), ["look it up [open]", "", ""]);
    assert_eq!(info(&agent).messages, 3);
    drop(call);
    assert_eq!(shown(&agent)[0], "look it up [interrupted]");
    let alive = agent_with_tools(&store, Durability::Step, vec![Line::says("found")]);
    ask(&alive, "s1", "and?").unwrap();
    assert_eq!(shown(&alive)[0], "look it up [interrupted]");
    assert!(shown(&alive).contains(&"and?".to_owned()));
}

#[test]
fn a_resend_shows_its_own_path_while_it_runs_and_the_stored_path_after_a_crash() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("a"), Line::says("b"), hangs()]);
    ask(&agent, "s1", "one").unwrap();
    ask(&agent, "s1", "two").unwrap();
    let call = started(resend(&agent, Some("another two")));
    assert_eq!(shown(&agent), ["one", "a", "another two [open]"]);
    let line = listed(&agent);
    assert_eq!((line.messages, line.running, &*line.summary), (3, true, "another two"));
    let branch = block_on(agent.branches(&slot("s1"))).unwrap()[0].id.clone();
    let stored = block_on(agent.history_of(&slot("s1"), Some(&branch), None, 9)).unwrap();
    assert_eq!(stored.last().unwrap().text(), "b");
    drop(call);
    assert_eq!(shown(&agent), ["one", "a", "two", "b"]);
    let line = listed(&agent);
    assert_eq!((line.messages, line.running, line.interrupted), (4, false, false));
    let alive = agent_that(&store, vec![Line::says("c")]);
    ask(&alive, "s1", "three").unwrap();
    assert_eq!(shown(&alive), ["one", "a", "two", "b", "three", "c"]);
}

#[test]
fn a_resend_with_steps_shows_them_while_it_runs() {
    let store = memory();
    let lines = vec![Line::says("a"), Line::calls("looks", &json!({})), hangs()];
    let agent = agent_with_tools(&store, Durability::Step, lines);
    ask(&agent, "s1", "one").unwrap();
    let call = started(resend(&agent, None));
    assert_eq!(shown(&agent), ["one [open]", "", ""]);
    assert_eq!(info(&agent).messages, 3);
    drop(call);
    assert_eq!(shown(&agent), ["one", "a"]);
}

#[test]
fn a_call_that_joins_is_shown_with_the_call_that_it_joins() {
    let store = memory();
    let lines = vec![Line::calls("looks", &json!({})), hangs()];
    let agent = agent_with_tools(&store, Durability::default(), lines);
    let mut first = begin(&agent, "s1", "one");
    let mut second =
        agent.begin(CallRequest { overlap: Overlap::Steer, ..request("s1", "two") }).unwrap();
    for _ in 0..3 {
        while let Poll::Ready(Some(_)) = poll_once(&mut Box::pin(first.next())) {}
        while let Poll::Ready(Some(_)) = poll_once(&mut Box::pin(second.next())) {}
    }
    assert_eq!(shown(&agent), ["one [open]", "two [open]"]);
    assert_eq!(listed(&agent).messages, 2);
    drop((first, second));
    assert_eq!(shown(&agent), ["one [interrupted]", "two [interrupted]"]);
}

#[test]
fn pages_go_over_the_log_and_the_open_question() {
    let store = memory();
    let agent = agent_that(&store, vec![Line::says("a"), hangs()]);
    ask(&agent, "s1", "one").unwrap();
    let _call = talking(&agent, "two");
    assert_eq!(page(&agent, None, 1), ["two [open]"]);
    assert_eq!(page(&agent, None, 2), ["a", "two [open]"]);
    let history = block_on(agent.history(&slot("s1"), None, 9)).unwrap();
    assert_eq!(page(&agent, Some(&history[2].id), 1), ["a"]);
    assert_eq!(page(&agent, Some(&history[1].id), 5), ["one"]);
    assert_eq!(page(&agent, Some(&history[0].id), 5), Vec::<String>::new());
}

#[test]
fn the_state_of_a_turn_is_never_stored() {
    let (one, other) = (memory(), memory());
    let agent = agent_that(&one, vec![Line::fails(ErrorKind::ModelAuth)]);
    ask(&agent, "s1", "first").unwrap_err();
    let document = block_on(agent.export_session(&slot("s1"), Format::Lockgate)).unwrap();
    assert!(document.contains("\"turn\":\"failed\""));
    let imports = agent_that(&other, Vec::new());
    block_on(imports.import_session(&slot("s1"), &document).unwrap()).unwrap();
    assert_eq!(shown(&imports), ["first [failed]"]);
    let records = block_on(other.list("", Page::default())).unwrap();
    assert!(
        records.iter().all(|(_, it)| !String::from_utf8_lossy(&it.value).contains("\"turn\":"))
    );
}

#[test]
fn the_note_about_a_cut_off_answer_has_a_kind_which_an_agentscope_document_keeps() {
    let store = memory();
    drop(talking(&agent_that(&store, vec![hangs()]), "are you there?"));
    let alive = agent_that(&store, vec![Line::says("I am")]);
    ask(&alive, "s1", "hello?").unwrap();
    let history = block_on(alive.history(&slot("s1"), None, 100)).unwrap();
    assert_eq!(note_kind(&history[1]), Some("cut-off"));
    let document = block_on(alive.export_session(&slot("s1"), Format::AgentScope)).unwrap();
    let back = import(&serde_json::from_str(&document).unwrap()).unwrap();
    assert_eq!(note_kind(&back.context[1]), Some("cut-off"));
}
