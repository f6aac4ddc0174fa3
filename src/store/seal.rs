//! The seal of a record: the members `key` and `check` at its end. A reader notices bytes that have changed, and a record
//! that stands under the key of another one.
//!
//! `check` is bound to the revision of its record. An older version keeps members that it does not know when it writes a
//! record again; then the check is of another revision and says nothing. A record without a seal is believed, because older
//! versions write no seals.
//!
//! The hash is that of the JSON value and not of its bytes, because a store may keep documents, and write their members in
//! another order. It is a hash of 64 bits that takes eight bytes with one multiplication. It finds damage, not forgery: who
//! can write to the store can also make a seal. Every record that is read or written is hashed, so SHA-256, which is a
//! dependency anyway, would be many times too slow. Each step of the hash can be undone. So a change within eight bytes is
//! always found, and another change is overlooked once in 2^64.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::json;
use crate::port::Record;
use crate::store::keys;

/// The kinds of records that have a seal.
const SEALED: &[&str] = &[
    "slot/head",
    "slot/branch",
    "slot/log",
    "slot/input",
    "slot/partial",
    "slot/call",
    "slot/memory",
    "slot/file",
    "index",
    "file",
    "task",
];

/// The members of a seal. They are not a part of what is hashed.
const MEMBERS: [&[u8]; 2] = [b"key", b"check"];

/// A check begins with the hash of the revision and the hash of the record, which have these numbers of digits. The hash of
/// both follows.
const DIGITS: (usize, usize) = (8, 16);

/// What the seal of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// There is none.
    Absent,
    /// The record is as it was written, and in its place.
    Whole,
    /// It is of another revision: an older version has written the record again.
    Stale,
    /// The same, and the record has the key of another session of the same user: an older version has copied it.
    Copied,
}

/// The value of a record with its seal, or as it is if records of this kind have none.
pub(super) fn sealed(key: &str, revision: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    let hash = Some(()).filter(|()| is_sealed(key)).and_then(|()| hash_of(key, revision, value));
    let Some(hash) = hash else { return bytes };
    let of_revision = short_hash(revision.as_bytes());
    bytes.pop();
    let mut add = |text: &str| bytes.extend(text.as_bytes());
    add(",\"key\":\"");
    add(key);
    add("\",\"check\":\"");
    add(&check_of(&of_revision, hash));
    add("\"}");
    bytes
}

/// Reads the value of a record, and its seal. `what` names the record in error messages.
pub(super) fn opened(key: &str, record: &Record, what: &str) -> Result<(Value, Seal)> {
    let value = json::parse(&record.value, what)?;
    match examined(key, record, &value) {
        Ok(seal) => Ok((value, seal)),
        Err(why) => Err(Error::new(ErrorKind::StoreCorrupt, format!("{what} {why}"))),
    }
}

/// Whether records of the kind of this key have a seal.
fn is_sealed(key: &str) -> bool {
    SEALED.contains(&keys::kind(key).as_str())
}

fn examined(key: &str, record: &Record, value: &Value) -> Result<Seal, &'static str> {
    if !is_sealed(key) {
        return Ok(Seal::Absent);
    }
    let (named, found) = match (value.get("key"), value.get("check")) {
        (None, None) => return Ok(Seal::Absent),
        (Some(named), Some(found)) => (named.as_str().unwrap_or_default(), found),
        _ => return Err(DAMAGED),
    };
    let found = found.as_str().unwrap_or_default();
    let (of_revision, rest) = found.split_at_checked(DIGITS.0).ok_or(DAMAGED)?;
    let hash = rest.get(..DIGITS.1).and_then(|hash| u64::from_str_radix(hash, 16).ok());
    // A check that was damaged itself must not be taken for that of an older revision.
    if hash.is_none_or(|hash| check_of(of_revision, hash) != found) {
        return Err(DAMAGED);
    }
    if of_revision == short_hash(record.revision.as_bytes()) {
        return match hash_of(key, &record.revision, &record.value) == hash {
            true => Ok(Seal::Whole),
            false => Err(if named == key { DAMAGED } else { MISPLACED }),
        };
    }
    match named == key {
        true => Ok(Seal::Stale),
        false if is_copy(key, named) => Ok(Seal::Copied),
        false => Err(MISPLACED),
    }
}

