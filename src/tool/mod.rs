//! The tools of an agent, and the built-in tools. The order of tools is kept, because prompt caches depend on it.

pub mod front_matter;
pub mod group;
pub mod memory_tools;
pub mod notebook;
pub mod plan;
pub mod schema;
pub mod session_tools;
pub mod skill;
pub mod subagents;
pub mod todo;
pub mod workspace;

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::{Tool, ToolSpec};
use crate::tool::group::ToolGroup;
use crate::tool::schema::Schema;

/// A tool and its input schema.
pub struct RegisteredTool {
    /// The tool.
    pub tool: Rc<dyn Tool>,
    schema: Schema,
    /// The description for the model.
    shown: Rc<ToolSpec>,
    /// Whether the tool is built in, and not given by the host.
    is_built_in: bool,
}

impl RegisteredTool {
    /// The input for the tool, or a text for the model that says what is wrong with it.
    pub fn check(&self, input: &Value) -> Result<Value, String> {
        let mut input = self.schema.without_nulls(input.clone());
        // Arguments that the host has preset replace those of the model.
        if let Value::Object(members) = &mut input {
            members.extend(self.tool.spec().presets.clone());
        }
        self.schema.check(&input).map(|()| input).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let what =
                "The arguments do not fit what the tool takes. Correct them and call it again.";
            format!("{what}\n{}", lines.join("\n"))
        })
    }
}

/// The tools of an agent.
#[derive(Default)]
pub struct Registry {
    entries: Vec<RegisteredTool>,
    groups: Rc<[ToolGroup]>,
}

impl Registry {
    /// The tools of the host, then the built-in ones. Refuses two tools with the same name, names that providers do not
    /// accept, and invalid schemas.
    pub fn new(
        own: Vec<Rc<dyn Tool>>,
        built_in: Vec<Rc<dyn Tool>>,
        groups: Rc<[ToolGroup]>,
    ) -> Result<Registry> {
        let mut registry = Registry { entries: Vec::new(), groups };
        let n_own = own.len();
        for (place, tool) in own.into_iter().chain(built_in).enumerate() {
            let spec = Rc::clone(tool.spec());
            let name = &spec.name;
            if !is_name(name) {
                let hint = "a tool's name is 1 to 64 letters, digits, _ or -";
                return Err(wrong(format!("\"{name}\" is not a valid tool name")).hint(hint));
            }
            if registry.find(name).is_some() {
                let hint = "give each tool a different name";
                return Err(wrong(format!("two tools are named \"{name}\"")).hint(hint));
            }
            let schema = Schema::compile(&spec.input_schema).map_err(|error| {
                let hint = error.hint_text().unwrap_or("write JSON Schema");
                wrong(format!("the schema of tool \"{name}\": {}", error.message())).hint(hint)
            })?;
            let shown = shown(&spec)?;
            let is_built_in = place >= n_own;
            registry.entries.push(RegisteredTool { tool, schema, shown, is_built_in });
        }
        let mut named = registry.groups.iter().flat_map(|group| &group.tools);
        if let Some(unknown) = named.find(|name| registry.find(name).is_none()) {
            let hint = "the tools of a group must be tools of this agent";
            return Err(wrong(format!("there is no tool named \"{unknown}\"")).hint(hint));
        }
        Ok(registry)
    }

    /// The descriptions for the model if these groups are on. A tool without a group is always on.
    pub fn visible(&self, active: &[String]) -> Vec<Rc<ToolSpec>> {
        let specs = self.entries.iter().map(|entry| &entry.shown);
        let visible = specs.filter(|spec| {
            let mut of_tool =
                self.groups.iter().filter(|group| group.tools.contains(&spec.name)).peekable();
            of_tool.peek().is_none() || of_tool.any(|group| active.contains(&group.name))
        });
        visible.cloned().collect()
    }

    /// The descriptions of all tools for the model, and whether each tool is built in.
    pub fn all(&self) -> impl Iterator<Item = (&Rc<ToolSpec>, bool)> {
        self.entries.iter().map(|entry| (&entry.shown, entry.is_built_in))
    }

    /// The tool with this name.
    pub fn find(&self, name: &str) -> Option<&RegisteredTool> {
        self.entries.iter().find(|entry| entry.tool.spec().name == name)
    }

    /// Sentences about the parts of schemas that are not enforced.
    pub fn unchecked(&self) -> Vec<String> {
        let of_entry = |entry: &RegisteredTool| {
            let name = entry.tool.spec().name.clone();
            let paths = entry.schema.unsupported().iter();
            paths.map(|path| format!("tool \"{name}\": {path} is not checked")).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(of_entry).collect()
    }
}

/// The description of a tool for the model, without preset arguments.
fn shown(spec: &Rc<ToolSpec>) -> Result<Rc<ToolSpec>> {
    if spec.presets.is_empty() {
        return Ok(Rc::clone(spec));
    }
    let mut shown = (**spec).clone();
    for name in spec.presets.keys() {
        let properties = shown.input_schema.get_mut("properties").and_then(Value::as_object_mut);
        if properties.and_then(|properties| properties.remove(name)).is_none() {
            let message = format!("tool \"{}\" has no property \"{name}\" to preset", spec.name);
            return Err(wrong(message).hint("a preset must be a property in the tool's schema"));
        }
        if let Some(required) = shown.input_schema.get_mut("required").and_then(Value::as_array_mut)
        {
            required.retain(|other| other.as_str() != Some(name));
        }
    }
    Ok(Rc::new(shown))
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Options, message)
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}
