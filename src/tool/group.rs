//! Groups of tools that can be switched on and off in a session, and the tool with which the model does so.

use std::rc::Rc;

use serde_json::json;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Effect, Tool, ToolRun, ToolSpec};

/// Tools that are switched on and off together.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolGroup {
    /// Its name.
    pub name: String,
    /// A description for the model.
    pub description: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Whether it is on in a new session.
    pub active: bool,
    /// Who may switch it.
    pub scope: Scope,
}

/// Who may switch a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The model and the host.
    Model,
    /// Only the host.
    Host,
}

/// `reset_equipped_tools`: the model gives the complete list of groups that must be on.
pub struct ResetTools {
    spec: Rc<ToolSpec>,
    groups: Rc<[ToolGroup]>,
}

impl ResetTools {
    /// The tool for these groups.
    pub fn new(groups: Rc<[ToolGroup]>) -> ResetTools {
        let of_model = groups.iter().filter(|group| group.scope == Scope::Model);
        let names: Vec<_> = of_model.clone().map(|group| group.name.clone()).collect();
        let lines: Vec<_> =
            of_model.map(|group| format!("- {}: {}", group.name, group.description)).collect();
        let what = "Chooses which groups of tools are on. The list is the whole set: groups that are not in it go off.";
        let description = format!("{what}\n{}", lines.join("\n"));
        let schema = json!({
            "type": "object",
            "properties": {
                "to_activate": { "type": "array", "items": { "type": "string", "enum": names }, "uniqueItems": true },
            },
            "required": ["to_activate"],
        });
        let spec = ToolSpec::new("reset_equipped_tools", description, schema);
        let spec = ToolSpec { parallel: false, effect: Effect::Notes, ..spec };
        ResetTools { spec: Rc::new(spec), groups }
    }

    fn reset(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let wanted =
            run.input.get("to_activate").and_then(|it| it.as_array()).cloned().unwrap_or_default();
        let wanted: Vec<String> =
            wanted.iter().filter_map(|it| it.as_str()).map(str::to_owned).collect();
        let switchable = self.groups.iter().filter(|group| group.scope == Scope::Model);
        if let Some(other) =
            wanted.iter().find(|name| !switchable.clone().any(|group| group.name == **name))
        {
            let message = format!("There is no group \"{other}\" that you may switch.");
            return Err(Error::new(ErrorKind::InputInvalid, message));
        }
        run.desk.change(&mut |facts| {
            let active = &mut facts.tool_context.activated_groups;
            active.retain(|name| !switchable.clone().any(|group| group.name == *name));
            active.extend(wanted.iter().cloned());
        });
        let active = run.desk.facts().tool_context.activated_groups.join(", ");
        Ok(vec![Block::text(format!("The groups that are on now: {active}."))])
    }
}

impl Tool for ResetTools {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(self.reset(run)))
    }
}
