//! The list of an agent's tools, for the application.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::engine::instructions::Instructions;
use crate::engine::parts::AgentParts;
use crate::error::Result;
use crate::port::ToolSpec;
use crate::slot::Slot;
use crate::store::id;

/// A tool in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments that the model can set: without presets.
    pub input_schema: Value,
    /// "agent" for the agent's own tools, or "built-in".
    pub source: &'static str,
    /// Whether its calls change nothing, or only the agent's own notes.
    pub read_only: bool,
    /// Whether the model gets it in this session.
    pub active: bool,
}

/// All tools, in the order in which the model gets them. Without a slot, or for a session that does not exist, the
/// tools are those of a fresh session.
pub(in crate::engine) async fn list(
    parts: &AgentParts,
    slot: Option<&Slot>,
) -> Result<Vec<ToolInfo>> {
    let slot = match slot {
        Some(slot) => slot.clone(),
        None => Slot::new(None, &id::random_id(&*parts.host))?,
    };
    let facts = parts.sessions.stored().load(&slot, None).await?.facts();
    let role = parts.role_of(&slot).await?;
    let instructions = Instructions::new(parts.sources(&parts.options), &slot, role.as_ref());
    // A real request leaves out unreadable sources too, so errors are ignored here.
    drop(instructions.read(&facts).await);
    let given = instructions.tools(&facts);
    let info = |(spec, is_built_in): (&Rc<ToolSpec>, bool)| ToolInfo {
        name: spec.name.clone(),
        description: spec.description.clone(),
        input_schema: spec.input_schema.clone(),
        source: if is_built_in { "built-in" } else { "agent" },
        read_only: spec.effect.is_read_only(),
        active: given.iter().any(|tool| tool.name == spec.name),
    };
    Ok(parts.tools.all().map(info).collect())
}