const DAMAGED: &str = "is damaged: its checksum is wrong";
const MISPLACED: &str = "is a record of another place";

/// Whether an older version can have copied the record. Its forks keep the names of entries, in another session of the same
/// user. Its heads keep members of the head from which they come, and when a branch is left, its head becomes that of the
/// branch.
fn is_copy(key: &str, named: &str) -> bool {
    fn parts(key: &str) -> Option<(&str, &str)> {
        let (partition, below) = key.split_once("/slot/")?;
        Some((partition, below.split_once('/')?.1))
    }
    let (Some((user, own)), Some((other, named))) = (parts(key), parts(named)) else {
        return false;
    };
    let is_same = own == named && (own == "head" || own.starts_with("log/"));
    user == other && (is_same || own.starts_with("branch/") && named == "head")
}

/// A check: the hash of the revision, the hash of the record, and the hash of both.
fn check_of(of_revision: &str, hash: u64) -> String {
    let check = format!("{of_revision}{hash:016x}");
    let of_both = short_hash(check.as_bytes());
    check + &of_both
}

fn short_hash(bytes: &[u8]) -> String {
    let hash = hashed(START, bytes);
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// The hash of a record: of its key, its revision and its value. `None`: the value is no object with members.
fn hash_of(key: &str, revision: &str, value: &[u8]) -> Option<u64> {
    let of_value = JsonHash { bytes: value, at: 0 }.object(true)?;
    let of_place = hashed(hashed(START, key.as_bytes()), revision.as_bytes());
    Some(hashed(of_place, &of_value.to_le_bytes()))
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of bytes after others.
fn hashed(start: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ (hash >> 32)
    };
    let start = step(start, bytes.len() as u64);
    bytes.chunks(8).fold(start, |hash, chunk| {
        let word = chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        step(hash, word)
    })
}

/// The hash of a JSON value. It does not depend on white space and on the order of members, and not on how a number is
/// written by Rust or JavaScript. The text is JSON that was just written or read, so its form is not checked again.
struct JsonHash<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl JsonHash<'_> {
    fn value(&mut self) -> Option<u64> {
        match self.next()? {
            b'{' => self.object(false),
            b'[' => self.list(),
            b'"' => Some(hashed(1, self.text()?)),
            _ => Some(self.word()),
        }
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Skips this byte if it is next.
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Members are added up, so their order does not matter. The members of a seal do not count.
    fn object(&mut self, is_record: bool) -> Option<u64> {
        let mut sum = 2_u64;
        if !self.skip(b'{') || self.skip(b'}') {
            return Some(sum).filter(|_| !is_record);
        }
        loop {
            self.next();
            let name = self.text()?;
            let counts = !is_record || !MEMBERS.contains(&name);
            let of_name = hashed(3, name);
            if !self.skip(b':') {
                return None;
            }
            let of_value = self.value()?;
            if counts {
                sum = sum.wrapping_add(hashed(of_name, &of_value.to_le_bytes()));
            }
            if !self.skip(b',') {
                return self.skip(b'}').then_some(sum);
            }
        }
    }

    fn list(&mut self) -> Option<u64> {
        let mut hash = 4;
        self.skip(b'[');
        if self.skip(b']') {
            return Some(hash);
        }
        loop {
            let of_item = self.value()?;
            hash = hashed(hash, &of_item.to_le_bytes());
            if !self.skip(b',') {
                return self.skip(b']').then_some(hash);
            }
        }
    }

    /// The bytes between two quotation marks.
    fn text(&mut self) -> Option<&[u8]> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        self.bytes.get(start..end)
    }

    /// A number, true, false or null. JavaScript writes 1.0 as 1, -0 as 0 and 1e30 as 1e+30.
    fn word(&mut self) -> u64 {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        let n = rest.iter().position(is_end).unwrap_or(rest.len());
        let word = rest.get(..n).unwrap_or_default();
        self.at += n.max(1);
        let word = word.strip_suffix(b".0").unwrap_or(word);
        let word = if word == b"-0" { b"0" } else { word };
        match word.contains(&b'+') {
            true => hashed(5, &word.iter().copied().filter(|it| *it != b'+').collect::<Vec<_>>()),
            false => hashed(5, word),
        }
    }
}
