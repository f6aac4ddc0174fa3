//! The record of a checkpoint: what is new in the answer of a running call.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};
use crate::message::{Block, Message, Usage};
use crate::store::format::entry::messages;

/// A piece of the answer of a running call. The pieces of a call, in their order, make the answer so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartialPiece {
    /// Where it begins.
    from: AnswerPlace,
    /// The blocks that continue the message at this place. The first continues the block at this place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<Block>,
    /// The usage of that message, once the message is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// The messages that follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Rc<Message>>,
}

/// A place in an answer: the message, the block in it, and the byte in the text of the block. A piece replaces what
/// earlier pieces have behind its place. So it does not matter whether a piece whose write seemed to fail was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct AnswerPlace(usize, usize, usize);

impl PartialPiece {
    /// What an answer has that was not there before; `None` if that is nothing.
    pub fn between(before: &[Rc<Message>], now: &[Rc<Message>]) -> Option<PartialPiece> {
        let is_new = |(index, message): &(usize, &Rc<Message>)| {
            !before.get(*index).is_some_and(|old| is_same(old, message))
        };
        let (index, message) = now.iter().enumerate().find(is_new)?;
        let old = before.get(index).filter(|old| old.id == message.id);
        let (block, byte) = old.map_or((0, 0), |old| first_new(&old.content, &message.content));
        let from = AnswerPlace(index, block, byte);
        let (mut more, mut usage, mut messages) = (Vec::new(), None, now.iter().skip(index));
        if (block, byte) != (0, 0) {
            more.extend(message.content.iter().skip(block).cloned());
            if let Some(text) = more.first_mut().and_then(text_of) {
                *text = text.get(byte..).unwrap_or_default().to_owned();
            }
            usage.clone_from(&message.usage);
            messages.next();
        }
        Some(PartialPiece { from, more, usage, messages: messages.cloned().collect() })
    }

    /// Adds the piece to the answer so far. `false`: an earlier piece is missing, so the answer cannot go on.
    pub fn add_to(&self, answer: &mut Vec<Rc<Message>>) -> bool {
        if !self.cut(answer) {
            return false;
        }
        if let Some(last) = answer.last_mut().filter(|_| self.from.is_within()) {
            let last = Rc::make_mut(last);
            let mut more = self.more.iter().cloned();
            if self.from.2 > 0
                && let Some(mut block) = more.next()
            {
                let begun = last.content.pop();
                if let (Some(text), Some(mut begun)) = (text_of(&mut block), begun) {
                    text.insert_str(0, text_of(&mut begun).map_or("", |begun| begun));
                }
                last.content.push(block);
            }
            last.content.extend(more);
            last.usage.clone_from(&self.usage);
        }
        answer.extend(self.messages.iter().cloned());
        true
    }

    /// Removes from an answer what this piece replaces. `false`: the answer does not have the place where the piece begins.
    pub fn cut(&self, answer: &mut Vec<Rc<Message>>) -> bool {
        let AnswerPlace(index, block, byte) = self.from;
        let n_kept = index.saturating_add(usize::from(self.from.is_within()));
        if answer.len() < n_kept {
            return false;
        }
        answer.truncate(n_kept);
        let Some(last) = answer.last_mut().filter(|_| self.from.is_within()) else { return true };
        let content = &mut Rc::make_mut(last).content;
        let n_blocks = block.saturating_add(usize::from(byte > 0));
        let is_there = content.len() >= n_blocks;
        content.truncate(n_blocks);
        let text = content.last_mut().filter(|_| byte > 0 && is_there).and_then(text_of);
        match text {
            Some(text) if text.is_char_boundary(byte) && text.len() >= byte => text.truncate(byte),
            _ => return is_there && byte == 0,
        }
        true
    }

    /// Reads a stored piece.
    pub fn from_json(value: &Value) -> Read<PartialPiece> {
        let fields = Fields::of(value)?;
        Ok(PartialPiece {
            from: fields.required("from", AnswerPlace::from_json)?,
            more: fields.or_default("more", Block::list)?,
            usage: fields.optional("usage", Usage::from_json)?,
            messages: fields.or_default("messages", messages)?,
        })
    }
}

impl AnswerPlace {
    /// Whether it is within a message, and not at the beginning of one.
    fn is_within(self) -> bool {
        (self.1, self.2) != (0, 0)
    }

    fn from_json(value: &Value) -> Read<AnswerPlace> {
        match *json::list(value, json::count)? {
            [message, block, byte] => {
                Ok(AnswerPlace(message as usize, block as usize, byte as usize))
            }
            _ => Err(Misread::new("a message, a block and a byte")),
        }
    }
}

/// Whether nothing is new in a message. The state of its tool calls is not a part of the answer.
fn is_same(old: &Rc<Message>, new: &Rc<Message>) -> bool {
    Rc::ptr_eq(old, new)
        || (old.id == new.id
            && old.usage == new.usage
            && old.content.len() == new.content.len()
            && old.content.iter().zip(&new.content).all(|(old, new)| says_the_same(old, new)))
}

fn says_the_same(old: &Block, new: &Block) -> bool {
    match (old, new) {
        (Block::ToolUse(old), Block::ToolUse(new)) => old.id == new.id && old.input == new.input,
        _ => old == new,
    }
}

/// The first block that is new or has changed, and the byte at which its text goes on.
fn first_new(old: &[Block], new: &[Block]) -> (usize, usize) {
    let n_same = old.iter().zip(new).take_while(|(old, new)| says_the_same(old, new)).count();
    let byte = match (old.get(n_same), new.get(n_same)) {
        (Some(Block::Text { text: begun, .. }), Some(Block::Text { text, .. }))
        | (
            Some(Block::Thinking { thinking: begun, .. }),
            Some(Block::Thinking { thinking: text, .. }),
        ) if text.starts_with(begun.as_str()) => begun.len(),
        _ => 0,
    };
    (n_same, byte)
}

fn text_of(block: &mut Block) -> Option<&mut String> {
    match block {
        Block::Text { text, .. } | Block::Thinking { thinking: text, .. } => Some(text),
        _ => None,
    }
}
