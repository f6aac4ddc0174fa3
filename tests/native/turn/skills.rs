//! Skills: listed in the instructions, loaded by the model, kept in the state.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Store, Tool, ToolRun, ToolSpec};
use lockgate::store::workspace::files::Workspace;
use lockgate::tool::front_matter::FrontMatter;
use lockgate::tool::group::{Scope, ToolGroup};
use lockgate::tool::skill::Skill;
use serde_json::json;

struct Saw(Rc<ToolSpec>);

impl Tool for Saw {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(Ok(vec![Block::text("sawn")])))
    }
}

fn saw() -> Rc<Saw> {
    Rc::new(Saw(Rc::new(ToolSpec::new("saw", "saws", json!({ "type": "object" })))))
}

fn carpentry() -> Skill {
    Skill {
        name: "carpentry".into(),
        description: "making tables".into(),
        content: "Measure twice.".into(),
        resources: vec![("joints.md".into(), "Dovetails.".into())],
        tool_groups: vec!["shop".into()],
    }
}

fn options(skills: &[Skill]) -> Options {
    let group = ToolGroup {
        name: "shop".into(),
        description: "tools that cut".into(),
        tools: vec!["saw".into()],
        active: false,
        scope: Scope::Host,
    };
    let (skills, tool_groups) = (skills.into(), vec![group]);
    Options { skills, tool_groups, workspace: Some(Workspace::default()), ..Options::new("helper") }
}

fn agent_of(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>) -> Agent {
    builder(store, model, options(&[carpentry()])).build().unwrap()
}

fn builder(store: &Rc<dyn Store>, model: &Rc<ScriptedModel>, options: Options) -> Builder {
    let host = Rc::new(HostHandle(TestHost::new()));
    let builder = Builder::new(options).host(host).tool(saw());
    builder.model(Rc::clone(model) as _).store(Rc::clone(store))
}

fn loads(input: &serde_json::Value) -> [Line; 2] {
    [Line::calls("load_skill", input), Line::says("ok")]
}

fn outcome(agent: &Agent) -> String {
    let reply = ask(agent, "s1", "go").unwrap();
    let result = reply.messages.iter().flat_map(|it| it.tool_results()).last().unwrap();
    format!("{:?}: {}", result.state, Block::text_of(&result.output))
}

fn instructions(agent: &Agent) -> String {
    let report = block_on(agent.inspect(&slot("s1"))).unwrap();
    report
        .parts
        .iter()
        .find(|part| part.kind == "system")
        .map_or(String::new(), |it| it.text.clone())
}

fn write(agent: &Agent, path: &str, text: &str) {
    block_on(agent.files(Some("alice")).unwrap().put(path, text)).unwrap();
}

#[test]
fn a_loaded_skill_switches_its_tools_on_even_after_a_restart() {
    let store = memory();
    let lines = loads(&json!({ "name": "carpentry" })).into_iter();
    let saws = [Line::calls("saw", &json!({})), Line::says("done")];
    let model = ScriptedModel::new(lines.chain(saws));
    let agent = agent_of(&store, &model);
    assert!(instructions(&agent).ends_with("\n- carpentry: making tables"));
    let told = outcome(&agent);
    assert!(
        told.starts_with("Success: Measure twice.\n\n") && told.contains("joints.md"),
        "{told}"
    );
    let again = agent_of(&store, &model);
    let tools = block_on(again.state(&slot("s1"))).unwrap().facts.tool_context;
    assert_eq!(
        (tools.activated_skills, tools.activated_groups),
        (vec!["carpentry".into()], vec!["shop".into()])
    );
    assert_eq!(outcome(&again), "Success: sawn");
    let last = model.requests().last().unwrap().last().unwrap().text();
    assert!(last.ends_with("(load_skill reads them again): carpentry."), "{last}");
}

