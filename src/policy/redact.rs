//! Removes what looks like an API key from a text, and shortens the text.

/// The prefixes of the API keys of known providers.
const PREFIXES: &[&str] =
    &["sk-", "sk_", "pk-", "rk-", "aiza", "gsk_", "xai-", "hf_", "ghp_", "nvapi-", "key-", "eyj"];

/// The longest provider text that an error repeats.
const LONGEST: usize = 500;

/// The text without what looks like an API key, shortened.
pub fn redacted(text: &str) -> String {
    // Twice the length is searched, so that a key at the cut is still found whole.
    let start = text.char_indices().nth(2 * LONGEST).map_or(text.len(), |(end, _)| end);
    let mut out = without_keys(text.get(..start).unwrap_or_default());
    if start < text.len() || out.len() > LONGEST {
        let cut = (0..=LONGEST.min(out.len())).rev().find(|at| out.is_char_boundary(*at));
        out.truncate(cut.unwrap_or_default());
        out.push('…');
    }
    out
}

/// The text without what looks like an API key.
pub fn without_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let n = rest.find(|it| !is_of_key(it)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(n);
        out.push_str(if is_key(word) { "[redacted]" } else { word });
        let mut others = behind.chars();
        out.extend(others.next());
        rest = others.as_str();
    }
    out
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

fn is_key(word: &str) -> bool {
    let known = PREFIXES.iter().any(|prefix| {
        word.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    });
    let has = |of: fn(&u8) -> bool| word.as_bytes().iter().any(of);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
    (known && word.len() >= 12) || (mixed && has(u8::is_ascii_uppercase) && word.len() >= 28)
}
