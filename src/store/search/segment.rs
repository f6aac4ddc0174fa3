//! What a segment's records hold: blocks of postings, which are put one behind the other when segments are merged.
//!
//! A record is a byte for the format and then blocks. A block says which entries of the log it covers, how many
//! messages and terms these have, and for each term of the bucket where it stands: the entry, the message in it, how
//! long that is, how often the term is there and at which places first. Numbers are varints, and entries count from
//! the one before.

use std::collections::HashMap;

use crate::store::search::terms::{BUCKETS, bucket, each_term};

/// The format of a record.
const FORMAT: u8 = 1;

/// So many places of a term in one message are kept: enough to see what stands beside what.
const PLACES: usize = 4;

/// One message that a term stands in.
#[derive(Clone, Debug, PartialEq)]
pub struct Posting {
    /// The number of the entry in the log.
    pub seq: u64,
    /// The number of the message among those of its entry.
    pub nth: u64,
    /// How many terms the message has.
    pub length: u64,
    /// How often the term is there.
    pub count: u64,
    /// Where it stands first, counted in terms.
    pub places: Vec<u64>,
}

/// The terms of a text.
#[derive(Default)]
pub struct Counted {
    /// How often each term is there, and where first.
    pub terms: HashMap<String, (u64, Vec<u64>)>,
    /// How many terms there are.
    pub length: u64,
}

impl Counted {
    /// Counts them.
    pub fn new(text: &str) -> Counted {
        let mut counted = Counted::default();
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
pub struct Draft {
    from: u64,
    n_docs: u64,
    length: u64,
    /// For each term, the last entry it stands in and its postings.
    terms: HashMap<String, (u64, Vec<u8>)>,
}

impl Draft {
    /// One that begins with this entry.
    pub fn new(from: u64) -> Draft {
        Draft { from, n_docs: 0, length: 0, terms: HashMap::new() }
    }

    /// One more message; they come in the order of the log.
    pub fn add(&mut self, seq: u64, nth: u64, text: &str) {
        let Counted { terms, length } = Counted::new(text);
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

    /// The block's part of each bucket's record.
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

/// A record of these blocks' parts, behind those of records that it takes in.
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
pub struct Block<'a> {
    /// The first entry it covers.
    pub from: u64,
    /// Behind the last one.
    pub to: u64,
    /// How many messages they have.
    pub n_docs: u64,
    /// How many terms these have.
    pub length: u64,
    terms: &'a [u8],
}

/// The blocks of a record that covers these entries; `None` if it is not one that we can read.
pub fn blocks(record: &[u8], from: u64, to: u64) -> Option<Vec<Block<'_>>> {
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
        blocks.push(Block { from: begin, to: end, n_docs, length, terms: body });
    }
    (*format == FORMAT && next == to).then_some(blocks)
}

impl<'a> Block<'a> {
    /// Shows every term and its postings; `None` if the block is damaged.
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

    /// The postings of a term; `None` if they are damaged.
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
