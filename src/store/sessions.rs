//! Loading, accepting and committing sessions over any store.
//!
//! Order matters here. The head is read first, then what it guards. A commit expects the head's revision; one whose
//! outcome is unknown is settled by reading the head. A commit that meets another's is built again on top of it, or
//! kept beside it as a branch: it never overwrites.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::mutants;
use crate::port::{Host, Page, Record, Store};
use crate::slot::Slot;
use crate::state::{FORMAT, Facts};
use crate::store::OnConflict;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, HeadRecord, Piece, newer};
use crate::store::id;
use crate::store::input::Input;
use crate::store::key::SlotKeys;
use crate::store::records::{Landing, Records, read};
use crate::store::session::{Alteration, Change, Session, counter};
use crate::store::view::{self, Stretch};

/// How often a commit that meets another's is tried.
pub(super) const ATTEMPTS: u32 = 5;

/// The sessions of one agent in one store.
pub struct Sessions {
    pub(super) agent: String,
    pub(super) records: Records,
    template: Rc<Facts>,
    pub(super) on_conflict: OnConflict,
}

impl Sessions {
    /// The sessions of the agent of this name.
    pub fn new(agent: &str, store: Rc<dyn Store>, host: Rc<dyn Host>, timeout_ms: u64) -> Sessions {
        Sessions {
            agent: agent.to_owned(),
            records: Records { store, host, timeout_ms, node: None },
            template: Rc::default(),
            on_conflict: OnConflict::default(),
        }
    }

    /// Whether other nodes may have a session open.
    pub fn with_leases(mut self, shared: bool) -> Sessions {
        self.records.node = shared.then(OnceCell::new);
        self
    }

    /// What to do with a turn that meets another's.
    pub fn with_policy(mut self, on_conflict: OnConflict) -> Sessions {
        self.on_conflict = on_conflict;
        self
    }

    /// What a session that is not stored begins with.
    pub fn with_template(mut self, template: Facts) -> Sessions {
        self.template = Rc::new(template);
        self
    }

    pub(super) fn absent(&self, slot: &Slot, keys: SlotKeys, revision: Option<String>) -> Session {
        Session::absent(slot, keys, revision, Rc::clone(&self.template))
    }

    /// The keys of a slot.
    pub fn keys(&self, slot: &Slot) -> SlotKeys {
        SlotKeys::new(&self.agent, slot)
    }

    /// The session as it is stored now. What is `known` of it is read again only as far as it has changed.
    pub async fn load(&self, slot: &Slot, known: Option<Session>) -> Result<Session> {
        let mut known = known;
        for _ in 0..ATTEMPTS {
            let keys = self.keys(slot);
            let Some(record) = self.records.get(keys.head()).await? else {
                if self.is_absent(slot, &keys).await? {
                    return Ok(self.absent(slot, keys, None));
                }
                continue;
            };
            let known = match known.take() {
                Some(session) if session.revision.as_ref() == Some(&record.revision) => {
                    return Ok(session);
                }
                other => other,
            };
            let HeadRecord::Live(head) = read_head(slot, &record)? else {
                return Ok(self.absent(slot, keys, Some(record.revision)));
            };
            // An entry that is missing may have been moved away by a newer head: read that.
            if let Some(context) = Box::pin(self.context(&keys, &head, known)).await? {
                let bytes = context.iter().map(|message| message.weight()).sum();
                let absent = self.absent(slot, keys, Some(record.revision));
                return Ok(Session { head: Some(*head), context, bytes, ..absent });
            }
        }
        Err(Error::new(ErrorKind::StoreCorrupt, format!("{slot}: an entry of its log is missing"))
            .hint("the records are kept as they are; repairSession makes a session of what can be read"))
    }

    /// Whether there is no trace of a session whose head is not there. A log without a head is no fresh session; `false`:
    /// the head has come meanwhile.
    async fn is_absent(&self, slot: &Slot, keys: &SlotKeys) -> Result<bool> {
        let one = Page { limit: Some(1), keys_only: true, ..Page::default() };
        if self.records.list(&keys.log(), one).await?.is_empty() {
            return Ok(true);
        }
        if self.records.get(keys.head()).await?.is_some() {
            return Ok(false);
        }
        let message = format!("the head of {slot} is lost, and its log is not");
        Err(Error::new(ErrorKind::StoreCorrupt, message)
            .hint("repairSession makes it anew from the log; nothing was changed"))
    }

    /// Whether somebody has written the head, or taken it away, since it was read.
    pub async fn has_moved_on(&self, session: &Session) -> Result<bool> {
        let record = self.records.get(session.keys.head()).await?;
        Ok(record.map(|record| record.revision) != session.revision)
    }

