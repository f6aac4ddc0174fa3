//! The longest texts that tools may add to a conversation. These texts are stored, so their length is limited.

use crate::message::{Block, ToolResult};

/// The most characters of text in the result of a tool, and in the arguments of a tool call. Eviction shows less of them.
pub const MAX_TOOL_TEXT: usize = 5_000_000;

/// A text that is cut already also has the note of the cut.
const NOTE: usize = 100;

/// A text without its middle, if it has more than `most` characters. A note says how many are left out.
pub fn shortened(text: String, most: usize) -> String {
    // A text has at least as many bytes as characters.
    if text.len() <= most + NOTE {
        return text;
    }
    let n_left_out = text.chars().count().saturating_sub(most);
    if n_left_out <= NOTE {
        return text;
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (at(most / 2), at(most / 2 + n_left_out));
    let (head, tail) = (text.get(..head), text.get(tail..));
    [head.unwrap_or_default(), &note(n_left_out), tail.unwrap_or_default()].concat()
}

/// The note in place of what is left out.
pub fn note(n_left_out: usize) -> String {
    format!("\n[{n_left_out} characters were left out here]\n")
}

impl ToolResult {
    /// The same with at most [`MAX_TOOL_TEXT`] characters of text.
    pub fn shortened(mut self) -> ToolResult {
        let length =
            |block: &Block| if let Block::Text { text, .. } = block { text.len() } else { 0 };
        if self.output.iter().map(length).sum::<usize>() <= MAX_TOOL_TEXT + NOTE {
            return self;
        }
        let (mut left, mut n_dropped) = (MAX_TOOL_TEXT, 0);
        self.output.retain_mut(|block| {
            let Block::Text { text, .. } = block else { return true };
            if left == 0 {
                n_dropped += text.chars().count();
                return false;
            }
            let cut = shortened(std::mem::take(text), left);
            left = left.saturating_sub(cut.chars().count());
            *text = cut;
            true
        });
        if n_dropped > 0 {
            self.output.push(Block::text(note(n_dropped)));
        }
        self
    }
}
