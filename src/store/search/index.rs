//! Writes the index: new entries become a segment, and segments of similar size are merged.

use crate::error::Result;
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::store::format::head::Head;
use crate::store::keys::BUCKETS;
use crate::store::keys::SlotKeys;
use crate::store::operations::Sessions;
use crate::store::operations::{ATTEMPTS, superseded};
use crate::store::records::CommitOutcome;
use crate::store::search::segment::{self, BlockDraft};
use crate::store::search::{messages, searchable};

/// A segment is written for this many new entries, or this many new bytes.
const ENTRIES: u64 = 64;
const BYTES: usize = 64 * 1024;

/// Most segments of new entries in one step. Steps are short, so that indexing does not delay a new call.
const STRIDE: u64 = 8;

/// Number of segments of similar size that are merged.
const ALIKE: usize = 4;

/// Largest segment that merging makes, in bytes, so that batches and reads stay small.
const LARGEST: usize = 1024 * 1024;

/// The end of a session that no segment covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unindexed {
    /// The first entry.
    pub from: u64,
    /// Estimated number of bytes.
    pub bytes: usize,
}

/// Whether so many entries or bytes are enough for a segment.
pub fn is_due(n_entries: u64, n_bytes: usize) -> bool {
    n_entries >= ENTRIES || n_bytes >= BYTES
}

/// The name of a segment: `<from>.<to>.<epoch>`. It says which entries the segment covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentName {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) epoch: String,
}

impl SegmentName {
    pub(super) fn read(name: &str) -> Option<SegmentName> {
        let (from, rest) = name.split_once('.')?;
        let (to, epoch) = rest.split_once('.')?;
        Some(SegmentName {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            epoch: epoch.to_owned(),
        })
    }

    fn write(&self) -> String {
        format!("{:012}.{:012}.{}", self.from, self.to, self.epoch)
    }

    fn span(&self) -> u64 {
        self.to - self.from
    }
}

