//! Tools whose results come from outside: the call ends suspended, and the results continue it.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Call, CallRequest, Cause, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{AskKind, Event, Reason};
use lockgate::future::Local;
use lockgate::message::{Block, CallState, ResultState};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Store, Tool, ToolRun, ToolSpec};
use serde_json::{Value, json};

/// A tool that is external, that suspends itself when it runs, or that just answers.
struct Lookup(Rc<ToolSpec>);

impl Tool for Lookup {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        if self.0.name == "later" {
            run.desk.suspend(run.tool_call_id, "the clerk looks it up");
        }
        if self.0.name == "hangs" {
            return Box::pin(std::future::pending());
        }
        Box::pin(std::future::ready(Ok(vec![Block::text("done")])))
    }
}

fn agent_with(store: &Rc<dyn Store>, lines: impl IntoIterator<Item = Line>) -> Agent {
    let tool = |name: &str, external| {
        let spec = ToolSpec::new(name, "looks up", json!({ "type": "object" }));
        Rc::new(Lookup(Rc::new(ToolSpec { external, ..spec })))
    };
    builder_on(store, ScriptedModel::new(lines))
        .tool(tool("outside", true))
        .tool(tool("later", false))
        .tool(tool("now", false))
        .tool(tool("hangs", false))
        .build()
        .unwrap()
}

fn two_outside() -> Line {
    Line::calls_all(&[
        ("c1", "outside", json!({ "n": 1 })),
        ("c2", "now", json!({})),
        ("c3", "later", json!({})),
    ])
}

fn confirm(agent: &Agent, answers: &Value) -> lockgate::engine::Ended {
    let answers = answers.as_array().unwrap().clone();
    let mut call = agent.confirm(answers, RuntimeContext::new("alice", "s1"))?;
    block_on(call.finish())
}

/// The calls and results of a session's log, in short.
fn tools(agent: &Agent) -> Vec<String> {
    let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    let short = |block: &Block| match block {
        Block::ToolUse(call) => Some(format!("{} {:?}", call.id, call.state)),
        Block::ToolResult(result) => Some(format!("{} -> {:?}", result.id, result.state)),
        _ => None,
    };
    history.iter().flat_map(|message| message.content.iter().filter_map(short)).collect()
}

#[test]
fn r26_an_external_tool_suspends_the_call_and_its_result_continues_it() {
    let store = memory();
    let agent = agent_with(&store, [two_outside(), Line::says("all found")]);
    let reply = ask(&agent, "s1", "find it").unwrap();
    assert_eq!(reply.reason, Reason::Suspended);
    let asked: Vec<_> = reply.asks.iter().map(|ask| (&*ask.tool_call_id, &*ask.reason)).collect();
    assert_eq!(asked, [("c1", ""), ("c3", "the clerk looks it up")]);
    assert!(reply.asks.iter().all(|ask| ask.kind == AskKind::Result));
    assert_eq!(tools(&agent), ["c1 Pending", "c2 Finished", "c3 Pending", "c2 -> Success"]);

    // Another process, with nothing but the store.
    let agent = agent_with(&store, [Line::says("all found")]);
    assert_eq!(block_on(agent.asks(&slot("s1"))).unwrap().len(), 2);
    assert!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().asking);
    let answers = json!([
        { "toolCallId": "c1", "output": { "place": "Delft" } },
        { "toolCallId": "c3", "output": "nowhere", "failed": true },
    ]);
    let reply = confirm(&agent, &answers).unwrap();
    assert_eq!((reply.reason, reply.text.as_str()), (Reason::Stop, "all found"));
    assert!(!block_on(agent.session(&slot("s1"))).unwrap().unwrap().asking);
    let states = ["c1 Finished", "c2 Finished", "c3 Finished"];
    assert_eq!(tools(&agent)[..3], states, "later entries of the log update earlier messages");
    assert_eq!(tools(&agent)[3..], ["c2 -> Success", "c1 -> Success", "c3 -> Error"]);
}

#[test]
fn r26_a_part_of_the_results_is_accepted_and_the_other_tools_stay_open() {
    let agent = agent_with(&memory(), [two_outside(), Line::says("all found")]);
    ask(&agent, "s1", "find it").unwrap();
    let part = confirm(&agent, &json!([{ "toolCallId": "c3", "output": "x" }])).unwrap();
    assert_eq!((part.reason, part.asks.len()), (Reason::Suspended, 1));
    let refused = json!([{ "toolCallId": "c1", "approve": false, "reason": "not today" }]);
    let whole = confirm(&agent, &refused).unwrap();
    assert_eq!((whole.reason, whole.text.as_str()), (Reason::Stop, "all found"));
    assert_eq!(tools(&agent).last().unwrap(), "c1 -> Denied");
}

