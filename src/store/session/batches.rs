//! The parts of the batches of a session: the expected head, an entry, the session list entry.

use std::rc::Rc;

use serde_json::Value;

use crate::json;
use crate::message::Message;
use crate::port::Batch;
use crate::seams;
use crate::store::format::entry::Entry;
use crate::store::format::head::{Head, revision_counter};
use crate::store::format::input::{Input, ResendPath};
use crate::store::format::task::is_child;
use crate::store::host_values::HostValues;
use crate::store::keys::EntryRef;
use crate::store::session::changes::TurnCommit;
use crate::store::session::loaded::Session;

/// Longest title and longest last line, in characters.
const LINE: usize = 80;

impl Session {
    /// An empty batch that expects the head as it was read.
    pub(in crate::store) fn batch(&self, head: &Head, host: HostValues<'_>) -> Batch {
        let counter = self.revision.as_deref().map_or(0, revision_counter) + 1;
        let nonce = seams::nonce(host.nonce());
        Batch {
            expect: seams::expected(Some((self.keys.head(), self.revision.clone()))),
            revision: format!("{}.{counter}.{nonce}", head.epoch),
            remove: self.orphans.clone().unwrap_or_default(),
            ..Batch::default()
        }
    }

    /// A batch that may create the session. It removes the entries of an earlier unfinished attempt to create it, such
    /// as a fork whose process has crashed.
    pub(in crate::store) fn create_batch(&self, head: &Head, host: HostValues<'_>) -> Batch {
        let mut batch = self.batch(head, host);
        if self.head.is_none() && self.revision.is_some() {
            batch.remove_prefix.extend([self.keys.log(), self.keys.branch("")]);
        }
        batch
    }

    pub(super) fn head_or_fresh(&self, host: HostValues<'_>) -> Head {
        let fresh =
            || Head { facts: self.facts(), ..Head::fresh(&self.slot, host.epoch(), &host.at()) };
        self.stored_head().cloned().unwrap_or_else(fresh)
    }

    pub(in crate::store) fn put_entry(
        &self,
        batch: &mut Batch,
        name: &EntryRef,
        parent: Option<EntryRef>,
        turn: &TurnCommit,
    ) {
        batch.remove.extend(turn.pieces.iter().cloned());
        for input in turn.joined.iter().chain([&turn.input]) {
            let key = self.keys.input(&input.call_id);
            if seams::keeps_input(turn.outcome.is_none()) {
                // The log has the messages. The record stays, so that the call is recovered if it crashes.
                let path = self.left.is_some() && input.call_id == turn.input.call_id;
                let path = path.then(|| self.path_to(Some(name), turn.messages.len()));
                batch.put.push((key, json::to_bytes(&Input { path, ..input.again() })));
                continue;
            }
            if seams::keeps_outcome(input.named) {
                let mut record = serde_json::json!({ "entry": name });
                if let (Some(asked), Some(record)) = (&input.asked, record.as_object_mut()) {
                    record.insert("asked".to_owned(), asked.as_str().into());
                }
                batch.put.push((self.keys.call(&input.call_id), json::to_bytes(&record)));
            }
            batch.remove.extend(seams::spent_input(key));
        }
        let entry = Entry {
            id: name.id.clone(),
            parent,
            kind: turn.kind,
            call_id: turn.input.call_id.clone(),
            messages: turn.messages.clone(),
            changes: turn.changes.clone(),
            asked: turn.asked(),
            outcome: turn.outcome.clone(),
            earlier: turn.input.earlier.clone(),
            ..Entry::put(name, None)
        };
        batch.put.insert(0, (self.keys.entry(name), json::to_bytes(&entry)));
    }

    /// The path of a resend that ends with this entry, which has `n_messages`.
    pub(super) fn path_to(&self, entry: Option<&EntryRef>, n_messages: usize) -> ResendPath {
        let path = self.head.as_ref();
        let leaf = entry.or(path.and_then(|path| path.leaf.as_ref())).cloned();
        let messages = path.map_or(0, |path| path.card.messages) + n_messages as u64;
        ResendPath { leaf, messages }
    }

    /// Puts the head after everything else of the batch. It names the inputs that are stored after the batch.
    pub(in crate::store) fn put_head(&self, head: &mut Head, batch: &mut Batch) {
        let prefix = self.keys.inputs();
        for name in batch.remove.iter().filter_map(|key| key.strip_prefix(&prefix)) {
            head.inputs.retain(|input| input != name);
        }
        for name in batch.put.iter().filter_map(|(key, _)| key.strip_prefix(&prefix)) {
            if !head.inputs.iter().any(|input| input == name) {
                head.inputs.push(name.to_owned());
            }
        }
        batch.put.push((self.keys.head(), json::to_bytes(head)));
    }

    pub(in crate::store) fn put_index(
        &self,
        head: &mut Head,
        batch: &mut Batch,
        host: HostValues<'_>,
    ) {
        self.put_line(head, batch, host, None);
    }

    /// Puts the line of the session list. For an accepted input the line also has the call, its last text and its number of
    /// messages.
    pub(super) fn put_line(
        &self,
        head: &mut Head,
        batch: &mut Batch,
        host: HostValues<'_>,
        open: Option<&Input>,
    ) {
        // A damaged head could name the line of another session.
        if seams::must_remove_line(self.keys.owns_line(&head.index)) {
            batch.remove.push(head.index.clone());
        }
        head.card.updated = host.at();
        if is_child(&head.session_id) {
            return;
        }
        head.index = self.keys.index(host.now_ms);
        let card = &head.card;
        let mut info = serde_json::json!({
            "sessionId": head.session_id,
            "userId": head.user_id,
            "title": card.title,
            "summary": card.line,
            "messages": card.messages,
            "updatedAt": card.updated,
            "createdAt": card.created,
            "branches": card.branches,
        });
        if let Some(info) = info.as_object_mut() {
            let mut add = |name: &str, value: Value| drop(info.insert(name.to_owned(), value));
            if card.asking {
                add("asking", true.into());
            }
            if head.is_cut_off() {
                add("interrupted", true.into());
            }
            if let Some(input) = open {
                let path = self.head.as_ref().map_or(0, |path| path.card.messages);
                add("messages", (path + self.n_open + input.messages.len() as u64).into());
                add("open", input.call_id.as_str().into());
                last_line(&input.messages).into_iter().for_each(|it| add("summary", it.into()));
            }
        }
        batch.put.push((head.index.clone(), json::to_bytes(&info)));
    }
}

/// The last text in messages, as one line.
pub(in crate::store) fn last_line(messages: &[Rc<Message>]) -> Option<String> {
    let lines = messages.iter().rev().map(|message| line(&message.text()));
    lines.into_iter().find(|text| !text.is_empty())
}

/// The first line of a text that is not blank, cut to a title's length.
pub(in crate::store) fn line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match first.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None => first.to_owned(),
    }
}
