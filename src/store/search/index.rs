//! Writing the index: what is new becomes a segment, and segments of one size become a larger one.

use crate::error::Result;
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::head::Head;
use crate::store::id;
use crate::store::key::SlotKeys;
use crate::store::records::Landing;
use crate::store::search::segment::{self, Draft};
use crate::store::search::terms::BUCKETS;
use crate::store::search::{messages, searchable};
use crate::store::sessions::{ATTEMPTS, superseded};

/// So many entries, or so many bytes, that are not in the index are worth a segment.
const ENTRIES: u64 = 64;
const BYTES: usize = 64 * 1024;

/// So many times that in one step: short enough that a call which comes meanwhile hardly waits for the processor.
const STRIDE: u64 = 8;

/// So many segments of one size become one.
const ALIKE: usize = 4;

/// Segments are not merged beyond this many bytes, so that a batch and what it reads stay small.
const LARGEST: usize = 1024 * 1024;

/// What of a session no segment covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The first entry.
    pub from: u64,
    /// How many bytes there are, about.
    pub bytes: usize,
}

/// Whether so much is worth a segment.
pub fn is_due(n_entries: u64, n_bytes: usize) -> bool {
    n_entries >= ENTRIES || n_bytes >= BYTES
}

/// A segment, by its name: `<from>.<to>.<epoch>`. The name tells what it covers, so that nobody has to read it for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) epoch: String,
}

impl Name {
    pub(super) fn read(name: &str) -> Option<Name> {
        let (from, rest) = name.split_once('.')?;
        let (to, epoch) = rest.split_once('.')?;
        Some(Name { from: from.parse().ok()?, to: to.parse().ok()?, epoch: epoch.to_owned() })
    }

    fn write(&self) -> String {
        format!("{:012}.{:012}.{}", self.from, self.to, self.epoch)
    }

    fn span(&self) -> u64 {
        self.to - self.from
    }
}

/// Of segments in the order of their names, those that cover the log from its beginning without a gap. Of two that
/// begin alike the longer one counts.
pub(super) fn covering<T>(
    all: impl IntoIterator<Item = T>,
    epoch: &str,
    name: impl Fn(&T) -> &Name,
) -> Vec<T> {
    let mut cover: Vec<T> = Vec::new();
    for it in all {
        let Name { from, to, .. } = name(&it);
        let end = cover.last().map_or(0, |last| name(last).to);
        let begin = cover.last().map_or(0, |last| name(last).from);
        let is_longer = !cover.is_empty() && *from == begin && *to > end;
        if name(&it).epoch != epoch || to <= from || !(*from == end || is_longer) {
            continue;
        }
        if is_longer {
            cover.pop();
        }
        cover.push(it);
    }
    cover
}

/// What the index of a session has.
struct Shelf {
    /// The segments that cover the log from its beginning on, whole in every bucket.
    cover: Vec<Name>,
    /// Keys that are of no use: of another session that had this name, of a segment that is not whole.
    strays: Vec<String>,
}

impl Sessions {
    /// Takes a session's index one step on, if enough of the session is new. Segments that reach beyond `trusted` are
    /// made anew. Answers with what is left, or with none where another step may be due; a session that changes all the
    /// time, or is deleted meanwhile, is left as it is.
    pub async fn extend_index(&self, slot: &Slot, trusted: u64) -> Result<Option<Tail>> {
        let session = self.load_head(slot).await?;
        let Some(head) = session.head.filter(|head| head.check_format(slot).is_ok()) else {
            return Ok(Some(Tail::default()));
        };
        let shelf = self.shelf(&session.keys, &head.epoch, trusted).await?;
        let from = shelf.cover.last().map_or(0, |last| last.to);
        let mut tail = Tail { from, bytes: 0 };
        let (to, parts) = self.parts(&session.keys, &head, &mut tail).await?;
        if parts.is_empty() && shelf.strays.is_empty() {
            return Ok(Some(tail));
        }
        let revision = id::mint(&*self.records.host);
        // Whoever deletes the session moves its head: a segment of it never comes back.
        let expect = Some((session.keys.head(), session.revision.clone()));
        let mut batch = Batch { expect, revision, remove: shelf.strays, ..Batch::default() };
        if !parts.is_empty() {
            let new = Name { from, to, epoch: head.epoch.clone() };
            self.put_segment(&session.keys, &shelf.cover, new, &parts, &mut batch).await?;
        }
        if !self.commit_index(slot, &head.epoch, &mut batch).await? {
            return Err(superseded(slot, "the session changes faster than it can be indexed"));
        }
        Ok(None)
    }

    /// Commits what belongs to a session of this epoch, wherever its head is by now: calls go on meanwhile.
    async fn commit_index(&self, slot: &Slot, epoch: &str, batch: &mut Batch) -> Result<bool> {
        for _ in 0..ATTEMPTS {
            if !matches!(self.records.commit(batch).await?, Landing::Conflict) {
                return Ok(true);
            }
            let session = self.load_head(slot).await?;
            if session.head.is_none_or(|head| head.epoch != epoch) {
                return Ok(false);
            }
            batch.expect = Some((session.keys.head(), session.revision));
        }
        Ok(false)
    }

