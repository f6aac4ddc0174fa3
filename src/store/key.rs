//! The one codec of keys: injective, always applied, and safe for any store.
//!
//! A key is parts of `[a-z0-9.-]` joined by `/`. An id becomes `t.` and its bytes, of which all but `[a-z0-9]` are
//! written as `-` and two hex digits; one that would be over 75 bytes long becomes `h.` and its SHA-256 (whoever
//! reads the record compares the id kept in it). The anonymous user is a part without a dot, which no id can become.

use sha2::{Digest, Sha256};

use crate::slot::Slot;
use crate::state::FORMAT;
use crate::store::entry::EntryRef;
use crate::store::id::base32;

/// The longest encoding of an id that is kept readable.
const LONGEST: usize = 75;

/// One id as a part of a key.
pub fn part(id: &str) -> String {
    let mut out = String::from("t.");
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            _ => out.push_str(&format!("-{byte:02x}")),
        }
    }
    if out.len() <= LONGEST + 2 {
        out
    } else {
        format!("h.{}", base32(&Sha256::digest(id.as_bytes())))
    }
}

/// Where the records of an agent's user are: `<format>.<agent>/<user>/`.
pub fn partition(agent: &str, user: Option<&str>) -> String {
    let user = user.map_or_else(|| "anonymous".to_owned(), part);
    format!("{FORMAT}.{}/{user}/", part(agent))
}

/// The keys of one session.
#[derive(Clone, Debug)]
pub struct SlotKeys {
    partition: String,
    session: String,
}

impl SlotKeys {
    /// The keys of a slot of this agent.
    pub fn new(agent: &str, slot: &Slot) -> SlotKeys {
        SlotKeys { partition: partition(agent, slot.user()), session: part(slot.session()) }
    }

    /// Everything that belongs to the session alone.
    pub fn all(&self) -> String {
        format!("{}slot/{}/", self.partition, self.session)
    }

    /// The head.
    pub fn head(&self) -> String {
        format!("{}head", self.all())
    }

    /// The log.
    pub fn log(&self) -> String {
        format!("{}log/", self.all())
    }

    /// Where a log listing begins that is to hold this number and all later ones.
    pub fn log_before(&self, seq: u64) -> String {
        format!("{}{seq:012}", self.log())
    }

    /// One entry of the log.
    pub fn entry(&self, entry: &EntryRef) -> String {
        format!("{}{entry}", self.log())
    }

    /// The accepted inputs.
    pub fn inputs(&self) -> String {
        format!("{}input/", self.all())
    }

    /// The accepted input of a call.
    pub fn input(&self, call_id: &str) -> String {
        format!("{}{}", self.inputs(), part(call_id))
    }

    /// The record of a call that its caller named.
    pub fn call(&self, call_id: &str) -> String {
        format!("{}call/{}", self.all(), part(call_id))
    }

    /// Where the session stands in its user's list, newest first.
    pub fn index(&self, updated_ms: f64) -> String {
        let inverted = 9_999_999_999_999_u64.saturating_sub(updated_ms.max(0.0) as u64);
        format!("{}{inverted:013}.{}", index(&self.partition), self.session)
    }

    /// The lock that guards the session across tabs; never a raw id, which could begin with `-`.
    pub fn lock(&self) -> String {
        format!("lockgate/{}", self.all())
    }
}

/// Where a user's list of sessions is, given the partition.
pub fn index(partition: &str) -> String {
    format!("{partition}index/")
}
