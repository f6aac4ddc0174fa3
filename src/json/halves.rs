//! Half characters in JSON text: an escape such as `\ud83d` without its other half (`\ude00`). A Rust string cannot hold one.
//!
//! A model may send the halves of a character in two deltas. A half is marked with a private character while the text of
//! one delta is read, so that the other half can be joined to it later.

use std::borrow::Cow;

/// The marks: one private character for each half, in the order of the halves.
const MARKS: u32 = 0x10_f800;

/// What replaces a half that stays alone.
pub const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// The JSON text with each half replaced.
#[inline(never)]
pub fn replaced(text: &str) -> Cow<'_, str> {
    rewritten(text, |_| REPLACED).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// JSON text that had halves.
#[derive(Debug)]
pub struct WithoutHalves {
    /// The text.
    pub text: String,
    /// Whether marks stand for the halves. Otherwise they are replaced.
    pub is_marked: bool,
}

/// The JSON text with each half marked. `None`: it has no halves.
#[inline(never)]
pub fn marked(text: &str) -> Option<WithoutHalves> {
    // A text that has a private character of its own cannot be marked. Its halves are replaced at once.
    let is_free = !text.contains(|it| mark_of(it).is_some()) && !has_escaped_mark(text);
    let write = if is_free { |half| mark(half).unwrap_or(REPLACED) } else { |_| REPLACED };
    rewritten(text, write).map(|text| WithoutHalves { text, is_marked: is_free })
}

/// The half that a mark stands for.
pub fn mark_of(letter: char) -> Option<u16> {
    u32::from(letter).checked_sub(MARKS).map(|n| 0xd800 + n as u16)
}

/// The text with each mark replaced.
pub fn without_marks(text: &str) -> String {
    text.chars().map(|it| if mark_of(it).is_some() { REPLACED } else { it }).collect()
}

/// The character that two halves make. `None`: they do not belong together.
pub fn joined(high: u16, low: u16) -> Option<char> {
    char::decode_utf16([high, low]).next().and_then(Result::ok).filter(|_| is_high(high))
}

/// Whether a half can begin a character.
pub fn is_high(half: u16) -> bool {
    (0xd800..0xdc00).contains(&half)
}

fn is_low(half: u16) -> bool {
    (0xdc00..0xe000).contains(&half)
}

fn mark(half: u16) -> Option<char> {
    char::from_u32(MARKS + u32::from(half) - 0xd800)
}

/// Whether a mark is written as an escape: its two halves begin with `\udbfe` or `\udbff`.
fn has_escaped_mark(text: &str) -> bool {
    text.match_indices('\\').any(|(at, _)| matches!(unit_at(text, at), Some(0xdbfe | 0xdbff)))
}

/// The text with each half rewritten. `None`: it has no halves.
fn rewritten(text: &str, write: fn(u16) -> char) -> Option<String> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    let backslash = |byte: &u8| *byte == b'\\';
    while let Some(n) = text.as_bytes().get(at..).and_then(|it| it.iter().position(backslash)) {
        let place = at + n;
        at = match unit_at(text, place) {
            Some(unit) if is_high(unit) && unit_at(text, place + 6).is_some_and(is_low) => {
                place + 12
            }
            Some(half) if is_high(half) || is_low(half) => {
                out.push_str(text.get(kept..place).unwrap_or_default());
                out.push(write(half));
                kept = place + 6;
                kept
            }
            _ => place + 2,
        };
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    (kept > 0).then_some(out)
}

/// The code unit of an escape `\uXXXX` at this place.
fn unit_at(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}
