//! An answer in the form that the caller asked for: through a tool that nobody sees, checked, and asked for once more.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::engine::ask::Asked;
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::json::{DEEPEST, foreign};
use crate::message::{Block, Finish, Message};
use crate::port::ToolSpec;
use crate::run::{Asking, Reply};
use crate::store::session::Session;
use crate::tool::schema::Schema;

/// The tool that nobody sees.
const TOOL: &str = "generate_response";

const HOW: &str =
    "Gives the final answer in the form asked for. Call it once, when everything else is done.";

/// What was asked for, and what was given.
pub(super) struct Output {
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
    /// The form that a schema describes; providers take objects only, so anything else is wrapped in one.
    pub(super) fn new(schema: &Value) -> Result<Output> {
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

    /// What the model is told of the tool.
    pub(super) fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    /// The form, for a model that keeps to it by itself and is about to be asked to.
    pub(super) fn form(&self) -> &Value {
        self.by_form.set(true);
        &self.spec.input_schema
    }

    /// Whether the tool is used in any case: the model did not keep to the form by itself.
    pub(super) fn is_by_tool(&self) -> bool {
        self.by_tool.get()
    }

    /// What was given.
    pub(super) fn given(&self) -> Option<Value> {
        self.given.borrow().clone()
    }

    /// Whether an event is about the tool that nobody sees.
    pub(super) fn hides(&self, event: &Event) -> bool {
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

    /// The answer as it is to stand in the conversation, or what is wrong with it. One that wants other tools first
    /// stays as it is; of one that fits, no call of the hidden tool stays behind.
    fn accept(&self, mut reply: Reply) -> Result<Reply, String> {
        let call = reply.message.tool_uses().find(|call| call.name == TOOL);
        let value = match call {
            Some(call) => call.input.clone(),
            None if reply.message.tool_uses().next().is_some() => return Ok(reply),
            None => foreign(unfenced(&reply.message.text()).as_bytes(), DEEPEST)
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
        Ok(Reply { finish: Finish::Stop, unreadable: Vec::new(), ..reply })
    }
}

impl Turn<'_> {
    /// Asks the model; where a form was asked for, for an answer in it.
    pub(super) async fn ask_formed(
        &self,
        session: &mut Session,
        asking: Asking,
        iteration: u32,
    ) -> Asked {
        let mut asked = self.ask(session, asking, iteration).await;
        let Some(output) = self.output else { return asked };
        // A provider that refuses the form gets the tool in its place.
        if let Asked::Failed(error, None) = &asked
            && error.kind() == ErrorKind::ModelBadRequest
            && output.by_form.get()
            && !output.by_tool.replace(true)
        {
            asked = self.ask(session, asking, iteration).await;
        }
        let Asked::Replied(reply) = &asked else { return asked };
        let mut why = match output.accept(reply.clone()) {
            Ok(reply) => return Asked::Replied(reply),
            Err(why) => why,
        };
        if !output.asked_again.replace(true) {
            output.by_tool.set(true);
            // The complaint is shown to the model and to nobody else: it is gone before anything is saved.
            let place = session.context.len();
            session.context_mut().push(Rc::new(Message::note(why)));
            let again = self.ask(session, asking, iteration).await;
            session.context_mut().truncate(place);
            session.lineage.changed(place);
            let Asked::Replied(mut reply) = again else { return again };
            // What the first try cost is paid too.
            if let (Some(usage), Asked::Replied(first)) = (&mut reply.message.usage, &asked) {
                first.message.usage.iter().for_each(|cost| usage.add(cost));
            }
            match output.accept(reply) {
                Ok(reply) => return Asked::Replied(reply),
                Err(still) => why = still,
            }
        }
        let error = Error::new(ErrorKind::OutputInvalid, why);
        Asked::Failed(error.hint("ask for a simpler form, or use a stronger model"), None)
    }
}

/// What a model wrote, without the fence that some put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inside.and_then(|inside| inside.strip_suffix("```")).unwrap_or(text)
}
