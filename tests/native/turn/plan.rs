//! Plan mode: which tools run in it, how it begins and ends, and what the model is told.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options, RuntimeContext};
use lockgate::error::ErrorKind;
use lockgate::event::{Event, Reply};
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::policy::plan::PlanMode;
use lockgate::port::{Effect, Store, ToolSpec};
use lockgate::state::PlanModeContext;
use lockgate::store::workspace::files::Workspace;
use serde_json::{Value, json};

fn named(name: &str, effect: Effect) -> Rc<Named> {
    let spec = ToolSpec::new(name, "", json!({ "type": "object" }));
    Rc::new(Named(Rc::new(ToolSpec { effect, ..spec })))
}

fn mode() -> PlanMode {
    PlanMode { file: "plans/PLAN.md".into(), extra_tools: vec!["build".into()] }
}

fn builder(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>, options: Options) -> Builder {
    Builder::new(options)
        .host(Rc::new(HostHandle(TestHost::new())))
        .model(Rc::clone(model) as _)
        .store(Rc::clone(store))
        .tool(named("look", Effect::Reads))
        .tool(named("act", Effect::Acts))
        .tool(named("build", Effect::Acts))
}

fn options() -> Options {
    let workspace = Some(Workspace::default());
    Options { plan_mode: Some(mode()), workspace, task_list: true, ..Options::new("helper") }
}

fn agent_of(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>) -> Agent {
    builder(store, model, options()).build().unwrap()
}

fn plan(agent: &Agent) -> PlanModeContext {
    block_on(agent.state(&slot("s1"))).unwrap().facts.plan_mode_context
}

fn outcomes(reply: &Reply) -> Vec<String> {
    let results = reply.messages.iter().flat_map(|it| it.tool_results());
    results.map(|it| format!("{:?}: {}", it.state, Block::text_of(&it.output))).collect()
}

fn calls(calls: &[(&str, Value)]) -> Vec<Line> {
    let lines = calls.iter().map(|(name, input)| Line::calls(name, input));
    lines.chain([Line::says("ok")]).collect()
}

fn instructions(agent: &Agent) -> String {
    let report = block_on(agent.inspect(&slot("s1"))).unwrap();
    report.parts.iter().find(|it| it.kind == "system").map_or(String::new(), |it| it.text.clone())
}

fn confirm(agent: &Agent, answer: Value) -> Rc<Reply> {
    let context = RuntimeContext::new("alice", "s1");
    let mut call = agent.confirm(vec![answer], context).unwrap();
    block_on(call.finish()).unwrap()
}

// R45
#[test]
fn r45_only_read_only_and_named_tools_run_in_plan_mode() {
    let inputs = json!({ "todos": [{ "content": "plan" }] });
    let wanted = [
        ("look", json!({}), "Success: ran"),
        ("build", json!({}), "Success: ran"),
        ("act", json!({}), "Denied: This call was not allowed: plan mode is on, and act may"),
        (
            "write_file",
            json!({ "path": "a", "content": "" }),
            "Denied: This call was not allowed: plan mode is on",
        ),
        ("list_files", json!({}), "Success: "),
        ("todo_write", inputs, "Success: [ ] plan"),
        ("plan_write", json!({ "content": "1. look" }), "Success: Wrote plans/PLAN.md."),
        ("plan_enter", json!({}), "Success: Plan mode is on."),
    ];
    let lines = calls(&wanted.clone().map(|(name, input, _)| (name, input)));
    let agent = agent_of(&memory(), &ScriptedModel::new(lines));
    block_on(agent.enter_plan_mode(&slot("s1"))).unwrap();
    let told = outcomes(&ask(&agent, "s1", "go").unwrap());
    assert_eq!(told.len(), wanted.len());
    for (told, (_, _, expected)) in told.iter().zip(wanted) {
        assert!(told.starts_with(expected), "{told}");
    }
}

// R45
#[test]
fn r45_a_tool_called_beside_plan_enter_is_denied() {
    let both = [("a", "plan_enter", json!({})), ("b", "act", json!({}))];
    let model = ScriptedModel::new([Line::calls_all(&both), Line::says("ok")]);
    let store = memory();
    let agent = agent_of(&store, &model);
    let told = outcomes(&ask(&agent, "s1", "go").unwrap());
    assert!(told[0].starts_with("Success") && told[1].starts_with("Denied"), "{told:?}");
    let file = Some("plans/PLAN.md".to_owned());
    let expected =
        PlanModeContext { plan_active: true, current_plan_file: file, ..Default::default() };
    assert_eq!(plan(&agent_of(&store, &model)), expected, "also after a restart");
}

