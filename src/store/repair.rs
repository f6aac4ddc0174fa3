//! Making a session usable again whose records cannot all be read: from its log, on request, with every byte kept.
//!
//! What cannot be read is copied to `quarantine/` in the same batch that puts something readable in its place: for a
//! head one that is made anew, for an entry of the log a stand-in with a note, so that the path through it holds.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::{Message, Role, rfc3339};
use crate::port::{Batch, Page, Record};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, HeadRecord, Piece};
use crate::store::id;
use crate::store::input::Input;
use crate::store::key::SlotKeys;
use crate::store::records::{Landing, read};
use crate::store::session::line;
use crate::store::sessions::{ATTEMPTS, read_head, superseded};

const UNREADABLE: &str = "What was said here cannot be read any more. Its bytes are kept.";

/// The records of a session, as far as they can be read.
struct Found {
    head: Option<Head>,
    /// In their order. (A map would be a kilobyte of the wasm, for this alone.)
    log: Vec<(EntryRef, Entry)>,
    /// What cannot be read: its key, and its bytes if there are any.
    unreadable: Vec<(String, Vec<u8>)>,
    /// Entries that others name and that are unreadable or gone, in their order.
    gaps: Vec<EntryRef>,
}

impl Sessions {
    /// Makes a session of what can be read of it. One that can be read whole stays as it is.
    pub async fn repair(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let keys = self.keys(slot);
            let record = self.records.get(keys.head()).await?;
            let revision = record.as_ref().map(|record| record.revision.clone());
            let mut found = match &record {
                Some(record) => match read_head(slot, record) {
                    Ok(HeadRecord::Tombstone) => return Err(no_session(slot)),
                    Ok(HeadRecord::Live(head)) => Found::of(Some(*head)),
                    Err(error) if error.kind() != ErrorKind::StoreCorrupt => return Err(error),
                    Err(_) => Found::of(None).with(keys.head(), record),
                },
                None => Found::of(None),
            };
            if let Some(head) = &found.head {
                head.check_format(slot)?;
            }
            self.look_through(&keys, &mut found).await?;
            if found.head.is_none() && found.log.is_empty() {
                return Err(if record.is_some() { beyond_repair(slot) } else { no_session(slot) });
            }
            if found.is_whole() {
                return Ok(());
            }
            let session = self.absent(slot, keys, revision);
            let mut batch = self.records.change(|mint| {
                let head = found.head.clone().unwrap_or_else(|| session.unmade(mint));
                session.restoring(found.headed(head, &session.facts()), mint)
            });
            keep_bytes(&session.keys, &found, &mut batch);
            if found.head.is_none() {
                batch.remove.extend(self.old_lines(slot, &session.keys).await?);
            }
            if !matches!(self.records.commit(&batch).await?, Landing::Conflict) {
                return Ok(());
            }
        }
        Err(superseded(slot, "the session changes faster than it can be repaired"))
    }

    /// Reads the log and the accepted inputs, one record at a time.
    async fn look_through(&self, keys: &SlotKeys, found: &mut Found) -> Result<()> {
        for (key, record) in self.records.list(&keys.log(), Page::default()).await? {
            let name = key.rsplit('/').next().unwrap_or_default().to_owned();
            let name = EntryRef::from_json(&name.into());
            match (name, read(&record, Entry::from_json, "")) {
                (Ok(name), Ok(entry)) => found.log.push((name, entry)),
                (Ok(name), Err(_)) => {
                    found.unreadable.push((key, record.value));
                    found.gaps.push(name);
                }
                (Err(_), _) => found.unreadable.push((key, record.value)),
            }
        }
        for (key, record) in self.records.list(&keys.inputs(), Page::default()).await? {
            if read(&record, Input::from_json, "").is_err() {
                found.unreadable.push((key, record.value));
            }
        }
        found.find_gaps();
        let at = rfc3339(self.records.host.now_ms());
        found.fill_gaps(|| {
            let id = id::mint(&*self.records.host);
            Message { id, at: at.clone(), ..Message::note(UNREADABLE) }
        });
        Ok(())
    }

    /// The session's lines in its user's list: a head that cannot be read does not tell where they are.
    pub(super) async fn old_lines(&self, slot: &Slot, keys: &SlotKeys) -> Result<Vec<String>> {
        let page = Page { keys_only: true, ..Page::default() };
        let lines = self.records.list(&self.index(slot.user()), page).await?;
        Ok(lines.into_iter().map(|(key, _)| key).filter(|key| keys.owns_line(key)).collect())
    }
}

