//! What a session has given its children to do. A record says who does it; how it ended is in the child's own log.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::entry::Entry;
use crate::store::id;
use crate::store::records::{Landing, read};
use crate::store::session::{Session, Turn};
use crate::store::sessions::{ATTEMPTS, superseded};

/// How a child's session is named: lists leave it out.
const CHILD: &str = "agent:";

/// The length of what is random in that name.
const N_RANDOM: usize = 13;

/// The session of a new child of this kind.
pub fn child_session(agent: &str, random: &str) -> String {
    format!("{CHILD}{agent}:{random}")
}

/// Whether a session is a child's.
pub fn is_child(session: &str) -> bool {
    kind_of(session).is_some()
}

/// Which kind of child a session is of, if it is a child's.
pub fn kind_of(session: &str) -> Option<&str> {
    let (kind, random) = session.strip_prefix(CHILD)?.rsplit_once(':')?;
    let is_random = random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (random.len() == N_RANDOM && is_random).then_some(kind)
}

/// Something that a child was given to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id, which is that of the child's call too.
    pub id: String,
    /// The session that gave it.
    pub parent: String,
    /// The kind of child.
    pub agent: String,
    /// The child's session.
    pub session: String,
    /// What the child is called within its parent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was given, RFC 3339.
    pub at: String,
    /// How it ended, once its parent has heard of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

impl Task {
    fn from_json(value: &Value) -> Read<Task> {
        let fields = Fields::of(value)?;
        Ok(Task {
            id: fields.required("id", json::text)?,
            parent: fields.required("parent", json::text)?,
            agent: fields.required("agent", json::text)?,
            session: fields.required("session", json::text)?,
            label: fields.optional("label", json::text)?,
            at: fields.or_default("at", json::text)?,
            ended: fields.optional("ended", json::text)?,
        })
    }
}

/// Which tasks of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those whose end the session has not heard of.
    Open,
}

impl Session {
    /// Marks tasks whose end is told in the same batch.
    pub(super) fn mark_told(&self, batch: &mut Batch, heard: &[Task]) {
        for task in heard {
            batch.remove.push(self.keys.open_task(&task.id));
            batch.put.push((self.keys.told_task(&task.id), json::to_bytes(task)));
        }
    }
}

impl Sessions {
    /// The tasks of a session, the oldest first.
    pub async fn tasks(&self, slot: &Slot, which: Which) -> Result<Vec<Task>> {
        let keys = self.keys(slot);
        let prefix = match which {
            Which::All => keys.tasks(),
            Which::Open => keys.open_task(""),
        };
        let mut tasks: Vec<Task> = Vec::new();
        for (_, record) in self.records.list(&prefix, Page::default()).await? {
            let task = read(&record, Task::from_json, "a task")?;
            // Of two sessions whose ids are too long to be read in a key, each has its own.
            if task.parent == slot.session() {
                tasks.push(task);
            }
        }
        tasks.sort_by(|one, other| (&one.at, &one.id).cmp(&(&other.at, &other.id)));
        Ok(tasks)
    }

    /// Stores a task that is about to begin, unless its session is gone.
    pub async fn put_task(&self, slot: &Slot, task: &Task) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            if session.head.is_none() {
                let message = format!("{slot} was deleted");
                return Err(Error::new(ErrorKind::NoSuchSession, message));
            }
            let batch = Batch {
                expect: Some((session.keys.head(), session.revision)),
                revision: id::mint(&*self.records.host),
                put: vec![(session.keys.open_task(&task.id), json::to_bytes(task))],
                ..Batch::default()
            };
            match self.records.commit(&batch).await? {
                Landing::Done | Landing::Overtaken => return Ok(()),
                Landing::Conflict => {}
            }
        }
        Err(superseded(slot, "the session changes faster than a task can be stored"))
    }

    /// The outcome of a call that its caller named, as the log has it.
    pub async fn ended_call(&self, slot: &Slot, call_id: &str) -> Result<Option<Entry>> {
        let session = self.absent(slot, self.keys(slot), None);
        Ok(self.outcome(&session, call_id).await?.map(|(entry, _)| entry))
    }

    /// Whether another turn has told of the end of a task that this one tells of.
    pub(super) async fn is_told(&self, slot: &Slot, turn: &Turn) -> Result<bool> {
        let keys = self.keys(slot);
        let keys: Vec<_> = turn.heard.iter().map(|task| keys.open_task(&task.id)).collect();
        Ok(!keys.is_empty() && self.records.get_all(&keys).await?.contains(&None))
    }
}
