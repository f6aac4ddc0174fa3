//! The records of a segment: blocks of postings. Merging segments concatenates their blocks.
//!
//! A record is one byte for the format, then blocks. A block contains the entries that it covers, the number of their
//! messages and terms, and postings for each term of the bucket: entry, message, length of the message, count of the term
//! and its first positions. Numbers are varints. An entry is stored as the difference to the entry before.

use std::collections::HashMap;

use crate::store::keys::BUCKETS;
use crate::store::search::terms::{bucket, each_term};

/// The format of a record.
const FORMAT: u8 = 1;

/// Most positions of a term that are kept for one message: enough to find neighbouring terms.
const PLACES: usize = 4;

/// One message that contains a term.
#[derive(Clone, Debug, PartialEq)]
pub struct Posting {
    /// The number of the entry in the log.
    pub seq: u64,
    /// The index of the message in its entry.
    pub nth: u64,
    /// How many terms the message has.
    pub length: u64,
    /// How often it contains the term.
    pub count: u64,
    /// The first positions of the term, counted in terms.
    pub places: Vec<u64>,
}

/// The terms of a text, counted.
#[derive(Default)]
pub struct TermCounts {
    /// The count and first positions of each term.
    pub terms: HashMap<String, (u64, Vec<u64>)>,
    /// Number of terms.
    pub length: u64,
}

impl TermCounts {
    /// Counts the terms of a text.
    pub fn new(text: &str) -> TermCounts {
        let mut counted = TermCounts::default();
        each_term(text, &mut |term, _| {
            if !counted.terms.contains_key(term) {
                counted.terms.insert(term.to_owned(), Default::default());
            }
            if let Some((count, places)) = counted.terms.get_mut(term) {
                *count += 1;
                if places.len() < PLACES {
                    places.push(counted.length);
                }
            }
            counted.length += 1;
        });
        counted
    }
}

/// A block being written.
pub struct BlockDraft {
    from: u64,
    n_docs: u64,
    length: u64,
    /// For each term, the last entry that contains it, and its postings.
    terms: HashMap<String, (u64, Vec<u8>)>,
}

impl BlockDraft {
    /// An empty block that begins with this entry.
    pub fn new(from: u64) -> BlockDraft {
        BlockDraft { from, n_docs: 0, length: 0, terms: HashMap::new() }
    }

    /// Adds a message. Messages are added in the order of the log.
    pub fn add(&mut self, seq: u64, nth: u64, text: &str) {
        let TermCounts { terms, length } = TermCounts::new(text);
        self.n_docs += 1;
        self.length += length;
        for (term, (count, places)) in terms {
            let (last, bytes) = self.terms.entry(term).or_insert((self.from, Vec::new()));
            let mut before = 0;
            for number in [seq - *last, nth, length, count, places.len() as u64] {
                put(bytes, number);
            }
            for place in places {
                put(bytes, place - before);
                before = place;
            }
            *last = seq;
        }
    }

    /// The part of the block for each bucket.
    pub fn finish(self, to: u64) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        for _ in 0..BUCKETS {
            let mut part = Vec::new();
            for number in [self.from, to, self.n_docs, self.length] {
                put(&mut part, number);
            }
            parts.push(part);
        }
        for (term, (_, postings)) in &self.terms {
            if let Some(part) = parts.get_mut(bucket(term)) {
                for bytes in [term.as_bytes(), postings] {
                    put(part, bytes.len() as u64);
                    part.extend_from_slice(bytes);
                }
            }
        }
        parts
    }
}

/// A record with the blocks of the records in `taken`, followed by `parts`.
pub fn record(taken: &[&[u8]], parts: &[Vec<u8>]) -> Vec<u8> {
    let mut record = vec![FORMAT];
    for other in taken {
        record.extend_from_slice(other.get(1..).unwrap_or_default());
    }
    for part in parts {
        put(&mut record, part.len() as u64);
        record.extend_from_slice(part);
    }
    record
}

/// A block as it is read.
#[derive(Clone, Copy)]
pub struct PostingBlock<'a> {
    /// The first entry it covers.
    pub from: u64,
    /// The entry after the last one.
    pub to: u64,
    /// Number of messages in these entries.
    pub n_docs: u64,
    /// Number of terms in these messages.
    pub length: u64,
    terms: &'a [u8],
}

/// The blocks of a record that covers these entries. `None`: the record cannot be read.
pub fn blocks(record: &[u8], from: u64, to: u64) -> Option<Vec<PostingBlock<'_>>> {
    let (format, mut rest) = record.split_first()?;
    let mut blocks = Vec::new();
    let mut next = from;
    while !rest.is_empty() {
        let n_bytes = take(&mut rest)?;
        let mut body = cut(&mut rest, n_bytes)?;
        let [begin, end] = [take(&mut body)?, take(&mut body)?];
        let [n_docs, length] = [take(&mut body)?, take(&mut body)?];
        if begin != next || end <= begin {
            return None;
        }
        next = end;
        blocks.push(PostingBlock { from: begin, to: end, n_docs, length, terms: body });
    }
    (*format == FORMAT && next == to).then_some(blocks)
}

impl<'a> PostingBlock<'a> {
    /// Calls `see` with every term and its postings. `None`: the block is damaged.
    pub fn each_term(&self, see: &mut dyn FnMut(&'a [u8], &'a [u8])) -> Option<()> {
        let mut rest = self.terms;
        while !rest.is_empty() {
            let n_bytes = take(&mut rest)?;
            let term = cut(&mut rest, n_bytes)?;
            let n_bytes = take(&mut rest)?;
            see(term, cut(&mut rest, n_bytes)?);
        }
        Some(())
    }

    /// The postings of a term. `None`: they are damaged.
    pub fn postings(&self, mut bytes: &[u8]) -> Option<Vec<Posting>> {
        let mut postings = Vec::new();
        let mut seq = self.from;
        while !bytes.is_empty() {
            seq = seq.checked_add(take(&mut bytes)?)?;
            let [nth, length] = [take(&mut bytes)?, take(&mut bytes)?];
            let [count, n_places] = [take(&mut bytes)?, take(&mut bytes)?];
            let mut places: Vec<u64> = Vec::new();
            for _ in 0..n_places {
                let before = places.last().copied().unwrap_or(0);
                places.push(before.checked_add(take(&mut bytes)?)?);
            }
            postings.push(Posting { seq, nth, length, count, places });
        }
        Some(postings)
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn cut<'a>(bytes: &mut &'a [u8], n_bytes: u64) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(usize::try_from(n_bytes).ok()?)?;
    *bytes = rest;
    Some(head)
}
