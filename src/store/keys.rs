//! The keys of records. Every key is made here, and different ids have different keys.
//!
//! A key consists of parts of `[a-z0-9.-]` joined by `/`, which every store accepts. An id becomes `t.` and its bytes;
//! every byte outside `[a-z0-9]` is written as `-` and two hex digits. An id that would be longer than 75 bytes becomes
//! `h.` and its SHA-256; the record also contains the id, which is compared on read. The anonymous user is a part without
//! a dot; no id has such a part.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Misread, Read};
use crate::message::EVICTED;
use crate::seams;
use crate::slot::Slot;
use crate::state::FORMAT;
use crate::store::id::digest;

/// Longest readable encoding of an id; longer ids are hashed.
const LONGEST: usize = 75;

/// Longest readable encoding of a path. With everything around it, a key then has at most 512 bytes.
const LONGEST_PATH: usize = 200;

/// The number of buckets of terms in the search index. A segment has one record per bucket.
pub const BUCKETS: usize = 32;

/// Every kind of record below the partition of a user.
pub const KINDS: &[&str] = &[
    "slot/head",
    "slot/log",
    "slot/input",
    "slot/partial",
    "slot/call",
    "slot/branch",
    "slot/file",
    "slot/memory",
    "slot/quarantine",
    "index",
    "file",
    "search",
    "task",
];

/// The kind of a record, by its key.
pub fn kind(key: &str) -> String {
    let mut below = key.split('/').skip(2);
    match (below.next(), below.nth(1)) {
        (Some("slot"), Some(kind)) => format!("slot/{kind}"),
        (first, _) => first.unwrap_or_default().to_owned(),
    }
}

/// One id as a part of a key.
pub fn part(id: &str) -> String {
    let mut out = String::from("t.");
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            _ => out.push_str(&format!("-{byte:02x}")),
        }
    }
    if out.len() <= LONGEST + 2 { out } else { hashed(id) }
}

fn hashed(id: &str) -> String {
    format!("h.{}", digest(id.as_bytes()))
}

/// The id that a part encodes; `None` if the id was hashed.
pub fn unpart(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.strip_prefix("t.")?;
    while let Some(first) = rest.bytes().next() {
        let (byte, n) = match first {
            b'-' => (u8::from_str_radix(rest.get(1..3)?, 16).ok()?, 3),
            plain => (plain, 1),
        };
        bytes.push(byte);
        rest = rest.get(n..)?;
    }
    String::from_utf8(bytes).ok()
}

/// A path as parts of a key, one part for each name. If the key would be too long, the rest of the path is hashed into
/// one last part. Two paths never share a key: no name contains a `/`, so the rest equals a name only if it is that name.
pub fn path(path: &str) -> String {
    let (mut out, rest) = folders(path);
    match rest {
        "" => _ = out.pop(),
        rest => out.push_str(&hashed(rest)),
    }
    out
}

/// The readable beginning of the key of a path, up to a `/`, and the rest of the path that is not in it. Every key below a
/// folder begins with the readable key of the folder.
pub fn folders(path: &str) -> (String, &str) {
    let (mut out, mut rest) = (String::new(), path);
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('/').unwrap_or((rest, ""));
        let next = part(name);
        if out.len() + next.len() > LONGEST_PATH {
            break;
        }
        out.push_str(&next);
        out.push('/');
        rest = behind;
    }
    (out, rest)
}

/// Prefix of the records of an agent: `<format>.<agent>/`.
pub fn agent(name: &str) -> String {
    format!("{FORMAT}.{}/", part(name))
}

