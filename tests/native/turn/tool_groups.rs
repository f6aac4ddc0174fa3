//! Tool groups: which are on in a session, and who may switch them.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options};
use lockgate::error::ErrorKind;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Store, ToolSpec};
use lockgate::tool::group::{Scope, ToolGroup};
use serde_json::json;

fn named(name: &str) -> Rc<Named> {
    let (name, description) = (name.to_owned(), String::new());
    let input_schema = json!({ "type": "object" });
    Rc::new(Named(Rc::new(ToolSpec::new(name, description, input_schema))))
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
fn in_a_fresh_session_the_active_groups_are_on() {
    let agent = agent_of(&memory(), [Line::says("hi")]);
    assert_eq!(active(&agent), ["danger"]);
    ask(&agent, "s1", "hello").unwrap();
    assert_eq!(active(&agent), ["danger"]);
}

#[test]
fn a_tool_whose_groups_are_off_is_refused_with_a_reason() {
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
fn the_model_cannot_switch_groups_of_the_host() {
    let switch = Line::calls("reset_equipped_tools", &json!({ "to_activate": ["danger"] }));
    let agent = agent_of(&memory(), [switch, Line::says("oh")]);
    assert!(results(&agent, "more").contains("\"error\""));
    assert_eq!(active(&agent), ["danger"]);
}

#[test]
fn a_group_without_a_known_tool_is_refused() {
    let groups = vec![group("net", "nobody", true, Scope::Model)];
    assert_eq!(builder(&memory(), [], groups).build().err().unwrap().kind(), ErrorKind::Options);
}

#[test]
fn r33_the_result_of_a_tool_that_is_off_is_an_error() {
    let agent = agent_of(&memory(), [Line::calls("web", &json!({})), Line::says("sorry")]);
    assert!(results(&agent, "search").contains("\"state\":\"error\""));
}

#[test]
fn r36_switching_groups_in_one_session_leaves_those_of_another_unchanged() {
    let switch = Line::calls("reset_equipped_tools", &json!({ "to_activate": ["net"] }));
    let lines = [switch, Line::calls("web", &json!({})), Line::says("found"), Line::says("no")];
    let agent = agent_of(&memory(), lines);
    // Both calls run at once: the second one's model is asked while the first session has the group on.
    let (mut first, mut second) = (begin(&agent, "s1", "search"), begin(&agent, "s2", "search"));
    block_on(first.finish()).unwrap();
    block_on(second.finish()).unwrap();
    assert_eq!(active(&agent), ["danger", "net"]);
    let other = block_on(agent.state(&slot("s2"))).unwrap();
    assert_eq!(other.facts.tool_context.activated_groups, ["danger"]);
}

#[test]
fn r38_switching_is_absolute_and_never_changes_groups_of_the_host() {
    let to = |names: &[&str]| Line::calls("reset_equipped_tools", &json!({ "to_activate": names }));
    let agent = agent_of(&memory(), [to(&["net"]), to(&[]), Line::says("all off")]);
    ask(&agent, "s1", "switch").unwrap();
    assert_eq!(active(&agent), ["danger"]);
}
