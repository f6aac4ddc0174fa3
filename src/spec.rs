//! The specification of a tool: its description for the model, its effect, and the result of its check of an input.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Memo;

/// The description of a tool for the model, and its settings for the engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// The name, unique within an agent.
    pub name: String,
    /// A description of what the tool does.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// Whether a call of the tool may run at the same time as other tool calls.
    #[serde(skip)]
    pub parallel: bool,
    /// The timeout, if it differs from the agent's default.
    #[serde(skip)]
    pub timeout_ms: Option<u64>,
    /// Whether the tool runs outside the engine. Its calls are suspended until their results are handed in.
    #[serde(skip)]
    pub external: bool,
    /// The effect of a call.
    #[serde(skip)]
    pub effect: Effect,
    /// Whether the tool checks its inputs before it runs.
    #[serde(skip)]
    pub checks: bool,
    /// Arguments that the host has set. The model neither sees nor sets them.
    #[serde(skip)]
    pub presets: Object,
    /// The estimated number of tokens, once counted.
    #[serde(skip)]
    pub tokens: Memo,
}

impl ToolSpec {
    /// A tool with default settings that may run at the same time as others.
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

    /// Reads the description of a tool.
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

/// What calls of a tool do. The creator of the agent states it, never a model or a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Anything.
    #[default]
    Acts,
    /// Only reads.
    Reads,
    /// Changes files.
    Edits,
    /// Reads or changes the agent's own notes.
    Notes,
}

impl Effect {
    /// Whether a call changes nothing outside the agent.
    pub fn is_read_only(self) -> bool {
        matches!(self, Effect::Reads | Effect::Notes)
    }
}

/// The tool's own decision about an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OwnDecision {
    /// No decision.
    #[default]
    Pass,
    /// The call may run.
    Allow,
    /// Ask a person, unless a rule or the mode allows the call.
    Ask(String),
    /// Ask a person, even if a rule or the mode allows the call.
    Danger(String),
    /// The call may not run.
    Deny(String),
}

/// The result of a tool's check of one input.
#[derive(Clone, Debug, Default)]
pub struct Opinion {
    /// The tool's own decision.
    pub own: OwnDecision,
    /// Whether each rule content matches the input, in the given order; `None` if the tool cannot compare them.
    pub fits: Option<Vec<bool>>,
    /// Whether the call is an edit in the sense of the mode `accept_edits`.
    pub is_edit: bool,
}

impl Opinion {
    /// The opinion about a tool that does not check its inputs. Notes are always allowed.
    pub fn of(effect: Effect) -> Opinion {
        let own = if effect == Effect::Notes { OwnDecision::Allow } else { OwnDecision::Pass };
        Opinion { own, is_edit: effect == Effect::Edits, ..Opinion::default() }
    }
}
