//! Repairs a session with unreadable or lost records, on request. Every byte is kept.
//!
//! One batch copies unreadable records to `quarantine/` and replaces them: a head by a new head made from the log, an
//! entry by a placeholder with a note, so that the path through the entry stays complete. Then the session is read again in
//! every way. Only if that succeeds, the session is repaired.

mod readable;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::{Message, Note, rfc3339};
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::state::Persistence;
use crate::store::format::head::{Head, HeadRecord};
use crate::store::format::session_info::SessionInfo;
use crate::store::keys::SlotKeys;
use crate::store::operations::list::is_line_of;
use crate::store::operations::load::read_head;
use crate::store::operations::repair::readable::{ReadableRecords, entry_of_call};
use crate::store::operations::sessions::ATTEMPTS;
use crate::store::operations::sessions::Sessions;
use crate::store::operations::sessions::superseded;
use crate::store::records::{CommitOutcome, read};
use crate::store::session::Session;

const UNREADABLE: &str = "What was said here cannot be read any more. Its bytes are kept.";

impl Sessions {
    /// Repairs a session from the records that can be read. An intact session stays as it is.
    pub async fn repair(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            match self.check(slot).await {
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => {}
                checked => return checked,
            }
            if self.mend(slot).await? {
                return self.check(slot).await.map_err(|error| not_mended(slot, error));
            }
        }
        Err(superseded(slot, "the session changes faster than it can be repaired"))
    }

    /// Reads everything of a session, in each way in which it is read.
    async fn check(&self, slot: &Slot) -> Result<()> {
        let session = self.load(slot, None).await?;
        let Some(head) = &session.head else { return Err(no_session(slot)) };
        head.check_format(slot)?;
        self.read_whole(slot).await?;
        self.branches(slot).await?;
        self.read_open(slot).await?;
        self.unread(slot).await?;
        if let Some(since) = self.since_anchor(&session).await?
            && let Some(path) = head.rewound(Persistence::ALL)
        {
            let context = self.context(&session.keys, &path, None).await?;
            if context.is_none() || since.is_empty() && path.leaf != head.leaf {
                return Err(broken(slot, "what a resend goes back to cannot be read"));
            }
        }
        for (key, record) in self.records().list(&session.keys.calls(), Page::default()).await? {
            let call = read(&key, &record, entry_of_call, "a call")?;
            if self.records().entry(&session.keys, &call).await?.is_none() {
                return Err(broken(slot, "the outcome of a call is missing"));
            }
        }
        if !head.index.is_empty() {
            let record = self.records().get(head.index.clone()).await?;
            let info = record.map(|it| read(&head.index, &it, SessionInfo::from_json, "a line"));
            let line = head.index.rsplit('/').next().unwrap_or_default();
            if !info.transpose()?.is_some_and(|info| is_line_of(&info, slot.user(), line)) {
                return Err(broken(slot, "its line in the list is missing"));
            }
        }
        Ok(())
    }

    /// Replaces what cannot be read. `false`: the session was changed meanwhile.
    async fn mend(&self, slot: &Slot) -> Result<bool> {
        let keys = self.keys(slot);
        let record = self.records().get(keys.head()).await?;
        let revision = record.as_ref().map(|record| record.revision.clone());
        let mut found = match &record {
            Some(record) => match read_head(slot, &keys, record) {
                Ok(HeadRecord::Tombstone) => return Err(no_session(slot)),
                Ok(HeadRecord::Live(head)) => ReadableRecords::of(Some(*head)),
                Err(error) if error.kind() != ErrorKind::StoreCorrupt => return Err(error),
                Err(_) => ReadableRecords::of(None).with(keys.head(), record),
            },
            None => ReadableRecords::of(None),
        };
        if let Some(head) = &found.head {
            head.check_format(slot)?;
        }
        let session = self.absent(slot, keys, revision);
        self.look_through(&session, &mut found).await?;
        if found.head.is_none() && found.log.is_empty() && found.inputs.is_empty() {
            return Err(if record.is_some() { beyond_repair(slot) } else { no_session(slot) });
        }
        let mut batch = self.records().change(|host| {
            let head = found.head.clone().unwrap_or_else(|| session.new_head(host));
            let head = Head { inputs: found.inputs.clone(), ..found.headed(head, &session) };
            session.restore_batch(head, host)
        });
        keep_bytes(&session.keys, &found, &mut batch);
        batch.remove.extend(self.old_lines(slot, &session.keys).await?);
        Ok(!matches!(self.records().commit(&batch).await?, CommitOutcome::Conflict))
    }

    /// Reads all records of a session, one at a time.
    async fn look_through(&self, session: &Session, found: &mut ReadableRecords) -> Result<()> {
        let (slot, keys) = (&session.slot, &session.keys);
        for (key, record) in self.records().list(&keys.log(), Page::default()).await? {
            found.add_entry(key, record);
        }
        for (key, record) in self.records().list(&keys.inputs(), Page::default()).await? {
            found.add_input(keys, key, record);
        }
        for (key, record) in self.records().list(&keys.branch(""), Page::default()).await? {
            found.add_branch(slot, key, record);
        }
        let mut answer = Default::default();
        for (key, record) in self.records().list(&keys.partials(), Page::default()).await? {
            found.add_piece(key, record, &mut answer);
        }
        for (key, record) in self.records().list(&keys.calls(), Page::default()).await? {
            found.add_call(key, record);
        }
        if let Some(record) = self.records().get(keys.memory()).await? {
            found.add_mark(keys.memory(), record);
        }
        found.find_gaps();
        let at = rfc3339(self.records().now_ms());
        found.fill_gaps(|| {
            let id = self.records().random_id();
            Message { id, at: at.clone(), ..Message::note_of(Note::LeftOut, UNREADABLE) }
        });
        let is_whole = found.gaps.is_empty() && found.misled.is_empty();
        if let Some(head) = found.head.clone().filter(|_| is_whole) {
            let session = Session { head: Some(head.clone()), ..session.clone() };
            found.is_view_whole = self.has_view(&session, &head).await?;
        }
        Ok(())
    }

    /// Whether the views of a head can be read: that of the context, and that to which a resend goes back.
    async fn has_view(&self, session: &Session, head: &Head) -> Result<bool> {
        let views = [Some(head.clone()), head.rewound(Persistence::ALL)];
        for path in views.iter().flatten() {
            let is_on_path = path.leaf.as_ref().is_none_or(|leaf| leaf.seq < head.next);
            if !is_on_path || self.context(&session.keys, path, None).await?.is_none() {
                return Ok(false);
            }
        }
        match self.since_anchor(session).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => Ok(false),
            since => since.map(|_| true),
        }
    }
}

/// Moves unreadable records to the quarantine, and puts placeholders where entries were.
fn keep_bytes(keys: &SlotKeys, found: &ReadableRecords, batch: &mut Batch) {
    for (key, bytes) in &found.unreadable {
        batch.put.push((keys.quarantined(key, &batch.revision), bytes.clone()));
        if *key != keys.head() {
            batch.remove.push(key.clone());
        }
    }
    for name in found.gaps.iter().chain(&found.misled) {
        if let Some(entry) = found.entry(name) {
            batch.put.push((keys.entry(name), json::to_bytes(entry)));
        }
    }
}

fn broken(slot: &Slot, what: &str) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("{slot}: {what}"))
}

fn no_session(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}"))
}

fn not_mended(slot: &Slot, error: Error) -> Error {
    let is_same = error.kind() != ErrorKind::StoreCorrupt;
    let error =
        if is_same { error } else { error.within(&format!("{slot} could not be repaired")) };
    error.hint("every byte is kept; restore the store from a backup, or delete the session")
}

fn beyond_repair(slot: &Slot) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("{slot} has no log to repair it from"))
        .hint("the head is unchanged; delete the session to start again")
}
