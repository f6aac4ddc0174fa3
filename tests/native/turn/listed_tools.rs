//! The list of an agent's tools: the source of each, and which of them a session has.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options, Subagent, ToolInfo};
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::policy::plan::PlanMode;
use lockgate::port::{Deltas, Model, Request, ToolSpec};
use lockgate::slot::Slot;
use lockgate::spec::Effect;
use lockgate::store::format::task::child_session;
use lockgate::store::workspace::files::Workspace;
use lockgate::tool::group::{Scope, ToolGroup};
use lockgate::tool::skill::Skill;
use serde_json::json;

/// A model that records the names of the tools in its request.
struct Noting(Rc<ScriptedModel>, Rc<RefCell<Vec<String>>>);

impl Model for Noting {
    fn id(&self, tag: u32) -> String {
        self.0.id(tag)
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        self.1.replace(request.tools.iter().map(|tool| tool.name.clone()).collect());
        self.0.ask(request)
    }
}

/// An agent with the tools `look` and `act`, and the names of the tools that its model was given last.
fn agent_of(options: Options, lines: Vec<Line>) -> (Agent, Rc<RefCell<Vec<String>>>) {
    let given = Rc::default();
    let schema = json!({
        "type": "object",
        "properties": { "what": { "type": "string" }, "key": { "type": "string" } },
        "required": ["what", "key"],
    });
    let look = ToolSpec { effect: Effect::Reads, ..ToolSpec::new("look", "looks", schema.clone()) };
    let presets = json!({ "key": "k" }).as_object().unwrap().clone();
    let act = ToolSpec { presets, ..ToolSpec::new("act", "acts", schema) };
    let agent = Builder::new(options)
        .model(Rc::new(Noting(ScriptedModel::new(lines), Rc::clone(&given))))
        .store(memory())
        .host(Rc::new(HostHandle(TestHost::new())))
        .tool(Rc::new(Named(Rc::new(look))))
        .tool(Rc::new(Named(Rc::new(act))))
        .build()
        .unwrap();
    (agent, given)
}

fn grouped() -> Options {
    let group = ToolGroup {
        name: "doing".into(),
        description: "tools that change things".into(),
        tools: vec!["act".into()],
        active: false,
        scope: Scope::Model,
    };
    Options {
        tool_groups: vec![group],
        meta_tool: true,
        session_tools: false,
        ..Options::new("helper")
    }
}

fn tools(agent: &Agent, slot: Option<&Slot>) -> Vec<ToolInfo> {
    block_on(agent.tools(slot)).unwrap()
}

fn active(agent: &Agent, slot: Option<&Slot>) -> Vec<String> {
    tools(agent, slot).into_iter().filter(|tool| tool.active).map(|tool| tool.name).collect()
}

#[test]
fn each_listed_tool_has_its_source_schema_and_read_only_flag() {
    let (agent, _) = agent_of(grouped(), vec![]);
    let listed = tools(&agent, Some(&slot("s1")));
    let brief = listed.iter().map(|it| (it.name.as_str(), it.source, it.read_only, it.active));
    let expected = [
        ("look", "agent", true, true),
        ("act", "agent", false, false),
        ("reset_equipped_tools", "built-in", true, true),
    ];
    assert_eq!(brief.collect::<Vec<_>>(), expected);
    assert_eq!(listed[1].description, "acts");
    // The property `key` is preset, so it is not in the schema for the model.
    let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] });
    assert_eq!(listed[1].input_schema, schema);
}

#[test]
fn without_a_slot_the_tools_are_those_of_a_fresh_session() {
    let (agent, _) = agent_of(grouped(), vec![]);
    assert_eq!(tools(&agent, None), tools(&agent, Some(&slot("nobody has this"))));
    let required = Options { require_user_id: true, ..grouped() };
    assert_eq!(active(&agent_of(required, vec![]).0, None), ["look", "reset_equipped_tools"]);
}

#[test]
fn the_active_tools_are_those_that_the_model_is_given() {
    let switch = Line::calls("reset_equipped_tools", &json!({ "to_activate": ["doing"] }));
    let (agent, given) = agent_of(grouped(), vec![switch, Line::says("on")]);
    let fresh = active(&agent, Some(&slot("s1")));
    ask(&agent, "s1", "switch").unwrap();
    let switched = active(&agent, Some(&slot("s1")));
    assert_eq!(switched, ["look", "act", "reset_equipped_tools"]);
    assert_eq!(*given.borrow(), switched);
    assert_eq!(active(&agent, Some(&slot("s2"))), fresh);
}

#[test]
fn load_skill_is_active_where_there_are_skills() {
    let has_it =
        |agent: &Agent, slot: Option<&Slot>| active(agent, slot).contains(&"load_skill".to_owned());
    let options = || Options { workspace: Some(Workspace::default()), ..Options::new("helper") };
    let (agent, _) = agent_of(options(), vec![]);
    assert!(!has_it(&agent, None) && !has_it(&agent, Some(&slot("s1"))));
    let skill = "---\ndescription: making tea\n---\nBoil water.";
    block_on(agent.files(Some("alice")).unwrap().put("skills/tea/SKILL.md", skill)).unwrap();
    assert!(!has_it(&agent, None) && has_it(&agent, Some(&slot("s1"))));
    let tea = Skill {
        name: "tea".into(),
        description: "making tea".into(),
        content: "Boil water.".into(),
        resources: vec![],
        tool_groups: vec![],
    };
    let (agent, _) = agent_of(Options { skills: vec![tea].into(), ..options() }, vec![]);
    assert!(has_it(&agent, None));
}

#[test]
fn a_childs_session_has_the_tools_of_its_subagent_type() {
    let kind = Subagent {
        name: "worker".into(),
        description: "works".into(),
        tools: Some(vec!["look".into(), "plan_write".into()]),
        ..Subagent::default()
    };
    let plan_mode = Some(PlanMode { file: "plans/PLAN.md".into(), extra_tools: vec![] });
    let options = Options { subagents: Some(vec![kind]), plan_mode, ..Options::new("helper") };
    let (agent, _) = agent_of(options, vec![]);
    let child = |kind: &str| slot(&child_session(kind, "0000000000000"));
    assert_eq!(active(&agent, Some(&child("worker"))), ["look"]);
    let general = active(&agent, Some(&child("general-purpose")));
    assert!(general.contains(&"agent_spawn".into()) && !general.contains(&"plan_write".into()));
    assert!(active(&agent, Some(&slot("s1"))).contains(&"plan_write".into()));
}
