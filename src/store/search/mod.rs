//! Finding what was said: an index of immutable segments beside the log, written after the reply.
//!
//! Each segment covers a stretch of one session's log and is one record for each of 32 buckets of terms, all written in
//! one batch. Nothing is ever read in order to be changed: a segment is put, taken into a larger one, or removed. What
//! no segment covers is read from the log itself, so what is missing costs time and never an answer.

pub mod excerpt;
mod index;
mod query;
mod rank;
pub mod segment;
pub mod terms;
mod text;

pub use index::{Tail, is_due};
pub use query::{Found, Query, SearchHit};
pub use text::searchable;

use std::rc::Rc;

use crate::message::Message;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::view::Entries;

/// The messages of entries in the order of the log: the entry's number, which message of it, and the message.
fn messages(entries: &Entries) -> Vec<(u64, u64, &Rc<Message>)> {
    // A sort for each kind of list would be kilobytes of the wasm; these lists are short.
    let mut spoken: Vec<(&EntryRef, &Entry)> = Vec::new();
    for (name, entry) in entries.iter().filter(|(_, entry)| entry.kind != EntryKind::Summary) {
        let place =
            |(other, _): &(&EntryRef, &Entry)| (other.seq, &other.id) < (name.seq, &name.id);
        spoken.insert(spoken.partition_point(place), (name, entry));
    }
    let mut messages: Vec<(u64, u64, &Rc<Message>)> = Vec::new();
    for (name, entry) in spoken {
        for message in &entry.messages {
            // Two entries may have one number; their messages are counted on.
            let nth = match messages.last() {
                Some((seq, nth, _)) if *seq == name.seq => nth + 1,
                _ => 0,
            };
            messages.push((name.seq, nth, message));
        }
    }
    messages
}
