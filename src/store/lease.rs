//! Who has a session open: the lease that nodes sharing a store see in its head.
//!
//! It gives fairness, and tells whose accepted input may be recovered. It never gives safety: a node whose clock is
//! wrong, or that slept too long, meets the revision of the head.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Message;
use crate::store::entry::messages;

/// How long a lease lasts that nobody renews.
pub const LEASE_MS: u64 = 10_000;
/// A lease that has less than this left is renewed.
const RENEWED_MS: u64 = 7_000;
/// How long a session is kept for the node that is next.
const KEPT_MS: u64 = 2_000;
/// Nodes that wait in line; more than these come when they come.
const LINE: usize = 16;

/// A node that shares a store, at a moment.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// What tells it from all others.
    pub name: &'a str,
    /// Its clock, in milliseconds since 1970.
    pub now_ms: f64,
    /// Whether another is known to be gone.
    pub is_gone: &'a dyn Fn(&str) -> bool,
}

impl Node<'_> {
    fn until(&self, ms: u64) -> u64 {
        self.now_ms as u64 + ms
    }
}

/// Who has a session open.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    /// The call that runs; empty while the session is kept for the node that is next.
    pub call_id: String,
    /// The node that runs it.
    pub node: String,
    /// Until when, in milliseconds since 1970.
    pub until: u64,
    /// The nodes that wait, first come first served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Somebody elsewhere wants the call to stop, and what the user says next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<Rc<Message>>>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Open {
    /// The lease of a call that begins.
    pub fn taken(before: Option<&Open>, call_id: &str, node: &Node<'_>) -> Open {
        let others = before.map(|open| open.waiting.as_slice()).unwrap_or_default();
        Open {
            call_id: call_id.to_owned(),
            node: node.name.to_owned(),
            until: node.until(LEASE_MS),
            waiting: others.iter().filter(|other| *other != node.name).cloned().collect(),
            stop: None,
            rest: Object::new(),
        }
    }

    /// What is left when a call ends, or is found to be gone: the session is kept for whoever is next.
    pub fn passed_on(&self, node: &Node<'_>) -> Option<Open> {
        let mut waiting = self.waiting.iter().filter(|other| !(node.is_gone)(other)).cloned();
        let next = waiting.next()?;
        Some(Open {
            call_id: String::new(),
            node: next,
            until: node.until(KEPT_MS),
            waiting: waiting.collect(),
            stop: None,
            rest: Object::new(),
        })
    }

    /// Whether the node must wait: somebody else has it, who is neither gone nor out of time.
    pub fn bars(&self, node: &Node<'_>) -> bool {
        self.node != node.name && self.is_live(node)
    }

    /// Whether it is the very same, not renewed and not another's; whoever waits or wants it to stop changes nothing.
    pub fn is_same(&self, other: &Open) -> bool {
        (&self.node, &self.call_id, self.until) == (&other.node, &other.call_id, other.until)
    }

    /// Whether a call runs under it.
    pub fn is_running(&self, node: &Node<'_>) -> bool {
        !self.call_id.is_empty() && self.is_live(node)
    }

    /// The same with the node in line, if it is not there yet.
    pub fn joined_by(&self, node: &Node<'_>) -> Option<Open> {
        if self.waiting.len() >= LINE || self.waiting.iter().any(|other| other == node.name) {
            return None;
        }
        let mut open = self.clone();
        open.waiting.push(node.name.to_owned());
        Some(open)
    }

    /// The same for longer, if it is time for that.
    pub fn renewed(&self, node: &Node<'_>) -> Option<Open> {
        let due = self.until < node.until(RENEWED_MS);
        due.then(|| Open { until: node.until(LEASE_MS), ..self.clone() })
    }

    /// Reads a lease.
    pub fn from_json(value: &Value) -> Read<Open> {
        let fields = Fields::of(value)?;
        Ok(Open {
            call_id: fields.or_default("callId", json::text)?,
            node: fields.required("node", json::text)?,
            until: fields.required("until", json::count)?,
            waiting: fields.or_default("waiting", json::texts)?,
            stop: fields.optional("stop", messages)?,
            rest: fields.rest(&["callId", "node", "until", "waiting", "stop"]),
        })
    }

    fn is_live(&self, node: &Node<'_>) -> bool {
        self.until > node.now_ms as u64 && !(node.is_gone)(&self.node)
    }
}
