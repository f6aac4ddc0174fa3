//! Loading, accepting and committing sessions over any store.
//!
//! Order matters here. The head is read first, then what it guards. A commit expects the head's revision; one whose
//! outcome is unknown is settled by reading the head. A commit that meets another's is built again on top of it, or
//! kept beside it as a branch: it never overwrites.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::port::{Host, Page, Record, Store};
use crate::slot::Slot;
use crate::state::{FORMAT, Facts};
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, HeadRecord, Piece};
use crate::store::id;
use crate::store::info::SessionInfo;
use crate::store::key::{self, SlotKeys};
use crate::store::records::{Landing, Records, read};
use crate::store::session::{Alteration, Change, Input, Session};
use crate::store::view::{self, Entries};

/// How often a commit that meets another's is tried.
pub(super) const ATTEMPTS: u32 = 5;

/// The sessions of one agent in one store.
pub struct Sessions {
    agent: String,
    pub(super) records: Records,
    template: Rc<Facts>,
}

impl Sessions {
    /// The sessions of the agent of this name.
    pub fn new(agent: &str, store: Rc<dyn Store>, host: Rc<dyn Host>, timeout_ms: u64) -> Sessions {
        Sessions {
            agent: agent.to_owned(),
            records: Records { store, host, timeout_ms },
            template: Rc::default(),
        }
    }

    /// What a session that is not stored begins with.
    pub fn with_template(mut self, template: Facts) -> Sessions {
        self.template = Rc::new(template);
        self
    }

    fn absent(&self, slot: &Slot, keys: SlotKeys, revision: Option<String>) -> Session {
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
                return Ok(self.absent(slot, keys, None));
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
            if let Some(context) = self.context(&keys, &head, known).await? {
                let bytes = context.iter().map(|message| message.weight()).sum();
                let absent = self.absent(slot, keys, Some(record.revision));
                return Ok(Session { head: Some(*head), context, bytes, ..absent });
            }
        }
        Err(Error::new(ErrorKind::StoreCorrupt, format!("{slot}: an entry of its log is missing"))
            .hint("the records are kept as they are; restore the store from a copy or export what is readable"))
    }

    /// The accepted inputs that no commit has taken out: their calls were cut off, or still run.
    pub async fn inputs(&self, slot: &Slot) -> Result<Vec<Input>> {
        let keys = self.keys(slot);
        let mut inputs = Vec::new();
        for (_, record) in self.records.list(&keys.inputs(), Page::default()).await? {
            inputs.push(read(&record, Input::from_json, "an accepted input")?);
        }
        Ok(inputs)
    }

    /// Stores an input. `false`: the session has moved on; load it again, nothing is lost.
    pub async fn accept(&self, session: &mut Session, input: &Input) -> Result<bool> {
        let change = self.records.change(|mint| session.accepting(input, mint));
        let landing = self.records.commit(&change.batch).await?;
        let landed = matches!(landing, Landing::Done);
        if landed {
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
        }
        Ok(landed)
    }

    /// The session's line in a list, if it is there.
    pub async fn info(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        Ok(self.load_head(slot).await?.head.as_ref().map(SessionInfo::of))
    }

    /// Deletes a session, if there is one.
    pub async fn delete(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            // Also where there is nothing: a call whose acceptance is still on its way must not make the session later.
            let fresh = || self.records.change(|mint| session.unmade(mint));
            let head = session.head.clone().unwrap_or_else(fresh);
            let batch = self.records.change(|mint| session.deleting(&head, mint));
            if !matches!(self.records.commit(&batch).await?, Landing::Conflict) {
                return Ok(());
            }
        }
        Err(superseded(slot, "the session changes faster than it can be deleted"))
    }

    /// A user's sessions, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let prefix = key::index(&key::partition(&self.agent, user));
        let after = page.after.map(|cursor| format!("{prefix}{cursor}"));
        let mut infos = Vec::new();
        for (key, record) in self.records.list(&prefix, Page { after, ..page }).await? {
            let mut info = read(&record, SessionInfo::from_json, "a line of the session list")?;
            info.cursor = key.strip_prefix(&prefix).unwrap_or_default().to_owned();
            infos.push(info);
        }
        Ok(infos)
    }

    /// The newest messages of the log before `before`, oldest first, whole.
    pub async fn history(
        &self,
        slot: &Slot,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        let session = self.load_head(slot).await?;
        let Some(leaf) = session.head.as_ref().and_then(|head| head.leaf.clone()) else {
            return Ok(Vec::new());
        };
        let mut window = limit as u64 + 1;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let entries = self.records.entries(&session.keys, first, leaf.seq).await?;
            let (messages, whole) = newest(&entries, &leaf, before, limit);
            if whole || first == 0 {
                return Ok(messages);
            }
            window = window.saturating_mul(4);
        }
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
        read(&record, Entry::from_json, "an entry").map(|entry| Some((entry, asked)))
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
    async fn context(
        &self,
        keys: &SlotKeys,
        head: &Head,
        known: Option<Session>,
    ) -> Result<Option<Vec<Rc<Message>>>> {
        if let Some(Session { head: Some(old), mut context, .. }) = known
            && old.epoch == head.epoch
            && let Some((was, is)) = view::growth(&old.view, &head.view)
            && let Some(new) = self.records.span(keys, was, is).await?
        {
            context.extend(new);
            return Ok(Some(context));
        }
        let mut context = Vec::new();
        for piece in &head.view {
            let messages = match piece {
                Piece::Span { from, to } => self.records.span(keys, from, to).await?,
                Piece::Summary { summary } => {
                    let place = |index| (summary.clone(), index);
                    self.records.span(keys, &place(0), &place(1)).await?
                }
            };
            let Some(messages) = messages else { return Ok(None) };
            context.extend(messages);
        }
        Ok(Some(context))
    }
}

