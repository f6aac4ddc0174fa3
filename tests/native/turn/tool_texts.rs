//! Texts that tools, hooks, people and models give to a conversation: whatever their length, what is stored has a limit.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, RuntimeContext};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Delta, Finish, MAX_TOOL_TEXT, ResultState, shortened};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Hook, HookRun, Point, Tool, ToolRun, ToolSpec};
use serde_json::{Value, json};

/// More than a result may have. The one megabyte beyond it is enough to be noticed.
fn long() -> String {
    "x".repeat(MAX_TOOL_TEXT + 1_000_000)
}

/// A tool that ends like this.
struct Ends(Rc<ToolSpec>, fn() -> Result<Vec<Block>>);

impl Tool for Ends {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        if run.input.get("suspends").is_some() {
            run.desk.suspend(run.tool_call_id, &long());
        }
        Box::pin(std::future::ready((self.1)()))
    }
}

/// A hook that answers this at one point.
struct Says(Point, Value);

impl Hook for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn is_at(&self, point: Point) -> bool {
        point == self.0
    }

    fn at<'a>(&'a self, _: Point, _: &str, _: HookRun<'a>) -> Local<'a, Result<Value>> {
        Box::pin(std::future::ready(Ok(self.1.clone())))
    }
}

fn agent_with(ends: fn() -> Result<Vec<Block>>, input: &Value, hook: Option<Says>) -> Agent {
    let spec = ToolSpec::new("tell", "tells", json!({ "type": "object" }));
    let model = ScriptedModel::new([Line::calls("tell", input), Line::says("done")]);
    let mut builder = builder_on(&memory(), model).tool(Rc::new(Ends(Rc::new(spec), ends)));
    if let Some(hook) = hook {
        builder = builder.hook(Rc::new(hook));
    }
    builder.build().unwrap()
}

fn short() -> Result<Vec<Block>> {
    Ok(vec![Block::text("short")])
}

/// The text of the last tool result, and how many bytes the whole session has as JSON.
fn stored(agent: &Agent) -> (String, usize) {
    let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    let result = history.iter().rev().find_map(|it| it.tool_results().next().cloned());
    let text = result.map(|result| Block::text_of(&result.output)).unwrap_or_default();
    (text, serde_json::to_string(&history).unwrap().len())
}

#[track_caller]
fn check_cut(agent: &Agent) {
    let (text, size) = stored(agent);
    assert!(text.contains("characters were left out here]"), "{} characters", text.len());
    assert!(size < MAX_TOOL_TEXT + 5_000, "{size} bytes are stored");
}

#[test]
fn an_error_of_twenty_megabytes_is_cut_like_a_result() {
    let throws = || Err(Error::new(ErrorKind::Internal, "x".repeat(20_000_000)));
    let agent = agent_with(throws, &json!({}), None);
    assert_eq!(ask(&agent, "s1", "go").unwrap().text, "done");
    check_cut(&agent);
}

#[test]
fn the_blocks_of_a_result_are_cut_together() {
    let blocks = || Ok(vec![Block::text(long()), Block::text(long()), Block::text("end")]);
    let agent = agent_with(blocks, &json!({}), None);
    ask(&agent, "s1", "go").unwrap();
    check_cut(&agent);
}

#[test]
fn what_a_hook_makes_of_a_result_or_says_in_place_of_a_tool_or_an_answer_is_cut() {
    let result = json!({ "type": "tool_result", "id": "", "name": "", "output": [{ "type": "text", "text": long() }] });
    for hook in [Says(Point::AfterTool, result), Says(Point::BeforeTool, json!({ "deny": long() }))]
    {
        let agent = agent_with(short, &json!({}), Some(hook));
        ask(&agent, "s1", "go").unwrap();
        check_cut(&agent);
    }
    let stops = Says(Point::BeforeModel, json!({ "stop": long() }));
    let agent = agent_with(short, &json!({}), Some(stops));
    assert!(ask(&agent, "s1", "go").unwrap().text.contains("were left out here"));
    assert!(stored(&agent).1 < MAX_TOOL_TEXT + 5_000);
}

