//! The records of a session as far as they can be read, and what takes the place of the others.

use std::rc::Rc;

use serde_json::Value;

use crate::json::{Fields, Read};
use crate::message::{Message, Role};
use crate::port::Record;
use crate::slot::Slot;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::{Head, LogCount};
use crate::store::format::input::Input;
use crate::store::format::memory_mark::MemoryMark;
use crate::store::format::partial::PartialPiece;
use crate::store::format::view::ViewPiece;
use crate::store::keys::{EntryRef, SlotKeys};
use crate::store::operations::branches::read_branch;
use crate::store::records::{entry_of, read};
use crate::store::rejected::RejectedParts;
use crate::store::seal::opened;
use crate::store::session::{Session, line};

/// Numbers from here on are no numbers of entries: keys have twelve digits.
const END: u64 = 999_999_000_000;

/// Longest id of an entry.
const LONGEST_ID: usize = 64;

/// The records of a session, as far as they can be read.
pub(super) struct ReadableRecords {
    pub(super) head: Option<Head>,
    /// Whether the view of the head can be read.
    pub(super) is_view_whole: bool,
    /// In the order of the log. (A map would add a kilobyte to the wasm.)
    pub(super) log: Vec<(EntryRef, Entry)>,
    /// Keys and bytes of the records that cannot be read.
    pub(super) unreadable: Vec<(String, Vec<u8>)>,
    /// Entries that are referred to but unreadable or missing, in the order of the log.
    pub(super) gaps: Vec<EntryRef>,
    /// Entries whose parent is not before them. Their bytes are kept, and they follow the entry before them.
    pub(super) misled: Vec<EntryRef>,
    /// The leaves of the other branches.
    leaves: Vec<EntryRef>,
    /// The last parts of the keys of accepted inputs.
    pub(super) inputs: Vec<String>,
}

/// An entry that can be read, but whose parent is not before it. The true parent is unknown.
fn misled(key: &str, name: &EntryRef, record: &Record) -> Option<Entry> {
    let (value, _) = opened(key, record, "").ok()?;
    let entry = Entry::from_json(&value).ok().filter(|entry| entry.id == name.id)?;
    entry.parent.as_ref().filter(|parent| parent.seq >= name.seq)?;
    Some(Entry { parent: None, ..entry })
}

/// The entry that the record of a call names.
pub(super) fn entry_of_call(value: &Value) -> Read<EntryRef> {
    Fields::of(value)?.required("entry", EntryRef::from_json)
}

