//! Numbers of the tool calls in one reply, for providers that send none.

use serde_json::Value;

use crate::model::reply::{number_in, text_in};

/// Counts the tool calls of a reply, and numbers fragments that have no number.
#[derive(Debug, Default)]
pub(super) struct CallNumbers {
    ids: Vec<String>,
    n: u64,
}

impl CallNumbers {
    /// The number of the call that a fragment belongs to: its own, that of its id, or that of the latest call.
    pub(super) fn number(&mut self, call: &Value) -> u64 {
        if let Some(index) = number_in(call, "index") {
            self.n = self.n.max(index + 1);
            return index;
        }
        let id = text_in(call, "id").filter(|id| !id.is_empty());
        let names_tool = call.get("function").and_then(|it| text_in(it, "name")).is_some();
        match id {
            Some(id) => match self.ids.iter().position(|known| known == id) {
                Some(known) => known as u64,
                None => {
                    self.ids.resize(self.n as usize, String::new());
                    self.ids.push(id.to_owned());
                    self.next()
                }
            },
            // Without an id, a name begins a new call. A fragment without both belongs to the latest call.
            None if names_tool || self.n == 0 => self.next(),
            None => self.n - 1,
        }
    }

    /// Whether there are calls.
    pub(super) fn are_there(&self) -> bool {
        self.n > 0
    }

    /// The number of a new call.
    pub(super) fn next(&mut self) -> u64 {
        self.n += 1;
        self.n - 1
    }
}
