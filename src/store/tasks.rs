//! The tasks that a session has given to child sessions. How a task ended is in the log of the child session.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self};
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::store::format::task::TaskRecord;
use crate::store::operations::ATTEMPTS;
use crate::store::operations::Sessions;
use crate::store::operations::superseded;
use crate::store::records::{CommitOutcome, read};

/// Which tasks of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFilter {
    /// All of them.
    All,
    /// Those whose end the session has not been told.
    Open,
}

impl Sessions {
    /// The tasks of a session, oldest first.
    pub async fn tasks(&self, slot: &Slot, which: TaskFilter) -> Result<Vec<TaskRecord>> {
        let keys = self.keys(slot);
        let prefix = match which {
            TaskFilter::All => keys.tasks(),
            TaskFilter::Open => keys.open_task(""),
        };
        let mut tasks: Vec<TaskRecord> = Vec::new();
        for (key, record) in self.records().list(&prefix, Page::default()).await? {
            let task = read(&key, &record, TaskRecord::from_json, "a task")?;
            // Session ids that are hashed in keys are compared here.
            if task.parent == slot.session() {
                // A session has few tasks. Sorting the list at the end would make the wasm larger.
                let is_before = |known: &TaskRecord| (&known.at, &known.id) <= (&task.at, &task.id);
                tasks.insert(tasks.partition_point(is_before), task);
            }
        }
        Ok(tasks)
    }

    /// Stores a task that is about to begin. Fails if its session is gone.
    pub async fn put_task(&self, slot: &Slot, task: &TaskRecord) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            if session.head.is_none() {
                let message = format!("{slot} was deleted");
                return Err(Error::new(ErrorKind::NoSuchSession, message));
            }
            let batch = Batch {
                expect: Some((session.keys.head(), session.revision)),
                revision: self.records().random_id(),
                put: vec![(session.keys.open_task(&task.id), json::to_bytes(task))],
                ..Batch::default()
            };
            match self.records().commit(&batch).await? {
                CommitOutcome::Done | CommitOutcome::Overtaken => return Ok(()),
                CommitOutcome::Conflict => {}
            }
        }
        Err(superseded(slot, "the session changes faster than a task can be stored"))
    }
}
