//! Loading, accepting and committing sessions over any store.
//!
//! Order matters here. The head is read first, then what it guards. A commit expects the head's revision; one whose
//! outcome is unknown is settled by reading the head. A commit that meets another's is built again on top of it, or
//! kept beside it as a branch: it never overwrites.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::json;
use crate::message::Message;
use crate::port::{Batch, Committed, Host, Page, Record, Store};
use crate::slot::Slot;
use crate::state::FORMAT;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, HeadRecord, Piece, Place};
use crate::store::id;
use crate::store::key::{self, SlotKeys};
use crate::store::session::{Change, Input, Mint, Session, SessionInfo, Turn};
use crate::store::view::{self, Entries};

/// How often a commit that meets another's is tried.
const ATTEMPTS: u32 = 5;

/// Records asked for at a time.
const PAGE: usize = 500;

/// The sessions of one agent in one store.
pub struct Sessions {
    agent: String,
    store: Rc<dyn Store>,
    host: Rc<dyn Host>,
    timeout_ms: u64,
}

/// A turn that is stored.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    /// The session's version now.
    pub version: u64,
    /// How many bytes were written.
    pub bytes: usize,
    /// Somebody else wrote in between, so what is in hand is not the whole session.
    pub overtaken: bool,
}

enum Landing {
    Done,
    Overtaken,
    Conflict,
}

impl Sessions {
    /// The sessions of the agent of this name.
    pub fn new(agent: &str, store: Rc<dyn Store>, host: Rc<dyn Host>, timeout_ms: u64) -> Sessions {
        Sessions { agent: agent.to_owned(), store, host, timeout_ms }
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
            let Some(record) = self.get(keys.head()).await? else {
                return Ok(Session::absent(slot, keys, None));
            };
            let known = match known.take() {
                Some(session) if session.revision.as_ref() == Some(&record.revision) => {
                    return Ok(session);
                }
                other => other,
            };
            let HeadRecord::Live(head) = read_head(slot, &record)? else {
                return Ok(Session::absent(slot, keys, Some(record.revision)));
            };
            // An entry that is missing may have been moved away by a newer head: read that.
            if let Some(context) = self.context(&keys, &head, known).await? {
                let bytes = context.iter().map(|message| message.weight()).sum();
                let absent = Session::absent(slot, keys, Some(record.revision));
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
        for (_, record) in self.list(&keys.inputs(), Page::default()).await? {
            inputs.push(read(&record, Input::from_json, "an accepted input")?);
        }
        Ok(inputs)
    }

    /// Stores an input. `false`: the session has moved on; load it again, nothing is lost.
    pub async fn accept(&self, session: &mut Session, input: &Input) -> Result<bool> {
        let change = session.accepting(input, self.mint(&|| id::nonce(&*self.host)));
        let landing = self.commit(&change.batch).await?;
        let landed = matches!(landing, Landing::Done);
        if landed {
            session.take(change);
        }
        Ok(landed)
    }

    /// Stores a turn, on top of whatever was stored meanwhile where that is allowed.
    pub async fn finish(&self, session: &mut Session, turn: &Turn) -> Result<Saved> {
        let Some(base) = session.head.clone() else {
            return Err(Error::new(ErrorKind::Internal, "a turn ended that was never accepted"));
        };
        let accepted = session.revision.clone();
        let mut head = base.clone();
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let change = session.ending(&head, turn, self.mint(&|| id::nonce(&*self.host)));
            match self.commit(&change.batch).await? {
                Landing::Conflict => overtaken = true,
                landing => {
                    let bytes = written(&change.batch);
                    session.take(change);
                    session.bytes +=
                        turn.messages.iter().map(|message| message.weight()).sum::<usize>();
                    overtaken |= matches!(landing, Landing::Overtaken);
                    return Ok(Saved { version: session.version(), bytes, overtaken });
                }
            }
            let record = self.get(session.keys.head()).await?;
            let live =
                record.as_ref().map(|record| read_head(&session.slot, record)).transpose()?;
            let theirs = match live {
                Some(HeadRecord::Live(theirs)) if theirs.epoch == base.epoch => *theirs,
                _ => {
                    return Err(superseded(
                        &session.slot,
                        "the session was deleted or replaced meanwhile",
                    ));
                }
            };
            session.revision = record.map(|record| record.revision);
            if let Some(why) =
                self.objection(session, &base, &theirs, turn, accepted.as_deref()).await?
            {
                return self.set_aside(session, &base, theirs, turn, why).await;
            }
            head = theirs;
        }
        Err(superseded(&session.slot, "the session changes faster than this turn can be saved"))
    }