    /// What is there, by its keys alone.
    async fn shelf(&self, keys: &SlotKeys, epoch: &str, trusted: u64) -> Result<Shelf> {
        let mut shelf = Shelf { cover: Vec::new(), strays: Vec::new() };
        let mut names: Vec<(Name, usize)> = Vec::new();
        let mut found = Vec::new();
        for bucket in 0..BUCKETS {
            let prefix = keys.segments(bucket);
            let page = Page { keys_only: true, ..Page::default() };
            for (key, _) in self.records.list(&prefix, page).await? {
                let Some(name) = key.strip_prefix(&prefix).and_then(Name::read) else {
                    shelf.strays.push(key);
                    continue;
                };
                match names.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, n_buckets)) => *n_buckets += 1,
                    None => {
                        let is_before = |(other, _): &(Name, usize)| {
                            (other.from, other.to) < (name.from, name.to)
                        };
                        names.insert(names.partition_point(is_before), (name.clone(), 1));
                    }
                }
                found.push((key, name));
            }
        }
        let whole = names.into_iter().filter(|(_, n_buckets)| *n_buckets == BUCKETS);
        let whole = whole.map(|(name, _)| name).filter(|name| name.to <= trusted);
        shelf.cover = covering(whole, epoch, |name| name);
        let is_stray = |(_, name): &(String, Name)| !shelf.cover.contains(name);
        shelf.strays.extend(found.into_iter().filter(is_stray).map(|(key, _)| key));
        Ok(shelf)
    }

    /// What is new, as blocks of each bucket, and the entry behind it; none if it is not enough.
    async fn parts(
        &self,
        keys: &SlotKeys,
        head: &Head,
        tail: &mut Tail,
    ) -> Result<(u64, Vec<Vec<Vec<u8>>>)> {
        let (mut parts, mut from) = (Vec::new(), tail.from);
        tail.bytes = 0;
        while from < head.next && from < tail.from + STRIDE * ENTRIES {
            let to = (from + ENTRIES).min(head.next);
            let entries = self.records.entries(keys, from, to - 1).await?;
            let (mut draft, mut bytes) = (Draft::new(from), 0);
            for (seq, nth, message) in messages(&entries) {
                if seq < to {
                    let text = searchable(message);
                    bytes += text.len();
                    draft.add(seq, nth, &text);
                }
            }
            if !is_due(to - from, bytes) {
                tail.bytes = bytes;
                break;
            }
            parts.push(draft.finish(to));
            from = to;
        }
        Ok((from, parts))
    }

    /// Puts a segment, in place of those that it is merged with.
    async fn put_segment(
        &self,
        keys: &SlotKeys,
        cover: &[Name],
        new: Name,
        parts: &[Vec<Vec<u8>>],
        batch: &mut Batch,
    ) -> Result<()> {
        let spans: Vec<u64> = cover.iter().map(Name::span).collect();
        let merged = cover.get(cover.len() - n_merged(&spans, new.span())..).unwrap_or_default();
        let of_bucket = |bucket| {
            let prefix = keys.segments(bucket);
            merged.iter().map(move |name| format!("{prefix}{}", name.write()))
        };
        let old: Vec<String> = (0..BUCKETS).flat_map(of_bucket).collect();
        let records = if old.is_empty() { Vec::new() } else { self.records.get_all(&old).await? };
        let values: Vec<&[u8]> =
            records.iter().flatten().map(|record| record.value.as_slice()).collect();
        let n_bytes: usize = values.iter().map(|value| value.len()).sum();
        let fits = values.len() == old.len() && n_bytes <= LARGEST;
        let merged = if fits { merged } else { &[] };
        let from = merged.first().map_or(new.from, |first| first.from);
        let name = Name { from, ..new }.write();
        for bucket in 0..BUCKETS {
            let own: Vec<Vec<u8>> =
                parts.iter().filter_map(|block| block.get(bucket).cloned()).collect();
            let taken = values.chunks(merged.len().max(1)).nth(bucket);
            let taken = taken.filter(|_| !merged.is_empty()).unwrap_or_default();
            let key = format!("{}{name}", keys.segments(bucket));
            batch.put.push((key, segment::record(taken, &own)));
        }
        if fits {
            batch.remove.extend(old);
        }
        Ok(())
    }
}

/// How many of the last segments a new one is merged with.
fn n_merged(spans: &[u64], new: u64) -> usize {
    let (mut rest, mut size) = (spans, new);
    loop {
        let is_alike = |span: &&u64| tier(**span) == tier(size);
        let n_alike = rest.iter().rev().take_while(is_alike).count();
        let Some((before, alike)) =
            rest.split_at_checked(rest.len() - n_alike).filter(|_| n_alike + 1 >= ALIKE)
        else {
            return spans.len() - rest.len();
        };
        size += alike.iter().sum::<u64>();
        rest = before;
    }
}

/// Each tier is four times the one before.
fn tier(span: u64) -> u32 {
    span.max(1).ilog2() / 2
}
