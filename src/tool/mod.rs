//! The tools of an agent, in the order they were given: prompt caches depend on it.

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

/// A tool and what it takes.
pub struct Entry {
    /// The tool.
    pub tool: Rc<dyn Tool>,
    schema: Schema,
    /// What a model is told of it.
    shown: Rc<ToolSpec>,
}

impl Entry {
    /// The input as the tool is to get it, or what is wrong with it, for the model to read.
    pub fn check(&self, input: &Value) -> Result<Value, String> {
        let mut input = self.schema.without_nulls(input.clone());
        // What the host has set is not the model's to give.
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

/// An agent's tools.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
    groups: Rc<[ToolGroup]>,
}

impl Registry {
    /// The tools; two of one name are refused, and so are a name that no provider takes and a schema that is none.
    pub fn new(tools: Vec<Rc<dyn Tool>>, groups: Rc<[ToolGroup]>) -> Result<Registry> {
        let mut registry = Registry { entries: Vec::new(), groups };
        for tool in tools {
            let spec = Rc::clone(tool.spec());
            let name = &spec.name;
            if !is_name(name) {
                let hint = "a tool's name is 1 to 64 letters, digits, _ or -";
                return Err(wrong(format!("\"{name}\" is not a tool's name")).hint(hint));
            }
            if registry.find(name).is_some() {
                let hint = "give each tool a name of its own";
                return Err(wrong(format!("two tools are named \"{name}\"")).hint(hint));
            }
            let schema = Schema::compile(&spec.input_schema).map_err(|error| {
                let hint = error.hint_text().unwrap_or("write JSON Schema");
                wrong(format!("the schema of tool \"{name}\": {}", error.message())).hint(hint)
            })?;
            let shown = shown(&spec)?;
            registry.entries.push(Entry { tool, schema, shown });
        }
        let mut named = registry.groups.iter().flat_map(|group| &group.tools);
        if let Some(unknown) = named.find(|name| registry.find(name).is_none()) {
            let hint = "a group names tools of this agent";
            return Err(wrong(format!("there is no tool named \"{unknown}\"")).hint(hint));
        }
        Ok(registry)
    }

    /// What a model is told of them, where these groups are on. A tool in no group is always on.
    pub fn visible(&self, active: &[String]) -> Vec<Rc<ToolSpec>> {
        let specs = self.entries.iter().map(|entry| &entry.shown);
        let visible = specs.filter(|spec| {
            let mut of_tool =
                self.groups.iter().filter(|group| group.tools.contains(&spec.name)).peekable();
            of_tool.peek().is_none() || of_tool.any(|group| active.contains(&group.name))
        });
        visible.cloned().collect()
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tool.spec().name == name)
    }

    /// What of the schemas is not checked, as sentences.
    pub fn unchecked(&self) -> Vec<String> {
        let of_entry = |entry: &Entry| {
            let name = entry.tool.spec().name.clone();
            let paths = entry.schema.unsupported().iter();
            paths.map(|path| format!("tool \"{name}\": {path} is not checked")).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(of_entry).collect()
    }
}

/// What a model is told of a tool: not the arguments that are preset.
fn shown(spec: &Rc<ToolSpec>) -> Result<Rc<ToolSpec>> {
    if spec.presets.is_empty() {
        return Ok(Rc::clone(spec));
    }
    let mut shown = (**spec).clone();
    for name in spec.presets.keys() {
        let properties = shown.input_schema.get_mut("properties").and_then(Value::as_object_mut);
        if properties.and_then(|properties| properties.remove(name)).is_none() {
            let message = format!("tool \"{}\" has no property \"{name}\" to preset", spec.name);
            return Err(wrong(message).hint("presets are arguments that the schema names"));
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
