//! Structured output, by the provider itself or through a hidden tool. The answer is checked against the schema.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::json::{DEEPEST, foreign, halves};
use crate::message::{Block, Finish};
use crate::port::ToolSpec;
use crate::run::ModelReply;
use crate::tool::schema::Schema;

/// The hidden tool.
const TOOL: &str = "generate_response";

const HOW: &str =
    "Gives the final answer in the form asked for. Call it once, when everything else is done.";

/// The requested output schema, and the answer once it is accepted.
pub(in crate::engine) struct Output {
    schema: Schema,
    spec: Rc<ToolSpec>,
    is_wrapped: bool,
    given: RefCell<Option<Value>>,
    asked_again: Cell<bool>,
    by_tool: Cell<bool>,
    by_form: Cell<bool>,
    hidden: RefCell<HashSet<String>>,
}

impl Output {
    /// The output for a schema. Providers accept only objects, so any other type is wrapped in an object.
    pub(in crate::engine) fn new(schema: &Value) -> Result<Output> {
        let compiled = Schema::compile(schema).map_err(|error| {
            let hint = error.hint_text().unwrap_or("write JSON Schema");
            Error::new(ErrorKind::InputInvalid, format!("outputSchema: {}", error.message()))
                .hint(hint)
        })?;
        let is_wrapped = schema.get("type").and_then(Value::as_str) != Some("object");
        let wrapped = || json!({ "type": "object", "properties": { "value": schema }, "required": ["value"] });
        let input_schema = if is_wrapped { wrapped() } else { schema.clone() };
        let spec = ToolSpec { parallel: false, ..ToolSpec::new(TOOL, HOW, input_schema) };
        Ok(Output {
            schema: compiled,
            spec: Rc::new(spec),
            is_wrapped,
            given: RefCell::default(),
            asked_again: Cell::new(false),
            by_tool: Cell::new(false),
            by_form: Cell::new(false),
            hidden: RefCell::default(),
        })
    }

    /// The description of the hidden tool for the model.
    pub(in crate::engine) fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    /// The schema for a provider that supports structured output. Records that the schema is used in this way.
    pub(in crate::engine) fn form(&self) -> &Value {
        self.by_form.set(true);
        &self.spec.input_schema
    }

    /// Whether the hidden tool is used even if the provider supports structured output.
    pub(in crate::engine) fn is_by_tool(&self) -> bool {
        self.by_tool.get()
    }

    /// The accepted answer.
    pub(in crate::engine) fn given(&self) -> Option<Value> {
        self.given.borrow().clone()
    }

    /// Switches to the hidden tool, because the provider has refused the schema. `false`: the schema was not sent, or
    /// the hidden tool is used already.
    pub(in crate::engine) fn falls_back_to_tool(&self) -> bool {
        self.by_form.get() && !self.by_tool.replace(true)
    }

    /// Whether the model may be asked once more. If so, the hidden tool is used from then on.
    pub(in crate::engine) fn may_ask_again(&self) -> bool {
        let is_first = !self.asked_again.replace(true);
        if is_first {
            self.by_tool.set(true);
        }
        is_first
    }

    /// Whether an event is about the hidden tool.
    pub(in crate::engine) fn hides(&self, event: &Event) -> bool {
        let mut hidden = self.hidden.borrow_mut();
        match event {
            Event::ToolCallStart { tool_call_id, name } if name == TOOL => {
                hidden.insert(tool_call_id.clone())
            }
            Event::ToolCallDelta { tool_call_id, .. } | Event::ToolCallEnd { tool_call_id, .. } => {
                hidden.contains(tool_call_id)
            }
            _ => false,
        }
    }

    /// The answer in the form for the conversation, or a text for the model that says what is wrong. An answer that
    /// calls other tools is returned unchanged. In a valid answer, text replaces the call of the hidden tool.
    pub(in crate::engine) fn accept(&self, mut reply: ModelReply) -> Result<ModelReply, String> {
        let call = reply.message.tool_uses().find(|call| call.name == TOOL);
        let value = match call {
            Some(call) => call.input.clone(),
            None if reply.message.tool_uses().next().is_some() => return Ok(reply),
            None => foreign(halves::replaced(unfenced(&reply.message.text())).as_bytes(), DEEPEST)
                .map_err(|_| format!("Give the answer by calling the tool {TOOL}."))?,
        };
        let value = match value.get("value") {
            Some(inner) if self.is_wrapped => inner.clone(),
            _ if self.is_wrapped && call.is_some() => Value::Null,
            _ => value,
        };
        let value = self.schema.without_nulls(value);
        self.schema.check(&value).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("The answer does not have the form asked for:\n{}", lines.join("\n"))
        })?;
        if call.is_some() {
            reply.message.content.retain(|block| !matches!(block, Block::ToolUse(_)));
            reply.message.content.push(Block::text(value.to_string()));
        }
        *self.given.borrow_mut() = Some(value);
        Ok(ModelReply { finish: Finish::Stop, unreadable: Vec::new(), ..reply })
    }
}

/// The text of a model without the code fence that some models put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inside.and_then(|inside| inside.strip_suffix("```")).unwrap_or(text)
}