    /// The accepted inputs that no commit has taken out, in the order they were accepted: their calls were cut off, or
    /// still run.
    pub async fn inputs(&self, slot: &Slot) -> Result<Vec<Input>> {
        let keys = self.keys(slot);
        let mut inputs: Vec<(u64, Input)> = Vec::new();
        for (_, record) in self.records.list(&keys.inputs(), Page::default()).await? {
            let number = counter(&record.revision);
            let place = inputs.partition_point(|(earlier, _)| *earlier <= number);
            inputs.insert(place, (number, read(&record, Input::from_json, "an accepted input")?));
        }
        Ok(inputs.into_iter().map(|(_, input)| input).collect())
    }

    /// Stores an input. `false`: the session has moved on; load it again, nothing is lost.
    pub async fn accept(&self, session: &mut Session, input: &Input) -> Result<bool> {
        let change = self.records.change(|mint| session.accepting(input, mint));
        let landing = match mutants::is("unstored-input") {
            true => Landing::Done,
            false => self.records.commit(&change.batch).await?,
        };
        let landed = matches!(landing, Landing::Done);
        if landed {
            // One that joins a call leaves the record of that call's own input as it was.
            session.accepted.get_or_insert_with(|| change.batch.revision.clone());
            session.take(change);
        }
        Ok(landed)
    }

    /// Changes a session by hand. `false`: it has moved on; load it again.
    pub async fn alter(&self, session: &mut Session, alteration: &Alteration) -> Result<bool> {
        let entry_id = id::mint(&*self.records.host);
        let change = self.records.change(|mint| session.altering(alteration, entry_id, mint));
        // One that was built upon is done too: once more would say it twice.
        let landed = !matches!(self.records.commit(&change.batch).await?, Landing::Conflict);
        if landed {
            session.take(change);
            let said = alteration.context.messages().unwrap_or_default();
            session.bytes += said.iter().map(|message| message.weight()).sum::<usize>();
        }
        Ok(landed)
    }