/// Selects the segments that cover the log from its beginning without a gap. `all` is in the order of names. Of two
/// segments with the same beginning the longer one is taken.
pub(super) fn covering<T>(
    all: impl IntoIterator<Item = T>,
    epoch: &str,
    name: impl Fn(&T) -> &SegmentName,
) -> Vec<T> {
    let mut cover: Vec<T> = Vec::new();
    for it in all {
        let SegmentName { from, to, .. } = name(&it);
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

/// The segments of a session that are stored.
struct StoredSegments {
    /// The segments that cover the log from its beginning, complete in every bucket.
    cover: Vec<SegmentName>,
    /// Keys to be removed: of an earlier session with the same id, or of an incomplete segment.
    to_remove: Vec<String>,
}

impl Sessions {
    /// Indexes new entries of a session in one step, if there are enough. Segments that reach beyond `trusted` are written
    /// again. Returns what stays unindexed; `None` if another step may be due. A session that is deleted meanwhile, or
    /// changes all the time, stays as it is.
    pub async fn extend_index(&self, slot: &Slot, trusted: u64) -> Result<Option<Unindexed>> {
        let session = self.load_head(slot).await?;
        let Some(head) = session.head.filter(|head| head.check_format(slot).is_ok()) else {
            return Ok(Some(Unindexed::default()));
        };
        let stored = self.stored_segments(&session.keys, &head.epoch, trusted).await?;
        let from = stored.cover.last().map_or(0, |last| last.to);
        let mut tail = Unindexed { from, bytes: 0 };
        let (to, parts) = self.parts(&session.keys, &head, &mut tail).await?;
        if parts.is_empty() && stored.to_remove.is_empty() {
            return Ok(Some(tail));
        }
        let revision = self.records().random_id();
        // Deleting the session changes the head, so a late segment cannot bring its records back.
        let expect = Some((session.keys.head(), session.revision.clone()));
        let mut batch = Batch { expect, revision, remove: stored.to_remove, ..Batch::default() };
        if !parts.is_empty() {
            let new = SegmentName { from, to, epoch: head.epoch.clone() };
            self.put_segment(&session.keys, &stored.cover, new, &parts, &mut batch).await?;
        }
        if !self.commit_index(slot, &head.epoch, &mut batch).await? {
            return Err(superseded(slot, "the session changes faster than it can be indexed"));
        }
        Ok(None)
    }

    /// Commits a batch for a session with this epoch. Calls may change the head meanwhile.
    async fn commit_index(&self, slot: &Slot, epoch: &str, batch: &mut Batch) -> Result<bool> {
        for _ in 0..ATTEMPTS {
            if !matches!(self.records().commit(batch).await?, CommitOutcome::Conflict) {
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

    /// The stored segments, from their keys alone.
    async fn stored_segments(
        &self,
        keys: &SlotKeys,
        epoch: &str,
        trusted: u64,
    ) -> Result<StoredSegments> {
        let mut stored = StoredSegments { cover: Vec::new(), to_remove: Vec::new() };
        let mut names: Vec<(SegmentName, usize)> = Vec::new();
        let mut found = Vec::new();
        for bucket in 0..BUCKETS {
            let prefix = keys.segments(bucket);
            let page = Page { keys_only: true, ..Page::default() };
            for (key, _) in self.records().list(&prefix, page).await? {
                let Some(name) = key.strip_prefix(&prefix).and_then(SegmentName::read) else {
                    stored.to_remove.push(key);
                    continue;
                };
                match names.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, n_buckets)) => *n_buckets += 1,
                    None => {
                        let is_before = |(other, _): &(SegmentName, usize)| {
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
        stored.cover = covering(whole, epoch, |name| name);
        let is_unused = |(_, name): &(String, SegmentName)| !stored.cover.contains(name);
        stored.to_remove.extend(found.into_iter().filter(is_unused).map(|(key, _)| key));
        Ok(stored)
    }

    /// New entries as blocks for each bucket, and the number of the entry after them. No blocks: there are too few entries.
    async fn parts(
        &self,
        keys: &SlotKeys,
        head: &Head,
        tail: &mut Unindexed,
    ) -> Result<(u64, Vec<Vec<Vec<u8>>>)> {
        let (mut parts, mut from) = (Vec::new(), tail.from);
        tail.bytes = 0;
        while from < head.next && from < tail.from + STRIDE * ENTRIES {
            let to = (from + ENTRIES).min(head.next);
            let entries = self.records().entries(keys, from, to - 1).await?;
            let (mut draft, mut bytes) = (BlockDraft::new(from), 0);
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

    /// Puts a segment, and removes the segments that are merged into it.
    async fn put_segment(
        &self,
        keys: &SlotKeys,
        cover: &[SegmentName],
        new: SegmentName,
        parts: &[Vec<Vec<u8>>],
        batch: &mut Batch,
    ) -> Result<()> {
        let spans: Vec<u64> = cover.iter().map(SegmentName::span).collect();
        let merged = cover.get(cover.len() - n_merged(&spans, new.span())..).unwrap_or_default();
        let of_bucket = |bucket| {
            let prefix = keys.segments(bucket);
            merged.iter().map(move |name| format!("{prefix}{}", name.write()))
        };
        let old: Vec<String> = (0..BUCKETS).flat_map(of_bucket).collect();
        let records =
            if old.is_empty() { Vec::new() } else { self.records().get_all(&old).await? };
        let values: Vec<&[u8]> =
            records.iter().flatten().map(|record| record.value.as_slice()).collect();
        let n_bytes: usize = values.iter().map(|value| value.len()).sum();
        let fits = values.len() == old.len() && n_bytes <= LARGEST;
        let merged = if fits { merged } else { &[] };
        let from = merged.first().map_or(new.from, |first| first.from);
        let name = SegmentName { from, ..new }.write();
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

/// How many of the last segments are merged with a new one.
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

/// The size class of a segment; each class is four times as large as the one before.
fn tier(span: u64) -> u32 {
    span.max(1).ilog2() / 2
}