#[test]
fn r26_wrong_duplicate_and_stale_answers_are_refused_and_change_nothing() {
    let agent = agent_with(&memory(), [two_outside(), Line::says("fine")]);
    let nothing = confirm(&agent, &json!([{ "toolCallId": "c1", "output": "x" }])).unwrap_err();
    assert_eq!(nothing.error.kind(), ErrorKind::NotAsking);
    ask(&agent, "s1", "find it").unwrap();
    let before = tools(&agent);
    let one = json!({ "toolCallId": "c1", "output": "x" });
    for (answers, kind) in [
        (json!([{ "toolCallId": "c2", "output": "x" }]), ErrorKind::NotAsking),
        (json!([{ "toolCallId": "other", "output": "x" }]), ErrorKind::NotAsking),
        (json!([one, one]), ErrorKind::NotAsking),
        (json!([]), ErrorKind::NotAsking),
        (json!([{ "toolCallId": "c1", "approve": true }]), ErrorKind::InputInvalid),
        (json!([{ "output": "x" }]), ErrorKind::InputInvalid),
    ] {
        assert_eq!(confirm(&agent, &answers).unwrap_err().error.kind(), kind, "{answers}");
        assert_eq!(tools(&agent), before);
    }
}

#[test]
fn r25_a_plain_message_closes_open_tool_calls_with_a_visible_result() {
    let agent = agent_with(&memory(), [two_outside(), Line::says("as you wish")]);
    ask(&agent, "s1", "find it").unwrap();
    let mut call = begin(&agent, "s1", "never mind");
    let mut closed = 0;
    while let Some(event) = block_on(call.next()) {
        let is_close = |state| state == ResultState::Interrupted;
        closed += u32::from(matches!(event.event, Event::ToolEnd { state, .. } if is_close(state)));
    }
    assert_eq!(closed, 2);
    let results = ["c2 -> Success", "c1 -> Interrupted", "c3 -> Interrupted"];
    assert_eq!(tools(&agent)[3..], results);
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: as you wish");
    assert!(block_on(agent.asks(&slot("s1"))).unwrap().is_empty());
}

#[test]
fn r25_changes_by_hand_are_refused_while_a_tool_call_is_open() {
    let agent = agent_with(&memory(), [two_outside()]);
    ask(&agent, "s1", "find it").unwrap();
    let state = json!(block_on(agent.state(&slot("s1"))).unwrap());
    let kinds = [
        block_on(agent.clear_context(&slot("s1"))).unwrap_err().kind(),
        block_on(agent.append(&slot("s1"), said("more"))).unwrap_err().kind(),
        block_on(agent.put_state(&slot("s1"), &state).unwrap()).unwrap_err().kind(),
        block_on(agent.resume(RuntimeContext::new("alice", "s1")).unwrap().finish())
            .unwrap_err()
            .error
            .kind(),
    ];
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::PendingTools), "{kinds:?}");
    block_on(agent.rename_session(&slot("s1"), "a name".into())).unwrap();
}

#[test]
fn a_confirm_with_the_same_id_returns_its_stored_outcome() {
    let agent = agent_with(&memory(), [two_outside(), Line::says("fine")]);
    ask(&agent, "s1", "find it").unwrap();
    let go = |output: &str| {
        let answers = ["c1", "c3"].map(|id| json!({ "toolCallId": id, "output": output }));
        let context = RuntimeContext::new("alice", "s1").call_id("mine");
        block_on(agent.confirm(answers.to_vec(), context).unwrap().finish())
    };
    assert_eq!(go("x").unwrap().text, "fine");
    assert_eq!(go("x").unwrap().text, "fine");
    assert_eq!(go("y").unwrap_err().error.kind(), ErrorKind::InputInvalid);
}

#[test]
fn a_submitted_result_survives_the_death_of_its_call() {
    let store = memory();
    let agent = agent_with(&store, [two_outside(), Line::Hangs(Vec::new())]);
    ask(&agent, "s1", "find it").unwrap();
    let answers = vec![json!({ "toolCallId": "c1", "output": "Delft" })];
    let mut call = agent.confirm(answers, RuntimeContext::new("alice", "s1")).unwrap();
    while !matches!(block_on(call.next()).unwrap().event, Event::Accepted { .. }) {}
    drop(call);
    let agent = agent_with(&store, [Line::says("and now?")]);
    ask(&agent, "s1", "hello?").unwrap();
    assert_eq!(tools(&agent)[4..], ["c1 -> Success", "c3 -> Interrupted"]);
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: and now?");
}

