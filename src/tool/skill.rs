//! Skills: instructions for particular jobs, of which a model knows the names until it loads one with `load_skill`.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Effect, Tool, ToolRun, ToolSpec};
use crate::slot::Slot;
use crate::store::files::Files;
use crate::tool::front_matter::FrontMatter;
use crate::tool::group::ToolGroup;

/// The tool.
pub const LOAD_SKILL: &str = "load_skill";

const WHAT: &str = "Reads the instructions of a skill, and puts its tools on; with a path, one of the skill's other files.";

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"}},"required":["name"]}"#;

/// Where a workspace has skills, each in a folder of its own.
const FOLDER: &str = "skills/";

/// What the instructions of a skill are in.
const MAIN: &str = "SKILL.md";

/// The longest description that is listed; a file may have any.
const LONGEST: usize = 1_024;

/// A skill that the host gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The instructions.
    pub content: String,
    /// Other files, by path.
    pub resources: Vec<(String, String)>,
    /// The groups of tools that go on with it.
    pub tool_groups: Vec<String>,
}

/// A skill as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// Where the workspace has it; none for one of the host's.
    folder: Option<String>,
}

/// Refuses skills that say nothing, two of one name, and groups that are not there.
pub fn check(skills: &[Skill], groups: &[ToolGroup]) -> Result<()> {
    let wrong =
        |message: String, hint: &str| Err(Error::new(ErrorKind::Options, message).hint(hint));
    for (index, skill) in skills.iter().enumerate() {
        let Skill { name, description, content, tool_groups, .. } = skill;
        if [name, description, content].iter().any(|text| text.trim().is_empty()) {
            let message = format!("skills[{index}] has no name, description or content");
            return wrong(
                message,
                "a skill is { name, description, content }, and none of them is blank",
            );
        }
        if skills.iter().take(index).any(|other| other.name == *name) {
            let message = format!("two skills are named \"{name}\"");
            return wrong(message, "give each skill a name of its own");
        }
        let is_known = |name: &&String| groups.iter().any(|group| group.name == **name);
        if let Some(unknown) = tool_groups.iter().find(|name| !is_known(name)) {
            let message = format!("skill \"{name}\": there is no group \"{unknown}\"");
            return wrong(message, "toolGroups of a skill are names of the agent's toolGroups");
        }
    }
    Ok(())
}

/// All skills of a session: the host's, then those of the workspace. The host's own are never replaced: what a model
/// may write must not speak for the host.
pub async fn catalog(own: &[Skill], files: Option<&Files>, slot: &Slot) -> Result<Vec<Listed>> {
    let listed = |skill: &Skill| {
        let (name, description) = (skill.name.clone(), skill.description.clone());
        Listed { name, description, folder: None }
    };
    let mut skills: Vec<Listed> = own.iter().map(listed).collect();
    let Some(files) = files else { return Ok(skills) };
    let shelf = files.of(slot);
    for path in shelf.list(FOLDER.trim_end_matches('/')).await? {
        let folder = path.strip_suffix(MAIN).and_then(|folder| folder.strip_suffix('/'));
        let Some(name) = folder.and_then(|folder| folder.strip_prefix(FOLDER)) else { continue };
        let Some(file) = shelf.read(&path).await?.filter(|_| !name.contains('/')) else { continue };
        let front = FrontMatter::of(&file.text);
        let name = front.get("name").unwrap_or(name).to_owned();
        if skills.iter().all(|other| other.name != name) {
            let description = front.get("description").unwrap_or("(no description)");
            let description = description.chars().take(LONGEST).collect();
            skills.push(Listed { name, description, folder: folder.map(str::to_owned) });
        }
    }
    Ok(skills)
}

/// `load_skill`.
pub struct LoadSkill {
    spec: Rc<ToolSpec>,
    own: Rc<[Skill]>,
    files: Option<Rc<Files>>,
}

impl LoadSkill {
    /// The tool over the host's skills and those of the workspace.
    pub fn new(own: Rc<[Skill]>, files: Option<Rc<Files>>) -> LoadSkill {
        let schema = serde_json::from_str(SCHEMA).unwrap_or_default();
        let spec = ToolSpec::new(LOAD_SKILL, WHAT, schema);
        LoadSkill { spec: Rc::new(ToolSpec { effect: Effect::Notes, ..spec }), own, files }
    }

    async fn load(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let text = |name| run.input.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, path) = (text("name"), text("path"));
        let path = if path.is_empty() { MAIN } else { path };
        let skills = catalog(&self.own, self.files.as_deref(), run.slot).await?;
        let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
            let names: Vec<_> = skills.iter().map(|skill| skill.name.clone()).collect();
            return Err(missing(&format!("There is no skill \"{name}\". The skills are"), &names));
        };
        let own = self.own.iter().find(|own| skill.folder.is_none() && own.name == name);
        let (found, others) = match own {
            Some(own) => of_host(own, path),
            None => self.of_workspace(run.slot, skill, path).await?,
        };
        let Some(mut found) = found else {
            return Err(missing(
                &format!("The skill \"{name}\" has no file \"{path}\". Its files are"),
                &others,
            ));
        };
        if path == MAIN {
            let groups = own.map_or(&[][..], |own| &own.tool_groups);
            activate(run, name, groups);
            if !others.is_empty() {
                found += "\n\n(Other files, to be read with load_skill and their path: ";
                found += &others.join(", ");
                found += ".)";
            }
        }
        Ok(vec![Block::text(found)])
    }

    /// A file of a skill of the workspace, and the names of its other files.
    async fn of_workspace(
        &self,
        slot: &Slot,
        skill: &Listed,
        path: &str,
    ) -> Result<(Option<String>, Vec<String>)> {
        let (Some(files), Some(folder)) = (&self.files, &skill.folder) else {
            return Ok((None, Vec::new()));
        };
        let shelf = files.of(slot);
        let inside =
            |path: &String| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        let others =
            shelf.list(folder).await?.iter().filter_map(inside).filter(|it| it != path).collect();
        let found = shelf.read(&[folder, "/", path].concat()).await?;
        let body = |text: String| {
            if path == MAIN { FrontMatter::of(&text).body.trim().to_owned() } else { text }
        };
        Ok((found.map(|file| body(file.text)), others))
    }
}

impl Tool for LoadSkill {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(self.load(run))
    }
}

/// A file of one of the host's skills, and the names of its other files.
fn of_host(skill: &Skill, path: &str) -> (Option<String>, Vec<String>) {
    let main = (MAIN.to_owned(), skill.content.clone());
    let (found, others): (Vec<_>, Vec<_>) =
        std::iter::once(main).chain(skill.resources.clone()).partition(|(name, _)| name == path);
    let names = others.into_iter().map(|(name, _)| name).collect();
    (found.into_iter().next().map(|(_, text)| text), names)
}

/// Notes that a skill is loaded, and puts its tools on.
fn activate(run: ToolRun<'_>, name: &str, groups: &[String]) {
    run.desk.change(&mut |facts| {
        let tools = &mut facts.tool_context;
        add(&mut tools.activated_skills, name);
        groups.iter().for_each(|group| add(&mut tools.activated_groups, group));
    });
}

fn add(names: &mut Vec<String>, name: &str) {
    if names.iter().all(|other| other != name) {
        names.push(name.to_owned());
    }
}

#[cold]
fn missing(what: &str, names: &[String]) -> Error {
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Error::new(ErrorKind::InputInvalid, format!("{what}: {names}."))
}
