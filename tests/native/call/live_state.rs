//! The state of a call as its tools and hooks see it: the call's own state, at that moment.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use lockgate::attributes::Attributes;
use lockgate::engine::{Agent, CallRequest};
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::json::unrounded;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Desk, Effect, Hook, HookRun, Point, Tool, ToolRun, ToolSpec};
use lockgate::state::AgentState;
use serde_json::{Value, json};

/// Every state that was read, with the name of its reader.
type Seen = Rc<RefCell<Vec<(String, AgentState)>>>;

struct Looks(Rc<ToolSpec>, Seen);

impl Tool for Looks {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move {
            run.desk.change(&mut |facts| facts.plan_mode_context.plan_active = true);
            // Another session runs at the same time.
            yield_once().await;
            self.1.borrow_mut().push(("tool".into(), run.desk.state().unwrap()));
            Ok(vec![Block::text("seen")])
        })
    }
}

impl Hook for Looks {
    fn name(&self) -> &str {
        "looks"
    }

    fn is_at(&self, _: Point) -> bool {
        true
    }

    fn at<'a>(&'a self, point: Point, given: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
        self.1.borrow_mut().push((point.word().into(), run.desk.state().unwrap()));
        let prompt = point == Point::SystemPrompt;
        let answer = if prompt { serde_json::from_str(given).unwrap() } else { Value::Null };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn looking() -> (Agent, Seen) {
    let seen = Seen::default();
    let spec = || {
        let spec = ToolSpec::new("look", "looks", json!({ "type": "object" }));
        // Reading, so that it also runs in plan mode.
        Rc::new(ToolSpec { effect: Effect::Reads, ..spec })
    };
    let lines = [Line::calls("look", &json!({})), Line::says("done")];
    let model = ScriptedModel::new(
        lines.into_iter().chain([Line::calls("look", &json!({})), Line::says("done")]),
    );
    let agent = builder_on(&memory(), model)
        .tool(Rc::new(Looks(spec(), Rc::clone(&seen))))
        .hook(Rc::new(Looks(spec(), Rc::clone(&seen))))
        .build()
        .unwrap();
    (agent, seen)
}

#[test]
fn tools_and_hooks_read_the_current_state_of_their_call() {
    let (agent, seen) = looking();
    let version = ask(&agent, "s1", "go").unwrap().version;
    let told: Vec<_> = seen
        .borrow()
        .iter()
        .map(|(who, state)| {
            (
                who.clone(),
                state.context.len(),
                state.version,
                state.facts.plan_mode_context.plan_active,
            )
        })
        .collect();
    let at = |who: &str, n, version, plans| (who.to_owned(), n, version, plans);
    assert_eq!(
        told,
        [
            at("onCall", 0, version - 1, false),
            at("systemPrompt", 0, version - 1, false),
            at("reviseContext", 1, version - 1, false),
            at("beforeModel", 1, version - 1, false),
            at("afterModel", 1, version - 1, false),
            at("beforeTool", 2, version - 1, false),
            at("tool", 2, version - 1, true),
            at("afterTool", 2, version - 1, true),
            at("reviseContext", 3, version - 1, true),
            at("beforeModel", 3, version - 1, true),
            at("afterModel", 3, version - 1, true),
            at("onEnd", 4, version, true),
        ]
    );
}

#[test]
fn calls_side_by_side_see_only_their_own_state() {
    let (agent, seen) = looking();
    let mut calls = [begin(&agent, "s1", "one"), begin(&agent, "s2", "two")];
    while calls.iter_mut().any(|call| block_on(call.next()).is_some()) {}
    for call in &mut calls {
        block_on(call.finish()).unwrap();
        assert!(call.live().state().is_none(), "the call has ended");
    }
    for (_, state) in seen.borrow().iter().filter(|(_, state)| !state.context.is_empty()) {
        let said = if state.session_id == "s1" { "one" } else { "two" };
        assert_eq!(state.context[0].text(), said);
    }
}

#[test]
fn reading_the_context_copies_nothing_and_a_state_once_read_does_not_change() {
    let (agent, seen) = looking();
    ask(&agent, "s1", "go").unwrap();
    ask(&agent, "s1", "again").unwrap();
    let seen = seen.borrow();
    let lengths: Vec<_> = seen.iter().map(|(_, state)| state.context.len()).collect();
    let of_turn =
        |n: usize| [n, n, n + 1, n + 1, n + 1, n + 2, n + 2, n + 2, n + 3, n + 3, n + 3, n + 4];
    assert_eq!(lengths, [of_turn(0), of_turn(4)].concat());
    let (first, last) = (&seen[2].1.context[0], &seen.last().unwrap().1.context[0]);
    assert!(Rc::ptr_eq(first, last), "one message, however often it is shown");
}

#[test]
fn attributes_of_a_call_reach_its_tools_and_hooks_by_name_and_by_type() {
    struct Db(&'static str);
    struct Reads(Rc<ToolSpec>);
    impl Tool for Reads {
        fn spec(&self) -> &Rc<ToolSpec> {
            &self.0
        }
        fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
            let name = run.attributes.get("who").and_then(Value::as_str).unwrap_or_default();
            let db = run.attributes.of::<Db>().map_or("none", |db| db.0);
            Box::pin(std::future::ready(Ok(vec![Block::text(format!("{name} in {db}"))])))
        }
    }
    let model = ScriptedModel::new([Line::calls("read", &json!({})), Line::says("ok")]);
    let spec = ToolSpec::new("read", "reads", json!({ "type": "object" }));
    let tool = Rc::new(Reads(Rc::new(spec)));
    let agent = builder_on(&memory(), Rc::clone(&model) as _).tool(tool).build().unwrap();
    let mut attributes = Attributes::default();
    attributes.insert("who", json!("alice"));
    attributes.put(Db("delft"));
    let request = CallRequest { attributes, ..request("s1", "go") };
    block_on(agent.begin(request).unwrap().finish()).unwrap();
    assert!(json!(model.requests()[1]).to_string().contains("alice in delft"));
    let stored = json!(block_on(agent.state(&slot("s1"))).unwrap()).to_string();
    assert_eq!(stored.matches("delft").count(), 1, "only in the text of the tool");
}

#[test]
fn v_10_a_number_that_was_only_rounded_is_exact_again_and_a_changed_number_stays_changed() {
    let exact =
        json!({ "a": 9_007_199_254_740_993_u64, "b": [9_007_199_254_740_993_u64, 1], "c": 2 });
    let mut changed: Value = serde_json::from_str(
        r#"{ "a": 9007199254740992, "b": [9007199254740994, 1.5], "c": 3, "d": 9007199254740992 }"#,
    )
    .unwrap();
    unrounded(&exact, &mut changed);
    assert_eq!(
        changed,
        json!({ "a": 9_007_199_254_740_993_u64, "b": [9_007_199_254_740_994_u64, 1.5], "c": 3, "d": 9_007_199_254_740_992_u64 })
    );
}