/// Keeps what cannot be read, and takes it from where it was; stand-ins go where entries were.
fn keep_bytes(keys: &SlotKeys, found: &Found, batch: &mut Batch) {
    for (key, bytes) in &found.unreadable {
        batch.put.push((keys.quarantined(key, &batch.revision), bytes.clone()));
        if *key != keys.head() {
            batch.remove.push(key.clone());
        }
    }
    for name in &found.gaps {
        if let Some(entry) = found.entry(name) {
            batch.put.push((keys.entry(name), json::to_bytes(entry)));
        }
    }
}

impl Found {
    fn of(head: Option<Head>) -> Found {
        Found { head, log: Vec::new(), unreadable: Vec::new(), gaps: Vec::new() }
    }

    fn with(mut self, key: String, record: &Record) -> Found {
        self.unreadable.push((key, record.value.clone()));
        self
    }

    fn is_whole(&self) -> bool {
        self.head.is_some() && self.unreadable.is_empty() && self.gaps.is_empty()
    }

    fn entry(&self, name: &EntryRef) -> Option<&Entry> {
        let place = self.log.partition_point(|(other, _)| other.seq < name.seq);
        let mut alike = self.log.get(place..).unwrap_or_default().iter();
        alike.find(|(other, _)| other == name).map(|(_, entry)| entry)
    }

    /// Entries that are named, and are not there.
    fn find_gaps(&mut self) {
        let leaf = self.head.as_ref().and_then(|head| head.leaf.clone());
        let parents = self.log.iter().filter_map(|(_, entry)| entry.parent.clone());
        let named = parents.chain(leaf);
        let gone: Vec<EntryRef> = named.filter(|name| self.entry(name).is_none()).collect();
        for name in gone {
            if !self.gaps.contains(&name) {
                let place = self.gaps.partition_point(|other| other.seq < name.seq);
                self.gaps.insert(place, name);
            }
        }
    }

    /// Puts a stand-in into every gap. Its parent is the entry before it: nobody knows better.
    fn fill_gaps(&mut self, note: impl Fn() -> Message) {
        for name in &self.gaps {
            let place = self.log.partition_point(|(other, _)| other.seq < name.seq);
            let before = place.checked_sub(1).and_then(|before| self.log.get(before));
            let parent = before.map(|(name, _)| name.clone());
            let messages = vec![Rc::new(note())];
            let entry = Entry { kind: EntryKind::Recovered, messages, ..Entry::put(name, parent) };
            self.log.insert(place, (name.clone(), entry));
        }
    }

    /// The names on the path to a leaf, oldest first.
    fn path(&self, leaf: &EntryRef) -> Vec<EntryRef> {
        let mut path = vec![leaf.clone()];
        let mut entry = self.entry(leaf);
        // A parent always has a lower number, so this ends however the log was damaged.
        while let Some(parent) = entry.and_then(|entry| entry.parent.as_ref())
            && path.last().is_some_and(|child| parent.seq < child.seq)
        {
            path.push(parent.clone());
            entry = self.entry(parent);
        }
        path.reverse();
        path
    }

    /// The head with its log's whole path as the context. What only a head knows is what a fresh session has.
    fn headed(&self, mut head: Head, fresh: &Facts) -> Head {
        let newest = self.log.last().map(|(name, _)| name.clone());
        head.leaf = head.leaf.or_else(|| newest.clone());
        head.next = head.next.max(newest.map_or(0, |newest| newest.seq + 1));
        (head.anchor, head.open) = (None, None);
        head.view.clear();
        head.card.messages = 0;
        let leaf = head.leaf.clone();
        for name in leaf.map(|leaf| self.path(&leaf)).unwrap_or_default() {
            let Some(entry) = self.entry(&name) else { continue };
            if entry.kind == EntryKind::Summary {
                // What it stood for is shown itself; the next span begins behind it.
                let behind = (name, entry.messages.len());
                head.view.push(Piece::Span { from: behind.clone(), to: behind });
                continue;
            }
            self.retell(&mut head, entry);
            let (next, leaf) = (head.next, head.leaf.clone());
            head.append(name, entry.messages.len());
            (head.next, head.leaf) = (next, leaf);
        }
        if self.head.is_none() {
            head.facts = fresh.clone();
        }
        head
    }

    /// What the session's line in a list shows after an entry.
    fn retell(&self, head: &mut Head, entry: &Entry) {
        if let Some(outcome) = &entry.outcome {
            head.card.asking = outcome.is_open();
        }
        for message in &entry.messages {
            let text = line(&message.text());
            if head.card.messages == 0 && self.head.is_none() {
                head.card.created = message.at.clone();
            }
            if head.card.title.is_empty() && message.role == Role::User {
                head.card.title = text.clone();
            }
            if !text.is_empty() {
                head.card.line = text;
            }
        }
    }
}

fn no_session(slot: &Slot) -> Error {
    Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}"))
}

fn beyond_repair(slot: &Slot) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("{slot} has no log to be repaired from"))
        .hint("its head is kept as it is; delete the session to begin anew")
}
