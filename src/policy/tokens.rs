//! Estimates the number of tokens of a text, a message or a request. All code uses this estimate.
//!
//! The estimate should be a little too high. The provider's own count of a request corrects it ([`scaled`]).

use std::rc::Rc;

use crate::message::{Block, MediaKind, Message, Source};

/// Smaller requests are not compared with the provider's count, because the estimate is too rough.
const WORTH_COMPARING: u64 = 4_000;

/// Smaller requests do not correct the estimate, unless they fill a quarter of the window: most of their tokens are the
/// provider's overhead.
const WORTH_LEARNING: u64 = 1_000;

/// The highest correction factor for estimates.
pub const HIGHEST_SCALE: f64 = 4.0;

/// The tokens of a message, a tool call and a result in addition to their text.
const AROUND_MESSAGE: u64 = 5;
const AROUND_CALL: u64 = 10;
const AROUND_RESULT: u64 = 8;

/// The tokens of an image. Providers scale images to about this size.
const IMAGE: u64 = 1_600;

/// The estimated tokens of a text. English and code have three to four letters per token, other alphabets about two. A
/// Chinese, Japanese or Korean character is about one token, an emoji two or three.
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

/// The estimated tokens of a message. They are computed once, with `count` for its texts.
pub fn of_message(message: &Message, count: impl Fn(&str) -> u64 + Copy) -> u64 {
    message.tokens.or_count(|| {
        let name = message.name.as_deref().map_or(0, count);
        AROUND_MESSAGE + name + of_blocks(&message.content, count)
    })
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
        Block::Media { kind: MediaKind::Image, .. } => IMAGE,
        Block::Media { source: Source::Url { .. }, .. } => IMAGE,
        // For a page of a document, or some seconds of audio: about this many bytes per token.
        Block::Media { source: Source::Base64 { data, .. }, .. } => IMAGE + data.len() as u64 / 100,
        Block::Other(other) => count(&serde_json::Value::Object(other.clone()).to_string()),
    };
    blocks.iter().map(of_block).sum()
}

/// The new correction factor for estimates, after a request with `estimated` tokens that the provider counted as
/// `reported` tokens.
pub fn scaled(scale: f64, estimated: u64, reported: u64, window: Option<u64>) -> f64 {
    let worth_learning = window.map_or(WORTH_LEARNING, |window| WORTH_LEARNING.min(window / 4));
    if estimated < worth_learning || reported == 0 {
        return scale;
    }
    (reported as f64 / estimated as f64).clamp(0.7, HIGHEST_SCALE)
}

/// A low estimate of the tokens of messages. Files are not counted, because each provider counts them in its own way.
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

/// Whether the provider cut the request: it counted more tokens than its window, or less than half of our low estimate.
pub fn is_cut(asked: u64, counted: u64, window: Option<u64>) -> bool {
    let more_than_fits = window.is_some_and(|window| counted > window);
    counted > 0 && (more_than_fits || (asked > WORTH_COMPARING && counted < asked / 2))
}
