//! About how many tokens a text, a message or a request has: one count for everything.
//!
//! The estimate is meant to be a little too high. What a provider reports for a request corrects it ([`scaled`]).

use std::rc::Rc;

use crate::message::{Block, MediaKind, Message, Source};

/// Less than this is not compared with what a provider counts: a guess is too rough.
const WORTH_COMPARING: u64 = 4_000;

/// Less than this says nothing about how a provider counts: most of it is what it wraps around the words.
const WORTH_LEARNING: u64 = 1_000;

/// What a message, a tool call and a result cost beside their words.
const AROUND_MESSAGE: u64 = 5;
const AROUND_CALL: u64 = 10;
const AROUND_RESULT: u64 = 8;

/// What a picture costs: providers scale it to a size of about this.
const PICTURE: u64 = 1_600;

/// About how many tokens a text has. English and code have three to four letters to a token, other alphabets about
/// two; a Chinese, Japanese or Korean character is about one token, an emoji two or three.
pub fn of_text(text: &str) -> u64 {
    let tenths: u64 = text.chars().map(tenths_of).sum();
    tenths.div_ceil(10)
}

/// Ten times the tokens of a character.
pub(super) fn tenths_of(letter: char) -> u64 {
    match u32::from(letter) {
        0..0x80 => 3,
        0x80..0x2e80 => 6,
        0x2e80..0x1_0000 => 11,
        _ => 25,
    }
}

/// About how many tokens a message has; counted once, with `count` for its texts.
pub fn of_message(message: &Message, count: impl Fn(&str) -> u64 + Copy) -> u64 {
    message.tokens.or_count(|| {
        let name = message.name.as_deref().map_or(0, count);
        AROUND_MESSAGE + name + of_blocks(&message.content, count)
    })
}

/// About how many tokens messages have.
pub fn of_all(messages: &[Rc<Message>], count: impl Fn(&str) -> u64 + Copy) -> u64 {
    messages.iter().map(|message| of_message(message, count)).sum()
}

fn of_blocks(blocks: &[Block], count: impl Fn(&str) -> u64 + Copy) -> u64 {
    let of_block = |block: &Block| match block {
        Block::Text { text, .. } => count(text),
        Block::Thinking { thinking, .. } => count(thinking),
        Block::ToolUse(call) => {
            AROUND_CALL + count(&call.name) + count(&call.id) + count(&call.input.to_string())
        }
        Block::ToolResult(result) => {
            AROUND_RESULT
                + count(&result.name)
                + count(&result.id)
                + of_blocks(&result.output, count)
        }
        Block::Media { kind: MediaKind::Image, .. } => PICTURE,
        Block::Media { source: Source::Url { .. }, .. } => PICTURE,
        // A page of a document, or some seconds of sound, are about so many bytes a token.
        Block::Media { source: Source::Base64 { data, .. }, .. } => {
            PICTURE + data.len() as u64 / 100
        }
        Block::Other(other) => count(&serde_json::Value::Object(other.clone()).to_string()),
    };
    blocks.iter().map(of_block).sum()
}

/// By how much estimates are to be multiplied from now on, after a request that we took for `estimated` tokens and the
/// provider counted as `reported`.
pub fn scaled(scale: f64, estimated: u64, reported: u64) -> f64 {
    if estimated < WORTH_LEARNING || reported == 0 {
        return scale;
    }
    (reported as f64 / estimated as f64).clamp(0.7, 4.0)
}

/// About how many tokens the words of messages have at least. Files are not counted: providers count each in its own
/// way.
pub fn at_least(messages: &[Rc<Message>]) -> u64 {
    messages.iter().flat_map(|message| &message.content).map(letters).sum::<u64>() / 4
}

fn letters(block: &Block) -> u64 {
    match block {
        Block::Text { text, .. } => text.len() as u64,
        Block::ToolResult(result) => result.output.iter().map(letters).sum(),
        Block::ToolUse(_) | Block::Thinking { .. } | Block::Media { .. } | Block::Other(_) => 0,
    }
}

/// Whether a provider has answered to less than it was asked: it counted more than its window, or less than half of
/// our own low guess.
pub fn is_cut(asked: u64, counted: u64, window: Option<u64>) -> bool {
    let more_than_fits = window.is_some_and(|window| counted > window);
    counted > 0 && (more_than_fits || (asked > WORTH_COMPARING && counted < asked / 2))
}
