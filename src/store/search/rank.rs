//! How well messages fit a question: how rare its terms are, how often they stand there, how long the message is.

use std::collections::HashMap;

use crate::store::search::segment::{Counted, Posting};
use crate::store::search::terms::Asked;

/// How fast a term that comes again counts less, and how much the length of a message matters: as everybody has them.
const K: f64 = 1.2;
const B: f64 = 0.75;

/// Where a message is: the session, the entry, and which of its messages.
pub(super) type Place = (usize, u64, u64);

/// A term that is there: its number in the question, how often, and where first.
type There = (usize, u64, Vec<u64>);

/// What is known of all messages, and of those in which something of the question stands.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) n_docs: u64,
    pub(super) length: u64,
    /// In how many messages each term stands.
    n_with: Vec<u64>,
    /// By session, entry and message: its length, and for each term that is there its number, count and places.
    docs: HashMap<Place, (u64, Vec<There>)>,
}

impl Tally {
    /// For a question of so many terms.
    pub(super) fn new(n_terms: usize) -> Tally {
        Tally { n_with: vec![0; n_terms], ..Tally::default() }
    }

    /// Takes in a message that no segment has.
    pub(super) fn count(
        &mut self,
        number: usize,
        (seq, nth): (u64, u64),
        text: &str,
        asked: &[Asked],
    ) {
        let Counted { terms, length } = Counted::new(text);
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
        // In their order: a sum depends on the order of what is added, and equals are to stay equal.
        let place = there.partition_point(|(other, ..)| *other <= which);
        there.insert(place, (which, posting.count, posting.places));
    }

    /// The messages that fit best, so many, and the newest of equals first.
    pub(super) fn ranked(&self, limit: usize) -> Vec<(Place, f64)> {
        let n_docs = self.n_docs.max(1) as f64;
        let usual = (self.length as f64 / n_docs).max(1.0);
        let weigh = |n_with: &u64| {
            let n_with = (*n_with as f64).min(n_docs);
            ((n_docs - n_with + 0.5) / (n_with + 0.5)).ln_1p()
        };
        let weights: Vec<f64> = self.n_with.iter().map(weigh).collect();
        let score = |length: u64, there: &[There]| -> f64 {
            let damp = K * (1.0 - B + B * length as f64 / usual);
            let each = there.iter().map(|(which, count, _)| {
                let count = *count as f64;
                weights.get(*which).unwrap_or(&0.0) * count * (K + 1.0) / (count + damp)
            });
            each.sum::<f64>() * (1.0 + n_together(there) as f64 / 2.0)
        };
        let mut ranked: Vec<(Place, f64)> = Vec::new();
        for (key, (length, there)) in &self.docs {
            let (key, score) = (*key, score(*length, there));
            let is_better = |(other, best): &(Place, f64)| {
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

/// Which terms of a question mean a term of a text.
pub(super) fn which(asked: &[Asked], term: &[u8]) -> impl Iterator<Item = usize> {
    asked.iter().enumerate().filter(move |(_, asked)| asked.means(term)).map(|(which, _)| which)
}

/// How many terms of a question stand right behind the one before them, as they were asked for.
fn n_together(there: &[There]) -> usize {
    let follows = |which: usize, place: u64| {
        let mut next = there.iter().filter(|(other, _, _)| *other == which + 1);
        next.any(|(_, _, places)| places.contains(&(place + 1)))
    };
    let pairs =
        there.iter().filter(|(which, _, places)| places.iter().any(|at| follows(*which, *at)));
    pairs.count()
}