impl ReadableRecords {
    pub(super) fn of(head: Option<Head>) -> ReadableRecords {
        ReadableRecords {
            head,
            is_view_whole: false,
            log: Vec::new(),
            unreadable: Vec::new(),
            gaps: Vec::new(),
            misled: Vec::new(),
            leaves: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// Adds an entry of the log. The entries come in their order.
    pub(super) fn add_entry(&mut self, key: String, record: Record) {
        let name = key.rsplit('/').next().unwrap_or_default().to_owned();
        let Ok(name) = EntryRef::from_json(&name.into()) else {
            self.unreadable.push((key, record.value));
            return;
        };
        let sealed_from = self.head.as_ref().and_then(|head| head.log).map(|log| log.from);
        let is_foreign =
            |entry: &Entry| entry.is_copied && sealed_from.is_some_and(|first| name.seq >= first);
        match entry_of(&key, &name, &record) {
            Ok(entry) if !is_foreign(&entry) => return self.log.push((name, entry)),
            _ => {}
        }
        match misled(&key, &name, &record) {
            Some(entry) => {
                self.log.push((name.clone(), entry));
                self.misled.push(name);
            }
            None => self.gaps.push(name),
        }
        self.unreadable.push((key, record.value));
    }

    /// Adds an accepted input.
    pub(super) fn add_input(&mut self, keys: &SlotKeys, key: String, record: Record) {
        let input = read(&key, &record, Input::from_json, "").ok();
        match input.filter(|input| keys.input(&input.call_id) == key) {
            Some(_) => self.inputs.extend(key.strip_prefix(&keys.inputs()).map(str::to_owned)),
            None => self.unreadable.push((key, record.value)),
        }
    }

    /// Adds the head of another branch.
    pub(super) fn add_branch(&mut self, slot: &Slot, key: String, record: Record) {
        match read_branch(&key, &record, slot) {
            Ok(branch) => self.leaves.extend(branch.and_then(|branch| branch.leaf)),
            Err(_) => self.unreadable.push((key, record.value)),
        }
    }

    /// Adds a part of an answer. The parts come in their order, and `answer` is what they say so far.
    pub(super) fn add_piece(
        &mut self,
        key: String,
        record: Record,
        (call, answer): &mut (String, Vec<Rc<Message>>),
    ) {
        let of_call = key.rsplit_once('/').map_or("", |(of_call, _)| of_call);
        if of_call != call {
            (*call, *answer) = (of_call.to_owned(), Vec::new());
        }
        let piece = read(&key, &record, PartialPiece::from_json, "").ok();
        let so_far = answer.clone();
        if !piece.is_some_and(|piece| piece.add_to(answer)) {
            *answer = so_far;
            self.unreadable.push((key, record.value));
        }
    }

    /// Adds the outcome of a call, after the entries of the log. It names an entry.
    pub(super) fn add_call(&mut self, key: String, record: Record) {
        let entry = read(&key, &record, entry_of_call, "").ok();
        if entry.is_none_or(|name| self.entry(&name).is_none()) {
            self.unreadable.push((key, record.value));
        }
    }

    /// Adds the mark of the memory.
    pub(super) fn add_mark(&mut self, key: String, record: Record) {
        if read(&key, &record, MemoryMark::from_json, "").is_err() {
            self.unreadable.push((key, record.value));
        }
    }

    /// The same with a record that cannot be read.
    pub(super) fn with(mut self, key: String, record: &Record) -> ReadableRecords {
        self.unreadable.push((key, record.value.clone()));
        self
    }

    pub(super) fn entry(&self, name: &EntryRef) -> Option<&Entry> {
        let place = self.log.partition_point(|(other, _)| other.seq < name.seq);
        let mut alike = self.log.get(place..).unwrap_or_default().iter();
        alike.find(|(other, _)| other == name).map(|(_, entry)| entry)
    }

    /// The number behind those of all entries.
    fn next(&self) -> u64 {
        self.log.last().map_or(0, |(newest, _)| newest.seq + 1)
    }

    /// Finds entries that are referred to and missing. A reference that cannot be the name of an entry is no gap, and if the
    /// head is known, an entry to which nothing refers is none either.
    pub(super) fn find_gaps(&mut self) {
        let leaf = self.head.as_ref().and_then(|head| head.leaf.clone());
        let parents = self.log.iter().filter_map(|(_, entry)| entry.parent.clone());
        let named = parents.chain(leaf).chain(self.leaves.clone());
        let is_gone = |name: &EntryRef| is_name(name) && self.entry(name).is_none();
        let gone: Vec<EntryRef> = named.filter(is_gone).collect();
        let has_head = self.head.is_some();
        self.gaps.retain(|name| is_name(name) && (!has_head || gone.contains(name)));
        for name in gone {
            if !self.gaps.contains(&name) {
                let place = self.gaps.partition_point(|other| other.seq < name.seq);
                self.gaps.insert(place, name);
            }
        }
    }

    /// Puts a placeholder into every gap. Its parent is the entry before it, because the real parent is unknown.
    pub(super) fn fill_gaps(&mut self, note: impl Fn() -> Message) {
        for name in &self.gaps {
            let place = self.log.partition_point(|(other, _)| other.seq < name.seq);
            let parent = before(&self.log, place);
            let messages = vec![Rc::new(note())];
            let entry = Entry { kind: EntryKind::Recovered, messages, ..Entry::put(name, parent) };
            self.log.insert(place, (name.clone(), entry));
        }
        for name in &self.misled {
            let place = self.log.iter().position(|(other, _)| other == name).unwrap_or_default();
            let parent = before(&self.log, place).filter(|parent| parent.seq < name.seq);
            if let Some((_, entry)) = self.log.get_mut(place) {
                entry.parent = parent;
            }
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

    /// The head, with counts of the records that are there. If its view cannot be read, the whole path of the log becomes its
    /// context. Fields that only a head contains get the values of a new session.
    pub(super) fn headed(&self, mut head: Head, session: &Session) -> Head {
        let newest = self.log.last().map(|(name, _)| name.clone());
        head.next = match head.next < END {
            true => head.next.max(self.next()),
            false => self.next(),
        };
        head.log = Some(LogCount { from: head.next, before: Some(self.log.len() as u64) });
        if !self.is_view_whole {
            let is_there = |leaf: &EntryRef| self.entry(leaf).is_some();
            head.leaf = head.leaf.filter(is_there).or(newest);
            self.show_path(&mut head);
        }
        let is_other = |leaf: &&EntryRef| head.leaf.as_ref() != Some(*leaf);
        head.card.branches = self.leaves.iter().filter(is_other).count() as u64;
        if self.head.is_none() {
            head.facts = session.facts();
        }
        head
    }

    /// Makes the whole path to the leaf the context, except what providers have rejected.
    fn show_path(&self, head: &mut Head) {
        (head.anchor, head.open) = (None, None);
        head.view.clear();
        head.card.messages = 0;
        let leaf = head.leaf.clone();
        let path = leaf.map(|leaf| self.path(&leaf)).unwrap_or_default().into_iter();
        let path = path.filter_map(|name| Some((name.clone(), self.entry(&name)?.clone())));
        let path: Vec<(EntryRef, Entry)> = path.collect();
        let rejected = RejectedParts::on(&path);
        for (name, entry) in path {
            if entry.kind == EntryKind::Summary {
                // The messages that it replaced are shown themselves; the next span begins after it.
                let behind = (name, entry.messages.len());
                head.view.push(ViewPiece::Span { from: behind.clone(), to: behind });
                continue;
            }
            self.retell(head, &entry);
            let (next, leaf) = (head.next, head.leaf.clone());
            head.append(name, entry.messages.len());
            (head.next, head.leaf) = (next, leaf);
        }
        head.view = rejected.out_of(std::mem::take(&mut head.view));
        rejected.hide(&mut head.edits);
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

/// The name of the entry before a place in the log.
fn before(log: &[(EntryRef, Entry)], place: usize) -> Option<EntryRef> {
    let before = place.checked_sub(1).and_then(|before| log.get(before));
    before.map(|(name, _)| name.clone())
}

/// Whether an entry can have this name.
fn is_name(name: &EntryRef) -> bool {
    let is_id = !name.id.is_empty() && name.id.len() <= LONGEST_ID;
    is_id && name.id.bytes().all(|it| it.is_ascii_alphanumeric()) && name.seq < END
}
