//! The lease in the head of a session: it says which node runs a call, where nodes share a store.
//!
//! The lease makes waiting fair, and says whose accepted inputs may be recovered. Safety does not depend on it: a commit
//! of a node whose clock is wrong, or that slept too long, fails because the revision of the head has changed.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Object, Read};
use crate::message::Message;
use crate::store::format::entry::messages;

/// How long a lease lasts if it is not renewed.
pub const LEASE_MS: u64 = 10_000;
/// A lease is renewed when less than this is left.
const RENEW_BELOW_MS: u64 = 7_000;
/// How long a session is reserved for the next node in the queue.
const RESERVED_MS: u64 = 2_000;
/// Most nodes in the queue. Further nodes wait without a place.
const MAX_WAITING: usize = 16;

/// A node that shares a store, and its clock at one moment.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// Its unique name.
    pub name: &'a str,
    /// Its clock, in milliseconds since 1970.
    pub now_ms: f64,
    /// Whether another node is known to be gone.
    pub is_gone: &'a dyn Fn(&str) -> bool,
}

impl Node<'_> {
    fn until(&self, ms: u64) -> u64 {
        self.now_ms as u64 + ms
    }
}

/// Which node runs a call on a session, and which nodes wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The call that runs; empty while the session is reserved for the next node.
    pub call_id: String,
    /// The node that runs it.
    pub node: String,
    /// Until when, in milliseconds since 1970.
    pub until: u64,
    /// The nodes that wait, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Set when another node wants the call to stop: the next messages of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<Rc<Message>>>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Lease {
    /// The lease of a call that begins.
    pub fn taken(before: Option<&Lease>, call_id: &str, node: &Node<'_>) -> Lease {
        let others = before.map(|open| open.waiting.as_slice()).unwrap_or_default();
        Lease {
            call_id: call_id.to_owned(),
            node: node.name.to_owned(),
            until: node.until(LEASE_MS),
            waiting: others.iter().filter(|other| *other != node.name).cloned().collect(),
            stop: None,
            rest: Object::new(),
        }
    }

    /// The lease after a call has ended or was found to be gone: the session is reserved for the next node.
    pub fn passed_on(&self, node: &Node<'_>) -> Option<Lease> {
        let mut waiting = self.waiting.iter().filter(|other| !(node.is_gone)(other)).cloned();
        let next = waiting.next()?;
        Some(Lease {
            call_id: String::new(),
            node: next,
            until: node.until(RESERVED_MS),
            waiting: waiting.collect(),
            stop: None,
            rest: Object::new(),
        })
    }

    /// Whether the node must wait: another node holds the lease, is not gone, and has time left.
    pub fn bars(&self, node: &Node<'_>) -> bool {
        self.node != node.name && self.is_live(node)
    }

    /// Whether it is the same lease, neither renewed nor of another call. The queue and `stop` do not matter.
    pub fn is_same(&self, other: &Lease) -> bool {
        (&self.node, &self.call_id, self.until) == (&other.node, &other.call_id, other.until)
    }

    /// Whether a call runs under it.
    pub fn is_running(&self, node: &Node<'_>) -> bool {
        !self.call_id.is_empty() && self.is_live(node)
    }

    /// The lease with the node added to its queue; `None` if it is there already or the queue is full.
    pub fn joined_by(&self, node: &Node<'_>) -> Option<Lease> {
        if self.waiting.len() >= MAX_WAITING || self.waiting.iter().any(|other| other == node.name)
        {
            return None;
        }
        let mut open = self.clone();
        open.waiting.push(node.name.to_owned());
        Some(open)
    }

    /// The lease with a later end, if it is time to renew it.
    pub fn renewed(&self, node: &Node<'_>) -> Option<Lease> {
        let due = self.until < node.until(RENEW_BELOW_MS);
        due.then(|| Lease { until: node.until(LEASE_MS), ..self.clone() })
    }

    /// Reads a lease.
    pub fn from_json(value: &Value) -> Read<Lease> {
        let fields = Fields::of(value)?;
        Ok(Lease {
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
