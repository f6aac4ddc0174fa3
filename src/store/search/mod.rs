//! Search in messages: an index of immutable segments, written after the reply.
//!
//! A segment covers consecutive entries of one session. It has one record for each of 32 buckets of terms; one batch writes
//! them all. A segment is never changed: it is put, merged into a larger one, or removed. Entries without a segment are
//! read from the log. So a missing segment costs time, but no hit is lost.

pub mod excerpt;
mod index;
mod query;
mod rank;
pub mod segment;
pub mod terms;
mod text;

pub use index::{Unindexed, is_due};
pub use query::{Query, SearchHit, SearchResult};
pub use text::searchable;

use std::rc::Rc;

use crate::message::Message;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::keys::EntryRef;
use crate::store::log::Entries;

/// The messages of entries in the order of the log: number of the entry, index of the message in it, and the message.
fn messages(entries: &Entries) -> Vec<(u64, u64, &Rc<Message>)> {
    // Inserting instead of sorting saves kilobytes of wasm; these lists are short.
    let mut spoken: Vec<(&EntryRef, &Entry)> = Vec::new();
    for (name, entry) in entries.iter().filter(|(_, entry)| entry.kind != EntryKind::Summary) {
        let place =
            |(other, _): &(&EntryRef, &Entry)| (other.seq, &other.id) < (name.seq, &name.id);
        spoken.insert(spoken.partition_point(place), (name, entry));
    }
    let mut messages: Vec<(u64, u64, &Rc<Message>)> = Vec::new();
    for (name, entry) in spoken {
        for message in &entry.messages {
            // Two entries may have the same number; then their messages are counted together.
            let nth = match messages.last() {
                Some((seq, nth, _)) if *seq == name.seq => nth + 1,
                _ => 0,
            };
            messages.push((name.seq, nth, message));
        }
    }
    messages
}