#[test]
fn the_reason_of_a_suspended_tool_and_the_result_that_is_handed_in_are_cut() {
    for (answer, state) in [
        (json!({ "output": long() }), ResultState::Success),
        (
            json!({ "output": [{ "type": "text", "text": long() }], "failed": true }),
            ResultState::Error,
        ),
        (json!({ "approve": false, "reason": long() }), ResultState::Denied),
    ] {
        let agent = agent_with(short, &json!({ "suspends": true }), None);
        let reply = ask(&agent, "s1", "go").unwrap();
        assert!(reply.asks[0].reason.contains("were left out here"));
        assert!(stored(&agent).1 < MAX_TOOL_TEXT + 5_000);
        let mut answer = answer;
        answer["toolCallId"] = json!(reply.asks[0].tool_call_id);
        let context = RuntimeContext::new("alice", "s1");
        block_on(agent.confirm(vec![answer], context).unwrap().finish()).unwrap();
        let history = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
        let result = history.iter().find_map(|it| it.tool_results().next().cloned()).unwrap();
        assert_eq!(result.state, state);
        let text = Block::text_of(&result.output);
        assert!(text.contains("were left out here") && text.len() < MAX_TOOL_TEXT + 200);
    }
}

#[test]
fn arguments_that_are_too_long_are_not_kept_and_their_call_gets_a_result_that_says_so() {
    let arguments = |text: &str| Delta::ToolCall {
        index: 0,
        id: Some("c1".into()),
        name: Some("tell".into()),
        arguments: text.into(),
        provider: None,
    };
    let half = "x".repeat(MAX_TOOL_TEXT / 2 + 1_000);
    let deltas = [arguments("{\"a\":\""), arguments(&half), arguments(&half), arguments("\"}")];
    let deltas: Vec<_> = deltas.into_iter().chain([Delta::Finish(Finish::ToolCalls)]).collect();
    let spec = ToolSpec::new("tell", "tells", json!({ "type": "object" }));
    let model = ScriptedModel::new([Line::Sends(deltas), Line::says("done")]);
    let tool = Rc::new(Ends(Rc::new(spec), short));
    let agent = builder_on(&memory(), model).tool(tool).build().unwrap();
    ask(&agent, "s1", "go").unwrap();
    let (text, size) = stored(&agent);
    assert!(text.contains("were not kept. Send shorter ones"), "{text}");
    assert!(size < 5_000, "{size} bytes are stored");
}

#[test]
fn of_a_thousand_tool_calls_in_one_answer_sixty_four_run() {
    let call = |index: u64| Delta::ToolCall {
        index,
        id: Some(format!("c{index}")),
        name: Some("tell".into()),
        arguments: "{}".into(),
        provider: None,
    };
    let deltas = (0..1_000).map(call).chain([Delta::Finish(Finish::ToolCalls)]).collect();
    let spec = ToolSpec::new("tell", "tells", json!({ "type": "object" }));
    let model = ScriptedModel::new([Line::Sends(deltas), Line::says("done")]);
    let tool = Rc::new(Ends(Rc::new(spec), short));
    let agent = builder_on(&memory(), model).tool(tool).build().unwrap();
    let reply =
        block_on(agent.begin(CallRequest::new(slot("s1"), "go")).unwrap().finish()).unwrap();
    let results: Vec<_> = reply.messages.iter().flat_map(|it| it.tool_results()).collect();
    let n_ran = results.iter().filter(|it| it.state == ResultState::Success).count();
    assert_eq!((results.len(), n_ran), (1_000, 64));
    let last = Block::text_of(&results[999].output);
    assert!(last.contains("at most 64 tool calls"), "{last}");
}

#[test]
fn a_shortened_text_keeps_both_ends_and_is_not_shortened_again() {
    let text: String = (0..10_000).map(|n| if n % 2 == 0 { 'a' } else { 'ä' }).collect();
    let cut = shortened(text.clone(), 1_000);
    assert!(cut.starts_with(&"aä".repeat(250)) && cut.ends_with(&"aä".repeat(250)), "{cut}");
    assert!(cut.contains("\n[9000 characters were left out here]\n"));
    assert_eq!(shortened(cut.clone(), 1_000), cut);
    assert_eq!(shortened(text.clone(), 10_000), text);
}