    /// The head alone, of a session that is not to be changed.
    pub(super) async fn read_only(&self, slot: &Slot) -> Result<Session> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            if session.revision.is_some() || self.is_absent(slot, &session.keys).await? {
                return Ok(session);
            }
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// Deletes a session, if there is one.
    pub async fn delete(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let (session, lines) = self.load_to_delete(slot).await?;
            // Also where there is nothing: a call whose acceptance is still on its way must not make the session later.
            let fresh = || self.records.change(|mint| session.unmade(mint));
            let head = session.head.clone().unwrap_or_else(fresh);
            let mut batch = self.records.change(|mint| session.deleting(&head, mint));
            batch.remove.extend(lines);
            if mutants::is("no-tombstone") {
                batch.put.clear();
            }
            if !matches!(self.records.commit(&batch).await?, Landing::Conflict) {
                return Ok(());
            }
        }
        Err(superseded(slot, "the session changes faster than it can be deleted"))
    }

    /// The stored turn of a call that its caller named, if it has ended, and the digest of its input if that is in an
    /// earlier turn.
    pub async fn outcome(
        &self,
        session: &Session,
        call_id: &str,
    ) -> Result<Option<(Entry, Option<String>)>> {
        let Some(record) = self.records.get(session.keys.call(call_id)).await? else {
            return Ok(None);
        };
        let fields = |value: &_| {
            let fields = json::Fields::of(value)?;
            let name = fields.required("entry", EntryRef::from_json)?;
            Ok((name, fields.optional("asked", json::text)?))
        };
        let (name, asked) = read(&record, fields, "a call")?;
        let Some(record) = self.records.get(session.keys.entry(&name)).await? else {
            return Ok(None);
        };
        let mut entry = read(&record, Entry::from_json, "an entry")?;
        self.gather(session, &mut entry).await?;
        Ok(Some((entry, asked)))
    }

    /// Puts the messages of a call's steps before those of its last entry.
    async fn gather(&self, session: &Session, entry: &mut Entry) -> Result<()> {
        let mut steps = Vec::new();
        let mut parent = entry.parent.clone();
        while let Some(name) = parent
            && let Some(record) = self.records.get(session.keys.entry(&name)).await?
        {
            let step = read(&record, Entry::from_json, "an entry")?;
            // One that was made between two steps says nothing.
            if step.kind == EntryKind::Summary {
                parent = step.parent;
                continue;
            }
            if step.kind != EntryKind::Step || step.call_id != entry.call_id {
                break;
            }
            parent = step.parent.clone();
            steps.push(step);
        }
        let mut messages = Vec::new();
        for step in steps.into_iter().rev() {
            for later in &step.changes {
                later.apply_to(&mut messages);
            }
            messages.extend(step.messages);
        }
        for later in &entry.changes {
            later.apply_to(&mut messages);
        }
        messages.append(&mut entry.messages);
        entry.messages = messages;
        Ok(())
    }

    /// The head alone of a session that is to be deleted, and its lines in the list if the head does not tell where
    /// they are: also one that nobody can read may be deleted, but none of a newer version.
    async fn load_to_delete(&self, slot: &Slot) -> Result<(Session, Vec<String>)> {
        match self.load_head(slot).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => {
                let keys = self.keys(slot);
                let record = self.records.get(keys.head()).await?;
                let lines = self.old_lines(slot, &keys).await?;
                Ok((self.absent(slot, keys, record.map(|record| record.revision)), lines))
            }
            loaded => {
                let session = loaded?;
                session.check_format()?;
                Ok((session, Vec::new()))
            }
        }
    }

    /// The head alone, without the context.
    pub(super) async fn load_head(&self, slot: &Slot) -> Result<Session> {
        let keys = self.keys(slot);
        let Some(record) = self.records.get(keys.head()).await? else {
            return Ok(self.absent(slot, keys, None));
        };
        let revision = Some(record.revision.clone());
        let session = self.absent(slot, keys, revision);
        match read_head(slot, &record)? {
            HeadRecord::Live(head) => Ok(Session { head: Some(*head), ..session }),
            HeadRecord::Tombstone => Ok(session),
        }
    }

    /// The messages of the head's view; `None` if an entry is missing.
    pub(super) async fn context(
        &self,
        keys: &SlotKeys,
        head: &Head,
        known: Option<Session>,
    ) -> Result<Option<Rc<Vec<Rc<Message>>>>> {
        if let Some(Session { head: Some(old), mut context, .. }) = known
            && (&old.epoch, &old.edits) == (&head.epoch, &head.edits)
            && let Some((was, is)) = view::growth(&old.view, &head.view)
            && let Some(new) = self.records.span(keys, was, is).await?
        {
            grow(Rc::make_mut(&mut context), new);
            return Ok(Some(context));
        }
        let mut context = Vec::new();
        for piece in &head.view {
            let stretch = match piece {
                Piece::Span { from, to } => self.records.span(keys, from, to).await?,
                Piece::Summary { summary } => {
                    let place = |index| (summary.clone(), index);
                    self.records.span(keys, &place(0), &place(1)).await?
                }
            };
            let Some(stretch) = stretch else { return Ok(None) };
            grow(&mut context, stretch);
        }
        head.edits.apply(&mut context);
        Ok(Some(Rc::new(context)))
    }
}

/// Appends a stretch of the log to what is before it.
fn grow(context: &mut Vec<Rc<Message>>, stretch: Stretch) {
    for later in &stretch.of_earlier {
        later.apply_to(context);
    }
    context.extend(stretch.messages);
}

impl Session {
    /// Takes over what a committed change made of it.
    pub(super) fn take(&mut self, change: Change) {
        self.revision = Some(change.batch.revision);
        match &mut self.left {
            Some(left) => **left = change.head,
            None => self.head = Some(change.head),
        }
    }
}

/// Reads a head, and refuses one that is not ours to read or write.
pub(super) fn read_head(slot: &Slot, record: &Record) -> Result<HeadRecord> {
    let what = format!("the head of {slot}");
    let value = json::parse(&record.value, &what).map_err(repairable)?;
    let corrupt =
        |misread: json::Misread| repairable(misread.into_error(ErrorKind::StoreCorrupt, &what));
    // A newer format is read as far as we know it; whoever would change it is refused.
    let is_newer = Head::format_of(&value).map_err(corrupt)? > FORMAT;
    let head = Head::from_json(&value)
        .map_err(|misread| if is_newer { newer(slot) } else { corrupt(misread) })?;
    if let HeadRecord::Live(head) = &head
        && (head.session_id != slot.session() || head.user_id.as_deref() != slot.user())
    {
        return Err(Error::new(
            ErrorKind::StoreCorrupt,
            format!("the head of {slot} belongs to another session"),
        ));
    }
    Ok(head)
}

fn repairable(error: Error) -> Error {
    error.hint("its bytes are kept; repairSession makes it anew from the log")
}

pub(super) fn superseded(slot: &Slot, why: &str) -> Error {
    Error::new(ErrorKind::Superseded, format!("{slot}: {why}"))
}
