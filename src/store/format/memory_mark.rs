//! The mark that says how far a session was searched for facts to remember.

use serde_json::Value;

use crate::json::{self, Fields, Read};

/// A stored mark.
pub(in crate::store) struct MemoryMark {
    /// The epoch of the session.
    pub(in crate::store) epoch: String,
    /// The number of the first entry that was not searched.
    pub(in crate::store) next: u64,
    /// When the session was searched.
    pub(in crate::store) searched_ms: Option<f64>,
}

impl MemoryMark {
    /// Reads a stored mark.
    pub(in crate::store) fn from_json(value: &Value) -> Read<MemoryMark> {
        let fields = Fields::of(value)?;
        Ok(MemoryMark {
            epoch: fields.required("epoch", json::text)?,
            next: fields.required("next", json::count)?,
            searched_ms: fields.optional("at", json::count)?.map(|at| at as f64),
        })
    }
}
