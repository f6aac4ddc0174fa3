//! What is known of a tool before it runs: what a model is told, what it does, and what it says of an input.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Memo;

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name; one of a kind within an agent.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes, as JSON Schema.
    pub input_schema: Value,
    /// Whether calls of it may run beside others.
    #[serde(skip)]
    pub parallel: bool,
    /// How long it may take, if not the agent's default.
    #[serde(skip)]
    pub timeout_ms: Option<u64>,
    /// Whether it is done outside: its calls are suspended until somebody hands in their results.
    #[serde(skip)]
    pub external: bool,
    /// What its calls do.
    #[serde(skip)]
    pub effect: Effect,
    /// Whether it has something to say of its inputs before they run.
    #[serde(skip)]
    pub checks: bool,
    /// Arguments that the host has set: the model neither sees nor gives them.
    #[serde(skip)]
    pub presets: Object,
    /// About how many tokens it has, once somebody has counted them.
    #[serde(skip)]
    pub tokens: Memo,
}

impl ToolSpec {
    /// A tool that may run beside others, with nothing out of the ordinary.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema: schema,
            parallel: true,
            timeout_ms: None,
            external: false,
            effect: Effect::Acts,
            checks: false,
            presets: Object::new(),
            tokens: Memo::default(),
        }
    }

    /// Reads what a model is to be told of a tool.
    pub fn from_json(value: &Value) -> Read<ToolSpec> {
        let fields = Fields::of(value)?;
        let name = fields.required("name", json::text)?;
        let description = fields.required("description", json::text)?;
        let schema = fields.required("inputSchema", json::object).map(Value::Object)?;
        Ok(ToolSpec {
            parallel: fields.optional("parallel", json::boolean)?.unwrap_or(true),
            timeout_ms: fields.optional("timeoutMs", json::count)?,
            external: fields.or_default("external", json::boolean)?,
            effect: effect(&fields)?,
            checks: fields.or_default("checks", json::boolean)?,
            presets: fields.or_default("presets", json::object)?,
            ..ToolSpec::new(name, description, schema)
        })
    }
}

fn effect(fields: &Fields<'_>) -> Read<Effect> {
    let is = |name| fields.or_default(name, json::boolean);
    Ok(match (is("readOnly")?, is("edits")?) {
        (true, _) => Effect::Reads,
        (_, true) => Effect::Edits,
        _ => Effect::Acts,
    })
}

/// What calls of a tool do, as whoever made the agent says; never as a model or a provider says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Anything.
    #[default]
    Acts,
    /// Nothing: it only looks.
    Reads,
    /// Changes to files.
    Edits,
    /// Changes to the agent's own notes, or looks at them.
    Notes,
}

impl Effect {
    /// Whether the world is the same behind it.
    pub fn is_read_only(self) -> bool {
        matches!(self, Effect::Reads | Effect::Notes)
    }
}

/// What a tool itself says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Own {
    /// Nothing.
    #[default]
    Pass,
    /// That it may run.
    Allow,
    /// That a person is to be asked, unless a rule or the mode says that it may run.
    Ask(String),
    /// That a person is to be asked, whatever may run.
    Danger(String),
    /// That it may not run.
    Deny(String),
}

/// What a tool says of one input.
#[derive(Clone, Debug, Default)]
pub struct Opinion {
    /// What it says itself.
    pub own: Own,
    /// Whether each content of a rule fits the input, in the order asked; none where the tool cannot read them.
    pub fits: Option<Vec<bool>>,
    /// Whether it is an edit that needs no question where edits need none.
    pub is_edit: bool,
}

impl Opinion {
    /// That of a tool that has none of its own: notes may always be kept.
    pub fn of(effect: Effect) -> Opinion {
        let own = if effect == Effect::Notes { Own::Allow } else { Own::Pass };
        Opinion { own, is_edit: effect == Effect::Edits, ..Opinion::default() }
    }
}
