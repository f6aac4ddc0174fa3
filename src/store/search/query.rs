//! Searches: reads the buckets of the terms of the query, and entries of the log that no segment covers.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::{Message, Role};
use crate::port::{Page, Record};
use crate::slot::Slot;
use crate::store::format::head::{Head, HeadRecord};
use crate::store::format::session_info::SessionInfo;
use crate::store::keys::{self, SlotKeys};
use crate::store::log::Entries;
use crate::store::operations::{Sessions, missing_entry};
use crate::store::records::read;
use crate::store::search::excerpt::excerpt;
use crate::store::search::index::{SegmentName, covering};
use crate::store::search::rank::{MessageKey, Ranking, which};
use crate::store::search::segment::{self, Posting, PostingBlock};
use crate::store::search::terms::{QueryTerm, bucket, query_terms};
use crate::store::search::{is_due, messages, searchable};

/// Heads read at a time.
const HEADS: usize = 256;

/// Entries of the log read at a time.
const ENTRIES: usize = 256;

/// Records of a bucket read at a time; each has some kilobytes.
const SEGMENTS: usize = 64;

/// Additional hits that are ranked, because some may be gone or stored twice.
const SPARE: usize = 16;

/// The text of a search, and where to search.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The words to search for.
    pub text: &'a str,
    /// The user whose sessions are searched; `None` is the anonymous user.
    pub user: Option<&'a str>,
    /// Only this session.
    pub session: Option<&'a str>,
    /// Most hits.
    pub limit: usize,
}

/// A message that was found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The slot.
    pub slot: Slot,
    /// The id of the message.
    pub message_id: String,
    /// The role of the message.
    pub role: Role,
    /// The time of the message.
    pub at: String,
    /// The part of the message that contains the words.
    pub excerpt: String,
    /// How well it fits. Scores can be compared within one result.
    pub score: f64,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The messages, best first.
    pub hits: Vec<SearchHit>,
    /// Sessions whose index has a gap, and the entry from which the index must be written again.
    pub gaps: Vec<(Slot, u64)>,
}

/// A session that is searched.
struct Searched {
    slot: Slot,
    keys: SlotKeys,
    head: Head,
    /// The messages that are accepted and not logged yet. They are searched as if they were the next entry.
    open: Vec<Rc<Message>>,
    /// The blocks of each bucket.
    shelves: Vec<BucketBlocks>,
    /// Whether no other session is searched.
    is_only: bool,
}

/// The blocks of a session in one bucket, from the beginning of the log to the first gap.
#[derive(Default)]
struct BucketBlocks {
    to: u64,
    blocks: Vec<MatchedBlock>,
}

/// The postings of a block for the terms of the query; a term is given by its index in the query.
struct MatchedBlock {
    from: u64,
    n_docs: u64,
    length: u64,
    postings: Vec<(usize, Posting)>,
}

impl Sessions {
    /// The messages that fit a query best.
    pub async fn search(&self, query: Query<'_>) -> Result<SearchResult> {
        let asked = query_terms(query.text);
        let mut found = SearchResult::default();
        if asked.is_empty() || query.limit == 0 {
            return Ok(found);
        }
        let mut sessions = self.searched(query).await?;
        let mut buckets: Vec<usize> = Vec::new();
        for bucket in asked.iter().map(|it| bucket(&it.term)) {
            if !buckets.contains(&bucket) {
                buckets.push(bucket);
                self.fetch(query, bucket, &asked, &mut sessions).await?;
            }
        }
        let mut ranking = Ranking::new(asked.len());
        for (number, session) in sessions.iter_mut().enumerate() {
            let (covered, reached) = session.reach();
            if reached > covered || is_due(session.head.next - covered, 0) {
                found.gaps.push((session.slot.clone(), covered));
            }
            ranking.read_shelves(number, covered, std::mem::take(&mut session.shelves));
            self.read_tail((number, session), covered, &asked, &mut ranking).await?;
        }
        self.show(
            &sessions,
            ranking.ranked(2 * query.limit + SPARE),
            &asked,
            query.limit,
            &mut found.hits,
        )
        .await?;
        Ok(found)
    }

