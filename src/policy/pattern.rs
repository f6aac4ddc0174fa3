//! Patterns that tables of words are written in: `#` is a number, `*` is a gap of up to 120 bytes.
//!
//! An expression engine would know more, and cost more bytes than all the tables together.

/// The longest gap.
const GAP: usize = 120;

/// The numbers of the first place where the pattern fits, if there is one. The text is in lower case.
pub fn find(pattern: &str, text: &str) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let bytes = text.as_bytes();
    (0..bytes.len()).find_map(|start| {
        numbers.clear();
        let rest = bytes.get(start..).unwrap_or_default();
        fits(pattern.as_bytes(), rest, &mut numbers).then(|| numbers.clone())
    })
}

/// What stands behind the first place where these words are; of patterns they have nothing.
pub fn behind<'a>(words: &str, text: &'a str) -> Option<&'a str> {
    let place = text.as_bytes().windows(words.len()).position(|it| it == words.as_bytes())?;
    text.get(place + words.len()..)
}

/// Whether one of the patterns fits somewhere.
pub fn any(patterns: &[&str], text: &str) -> bool {
    patterns.iter().any(|pattern| find(pattern, text).is_some())
}

fn fits(pattern: &[u8], text: &[u8], numbers: &mut Vec<u64>) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    while let Some((first, rest)) = pattern.split_first() {
        match first {
            b'*' => {
                let n_known = numbers.len();
                return (0..=GAP.min(text.len())).any(|gap| {
                    numbers.truncate(n_known);
                    fits(rest, text.get(gap..).unwrap_or_default(), numbers)
                });
            }
            b'#' => {
                let n = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (digits, behind) = text.split_at(n);
                let number = std::str::from_utf8(digits).ok().and_then(|it| it.parse().ok());
                let Some(number) = number else { return false };
                numbers.push(number);
                text = behind;
            }
            _ if text.first() == Some(first) => text = text.get(1..).unwrap_or_default(),
            _ => return false,
        }
        pattern = rest;
    }
    true
}
