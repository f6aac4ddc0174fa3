//! Sessions that are copied: what a fork, an export and an import consist of, and how it becomes a session.
//!
//! `document` is the form of an exported session, and `check` refuses documents whose parts do not fit together.

mod build;
mod check;
mod document;
mod fork;
mod messages;
mod read;

use std::rc::Rc;

use crate::event::Reason;
use crate::message::{CallState, Message, Role};
use crate::store::format::entry::{CallUpdate, Entry, EntryKind, Outcome};
use crate::store::format::head::Head;
use crate::store::keys::EntryRef;
use crate::store::log::Entries;

pub use document::Document;
pub use messages::ImportedMessages;
pub use read::WholeSession;

/// What a copied session consists of: its log, its head, and the heads of its other branches.
pub struct SessionCopy {
    /// The head. Its ids of the slot are not used.
    pub head: Head,
    /// The log, in its order.
    pub entries: Vec<(EntryRef, Entry)>,
    /// The heads of the branches except the current one, as they were left.
    pub branches: Vec<Head>,
}

/// What becomes of the open tool calls at the end of a path.
pub struct ClosedCalls {
    /// Messages with the results of those that are closed.
    pub results: Vec<Rc<Message>>,
    /// Whether others stay open.
    pub is_open: bool,
}

impl SessionCopy {
    /// Estimated size of its messages, in bytes.
    pub fn weight(&self) -> usize {
        let messages = self.entries.iter().flat_map(|(_, entry)| &entry.messages);
        messages.map(|message| message.weight()).sum()
    }

    /// Adds the results of open tool calls to the end of each path. `close` makes them from the last messages of the path.
    pub fn close_calls(
        &mut self,
        close: &dyn Fn(&[Rc<Message>]) -> ClosedCalls,
        id: &dyn Fn() -> String,
    ) {
        let log: Entries = self.entries.iter().cloned().collect();
        let SessionCopy { head, entries, branches } = self;
        let mut next = head.next;
        for path in [&mut *head].into_iter().chain(branches) {
            let said = last_reply(&log, path.leaf.as_ref());
            let closed = close(&said);
            path.card.asking = closed.is_open;
            if closed.results.is_empty() {
                continue;
            }
            let name = EntryRef { seq: next, id: id() };
            let entry = closing_entry(&name, path, &said, closed);
            path.append(name.clone(), entry.messages.len());
            path.card.interrupted = entry.outcome.as_ref().map(|_| name.id.clone());
            next = path.next;
            entries.push((name, entry));
        }
        head.next = next;
    }
}

/// The entry with the results of tool calls. It ends the turn if no tool call is open.
fn closing_entry(name: &EntryRef, path: &Head, said: &[Rc<Message>], closed: ClosedCalls) -> Entry {
    let results = closed.results.iter().flat_map(|message| message.tool_results());
    let changes = results.filter_map(|result| {
        let called = |message: &&Rc<Message>| message.tool_uses().any(|it| it.id == result.id);
        let message = said.iter().rev().find(called)?.id.clone();
        Some(CallUpdate { message, ..CallUpdate::new(&result.id, CallState::Finished) })
    });
    let is_end = !closed.is_open;
    Entry {
        kind: if is_end { EntryKind::Recovered } else { EntryKind::Put },
        changes: changes.collect(),
        outcome: is_end.then(|| Outcome::ended(Reason::Interrupted)),
        messages: closed.results,
        ..Entry::put(name, path.leaf.clone())
    }
}

/// The last reply on a path and the messages after it, with later changes of its tool calls.
fn last_reply(log: &Entries, leaf: Option<&EntryRef>) -> Vec<Rc<Message>> {
    let (mut turn, mut name) = (Vec::new(), leaf);
    while let Some(entry) = name.and_then(|name| log.get(name)) {
        turn.push(entry);
        if entry.messages.iter().any(|message| message.role == Role::Assistant) {
            break;
        }
        name = entry.parent.as_ref();
    }
    let mut said = Vec::new();
    for entry in turn.into_iter().rev() {
        for change in &entry.changes {
            change.apply_to(&mut said);
        }
        let spoken = entry.messages.iter().filter(|_| entry.kind != EntryKind::Summary);
        said.extend(spoken.cloned());
    }
    said
}