    /// The sessions that are searched, with their heads.
    async fn searched(&self, query: Query<'_>) -> Result<Vec<Searched>> {
        if let Some(session) = query.session {
            let slot = Slot::new(query.user, session)?;
            return Ok(self.only(slot).await?.into_iter().collect());
        }
        let partition = keys::partition(self.agent(), query.user);
        let index = keys::index(&partition);
        let lines = self.records().list_lines(&index, Page::default()).await?;
        let names = lines.iter().filter_map(|(key, _)| key.strip_prefix(&index));
        let heads: Vec<String> =
            names.filter_map(|line| keys::head_of_line(&partition, line)).collect();
        // Inputs are read before heads: an input that is logged in between is in the log of the head.
        let mut open: HashMap<Slot, Vec<Rc<Message>>> = HashMap::new();
        for slot in lines.iter().filter_map(|(key, line)| with_open(query.user, key, line)) {
            let messages = match self.said_in_inputs(&slot).await {
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => continue,
                messages => messages?,
            };
            open.insert(slot, messages);
        }
        let mut sessions = Vec::new();
        for keys in heads.chunks(HEADS) {
            let records = match self.records().get_all(keys).await {
                // The store fails if one of them is damaged.
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => {
                    let mut records = Vec::new();
                    for key in keys {
                        records.push(self.records().get(key.clone()).await.unwrap_or_default());
                    }
                    records
                }
                records => records?,
            };
            for (key, record) in keys.iter().zip(records) {
                let Some(record) = record else { continue };
                // An unreadable head is left out; loading the session reports the error.
                if let Ok(HeadRecord::Live(head)) = read(key, &record, Head::from_json, "a head")
                    && head.user_id.as_deref() == query.user
                {
                    let slot = Slot::new(query.user, &head.session_id)?;
                    let open = open.remove(&slot).unwrap_or_default();
                    sessions.push(Searched::new(self.keys(&slot), slot, *head, open));
                }
            }
        }
        Ok(sessions)
    }

    /// The only session that is searched. Then it is an error if it cannot be read.
    async fn only(&self, slot: Slot) -> Result<Option<Searched>> {
        let open = self.said_in_inputs(&slot).await?;
        let session = self.read_only(&slot).await?;
        if session.head.as_ref().is_some_and(|head| !head.inputs.is_empty()) {
            self.inputs_of(&session).await?;
        }
        let new =
            |head| Searched { is_only: true, ..Searched::new(session.keys, slot, head, open) };
        Ok(session.head.map(new))
    }

    /// Reads one bucket, for all sessions or for the only one that is searched.
    async fn fetch(
        &self,
        query: Query<'_>,
        bucket: usize,
        asked: &[QueryTerm],
        sessions: &mut [Searched],
    ) -> Result<()> {
        let all = keys::search(&keys::partition(self.agent(), query.user), bucket);
        let prefix = match (query.session, &*sessions) {
            (Some(_), [only]) => only.keys.segments(bucket),
            _ => all.clone(),
        };
        let mut of_session: HashMap<String, Vec<(SegmentName, Record)>> = HashMap::new();
        let mut after = None;
        loop {
            let page = Page { after, limit: Some(SEGMENTS), keys_only: false };
            let records = self.records().list(&prefix, page).await?;
            let is_last = records.len() < SEGMENTS;
            after = records.last().map(|(key, _)| key.clone());
            for (key, record) in records {
                let name = key.strip_prefix(&all).and_then(|name| name.split_once('/'));
                if let Some((session, name)) = name
                    && let Some(name) = SegmentName::read(name)
                {
                    of_session.entry(session.to_owned()).or_default().push((name, record));
                }
            }
            if is_last {
                break;
            }
        }
        for session in sessions {
            let own = of_session.remove(session.keys.name()).unwrap_or_default();
            let cover = covering(own, &session.head.epoch, |(name, _)| name);
            session.shelves.push(BucketBlocks::read(&cover, asked));
        }
        Ok(())
    }

