//! Repairs a session with unreadable records, on request. Every byte is kept.
//!
//! One batch copies unreadable records to `quarantine/` and replaces them: a head by a new head made from the log, an
//! entry by a placeholder with a note, so that the path through the entry stays complete.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::{Message, Note, Role, rfc3339};
use crate::port::{Batch, Page, Record};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::{Head, HeadRecord};
use crate::store::format::input::Input;
use crate::store::format::partial::PartialPiece;
use crate::store::format::view::ViewPiece;
use crate::store::keys::EntryRef;
use crate::store::keys::SlotKeys;
use crate::store::operations::load::read_head;
use crate::store::operations::sessions::ATTEMPTS;
use crate::store::operations::sessions::Sessions;
use crate::store::operations::sessions::superseded;
use crate::store::records::{CommitOutcome, read};
use crate::store::session::line;

const UNREADABLE: &str = "What was said here cannot be read any more. Its bytes are kept.";

/// The records of a session, as far as they can be read.
struct ReadableRecords {
    head: Option<Head>,
    /// In the order of the log. (A map would add a kilobyte to the wasm.)
    log: Vec<(EntryRef, Entry)>,
    /// Keys and bytes of the records that cannot be read.
    unreadable: Vec<(String, Vec<u8>)>,
    /// Entries that are referred to but unreadable or missing, in the order of the log.
    gaps: Vec<EntryRef>,
}

impl Sessions {
    /// Repairs a session from the records that can be read. An intact session stays as it is.
    pub async fn repair(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let keys = self.keys(slot);
            let record = self.records().get(keys.head()).await?;
            let revision = record.as_ref().map(|record| record.revision.clone());
            let mut found = match &record {
                Some(record) => match read_head(slot, record) {
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
            self.look_through(&keys, &mut found).await?;
            if found.head.is_none() && found.log.is_empty() {
                return Err(if record.is_some() { beyond_repair(slot) } else { no_session(slot) });
            }
            if found.is_whole() {
                return Ok(());
            }
            let session = self.absent(slot, keys, revision);
            let mut batch = self.records().change(|host| {
                let head = found.head.clone().unwrap_or_else(|| session.new_head(host));
                session.restore_batch(found.headed(head, &session.facts()), host)
            });
            keep_bytes(&session.keys, &found, &mut batch);
            if found.head.is_none() {
                batch.remove.extend(self.old_lines(slot, &session.keys).await?);
            }
            if !matches!(self.records().commit(&batch).await?, CommitOutcome::Conflict) {
                return Ok(());
            }
        }
        Err(superseded(slot, "the session changes faster than it can be repaired"))
    }

    /// Reads the log and the accepted inputs, one record at a time.
    async fn look_through(&self, keys: &SlotKeys, found: &mut ReadableRecords) -> Result<()> {
        for (key, record) in self.records().list(&keys.log(), Page::default()).await? {
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
        for (key, record) in self.records().list(&keys.inputs(), Page::default()).await? {
            if read(&record, Input::from_json, "").is_err() {
                found.unreadable.push((key, record.value));
            }
        }
        for (key, record) in self.records().list(&keys.partials(), Page::default()).await? {
            if read(&record, PartialPiece::from_json, "").is_err() {
                found.unreadable.push((key, record.value));
            }
        }
        found.find_gaps();
        let at = rfc3339(self.records().now_ms());
        found.fill_gaps(|| {
            let id = self.records().random_id();
            Message { id, at: at.clone(), ..Message::note_of(Note::LeftOut, UNREADABLE) }
        });
        Ok(())
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
    for name in &found.gaps {
        if let Some(entry) = found.entry(name) {
            batch.put.push((keys.entry(name), json::to_bytes(entry)));
        }
    }
}

impl ReadableRecords {
    fn of(head: Option<Head>) -> ReadableRecords {
        ReadableRecords { head, log: Vec::new(), unreadable: Vec::new(), gaps: Vec::new() }
    }

    fn with(mut self, key: String, record: &Record) -> ReadableRecords {
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

    /// Finds entries that are referred to and missing.
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

    /// Puts a placeholder into every gap. Its parent is the entry before it, because the real parent is unknown.
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
        // A parent always has a lower number, so the loop ends even in a damaged log.
        while let Some(parent) = entry.and_then(|entry| entry.parent.as_ref())
            && path.last().is_some_and(|child| parent.seq < child.seq)
        {
            path.push(parent.clone());
            entry = self.entry(parent);
        }
        path.reverse();
        path
    }

    /// The head with the whole path of the log as its context. Fields that only a head contains get the values of a new
    /// session.
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
                // The messages that it replaced are shown themselves; the next span begins after it.
                let behind = (name, entry.messages.len());
                head.view.push(ViewPiece::Span { from: behind.clone(), to: behind });
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

    /// Updates what the session list shows, after an entry.
    fn retell(&self, head: &mut Head, entry: &Entry) {
        if let Some(outcome) = &entry.outcome {
            head.card.asking = outcome.is_open();
            head.card.interrupted = outcome.is_cut_off(entry.kind).then(|| entry.id.clone());
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
    Error::new(ErrorKind::StoreCorrupt, format!("{slot} has no log to repair it from"))
        .hint("the head is unchanged; delete the session to start again")
}
