//! The terms of a text: words in lower case, and pairs of characters where a script has no spaces.

/// The longest term, in bytes; what is longer counts by its beginning.
const LONGEST: usize = 64;

/// How many parts the terms are divided into.
pub const BUCKETS: usize = 32;

/// A term that somebody asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The term.
    pub term: String,
    /// Whether longer terms that begin with it are meant, too: one character of a script without spaces.
    pub begins: bool,
}

impl Asked {
    /// Whether a term of a text is meant.
    pub fn means(&self, term: &[u8]) -> bool {
        let own = self.term.as_bytes();
        if self.begins { term.starts_with(own) } else { term == own }
    }
}

/// Shows every term of a text, and where in it the term begins.
///
/// Of a run without spaces each pair is a term, and its last character too: so whoever asks for one character finds
/// it as the beginning of some term.
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

/// The terms of a question, each once.
pub fn asked(text: &str) -> Vec<Asked> {
    let mut all: Vec<Asked> = Vec::new();
    let mut pair_ends = None;
    each_term(text, &mut |term, at| {
        let mut of_run = term.chars().filter(|it| is_unspaced(*it));
        let (first, second) = (of_run.next(), of_run.next());
        let ends_run = first.is_some() && second.is_none();
        // The last character of a run is in its last pair already.
        let is_new = !(ends_run && pair_ends == Some(at));
        pair_ends = second.and(first).map(|first| at + first.len_utf8());
        let asked = Asked { term: term.to_owned(), begins: ends_run };
        if is_new && !all.contains(&asked) {
            all.push(asked);
        }
    });
    all
}

/// Which part a term is in; all that begin with the same character of a script without spaces are in one.
pub fn bucket(term: &str) -> usize {
    let end = term.chars().next().filter(|it| is_unspaced(*it)).map_or(term.len(), char::len_utf8);
    let bytes = term.bytes().take(end);
    let hash = bytes
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16) as usize % BUCKETS
}

/// Whether a character is of a script that puts no spaces between words.
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

/// Whether a character belongs to the one before it.
fn is_mark(it: char) -> bool {
    matches!(it, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200c}' | '\u{200d}')
}
