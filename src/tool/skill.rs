//! Skills: instructions for particular jobs. The model knows their names, and loads one with `load_skill`.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Effect, Tool, ToolRun, ToolSpec};
use crate::slot::Slot;
use crate::store::workspace::files::Files;
use crate::tool::front_matter::FrontMatter;
use crate::tool::group::ToolGroup;

/// The name of the tool.
pub const LOAD_SKILL: &str = "load_skill";

const WHAT: &str = "Reads the instructions of a skill, and puts its tools on; with a path, one of the skill's other files.";

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"}},"required":["name"]}"#;

/// The folder of skills in a workspace; each skill is a folder in it.
const FOLDER: &str = "skills/";

/// The file with the instructions of a skill.
const MAIN: &str = "SKILL.md";

/// Longest description in the list. Files may contain longer ones.
const LONGEST: usize = 1_024;

/// A skill of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The instructions.
    pub content: String,
    /// Other files: path and text.
    pub resources: Vec<(String, String)>,
    /// The groups of tools that are switched on with it.
    pub tool_groups: Vec<String>,
}

/// A skill as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its folder in the workspace; `None` for a skill of the host.
    folder: Option<String>,
}

/// Refuses empty skills, two skills with the same name, and unknown groups.
pub fn check(skills: &[Skill], groups: &[ToolGroup]) -> Result<()> {
    let wrong =
        |message: String, hint: &str| Err(Error::new(ErrorKind::Options, message).hint(hint));
    for (index, skill) in skills.iter().enumerate() {
        let Skill { name, description, content, tool_groups, .. } = skill;
        if [name, description, content].iter().any(|text| text.trim().is_empty()) {
            let message = format!("skills[{index}] has no name, description or content");
            return wrong(
                message,
                "a skill is { name, description, content }, and no member may be blank",
            );
        }
        if skills.iter().take(index).any(|other| other.name == *name) {
            let message = format!("two skills are named \"{name}\"");
            return wrong(message, "give each skill a different name");
        }
        let is_known = |name: &&String| groups.iter().any(|group| group.name == **name);
        if let Some(unknown) = tool_groups.iter().find(|name| !is_known(name)) {
            let message = format!("skill \"{name}\": there is no group \"{unknown}\"");
            return wrong(
                message,
                "a skill's toolGroups are names of groups in the agent's toolGroups",
            );
        }
    }
    Ok(())
}

/// All skills of a session: those of the host, then those of the workspace. A skill of the workspace never replaces a
/// skill of the host, because the model may write to the workspace.
pub async fn catalog(own: &[Skill], files: Option<&Files>, slot: &Slot) -> Result<Vec<Listed>> {
    let listed = |skill: &Skill| {
        let (name, description) = (skill.name.clone(), skill.description.clone());
        Listed { name, description, folder: None }
    };
    let mut skills: Vec<Listed> = own.iter().map(listed).collect();
    let Some(files) = files else { return Ok(skills) };
    let files = files.of(slot);
    for path in files.list(FOLDER.trim_end_matches('/')).await? {
        let folder = path.strip_suffix(MAIN).and_then(|folder| folder.strip_suffix('/'));
        let Some(name) = folder.and_then(|folder| folder.strip_prefix(FOLDER)) else { continue };
        let Some(file) = files.read(&path).await?.filter(|_| !name.contains('/')) else { continue };
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
    /// The tool for the skills of the host and of the workspace.
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

    /// A file of a skill in the workspace, and the names of its other files.
    async fn of_workspace(
        &self,
        slot: &Slot,
        skill: &Listed,
        path: &str,
    ) -> Result<(Option<String>, Vec<String>)> {
        let (Some(files), Some(folder)) = (&self.files, &skill.folder) else {
            return Ok((None, Vec::new()));
        };
        let files = files.of(slot);
        let inside =
            |path: &String| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        let others =
            files.list(folder).await?.iter().filter_map(inside).filter(|it| it != path).collect();
        let found = files.read(&[folder, "/", path].concat()).await?;
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

/// A file of a skill of the host, and the names of its other files.
fn of_host(skill: &Skill, path: &str) -> (Option<String>, Vec<String>) {
    let main = (MAIN.to_owned(), skill.content.clone());
    let (found, others): (Vec<_>, Vec<_>) =
        std::iter::once(main).chain(skill.resources.clone()).partition(|(name, _)| name == path);
    let names = others.into_iter().map(|(name, _)| name).collect();
    (found.into_iter().next().map(|(_, text)| text), names)
}

/// Notes that a skill is loaded, and switches its groups of tools on.
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
