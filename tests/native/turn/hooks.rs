//! Hooks: their order, what they may change, and how they stop a call.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::Agent;
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::event::Reason;
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Hook, HookRun, Model, Point, Tool, ToolRun, ToolSpec};
use serde_json::{Value, json};

type Answer = Box<dyn Fn(Point, &Value) -> Result<Value>>;

/// A hook that records the points at which it is called, and answers with a closure.
struct Noting(&'static str, Rc<RefCell<Vec<String>>>, Answer);

impl Hook for Noting {
    fn name(&self) -> &str {
        self.0
    }

    fn is_at(&self, _: Point) -> bool {
        true
    }

    fn at<'a>(&'a self, point: Point, given: &str, _: HookRun<'a>) -> Local<'a, Result<Value>> {
        let given: Value = serde_json::from_str(given).unwrap();
        self.1.borrow_mut().push(format!("{} {}", self.0, point.word()));
        let answer = (self.2)(point, &given);
        // Null would erase the instructions, so return them unchanged.
        let kept = if point == Point::SystemPrompt { given } else { Value::Null };
        Box::pin(std::future::ready(
            answer.map(|answer| if answer.is_null() { kept } else { answer }),
        ))
    }
}

struct Echo(Rc<ToolSpec>);

impl Tool for Echo {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(Ok(vec![Block::text(run.input.to_string())])))
    }
}

fn agent_with(
    model: Rc<dyn Model>,
    answer: impl Fn(Point, &Value) -> Result<Value> + 'static,
) -> Agent {
    let (name, description) = ("echo".to_owned(), String::new());
    let input_schema = json!({ "type": "object" });
    let spec = ToolSpec::new(name, description, input_schema);
    let hook = Noting("hook", Rc::default(), Box::new(answer));
    builder_on(&memory(), model)
        .tool(Rc::new(Echo(Rc::new(spec))))
        .hook(Rc::new(hook))
        .build()
        .unwrap()
}

fn only(at: Point, answer: Value) -> impl Fn(Point, &Value) -> Result<Value> {
    move |point, _| Ok(if point == at { answer.clone() } else { Value::Null })
}

fn calling() -> Rc<ScriptedModel> {
    ScriptedModel::new([Line::calls("echo", &json!({ "a": 1 })), Line::says("done")])
}

#[test]
fn r47_hooks_are_asked_outermost_first_at_every_point() {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let nothing = || -> Answer { Box::new(|_, _| Ok(Value::Null)) };
    let agent = builder_on(&memory(), ScriptedModel::new([Line::says("hi")]))
        .hook(Rc::new(Noting("outer", Rc::clone(&seen), nothing())))
        .hook(Rc::new(Noting("inner", Rc::clone(&seen), nothing())))
        .build()
        .unwrap();
    ask(&agent, "s1", "hello").unwrap();
    let points = ["onCall", "systemPrompt", "reviseContext", "beforeModel", "afterModel", "onEnd"];
    let expected: Vec<_> =
        points.iter().flat_map(|it| [format!("outer {it}"), format!("inner {it}")]).collect();
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn a_hook_changes_one_request_and_not_the_conversation() {
    let model = ScriptedModel::new([Line::says("hi")]);
    let messages = json!({ "messages": [{ "id": "m", "role": "user", "content": [{ "type": "text", "text": "other" }], "at": "" }] });
    let agent = agent_with(Rc::clone(&model) as _, only(Point::BeforeModel, messages));
    ask(&agent, "s1", "hello").unwrap();
    assert_eq!(model.requests()[0][0].text(), "other");
    assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: hi"]);
}

#[test]
fn a_hook_may_answer_instead_of_the_model() {
    for point in [Point::BeforeModel, Point::AfterModel] {
        let agent = agent_with(
            ScriptedModel::new([Line::says("secret")]),
            only(point, json!({ "stop": "not that" })),
        );
        let reply = ask(&agent, "s1", "hello").unwrap();
        assert_eq!((reply.reason, reply.text.as_str()), (Reason::Middleware, "not that"));
        assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: not that"]);
    }
}

#[test]
fn r47_an_answer_is_changed_before_it_is_stored() {
    let agent = agent_with(ScriptedModel::new([Line::says("a secret")]), |point, given| {
        if point != Point::AfterModel {
            return Ok(Value::Null);
        }
        let mut changed = given.clone();
        changed["content"] = json!([{ "type": "text", "text": "a ******" }]);
        Ok(changed)
    });
    assert_eq!(ask(&agent, "s1", "hello").unwrap().text, "a ******");
    assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: a ******"]);
}

#[test]
fn a_hook_may_change_a_tools_input_or_deny_the_tool() {
    for (answer, expected) in [
        (json!({ "input": { "a": 2 } }), "{\\\"a\\\":2}"),
        (json!({ "deny": "not today" }), "not today"),
    ] {
        let agent = agent_with(calling(), only(Point::BeforeTool, answer));
        let text = serde_json::to_string(&ask(&agent, "s1", "go").unwrap().messages).unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_changed_result_stays_the_result_of_its_call() {
    let other = json!({ "type": "tool_result", "id": "other", "name": "other", "output": [{ "type": "text", "text": "short" }], "state": "success" });
    let agent = agent_with(calling(), only(Point::AfterTool, other));
    let text = serde_json::to_string(&ask(&agent, "s1", "go").unwrap().messages).unwrap();
    assert!(text.contains("short") && !text.contains("\"other\""), "{text}");
}

#[test]
fn a_hook_that_throws_stops_the_call_with_the_turn_saved() {
    for point in Point::ALL.iter().copied().filter(|point| *point != Point::OnEnd) {
        let throws = move |at, _: &Value| match at == point {
            true => Err(Error::new(ErrorKind::Internal, "oops")),
            false => Ok(Value::Null),
        };
        let agent = agent_with(calling(), throws);
        let failed = ask(&agent, "s1", "go").unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::Middleware, "{point:?}");
        assert_eq!(told(&agent, "s1")[0], "user: go", "{point:?}");
        let text =
            serde_json::to_string(&block_on(agent.state(&slot("s1"))).unwrap().context).unwrap();
        assert_eq!(
            text.matches("\"tool_use\"").count(),
            text.matches("\"tool_result\"").count(),
            "{point:?}"
        );
    }
}

#[test]
fn an_error_of_a_hook_after_the_end_is_only_a_warning() {
    let throws = |at, _: &Value| match at == Point::OnEnd {
        true => Err(Error::new(ErrorKind::Internal, "oops")),
        false => Ok(Value::Null),
    };
    let agent = agent_with(ScriptedModel::new([Line::says("hi")]), throws);
    assert_eq!(ask(&agent, "s1", "hello").unwrap().text, "hi");
}