#[test]
fn workspace_skills_are_listed_and_read_but_never_replace_or_switch_on_those_of_the_host() {
    let wanted = [
        (
            json!({ "name": "tea" }),
            "Success: Boil water.\n\n(Other files, to be read with load_skill and their path: cups/green.md.)",
        ),
        (json!({ "name": "tea", "path": "cups/green.md" }), "Success: At 80 degrees."),
        (
            json!({ "name": "tea", "path": "milk.md" }),
            "Error: The skill \"tea\" has no file \"milk.md\". Its files are: SKILL.md, cups/green.md.",
        ),
        (json!({ "name": "carpentry", "path": "joints.md" }), "Success: Dovetails."),
        (json!({ "name": "carpentry" }), "Success: Measure twice."),
        (json!({ "name": "bare" }), "Success: No front matter."),
        (
            json!({ "name": "coffee" }),
            "Error: There is no skill \"coffee\". The skills are: carpentry, bare, tea.",
        ),
    ];
    let lines = wanted.iter().flat_map(|(input, _)| loads(input));
    let agent = agent_of(&memory(), &ScriptedModel::new(lines));
    write(
        &agent,
        "skills/tea-making/SKILL.md",
        "---\nname: tea\ndescription: \"making tea\"\ntoolGroups: shop\n---\n\nBoil water.\n",
    );
    write(&agent, "skills/tea-making/cups/green.md", "At 80 degrees.");
    write(
        &agent,
        "skills/carpentry/SKILL.md",
        "---\nname: carpentry\ndescription: mine\n---\nCut first.",
    );
    write(&agent, "skills/bare/SKILL.md", "No front matter.");
    assert!(
        instructions(&agent)
            .ends_with("\n- carpentry: making tables\n- bare: (no description)\n- tea: making tea")
    );
    for (index, (_, expected)) in wanted.iter().enumerate() {
        let told = outcome(&agent);
        assert!(told.starts_with(expected), "{told}");
        let groups =
            block_on(agent.state(&slot("s1"))).unwrap().facts.tool_context.activated_groups;
        assert_eq!(groups.is_empty(), index < 4, "only the host's own skill puts tools on");
    }
}

#[test]
fn a_path_out_of_a_skill_is_refused() {
    let model = ScriptedModel::new(loads(&json!({ "name": "tea", "path": "../../secret.md" })));
    let agent = agent_of(&memory(), &model);
    write(&agent, "skills/tea/SKILL.md", "---\ndescription: making tea\n---\nBoil water.");
    write(&agent, "secret.md", "hidden");
    let told = outcome(&agent);
    assert!(told.starts_with("Error: ") && !told.contains("hidden"), "{told}");
}

#[test]
fn without_skills_the_agent_has_no_skill_instructions_and_no_load_skill() {
    let model = ScriptedModel::new([]);
    let agent = builder(&memory(), &model, options(&[])).build().unwrap();
    let report = block_on(agent.inspect(&slot("s1"))).unwrap();
    assert!(
        report.parts.iter().all(|part| part.kind == "tools" && !part.text.contains("load_skill"))
    );
    write(&agent, "skills/tea/SKILL.md", "---\ndescription: making tea\n---\nBoil water.");
    assert!(instructions(&agent).ends_with("- tea: making tea"));
}

#[test]
fn invalid_skills_are_refused_when_the_agent_is_built() {
    let blank = Skill { content: " ".into(), ..carpentry() };
    let unknown = Skill { tool_groups: vec!["garden".into()], ..carpentry() };
    for (skills, why) in [
        (vec![carpentry(), carpentry()], "two skills are named \"carpentry\""),
        (vec![blank], "skills[0] has no name, description or content"),
        (vec![unknown], "skill \"carpentry\": there is no group \"garden\""),
    ] {
        let refused = builder(&memory(), &ScriptedModel::new([]), options(&skills)).build().err();
        let refused = refused.unwrap();
        assert_eq!((refused.kind(), refused.message()), (ErrorKind::Options, why));
    }
}

#[test]
fn common_forms_of_front_matter_are_read() {
    let text = "---\r\n# a note\r\nname: 'tea'\r\ndescription: >-\r\n  making\r\n  tea: well\r\nempty:\r\n---\r\nBody\r\n--- more";
    let front = FrontMatter::of(text);
    assert_eq!(front.get("name"), Some("tea"));
    assert_eq!(front.get("description"), Some("making tea: well"));
    assert_eq!((front.get("empty"), front.get("none")), (None, None));
    assert_eq!(front.body, "Body\r\n--- more");
    for all_text in ["", "no front matter", "---\nname: never closed", " ---\nname: x\n---\n"] {
        let front = FrontMatter::of(all_text);
        assert_eq!((front.get("name"), front.body), (None, all_text));
    }
}
