//! Ranks messages (BM25): by how rare the terms of the query are, how often a message contains them, and its length.

use std::collections::HashMap;

use crate::store::search::segment::{Posting, TermCounts};
use crate::store::search::terms::QueryTerm;

/// The usual BM25 constants: weight of repeated terms, and weight of the length of a message.
const K: f64 = 1.2;
const B: f64 = 0.75;

/// Identifies a message: index of the session, number of the entry, index of the message in it.
pub(super) type MessageKey = (usize, u64, u64);

/// A term in a message: its index in the query, how often it occurs, and its first positions.
type TermHits = (usize, u64, Vec<u64>);

/// Totals of all messages, and the terms found in each message.
#[derive(Default)]
pub(super) struct Ranking {
    pub(super) n_docs: u64,
    pub(super) length: u64,
    /// How many messages contain each term.
    n_with: Vec<u64>,
    /// For each message: its length, and its terms.
    docs: HashMap<MessageKey, (u64, Vec<TermHits>)>,
}

impl Ranking {
    /// An empty ranking for a query with so many terms.
    pub(super) fn new(n_terms: usize) -> Ranking {
        Ranking { n_with: vec![0; n_terms], ..Ranking::default() }
    }

    /// Adds a message that no segment covers.
    pub(super) fn count(
        &mut self,
        number: usize,
        (seq, nth): (u64, u64),
        text: &str,
        asked: &[QueryTerm],
    ) {
        let TermCounts { terms, length } = TermCounts::new(text);
        self.n_docs += 1;
        self.length += length;
        for (term, (count, places)) in terms {
            for which in which(asked, term.as_bytes()) {
                let places = places.clone();
                self.add(number, which, Posting { seq, nth, length, count, places });
            }
        }
    }

    pub(super) fn add(&mut self, session: usize, which: usize, posting: Posting) {
        if let Some(n_with) = self.n_with.get_mut(which) {
            *n_with += 1;
        }
        let key = (session, posting.seq, posting.nth);
        let (_, there) = self.docs.entry(key).or_insert((posting.length, Vec::new()));
        // Sorted by term: a sum of floats depends on the order, and equal messages must get equal scores.
        let place = there.partition_point(|(other, ..)| *other <= which);
        there.insert(place, (which, posting.count, posting.places));
    }

    /// The best messages; of equal ones the newest first.
    pub(super) fn ranked(&self, limit: usize) -> Vec<(MessageKey, f64)> {
        let n_docs = self.n_docs.max(1) as f64;
        let usual = (self.length as f64 / n_docs).max(1.0);
        let weigh = |n_with: &u64| {
            let n_with = (*n_with as f64).min(n_docs);
            ((n_docs - n_with + 0.5) / (n_with + 0.5)).ln_1p()
        };
        let weights: Vec<f64> = self.n_with.iter().map(weigh).collect();
        let score = |length: u64, there: &[TermHits]| -> f64 {
            let damp = K * (1.0 - B + B * length as f64 / usual);
            let each = there.iter().map(|(which, count, _)| {
                let count = *count as f64;
                weights.get(*which).unwrap_or(&0.0) * count * (K + 1.0) / (count + damp)
            });
            each.sum::<f64>() * (1.0 + n_together(there) as f64 / 2.0)
        };
        let mut ranked: Vec<(MessageKey, f64)> = Vec::new();
        for (key, (length, there)) in &self.docs {
            let (key, score) = (*key, score(*length, there));
            let is_better = |(other, best): &(MessageKey, f64)| {
                let (number, seq, nth) = *other;
                *best > score || (*best == score && (seq, nth, number) > (key.1, key.2, key.0))
            };
            let place = ranked.partition_point(is_better);
            if place < limit {
                ranked.truncate(limit - 1);
                ranked.insert(place, (key, score));
            }
        }
        ranked
    }
}

/// The terms of a query that match a term of a text.
pub(super) fn which(asked: &[QueryTerm], term: &[u8]) -> impl Iterator<Item = usize> {
    asked.iter().enumerate().filter(move |(_, asked)| asked.means(term)).map(|(which, _)| which)
}

/// How many terms follow each other directly in the message as they do in the query.
fn n_together(there: &[TermHits]) -> usize {
    let follows = |which: usize, place: u64| {
        let mut next = there.iter().filter(|(other, _, _)| *other == which + 1);
        next.any(|(_, _, places)| places.contains(&(place + 1)))
    };
    let pairs =
        there.iter().filter(|(which, _, places)| places.iter().any(|at| follows(*which, *at)));
    pairs.count()
}
