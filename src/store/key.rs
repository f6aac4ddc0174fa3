//! The one codec of keys: injective, always applied, and safe for any store.
//!
//! A key is parts of `[a-z0-9.-]` joined by `/`. An id becomes `t.` and its bytes, of which all but `[a-z0-9]` are
//! written as `-` and two hex digits; one that would be over 75 bytes long becomes `h.` and its SHA-256 (whoever
//! reads the record compares the id kept in it). The anonymous user is a part without a dot, which no id can become.

use crate::mutants;
use crate::slot::Slot;
use crate::state::FORMAT;
use crate::store::entry::EntryRef;
use crate::store::id::digest;

/// The longest encoding of an id that is kept readable.
const LONGEST: usize = 75;

/// The longest encoding of a path that is kept as parts: with all that stands before and behind it, a key has 512 bytes.
const LONGEST_PATH: usize = 200;

/// Every kind of record, as it stands below a user's partition: what a session's deletion must know.
pub const KINDS: &[&str] = &[
    "slot/head",
    "slot/log",
    "slot/input",
    "slot/call",
    "slot/branch",
    "slot/file",
    "slot/memory",
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

/// The id that a part was made of; `None` if it was too long to be kept readable.
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

/// A path as parts of a key, one for each name in it. What would make the key too long stands at its end as one part:
/// as a name has no `/`, it is none that a name could become.
pub fn path(path: &str) -> String {
    let (mut out, rest) = folders(path);
    match rest {
        "" => _ = out.pop(),
        rest => out.push_str(&hashed(rest)),
    }
    out
}

/// The readable beginning of a path's key, up to a `/`, and what of the path is not in it. Every key below a folder
/// begins with the folder's.
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

/// Where the records of an agent are: `<format>.<agent>/`.
pub fn agent(name: &str) -> String {
    format!("{FORMAT}.{}/", part(name))
}

/// Where the records of an agent's user are: `<format>.<agent>/<user>/`.
pub fn partition(name: &str, user: Option<&str>) -> String {
    let user = user.filter(|_| !mutants::is("no-user"));
    let user = user.map_or_else(|| "anonymous".to_owned(), part);
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

    /// The head's fields when a leaf was left.
    pub fn branch(&self, leaf: &str) -> String {
        format!("{}branch/{leaf}", self.all())
    }

    /// The files of a session that has them for itself.
    pub fn files(&self) -> String {
        files(&self.all())
    }

    /// Everything that the session has given its children to do.
    pub fn tasks(&self) -> String {
        format!("{}task/{}/", self.partition, self.session)
    }

    /// A task whose end the session has not heard of; these stand apart so that every call can look at them.
    pub fn open_task(&self, id: &str) -> String {
        format!("{}open.{id}", self.tasks())
    }

    /// A task whose end the session has heard of.
    pub fn told_task(&self, id: &str) -> String {
        format!("{}told.{id}", self.tasks())
    }

    /// How far the session has been read for its user's memory.
    pub fn memory(&self) -> String {
        format!("{}memory", self.all())
    }

    /// The session's own part of its keys.
    pub fn name(&self) -> &str {
        &self.session
    }

    /// The segments of one bucket of the search index.
    pub fn segments(&self, bucket: usize) -> String {
        format!("{}{}/", search(&self.partition, bucket), self.session)
    }

    /// Where the session stands in its user's list, newest first.
    pub fn index(&self, updated_ms: f64) -> String {
        let inverted = 9_999_999_999_999_u64.saturating_sub(updated_ms.max(0.0) as u64);
        format!("{}{inverted:013}.{}", index(&self.partition), self.session)
    }

    /// Whether a key of the user's list is this session's.
    pub fn owns_line(&self, key: &str) -> bool {
        let name = key.strip_prefix(&index(&self.partition)).and_then(|line| line.split_once('.'));
        name.is_some_and(|(_, session)| session == self.session)
    }

    /// Where the bytes of a record are kept that could not be read.
    pub fn quarantined(&self, key: &str, revision: &str) -> String {
        let name = key.strip_prefix(&self.all()).unwrap_or(key);
        format!("{}quarantine/{revision}/{name}", self.all())
    }

    /// The lock that guards the session across tabs; never a raw id, which could begin with `-`.
    pub fn lock(&self) -> String {
        format!("lockgate/{}", self.all())
    }
}

/// The head of the session that a line of a user's list is about, by the line's name in the list.
pub fn head_of_line(partition: &str, line: &str) -> Option<String> {
    let (_, session) = line.split_once('.')?;
    Some(format!("{partition}slot/{session}/head"))
}

/// Where files are, given the partition, or the place of a session.
pub fn files(below: &str) -> String {
    format!("{below}file/")
}

/// Where a user's list of sessions is, given the partition.
pub fn index(partition: &str) -> String {
    format!("{partition}index/")
}

/// Where one bucket of a user's search index is, given the partition.
pub fn search(partition: &str, bucket: usize) -> String {
    format!("{partition}search/{bucket:02}/")
}