    /// Deletes a session, if there is one.
    pub async fn delete(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            let Some(head) = &session.head else { return Ok(()) };
            let batch = session.deleting(head, self.mint(&|| id::nonce(&*self.host)));
            if !matches!(self.commit(&batch).await?, Landing::Conflict) {
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
        for (key, record) in self.list(&prefix, Page { after, ..page }).await? {
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
            let entries = self.entries(&session.keys, first, leaf.seq).await?;
            let (messages, whole) = newest(&entries, &leaf, before, limit);
            if whole || first == 0 {
                return Ok(messages);
            }
            window = window.saturating_mul(4);
        }
    }

    /// The stored turn of a call that its caller named, if it has ended.
    pub async fn outcome(&self, session: &Session, call_id: &str) -> Result<Option<Entry>> {
        let Some(record) = self.get(session.keys.call(call_id)).await? else { return Ok(None) };
        let name = read(
            &record,
            |value| json::Fields::of(value)?.required("entry", EntryRef::from_json),
            "a call",
        )?;
        let Some(record) = self.get(session.keys.entry(&name)).await? else { return Ok(None) };
        read(&record, Entry::from_json, "an entry").map(Some)
    }

    /// The head alone, without the context.
    async fn load_head(&self, slot: &Slot) -> Result<Session> {
        let keys = self.keys(slot);
        let Some(record) = self.get(keys.head()).await? else {
            return Ok(Session::absent(slot, keys, None));
        };
        let revision = Some(record.revision.clone());
        let session = Session::absent(slot, keys, revision);
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
            && let Some(new) = self.span(keys, was, is).await?
        {
            context.extend(new);
            return Ok(Some(context));
        }
        let mut context = Vec::new();
        for piece in &head.view {
            let messages = match piece {
                Piece::Span { from, to } => self.span(keys, from, to).await?,
                Piece::Summary { summary } => {
                    let place = |index| (summary.clone(), index);
                    self.span(keys, &place(0), &place(1)).await?
                }
            };
            let Some(messages) = messages else { return Ok(None) };
            context.extend(messages);
        }
        Ok(Some(context))
    }

    async fn span(
        &self,
        keys: &SlotKeys,
        from: &Place,
        to: &Place,
    ) -> Result<Option<Vec<Rc<Message>>>> {
        let entries = self.entries(keys, from.0.seq, to.0.seq).await?;
        Ok(view::span(&entries, from, to))
    }

    /// The entries of these numbers, on any path.
    async fn entries(&self, keys: &SlotKeys, first: u64, last: u64) -> Result<Entries> {
        let prefix = keys.log();
        let mut after = Some(keys.log_before(first));
        let mut entries = Entries::new();
        while let Some(start) = after.take() {
            let page = Page {
                after: Some(start),
                limit: Some(PAGE.min((last - first + 8) as usize)),
                keys_only: false,
            };
            let asked = page.limit;
            let records = self.list(&prefix, page).await?;
            let full = asked == Some(records.len());
            for (key, record) in records {
                let name = Value::String(key.strip_prefix(&prefix).unwrap_or_default().to_owned());
                let name = EntryRef::from_json(&name)
                    .map_err(|bad| bad.into_error(ErrorKind::StoreCorrupt, "a log key"))?;
                after = (full && name.seq <= last).then_some(key);
                entries.insert(name, read(&record, Entry::from_json, "an entry of the log")?);
            }
        }
        Ok(entries)
    }

    /// Why our turn may not go on top of what the other side has written, if it may not.
    async fn objection(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &Turn,
        accepted: Option<&str>,
    ) -> Result<Option<&'static str>> {
        let unchanged = theirs.leaf == base.leaf;
        if turn.facts != base.facts && theirs.facts != base.facts {
            return Ok(Some("the same part of the session was changed elsewhere"));
        }
        if unchanged {
            return Ok(None);
        }
        let ours = self.get(session.keys.input(&turn.input.call_id)).await?;
        if ours.is_none_or(|record| Some(record.revision.as_str()) != accepted) {
            return Ok(Some(
                "the input was taken up elsewhere, as that of a call that was cut off",
            ));
        }
        let Some(leaf) = &theirs.leaf else { return Ok(Some("the session was cleared elsewhere")) };
        let first = base.leaf.as_ref().map_or(0, |leaf| leaf.seq);
        let entries = self.entries(&session.keys, first, leaf.seq).await?;
        let mut name = Some(leaf.clone());
        while name != base.leaf {
            let entry = name.as_ref().and_then(|name| entries.get(name));
            match entry {
                Some(entry) if entry.kind != EntryKind::Put => name = entry.parent.clone(),
                _ => return Ok(Some("the session was taken to another branch elsewhere")),
            }
        }
        Ok(None)
    }

