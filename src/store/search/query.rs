//! Asking the index: only the buckets of the question's terms are read, and of the log only what no segment covers.

use std::collections::HashMap;

use serde::Serialize;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Role;
use crate::port::{Page, Record};
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::head::{Head, HeadRecord};
use crate::store::key::{self, SlotKeys};
use crate::store::records::read;
use crate::store::search::excerpt::excerpt;
use crate::store::search::index::{Name, covering};
use crate::store::search::rank::{Place, Tally, which};
use crate::store::search::segment::{self, Block, Posting};
use crate::store::search::terms::{Asked, asked, bucket};
use crate::store::search::{is_due, messages, searchable};

/// Heads asked for at a time.
const HEADS: usize = 256;

/// Entries of the log asked for at a time.
const ENTRIES: usize = 256;

/// Records of a bucket asked for at a time; each has some kilobytes.
const SEGMENTS: usize = 64;

/// Hits may turn out to be there no more, or there twice: so many more are ranked than are asked for.
const SPARE: usize = 16;

/// What is looked for, and where.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The words.
    pub text: &'a str,
    /// Whose sessions; `None` is the anonymous user.
    pub user: Option<&'a str>,
    /// Only this session.
    pub session: Option<&'a str>,
    /// At most so many.
    pub limit: usize,
}

/// A message that was found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// Where.
    pub slot: Slot,
    /// Which.
    pub message_id: String,
    /// Who said it.
    pub role: Role,
    /// When.
    pub at: String,
    /// The part of it that was meant.
    pub excerpt: String,
    /// How well it fits; to be compared within one answer.
    pub score: f64,
}

/// What came of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The messages, best first.
    pub hits: Vec<SearchHit>,
    /// Sessions whose index has a gap, and the entry from which on it is to be made anew.
    pub gaps: Vec<(Slot, u64)>,
}

/// A session that is searched.
struct Searched {
    slot: Slot,
    keys: SlotKeys,
    head: Head,
    /// What each bucket has of it.
    shelves: Vec<Shelf>,
}

/// What a bucket has of a session, from the beginning of its log to the first gap.
#[derive(Default)]
struct Shelf {
    to: u64,
    blocks: Vec<Looked>,
}

/// What of a block was asked for: terms by their number in the question.
struct Looked {
    from: u64,
    n_docs: u64,
    length: u64,
    postings: Vec<(usize, Posting)>,
}

impl Sessions {
    /// The messages that fit a question best.
    pub async fn search(&self, query: Query<'_>) -> Result<Found> {
        let asked = asked(query.text);
        let mut found = Found::default();
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
        let mut tally = Tally::new(asked.len());
        for (number, session) in sessions.iter_mut().enumerate() {
            let (covered, reached) = session.reach();
            if reached > covered || is_due(session.head.next - covered, 0) {
                found.gaps.push((session.slot.clone(), covered));
            }
            tally.read_shelves(number, covered, std::mem::take(&mut session.shelves));
            self.read_tail((number, session), covered, &asked, &mut tally).await?;
        }
        self.show(
            &sessions,
            tally.ranked(2 * query.limit + SPARE),
            &asked,
            query.limit,
            &mut found.hits,
        )
        .await?;
        Ok(found)
    }

    /// The sessions that are searched, with their heads.
    async fn searched(&self, query: Query<'_>) -> Result<Vec<Searched>> {
        let partition = key::partition(&self.agent, query.user);
        let heads: Vec<String> = match query.session {
            Some(session) => vec![self.keys(&Slot::new(query.user, session)?).head()],
            None => {
                let index = key::index(&partition);
                let page = Page { keys_only: true, ..Page::default() };
                let lines = self.records.list(&index, page).await?;
                let names = lines.iter().filter_map(|(key, _)| key.strip_prefix(&index));
                names.filter_map(|line| key::head_of_line(&partition, line)).collect()
            }
        };
        let mut sessions = Vec::new();
        for keys in heads.chunks(HEADS) {
            for record in self.records.get_all(keys).await?.into_iter().flatten() {
                // One that cannot be read is left out: whoever opens the session is told.
                if let Ok(HeadRecord::Live(head)) = read(&record, Head::from_json, "a head")
                    && head.user_id.as_deref() == query.user
                {
                    let slot = Slot::new(query.user, &head.session_id)?;
                    let (keys, head, shelves) = (self.keys(&slot), *head, Vec::new());
                    sessions.push(Searched { slot, keys, head, shelves });
                }
            }
        }
        Ok(sessions)
    }

