//! The patterns in tables of words: `#` is a number (with or without commas between thousands), `*` is a gap of up to 120 bytes.
//!
//! A library for regular expressions would be larger than all the tables together.

/// The longest gap.
const GAP: usize = 120;

/// The numbers at the first match of the pattern; `None` if it does not match. The text is in lower case.
pub fn find(pattern: &str, text: &str) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let bytes = text.as_bytes();
    (0..bytes.len()).find_map(|start| {
        numbers.clear();
        let rest = bytes.get(start..).unwrap_or_default();
        fits(pattern.as_bytes(), rest, &mut numbers).then(|| numbers.clone())
    })
}

/// The text after the first occurrence of `words`, which is plain text and not a pattern.
pub fn behind<'a>(words: &str, text: &'a str) -> Option<&'a str> {
    let place = text.as_bytes().windows(words.len()).position(|it| it == words.as_bytes())?;
    text.get(place + words.len()..)
}

/// Whether one of the patterns matches.
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
                let Some((number, behind)) = number(text) else { return false };
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

/// The number at the beginning of the text, and the text after it. `128k` is none.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let is_group = |text: &[u8]| {
        let n_digits = text.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
        text.first() == Some(&b',') && n_digits == 3
    };
    let (mut number, mut rest) = (None::<u64>, text);
    while let Some((byte, behind)) = rest.split_first() {
        if byte.is_ascii_digit() {
            let digit = u64::from(byte - b'0');
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
        } else if number.is_none() || !is_group(rest) {
            break;
        }
        rest = behind;
    }
    let is_whole = !rest.first().is_some_and(u8::is_ascii_alphabetic);
    Some((number.filter(|_| is_whole)?, rest))
}