    /// The entries of a session with these numbers. Among many sessions, what cannot be read is left out, and loading the session
    /// reports the error; if only this session is searched, it is an error here.
    async fn entries_of(
        &self,
        session: &Searched,
        (first, last): (u64, u64),
    ) -> Result<Option<Entries>> {
        let entries = match self.records().entries(&session.keys, first, last).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt && !session.is_only => {
                return Ok(None);
            }
            entries => entries?,
        };
        let known = session.head.log.map_or(u64::MAX, |log| log.from).max(first);
        let mut known = known..session.head.next.min(last + 1);
        let is_whole = known.all(|seq| entries.keys().any(|name| name.seq == seq));
        if session.is_only && !is_whole {
            let now = self.load_head(&session.slot).await?;
            if now.head.as_ref() == Some(&session.head) {
                return Err(missing_entry(&session.slot));
            }
        }
        Ok(Some(entries))
    }

    /// Searches the entries that no segment covers.
    async fn read_tail(
        &self,
        (number, session): (usize, &Searched),
        from: u64,
        asked: &[QueryTerm],
        ranking: &mut Ranking,
    ) -> Result<()> {
        let next = session.head.next;
        for first in (from..next).step_by(ENTRIES) {
            let last = (first + ENTRIES as u64).min(next) - 1;
            let Some(entries) = self.entries_of(session, (first, last)).await? else { continue };
            for (seq, nth, message) in messages(&entries) {
                if seq <= last {
                    ranking.count(number, (seq, nth), &searchable(message), asked);
                }
            }
        }
        for (nth, message) in session.open.iter().enumerate() {
            ranking.count(number, (next, nth as u64), &searchable(message), asked);
        }
        Ok(())
    }

    /// Reads the best messages. A message that is gone, or no longer contains the words, is no hit.
    async fn show(
        &self,
        sessions: &[Searched],
        ranked: Vec<(MessageKey, f64)>,
        asked: &[QueryTerm],
        limit: usize,
        hits: &mut Vec<SearchHit>,
    ) -> Result<()> {
        for ((number, seq, nth), score) in ranked {
            let Some(session) = sessions.get(number).filter(|_| hits.len() < limit) else { break };
            let Some(entries) = self.entries_of(session, (seq, seq)).await? else { continue };
            let logged = messages(&entries);
            let logged = logged.iter().find(|(a, b, _)| (*a, *b) == (seq, nth)).map(|it| it.2);
            let open = session.open.get(nth as usize).filter(|_| seq == session.head.next);
            let Some(message) = open.or(logged) else { continue };
            let Some(excerpt) = excerpt(&searchable(message), asked) else { continue };
            let (slot, message_id) = (session.slot.clone(), message.id.clone());
            // A message that was put again is in the log twice, and one that was just logged may also be among the open ones.
            if !hits.iter().any(|hit| hit.slot == slot && hit.message_id == message_id) {
                let (role, at) = (message.role, message.at.clone());
                hits.push(SearchHit { slot, message_id, role, at, excerpt, score });
            }
        }
        Ok(())
    }
}

/// The session of a line of the session list, if the line names an open call.
fn with_open(user: Option<&str>, key: &str, line: &Record) -> Option<Slot> {
    let info = read(key, line, SessionInfo::from_json, "a line of the session list").ok()?;
    info.open.and_then(|_| Slot::new(user, &info.session_id).ok())
}

impl Searched {
    fn new(keys: SlotKeys, slot: Slot, head: Head, open: Vec<Rc<Message>>) -> Searched {
        Searched { slot, keys, head, open, shelves: Vec::new(), is_only: false }
    }

    /// The entry up to which all buckets are complete, and the entry up to which at least one is.
    fn reach(&self) -> (u64, u64) {
        let ends = self.shelves.iter().map(|shelf| shelf.to.min(self.head.next));
        (ends.clone().min().unwrap_or(0), ends.max().unwrap_or(0))
    }
}

impl BucketBlocks {
    /// Looks up the terms of the query in segments. Segments after an unreadable one do not count.
    fn read(cover: &[(SegmentName, Record)], asked: &[QueryTerm]) -> BucketBlocks {
        let mut shelf = BucketBlocks::default();
        for (name, record) in cover {
            let blocks = segment::blocks(&record.value, name.from, name.to);
            let looked = blocks.and_then(|blocks| {
                blocks
                    .iter()
                    .map(|block| MatchedBlock::read(block, asked))
                    .collect::<Option<Vec<_>>>()
            });
            let Some(looked) = looked else { break };
            shelf.blocks.extend(looked);
            shelf.to = name.to;
        }
        shelf
    }
}

impl MatchedBlock {
    fn read(block: &PostingBlock<'_>, asked: &[QueryTerm]) -> Option<MatchedBlock> {
        let mut meant = Vec::new();
        block.each_term(&mut |term, bytes| {
            meant.extend(which(asked, term).map(|which| (which, bytes)));
        })?;
        let mut postings = Vec::new();
        for (which, bytes) in meant {
            postings.extend(block.postings(bytes)?.into_iter().map(|posting| (which, posting)));
        }
        let PostingBlock { from, n_docs, length, .. } = *block;
        Some(MatchedBlock { from, n_docs, length, postings })
    }
}

impl Ranking {
    /// Adds the blocks of a session, up to the entry up to which all buckets are complete.
    fn read_shelves(&mut self, number: usize, covered: u64, shelves: Vec<BucketBlocks>) {
        for (nth_shelf, shelf) in shelves.into_iter().enumerate() {
            for block in shelf.blocks.into_iter().filter(|block| block.from < covered) {
                // The totals are the same in every bucket.
                if nth_shelf == 0 {
                    self.n_docs += block.n_docs;
                    self.length += block.length;
                }
                for (which, posting) in block.postings {
                    self.add(number, which, posting);
                }
            }
        }
    }
}