// R45
#[test]
fn r45_a_plan_is_carried_out_only_when_a_person_approves_it() {
    let store = memory();
    let lines = calls(&[
        ("plan_enter", json!({})),
        ("plan_write", json!({ "content": "1. act" })),
        ("plan_exit", json!({ "summary": "I act." })),
    ]);
    let lines = lines.into_iter().take(3);
    let no = calls(&[("act", json!({})), ("plan_exit", json!({}))]).into_iter().take(2);
    let yes = calls(&[("act", json!({}))]);
    let model = ScriptedModel::new(lines.chain(no).chain(yes));
    let reply = ask(&agent_of(&store, &model), "s1", "go").unwrap();
    assert_eq!(reply.asks[0].reason, "the plan in plans/PLAN.md is to be carried out");
    let id = reply.asks[0].tool_call_id.clone();

    let agent = agent_of(&store, &model);
    let refused = block_on(agent.exit_plan_mode(&slot("s1"))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PendingTools);
    let reply =
        confirm(&agent, json!({ "toolCallId": id, "approve": false, "reason": "too bold" }));
    let told = outcomes(&reply);
    assert!(told[0].starts_with("Denied") && told[0].contains("too bold"), "{told:?}");
    assert!(told[1].starts_with("Denied: This call was not allowed: plan mode is on"), "{told:?}");
    assert!(plan(&agent).plan_active);

    let id = reply.asks[0].tool_call_id.clone();
    let reply = confirm(&agent, json!({ "toolCallId": id, "approve": true }));
    let told = outcomes(&reply);
    assert!(told[0].starts_with("Success: The plan in plans/PLAN.md is approved"), "{told:?}");
    assert_eq!(told[1], "Success: ran");
    assert!(!plan(&agent).plan_active);
}

#[test]
fn plan_exit_without_a_plan_is_refused_before_a_person_is_asked() {
    let off = calls(&[("plan_exit", json!({}))]);
    let no_plan = calls(&[("plan_enter", json!({})), ("plan_exit", json!({}))]);
    let agent = agent_of(&memory(), &ScriptedModel::new(off.into_iter().chain(no_plan)));
    let reply = ask(&agent, "s1", "go").unwrap();
    assert!(outcomes(&reply)[0].contains("plan mode is off already"), "{:?}", outcomes(&reply));
    let reply = ask(&agent, "s1", "go").unwrap();
    assert!(outcomes(&reply)[1].contains("there is no plan yet"), "{:?}", outcomes(&reply));
    assert!(reply.asks.is_empty() && plan(&agent).plan_active);
}

#[test]
fn the_instructions_change_with_plan_mode() {
    let lines = calls(&[("plan_enter", json!({})), ("look", json!({}))]);
    let model = ScriptedModel::new(lines);
    let agent = agent_of(&memory(), &model);
    assert_eq!(instructions(&agent), "");
    ask(&agent, "s1", "go").unwrap();
    assert!(instructions(&agent).starts_with("Plan mode is on."));
    assert!(instructions(&agent).contains("only tools that read may run, and build"));
    let ends: Vec<_> = model.requests().iter().map(|it| it.last().unwrap().text()).collect();
    assert!(!ends[0].contains("Plan mode") && ends[1].contains("Plan mode is on"), "{ends:?}");
    block_on(agent.exit_plan_mode(&slot("s1"))).unwrap();
    assert!(instructions(&agent).starts_with("A plan was made in plans/PLAN.md."));
}

#[test]
fn an_observer_sees_plan_mode_begin() {
    let agent = agent_of(&memory(), &ScriptedModel::new(calls(&[("plan_enter", json!({}))])));
    let mut call = begin(&agent, "s1", "go");
    let mut seen = Vec::new();
    while let Some(event) = block_on(call.next()) {
        if let Event::Plan { plan } = event.event {
            seen.push(plan.plan_active);
        }
    }
    assert_eq!(seen, [true]);
}

#[test]
fn the_host_switches_plan_mode_without_a_question_and_creates_a_missing_session() {
    let agent = agent_of(&memory(), &ScriptedModel::new([]));
    block_on(agent.exit_plan_mode(&slot("s1"))).unwrap();
    assert!(block_on(agent.session(&slot("s1"))).unwrap().is_none());
    block_on(agent.enter_plan_mode(&slot("s1"))).unwrap();
    block_on(agent.enter_plan_mode(&slot("s1"))).unwrap();
    assert!(plan(&agent).plan_active);
    let plain = builder(&memory(), &ScriptedModel::new([]), Options::new("helper"));
    let refused = block_on(plain.build().unwrap().enter_plan_mode(&slot("s1"))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Options);
}

#[test]
fn without_a_workspace_a_plan_is_a_file_that_the_model_can_read() {
    let lines = calls(&[
        ("plan_write", json!({ "content": "1. look" })),
        ("read_file", json!({ "path": "plans/PLAN.md" })),
        ("write_file", json!({ "path": "a", "content": "" })),
        ("plan_write", json!({ "content": " \n" })),
    ]);
    let options = Options { workspace: None, ..options() };
    let agent = builder(&memory(), &ScriptedModel::new(lines), options).build().unwrap();
    let told = outcomes(&ask(&agent, "s1", "go").unwrap());
    assert_eq!(told[..2], ["Success: Wrote plans/PLAN.md.", "Success: 1. look"]);
    assert!(told[2].starts_with("Error: The tool \"write_file\" does not exist."), "{told:?}");
    assert_eq!(told[3], "Error: The plan is empty. What was written before is as it was.");
    let files = agent.files(Some("alice")).unwrap();
    assert_eq!(block_on(files.read("plans/PLAN.md")).unwrap().unwrap().text, "1. look");
}

#[test]
fn an_invalid_plan_mode_is_refused_when_the_agent_is_built() {
    for (plan_mode, why) in [
        (PlanMode { file: "../PLAN.md".into(), ..mode() }, "planMode.directory: "),
        (
            PlanMode { extra_tools: vec!["fly".into()], ..mode() },
            "planMode.extraTools: there is no tool named \"fly\"",
        ),
    ] {
        let options = Options { plan_mode: Some(plan_mode), ..options() };
        let refused = builder(&memory(), &ScriptedModel::new([]), options).build().err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Options);
        assert!(refused.message().starts_with(why), "{}", refused.message());
    }
}