impl Session {
    /// Takes over what a committed change made of it.
    pub(super) fn take(&mut self, change: Change) {
        self.revision = Some(change.batch.revision);
        self.head = Some(change.head);
    }
}

/// Reads a head, and refuses one that is not ours to read or write.
pub(super) fn read_head(slot: &Slot, record: &Record) -> Result<HeadRecord> {
    let what = format!("the head of {slot}");
    let value = json::parse(&record.value, &what)?;
    let corrupt = |misread: json::Misread| misread.into_error(ErrorKind::StoreCorrupt, &what);
    if Head::format_of(&value).map_err(corrupt)? > FORMAT {
        let message = format!("{slot} was written by a newer version of lockgate");
        return Err(Error::new(ErrorKind::StateVersion, message)
            .hint("update the package; nothing was changed"));
    }
    let head = Head::from_json(&value).map_err(corrupt)?;
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

pub(super) fn superseded(slot: &Slot, why: &str) -> Error {
    Error::new(ErrorKind::Superseded, format!("{slot}: {why}"))
}

/// The newest messages on the path to `leaf`, and whether they are all that was asked for.
fn newest(
    entries: &Entries,
    leaf: &EntryRef,
    before: Option<&str>,
    limit: usize,
) -> (Vec<Rc<Message>>, bool) {
    let mut found = Vec::new();
    let mut seen = before.is_none();
    let mut name = Some(leaf);
    while let Some(entry) = name.and_then(|name| entries.get(name)) {
        let spoken = entry.messages.iter().rev().filter(|_| entry.kind != EntryKind::Summary);
        for message in spoken {
            if seen && found.len() < limit {
                found.push(Rc::clone(message));
            }
            seen |= Some(message.id.as_str()) == before;
        }
        name = entry.parent.as_ref();
        if found.len() == limit {
            break;
        }
    }
    let whole = found.len() == limit || name.is_none();
    found.reverse();
    (found, whole)
}
