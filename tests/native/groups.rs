//! Groups of tools: what a session has on, and who may change it.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Store, Tool, ToolRun, ToolSpec};
use lockgate::tool::group::{Scope, ToolGroup};
use serde_json::json;

struct Named(Rc<ToolSpec>);

impl Tool for Named {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(Ok(vec![Block::text("ran")])))
    }
}

fn named(name: &str) -> Rc<Named> {
    let (name, description) = (name.to_owned(), String::new());
    let input_schema = json!({ "type": "object" });
    Rc::new(Named(Rc::new(ToolSpec {
        name,
        description,
        input_schema,
        parallel: true,
        timeout_ms: None,
    })))
}

fn group(name: &str, tool: &str, active: bool, scope: Scope) -> ToolGroup {
    let (name, tools) = (name.to_owned(), vec![tool.to_owned()]);
    ToolGroup { name, description: "some tools".into(), tools, active, scope }
}

fn builder(
    store: &Rc<dyn Store>,
    lines: impl IntoIterator<Item = Line>,
    groups: Vec<ToolGroup>,
) -> Builder {
    let options = Options { tool_groups: groups, meta_tool: true, ..Options::new("helper") };
    let builder = Builder::new(options).model(ScriptedModel::new(lines)).store(Rc::clone(store));
    ["free", "web", "shell"]
        .into_iter()
        .fold(builder, |builder, name| builder.tool(named(name)))
        .host(Rc::new(HostHandle(TestHost::new())))
}

fn agent_of(store: &Rc<dyn Store>, lines: impl IntoIterator<Item = Line>) -> Agent {
    let groups =
        vec![group("net", "web", false, Scope::Model), group("danger", "shell", true, Scope::Host)];
    builder(store, lines, groups).build().unwrap()
}

fn active(agent: &Agent) -> Vec<String> {
    block_on(agent.state(&slot("s1"))).unwrap().facts.tool_context.activated_groups
}

fn results(agent: &Agent, text: &str) -> String {
    serde_json::to_string(&ask(agent, "s1", text).unwrap().messages).unwrap()
}

#[test]
fn a_fresh_session_has_the_groups_on_that_are_active() {
    let agent = agent_of(&memory(), [Line::says("hi")]);
    assert_eq!(active(&agent), ["danger"]);
    ask(&agent, "s1", "hello").unwrap();
    assert_eq!(active(&agent), ["danger"]);
}

#[test]
fn a_tool_whose_groups_are_off_is_refused_and_the_model_can_read_why() {
    let agent = agent_of(&memory(), [Line::calls("web", &json!({})), Line::says("sorry")]);
    let text = results(&agent, "search");
    assert!(text.contains("is not on in this session") && !text.contains("\"ran\""), "{text}");
}

#[test]
fn the_model_switches_its_own_groups_and_the_session_remembers() {
    let store = memory();
    let switch = Line::calls("reset_equipped_tools", &json!({ "to_activate": ["net"] }));
    let agent = agent_of(&store, [switch, Line::calls("web", &json!({})), Line::says("found")]);
    assert!(results(&agent, "search").contains("\"ran\""));
    assert_eq!(active(&agent), ["danger", "net"]);
    assert_eq!(active(&agent_of(&store, [])), ["danger", "net"]);
}

#[test]
fn groups_of_the_host_are_not_the_model_s_to_switch() {
    let switch = Line::calls("reset_equipped_tools", &json!({ "to_activate": ["danger"] }));
    let agent = agent_of(&memory(), [switch, Line::says("oh")]);
    assert!(results(&agent, "more").contains("\"error\""));
    assert_eq!(active(&agent), ["danger"]);
}

#[test]
fn a_group_that_names_no_tool_is_refused() {
    let groups = vec![group("net", "nobody", true, Scope::Model)];
    assert_eq!(builder(&memory(), [], groups).build().err().unwrap().kind(), ErrorKind::Options);
}