#[test]
fn a_call_that_is_stopped_while_one_tool_is_suspended_leaves_nothing_open() {
    let calls = [("c1", "outside", json!({})), ("c2", "hangs", json!({}))];
    let agent = agent_with(&memory(), [Line::calls_all(&calls)]);
    let mut call = begin(&agent, "s1", "find it");
    while let Some(event) = block_on(call.next()) {
        if matches!(event.event, Event::ToolEnd { state: ResultState::Suspended, .. }) {
            call.cancel().ask(lockgate::engine::Cause::Aborted);
        }
    }
    let state = block_on(agent.state(&slot("s1"))).unwrap();
    let open = |call: &&lockgate::message::ToolUse| call.state != CallState::Finished;
    assert_eq!(state.context.iter().flat_map(|it| it.tool_uses()).filter(open).count(), 0);
}

#[test]
fn resume_continues_only_a_call_that_was_cut_off() {
    let lines = [Line::fails(ErrorKind::ModelAuth), Line::says("here I am")];
    let agent = agent_with(&memory(), lines);
    let go_on = || {
        let mut call = agent.resume(RuntimeContext::new("alice", "s1")).unwrap();
        block_on(call.finish())
    };
    assert_eq!(go_on().unwrap_err().error.kind(), ErrorKind::NoSuchSession);
    ask(&agent, "s1", "anybody?").unwrap_err();
    assert_eq!(go_on().unwrap().text, "here I am");
    assert_eq!(told(&agent, "s1"), ["user: anybody?", "assistant: here i am"]);
    assert_eq!(go_on().unwrap_err().error.kind(), ErrorKind::InputInvalid);
}

#[test]
fn r25_repeating_a_failed_call_does_not_close_tools_of_another_call() {
    let broken = Line::Breaks(words("half an "), ErrorKind::ModelTruncated);
    let lines = [broken, two_outside(), Line::says("all in")];
    let agent = agent_with(&memory(), lines);
    let again = || agent.call("first", RuntimeContext::new("alice", "s1").call_id("mine")).unwrap();
    block_on(again().finish()).unwrap_err();
    assert_eq!(ask(&agent, "s1", "second").unwrap().reason, Reason::Suspended);
    let refused = block_on(again().finish()).unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::PendingTools);
    let answers = json!([{ "toolCallId": "c1", "output": 1 }, { "toolCallId": "c3", "output": 3 }]);
    assert_eq!(confirm(&agent, &answers).unwrap().text, "all in");
}

/// Runs a call that is stopped before the model has answered anything.
fn stopped(mut call: Call) -> Vec<String> {
    while !matches!(block_on(call.next()).unwrap().event, Event::ModelStart { .. }) {}
    call.cancel().ask(Cause::Stopped(Vec::new()));
    let reply = block_on(call.finish()).unwrap();
    assert_eq!(reply.reason, Reason::Interrupted);
    reply.messages.iter().map(|message| message.id.clone()).collect()
}

#[test]
fn a_stopped_result_and_a_stopped_resend_are_in_order_on_their_own_branches() {
    let hangs = || Line::Hangs(Vec::new());
    let lines = [Line::calls("outside", &json!({})), hangs(), hangs()];
    let agent = agent_with(&memory(), lines);
    let asked = ask(&agent, "s1", "look it up").unwrap();
    let answers = vec![json!({ "toolCallId": "call-1", "output": "found" })];
    let result = stopped(agent.confirm(answers, RuntimeContext::new("alice", "s1")).unwrap());
    let resend = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    let again = stopped(agent.begin(resend).unwrap());
    let of = |branch: &str| -> Vec<String> {
        let all = block_on(agent.history_of(&slot("s1"), Some(branch), None, 100)).unwrap();
        all.iter().map(|message| message.id.clone()).collect()
    };
    let branches = block_on(agent.branches(&slot("s1"))).unwrap();
    let [first, second] = &branches[..] else { panic!("{branches:?}") };
    let said = asked.messages.iter().map(|message| message.id.clone());
    assert_eq!(of(&first.id), said.chain(result).collect::<Vec<_>>());
    // The resend was stopped before the model answered: its turn is the question, which is the same message.
    assert_eq!((of(&second.id), &again[0]), (again.clone(), &asked.messages[0].id));
    block_on(agent.switch_branch(&slot("s1"), first.id.clone())).unwrap();
    let now = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    let ids: Vec<_> = now.iter().map(|message| message.id.clone()).collect();
    assert_eq!(ids, of(&first.id));
}
