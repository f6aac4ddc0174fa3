//! The input from which a dialect writes a request.

use serde_json::Value;

use crate::message::Role;
use crate::model::options::ProviderOptions;
use crate::model::transcript::WireTurn;
use crate::model::wire::{object, tool_name};
use crate::port::Request;

/// The input from which a dialect writes a request.
pub(super) struct RenderInput<'a> {
    pub(super) options: &'a ProviderOptions,
    pub(super) request: &'a Request<'a>,
    pub(super) turns: &'a [WireTurn<'a>],
}

impl RenderInput<'_> {
    /// The tools of the request, by their names on the wire. Providers refuse a history with tool calls if the request
    /// has no tools. So a request without tools lists the tools of its history by name.
    pub(super) fn tools(&self) -> Vec<(String, &str, Value)> {
        let tools = self.request.tools.iter();
        let mut told: Vec<_> = tools
            .map(|tool| {
                (tool_name(&tool.name), tool.description.as_str(), tool.input_schema.clone())
            })
            .collect();
        if told.is_empty() {
            for call in self.turns.iter().flat_map(WireTurn::calls) {
                let name = tool_name(&call.name);
                if !told.iter().any(|(known, ..)| *known == name) {
                    let schema = object(&mut [("type", "object".into())]);
                    told.push((name, "Not to be called any more.", schema));
                }
            }
        }
        told
    }

    /// Whether the listed tools must not be called.
    pub(super) fn is_closing(&self) -> bool {
        self.request.tools.is_empty() && self.turns.iter().any(|turn| turn.calls().next().is_some())
    }

    /// The index of the first turn after the user's last message.
    pub(super) fn current(&self) -> usize {
        let last =
            self.turns.iter().rposition(|turn| turn.role == Role::User && turn.message.is_some());
        last.map_or(0, |last| last + 1)
    }
}