    /// Keeps a turn beside the path, and says so.
    async fn set_aside(
        &self,
        session: &Session,
        base: &Head,
        theirs: Head,
        turn: &Turn,
        why: &str,
    ) -> Result<Saved> {
        let mut session = session.clone();
        let mut theirs = theirs;
        for _ in 0..ATTEMPTS {
            let change = session.branching(
                &theirs,
                base.leaf.clone(),
                turn,
                self.mint(&|| id::nonce(&*self.host)),
            );
            if !matches!(self.commit(&change.batch).await?, Landing::Conflict) {
                break;
            }
            session = self.load_head(&session.slot).await?;
            match &session.head {
                Some(head) if head.epoch == base.epoch => theirs = head.clone(),
                _ => break,
            }
        }
        Err(superseded(&session.slot, why)
            .hint("the turn is kept in the log as a branch of its own"))
    }

    /// Applies a batch; an unknown outcome is settled by reading the head.
    async fn commit(&self, batch: &Batch) -> Result<Landing> {
        match self.within("a commit", self.store.commit(batch)).await {
            Ok(Committed::Done) => Ok(Landing::Done),
            Ok(Committed::Conflict) => Ok(Landing::Conflict),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::StoreTimeout | ErrorKind::StoreUnavailable
                ) =>
            {
                self.settle(batch, error).await
            }
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, batch: &Batch, error: Error) -> Result<Landing> {
        let Some((head, expected)) = &batch.expect else { return Err(error) };
        let Ok(found) = self.get(head.clone()).await else { return Err(error) };
        let found = found.map(|record| record.revision);
        if found.as_ref() == Some(&batch.revision) {
            return Ok(Landing::Done);
        }
        if found == *expected {
            return match self.within("a commit", self.store.commit(batch)).await {
                Ok(Committed::Done) => Ok(Landing::Done),
                Ok(Committed::Conflict) => Ok(Landing::Conflict),
                Err(_) => Err(error),
            };
        }
        // It may have been applied and built upon: then the record that only we write is there.
        let Some((own, _)) = batch.put.first() else { return Err(error) };
        let own = self.get(own.clone()).await?;
        let applied = own.is_some_and(|record| record.revision == batch.revision);
        Ok(if applied { Landing::Overtaken } else { Landing::Conflict })
    }

    async fn get(&self, key: String) -> Result<Option<Record>> {
        let keys = [key];
        let mut records = self.within("a read", self.store.get(&keys)).await?;
        Ok(records.pop().flatten())
    }

    async fn list(&self, prefix: &str, page: Page) -> Result<Vec<(String, Record)>> {
        self.within("a listing", self.store.list(prefix, page)).await
    }

    async fn within<T>(&self, what: &str, work: Local<'_, Result<T>>) -> Result<T> {
        match race(work, self.host.sleep(self.timeout_ms)).await {
            Either::First(done) => done,
            Either::Second(()) => {
                let message =
                    format!("the store did not answer {what} within {} ms", self.timeout_ms);
                Err(Error::new(ErrorKind::StoreTimeout, message)
                    .hint("try again; raise timeouts.store if it is slow"))
            }
        }
    }

    fn mint<'a>(&self, word: &'a dyn Fn() -> String) -> Mint<'a> {
        Mint { word, now_ms: self.host.now_ms() }
    }
}

impl Session {
    /// Takes over what a committed change made of it.
    fn take(&mut self, change: Change) {
        self.revision = Some(change.batch.revision);
        self.head = Some(change.head);
    }
}

/// Reads a head, and refuses one that is not ours to read or write.
fn read_head(slot: &Slot, record: &Record) -> Result<HeadRecord> {
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

fn read<T>(record: &Record, reader: json::Reader<T>, what: &str) -> Result<T> {
    let value = json::parse(&record.value, what)?;
    reader(&value).map_err(|misread| misread.into_error(ErrorKind::StoreCorrupt, what))
}

fn superseded(slot: &Slot, why: &str) -> Error {
    Error::new(ErrorKind::Superseded, format!("{slot}: {why}"))
}

fn written(batch: &Batch) -> usize {
    batch.put.iter().map(|(_, value)| value.len()).sum()
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