    /// Reads one bucket: of all sessions at once, or of the one that is searched.
    async fn fetch(
        &self,
        query: Query<'_>,
        bucket: usize,
        asked: &[Asked],
        sessions: &mut [Searched],
    ) -> Result<()> {
        let all = key::search(&key::partition(&self.agent, query.user), bucket);
        let prefix = match (query.session, &*sessions) {
            (Some(_), [only]) => only.keys.segments(bucket),
            _ => all.clone(),
        };
        let mut of_session: HashMap<String, Vec<(Name, Record)>> = HashMap::new();
        let mut after = None;
        loop {
            let page = Page { after, limit: Some(SEGMENTS), keys_only: false };
            let records = self.records.list(&prefix, page).await?;
            let is_last = records.len() < SEGMENTS;
            after = records.last().map(|(key, _)| key.clone());
            for (key, record) in records {
                let name = key.strip_prefix(&all).and_then(|name| name.split_once('/'));
                if let Some((session, name)) = name
                    && let Some(name) = Name::read(name)
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
            session.shelves.push(Shelf::read(&cover, asked));
        }
        Ok(())
    }

    /// Looks through what no segment covers. What cannot be read there is left out: whoever opens the session is told.
    async fn read_tail(
        &self,
        (number, session): (usize, &Searched),
        from: u64,
        asked: &[Asked],
        tally: &mut Tally,
    ) -> Result<()> {
        let next = session.head.next;
        for first in (from..next).step_by(ENTRIES) {
            let last = (first + ENTRIES as u64).min(next) - 1;
            let entries = match self.records.entries(&session.keys, first, last).await {
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => continue,
                entries => entries?,
            };
            for (seq, nth, message) in messages(&entries) {
                if seq <= last {
                    tally.count(number, (seq, nth), &searchable(message), asked);
                }
            }
        }
        Ok(())
    }

    /// Reads the best messages themselves. What is not there any more, or says something else now, is no hit.
    async fn show(
        &self,
        sessions: &[Searched],
        ranked: Vec<(Place, f64)>,
        asked: &[Asked],
        limit: usize,
        hits: &mut Vec<SearchHit>,
    ) -> Result<()> {
        for ((number, seq, nth), score) in ranked {
            let Some(session) = sessions.get(number).filter(|_| hits.len() < limit) else { break };
            let entries = match self.records.entries(&session.keys, seq, seq).await {
                Err(error) if error.kind() == ErrorKind::StoreCorrupt => continue,
                entries => entries?,
            };
            let messages = messages(&entries);
            let message = messages.iter().find(|(a, b, _)| (*a, *b) == (seq, nth));
            let Some((_, _, message)) = message else { continue };
            let Some(excerpt) = excerpt(&searchable(message), asked) else { continue };
            let (slot, message_id) = (session.slot.clone(), message.id.clone());
            // A message that was put again is in the log twice.
            if !hits.iter().any(|hit| hit.slot == slot && hit.message_id == message_id) {
                let (role, at) = (message.role, message.at.clone());
                hits.push(SearchHit { slot, message_id, role, at, excerpt, score });
            }
        }
        Ok(())
    }
}

impl Searched {
    /// The entry up to which every bucket has all, and the one up to which some bucket has.
    fn reach(&self) -> (u64, u64) {
        let ends = self.shelves.iter().map(|shelf| shelf.to.min(self.head.next));
        (ends.clone().min().unwrap_or(0), ends.max().unwrap_or(0))
    }
}

impl Shelf {
    /// Looks the question's terms up in segments; what comes behind one that cannot be read does not count.
    fn read(cover: &[(Name, Record)], asked: &[Asked]) -> Shelf {
        let mut shelf = Shelf::default();
        for (name, record) in cover {
            let blocks = segment::blocks(&record.value, name.from, name.to);
            let looked = blocks.and_then(|blocks| {
                blocks.iter().map(|block| Looked::read(block, asked)).collect::<Option<Vec<_>>>()
            });
            let Some(looked) = looked else { break };
            shelf.blocks.extend(looked);
            shelf.to = name.to;
        }
        shelf
    }
}

impl Looked {
    fn read(block: &Block<'_>, asked: &[Asked]) -> Option<Looked> {
        let mut meant = Vec::new();
        block.each_term(&mut |term, bytes| {
            meant.extend(which(asked, term).map(|which| (which, bytes)));
        })?;
        let mut postings = Vec::new();
        for (which, bytes) in meant {
            postings.extend(block.postings(bytes)?.into_iter().map(|posting| (which, posting)));
        }
        let Block { from, n_docs, length, .. } = *block;
        Some(Looked { from, n_docs, length, postings })
    }
}

impl Tally {
    /// Takes in what the segments of a session have, as far as all buckets do.
    fn read_shelves(&mut self, number: usize, covered: u64, shelves: Vec<Shelf>) {
        for (nth_shelf, shelf) in shelves.into_iter().enumerate() {
            for block in shelf.blocks.into_iter().filter(|block| block.from < covered) {
                // Every bucket tells the same of the whole.
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
