//! The terms of a text: words in lower case, and pairs of characters where a script has no spaces.

use crate::store::keys::BUCKETS;

/// Longest term, in bytes. Longer words are cut.
const LONGEST: usize = 64;

/// A term of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The term.
    pub term: String,
    /// Whether it also matches longer terms that begin with it. True for one character of a script without spaces.
    pub begins: bool,
}

impl QueryTerm {
    /// Whether it matches a term of a text.
    pub fn means(&self, term: &[u8]) -> bool {
        let own = self.term.as_bytes();
        if self.begins { term.starts_with(own) } else { term == own }
    }
}

/// Calls `see` with every term of a text and its position.
///
/// In a script without spaces each pair of characters is a term, and the last character of a run too. So a query for one
/// character finds it as the beginning of a term.
pub fn each_term(text: &str, see: &mut dyn FnMut(&str, usize)) {
    let mut word = String::new();
    let mut begin = 0;
    let mut last: Option<(usize, char)> = None;
    for (at, it) in text.char_indices().chain([(text.len(), ' ')]) {
        let unspaced = is_unspaced(it);
        if let Some((before, first)) = last.take() {
            let pair = [first, it];
            let pair: String = pair.iter().take(1 + usize::from(unspaced)).collect();
            see(&pair, before);
        }
        if !unspaced && it.is_alphanumeric() {
            if word.is_empty() {
                begin = at;
            }
            if word.len() < LONGEST {
                word.extend(it.to_lowercase());
            }
        } else if !is_mark(it) && !word.is_empty() {
            see(&word, begin);
            word.clear();
        }
        last = unspaced.then_some((at, it));
    }
}

/// The terms of a query, without duplicates.
pub fn query_terms(text: &str) -> Vec<QueryTerm> {
    let mut all: Vec<QueryTerm> = Vec::new();
    let mut pair_ends = None;
    each_term(text, &mut |term, at| {
        let mut of_run = term.chars().filter(|it| is_unspaced(*it));
        let (first, second) = (of_run.next(), of_run.next());
        let ends_run = first.is_some() && second.is_none();
        // The last pair of a run contains its last character already.
        let is_new = !(ends_run && pair_ends == Some(at));
        pair_ends = second.and(first).map(|first| at + first.len_utf8());
        let asked = QueryTerm { term: term.to_owned(), begins: ends_run };
        if is_new && !all.contains(&asked) {
            all.push(asked);
        }
    });
    all
}

/// The bucket of a term. In scripts without spaces, terms that begin with the same character share a bucket.
pub fn bucket(term: &str) -> usize {
    let end = term.chars().next().filter(|it| is_unspaced(*it)).map_or(term.len(), char::len_utf8);
    let bytes = term.bytes().take(end);
    let hash = bytes
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16) as usize % BUCKETS
}

/// Whether a character belongs to a script without spaces between words.
fn is_unspaced(it: char) -> bool {
    matches!(it,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // kana
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' // Han
        | '\u{ac00}'..='\u{d7af}') // Hangul: its words grow endings, which pairs see through
        && it != '\u{30fb}'
}

/// Whether a character is a combining mark or invisible.
fn is_mark(it: char) -> bool {
    matches!(it, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200c}' | '\u{200d}')
}