/// Prefix of the records of a user: `<format>.<agent>/<user>/`.
pub fn partition(name: &str, user: Option<&str>) -> String {
    let user = seams::owner(user).map_or_else(|| "anonymous".to_owned(), part);
    format!("{}{user}/", agent(name))
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

    /// Prefix of the records that belong to this session alone.
    pub fn all(&self) -> String {
        format!("{}slot/{}/", self.partition, self.session)
    }

    /// The head.
    pub fn head(&self) -> String {
        format!("{}head", self.all())
    }

    /// Prefix of the log.
    pub fn log(&self) -> String {
        format!("{}log/", self.all())
    }

    /// A key just before the entries with this number. A listing after this key has these entries and all later ones.
    pub fn log_before(&self, seq: u64) -> String {
        format!("{}{seq:012}", self.log())
    }

    /// One entry of the log.
    pub fn entry(&self, entry: &EntryRef) -> String {
        format!("{}{entry}", self.log())
    }

    /// Prefix of the accepted inputs.
    pub fn inputs(&self) -> String {
        format!("{}input/", self.all())
    }

    /// The accepted input of a call.
    pub fn input(&self, call_id: &str) -> String {
        format!("{}{}", self.inputs(), part(call_id))
    }

    /// Prefix of the stored parts of answers.
    pub fn partials(&self) -> String {
        format!("{}partial/", self.all())
    }

    /// Prefix of the stored parts of the answer of a call.
    pub fn partial(&self, call_id: &str) -> String {
        format!("{}{}/", self.partials(), part(call_id))
    }

    /// One part of the answer of a call.
    pub fn piece(&self, call_id: &str, number: u64) -> String {
        let mut key = self.partial(call_id);
        json::pad(&mut key, number, 6);
        key
    }

    /// Prefix of the outcomes of calls whose caller chose the id.
    pub fn calls(&self) -> String {
        format!("{}call/", self.all())
    }

    /// The outcome of a call whose caller chose the id.
    pub fn call(&self, call_id: &str) -> String {
        format!("{}{}", self.calls(), part(call_id))
    }

    /// The head as it was when this leaf was left.
    pub fn branch(&self, leaf: &str) -> String {
        format!("{}branch/{leaf}", self.all())
    }

    /// Prefix of the files of a session that has its own.
    pub fn files(&self) -> String {
        files(&self.all())
    }

    /// The folder of its evicted tool results in the workspace of its user. It ends with `/`.
    pub fn evicted_folder(&self) -> String {
        // An encoded id never begins with the prefix of a hashed id.
        format!("{EVICTED}/{}/", self.session.strip_prefix("t.").unwrap_or(&self.session))
    }

    /// Prefix of its evicted tool results among the files of its user.
    pub fn evicted(&self) -> String {
        files(&self.partition) + &folders(&self.evicted_folder()).0
    }

    /// Prefix of the tasks that the session has given to child sessions.
    pub fn tasks(&self) -> String {
        format!("{}task/{}/", self.partition, self.session)
    }

    /// A task whose end was not reported to the session yet. These tasks have their own prefix, because every call
    /// lists them.
    pub fn open_task(&self, id: &str) -> String {
        format!("{}open.{id}", self.tasks())
    }

    /// A task whose end was reported to the session.
    pub fn told_task(&self, id: &str) -> String {
        format!("{}told.{id}", self.tasks())
    }

    /// How far the session was searched for facts to remember.
    pub fn memory(&self) -> String {
        format!("{}memory", self.all())
    }

    /// The part of the keys that encodes the session id.
    pub fn name(&self) -> &str {
        &self.session
    }

    /// Prefix of the search segments of this session in one bucket.
    pub fn segments(&self, bucket: usize) -> String {
        format!("{}{}/", search(&self.partition, bucket), self.session)
    }

    /// The key of the session in the session list of its user, newest first.
    pub fn index(&self, updated_ms: f64) -> String {
        let inverted = 9_999_999_999_999_u64.saturating_sub(updated_ms.max(0.0) as u64);
        format!("{}{inverted:013}.{}", index(&self.partition), self.session)
    }

    /// Whether a key of the session list is a key of this session.
    pub fn owns_line(&self, key: &str) -> bool {
        let name = key.strip_prefix(&index(&self.partition)).and_then(|line| line.split_once('.'));
        name.is_some_and(|(_, session)| session == self.session)
    }

    /// Where the bytes of an unreadable record are kept.
    pub fn quarantined(&self, key: &str, revision: &str) -> String {
        let name = key.strip_prefix(&self.all()).unwrap_or(key);
        format!("{}quarantine/{revision}/{name}", self.all())
    }

    /// The name of the Web Lock of the session. It is not the raw id, which could begin with `-`.
    pub fn lock(&self) -> String {
        format!("lockgate/{}", self.all())
    }
}

/// The key of the head of a session, from the last part of its key in the session list.
pub fn head_of_line(partition: &str, line: &str) -> Option<String> {
    let (_, session) = line.split_once('.')?;
    Some(format!("{partition}slot/{session}/head"))
}

/// Prefix of files, from the prefix of a user or of a session.
pub fn files(below: &str) -> String {
    format!("{below}file/")
}

/// Prefix of the session list, from the prefix of a user.
pub fn index(partition: &str) -> String {
    format!("{partition}index/")
}

/// Prefix of one bucket of the search index, from the prefix of a user.
pub fn search(partition: &str, bucket: usize) -> String {
    format!("{partition}search/{bucket:02}/")
}

/// Names an entry by number and id. The number orders; the id keeps the keys of two writers apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryRef {
    /// Its number in the log.
    pub seq: u64,
    /// Its id.
    pub id: String,
}

impl fmt::Display for EntryRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = String::with_capacity(40);
        json::pad(&mut name, self.seq, 12);
        name.push('.');
        name.push_str(&self.id);
        out.write_str(&name)
    }
}

impl Serialize for EntryRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl EntryRef {
    /// Reads `<seq>.<id>`.
    pub fn from_json(value: &Value) -> Read<EntryRef> {
        let parts = value.as_str().and_then(|text| text.split_once('.'));
        let read = parts
            .and_then(|(seq, id)| Some(EntryRef { seq: seq.parse().ok()?, id: id.to_owned() }));
        read.ok_or_else(|| Misread::new("an entry's name, <seq>.<id>"))
    }
}
