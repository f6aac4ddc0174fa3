//! Makes a conversation valid for a provider, even if it was cut, aborted or compacted, or began with another provider.
//!
//! The stored conversation is never changed. [`repair`] makes turns of it that follow these rules:
//!
//! - every tool call has exactly one result, in the turn directly after it, in the order of the calls;
//! - results without a call, second results, empty texts and thoughts of other models are left out;
//! - ids use an alphabet that all providers accept, and no two calls have the same id;
//! - the first turn is the user's, the last is the user's or has tool results, and neighbours have different roles.
//!
//! [`check`] finds violations of the rules of a dialect. Every request is checked before it is sent.

mod check;
mod pairs;

pub use check::{Violation, check};

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value;

use crate::json::Object;
use crate::message::{Block, Message, ResultState, Role, ToolResult, ToolUse};
use crate::model::dialect::Dialect;
use crate::model::transcript::pairs::{Pairs, wire_id};

/// The text of a user turn that is added if a conversation begins or ends with an answer.
const GO_ON: &str = "(The conversation goes on.)";

/// An assistant turn that is added between results and a user turn for providers that require one.
const NOTED: &str = "(Noted.)";

/// The result of a call that has none.
const NO_RESULT: &str = "This call has no result: it was cut off. It may have run in part.";

/// The model and provider that a conversation is written for.
#[derive(Clone, Copy, Debug)]
pub struct Recipient<'a> {
    /// The dialect.
    pub dialect: Dialect,
    /// The model. Only its own thoughts are sent back to it. `None`: every thought is kept.
    pub model: Option<&'a str>,
    /// Whether it has the rules of Mistral: ids of nine characters, and an assistant turn between results and a user turn.
    pub is_strict: bool,
}

/// One turn of a conversation as it is sent to a provider.
#[derive(Clone, Debug)]
pub struct WireTurn<'a> {
    /// The role; never the system.
    pub role: Role,
    /// The first message that it is made of; `None` for an added turn.
    pub message: Option<&'a Message>,
    /// Its content.
    pub blocks: Vec<Cow<'a, Block>>,
}

impl<'a> WireTurn<'a> {
    /// A message without changes.
    pub fn of(message: &'a Message) -> WireTurn<'a> {
        let blocks = message.content.iter().map(Cow::Borrowed).collect();
        WireTurn { role: message.role, message: Some(message), blocks }
    }

    fn put_in(role: Role, text: &str) -> WireTurn<'a> {
        WireTurn { role, message: None, blocks: vec![Cow::Owned(Block::text(text))] }
    }

    /// The tool calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match &**block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// The results in it.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match &**block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// The turn as a message.
    pub fn into_message(self) -> Message {
        let content = self.blocks.into_iter().map(Cow::into_owned).collect();
        match self.message {
            Some(message) => Message { role: self.role, content, ..message.clone() },
            None => Message::draft(self.role, content),
        }
    }
}

/// The turns of a conversation as they are sent to a provider.
pub fn repair<'a>(messages: &'a [Rc<Message>], reader: Recipient<'_>) -> Vec<WireTurn<'a>> {
    let pairs = Pairs::of(messages);
    let mut turns = Turns { reader, turns: Vec::new() };
    for (index, message) in messages.iter().enumerate() {
        let of_model = message.role == Role::Assistant;
        let mut n_calls = 0;
        let mut blocks = Vec::new();
        for block in &message.content {
            match block {
                Block::ToolUse(call) if of_model => {
                    let id = pairs.wire_id(index, n_calls, reader.is_strict);
                    n_calls += 1;
                    blocks.push(with_id(block, call, id, reader));
                }
                block if reader.shows(block, of_model) => blocks.push(Cow::Borrowed(block)),
                _ => {}
            }
        }
        let role = if of_model { Role::Assistant } else { Role::User };
        if blocks.iter().all(|block| matches!(**block, Block::Thinking { .. })) {
            continue;
        }
        turns.push(WireTurn { role, message: Some(message), blocks });
        if n_calls > 0 {
            turns.push_results(index, message, &pairs, messages);
        }
    }
    turns.close()
}

struct Turns<'a, 'r> {
    reader: Recipient<'r>,
    turns: Vec<WireTurn<'a>>,
}

impl<'a> Turns<'a, '_> {
    fn push(&mut self, turn: WireTurn<'a>) {
        match self.turns.last_mut() {
            Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks),
            Some(last)
                if last.role == Role::Tool && turn.role == Role::User && self.reader.is_strict =>
            {
                self.turns.push(WireTurn::put_in(Role::Assistant, NOTED));
                self.turns.push(turn);
            }
            None if turn.role == Role::Assistant => {
                self.turns.push(WireTurn::put_in(Role::User, GO_ON));
                self.turns.push(turn);
            }
            _ => self.turns.push(turn),
        }
    }

    /// Adds the results of the calls of a message, in the order of the calls. If the dialect accepts no files in results, the
    /// files become a user turn.
    fn push_results(
        &mut self,
        index: usize,
        message: &'a Message,
        pairs: &Pairs<'a>,
        messages: &'a [Rc<Message>],
    ) {
        let (mut results, mut files) = (Vec::new(), Vec::new());
        for (nth, call) in message.tool_uses().enumerate() {
            let id = pairs.wire_id(index, nth, self.reader.is_strict);
            let mut result = match pairs.result(index, nth, messages) {
                Some(result) => result.clone(),
                None => ToolResult::new(call, ResultState::Interrupted, NO_RESULT),
            };
            result.name.clone_from(&call.name);
            result.id = id.unwrap_or(result.id);
            if self.reader.dialect != Dialect::Anthropic {
                let moved = result.output.extract_if(.., |it| matches!(it, Block::Media { .. }));
                files.extend(moved.map(Cow::Owned));
            }
            results.push(Cow::Owned(Block::ToolResult(result)));
        }
        let first = pairs.message_of_result(index, messages).filter(|it| it.role == Role::Tool);
        self.push(WireTurn { role: Role::Tool, message: first, blocks: results });
        if !files.is_empty() {
            files.insert(0, Cow::Owned(Block::text("(Files of the results above.)")));
            self.push(WireTurn { role: Role::User, message: None, blocks: files });
        }
    }

    fn close(mut self) -> Vec<WireTurn<'a>> {
        if self.turns.last().is_none_or(|last| last.role == Role::Assistant) {
            self.turns.push(WireTurn::put_in(Role::User, GO_ON));
        }
        self.turns
    }
}

impl Recipient<'_> {
    /// Whether a block is sent; for blocks that are not tool calls.
    fn shows(&self, block: &Block, of_model: bool) -> bool {
        match block {
            Block::Text { text, provider, .. } => {
                let provider = provider.as_ref().filter(|_| self.dialect == Dialect::Gemini);
                let signed = provider.is_some_and(|it| it.get("thoughtSignature").is_some());
                !text.trim().is_empty() || (of_model && signed && self.is_own(provider))
            }
            Block::Thinking { signature, provider, .. } => {
                let proven = signature.is_some()
                    || self.dialect != Dialect::Anthropic
                    || provider.as_ref().is_some_and(|it| it.get("redacted").is_some());
                of_model && proven && self.is_own(provider.as_ref())
            }
            Block::Media { .. } => !of_model,
            Block::ToolUse(_) | Block::ToolResult(_) | Block::Other(_) => false,
        }
    }

    /// Whether provider data is from the model that receives the conversation.
    pub fn is_own(&self, provider: Option<&Value>) -> bool {
        let of = provider.and_then(|provider| provider.get("model")).and_then(Value::as_str);
        match self.model {
            Some(model) => of == Some(model),
            None => true,
        }
    }
}

/// A call with its id for the provider, and an input that is an object.
fn with_id<'a>(
    block: &'a Block,
    call: &'a ToolUse,
    id: Option<String>,
    reader: Recipient<'_>,
) -> Cow<'a, Block> {
    let foreign = call.provider.is_some() && !reader.is_own(call.provider.as_ref());
    if id.is_none() && call.input.is_object() && !foreign {
        return Cow::Borrowed(block);
    }
    let mut call = call.clone();
    call.id = id.unwrap_or(call.id);
    if !call.input.is_object() {
        call.input = Value::Object(Object::new());
    }
    if foreign {
        call.provider = None;
    }
    Cow::Owned(Block::ToolUse(call))
}

/// The messages of a conversation, made valid for any provider.
pub fn repaired(messages: &[Rc<Message>], dialect: Dialect) -> Vec<Message> {
    let reader = Recipient { dialect, model: None, is_strict: false };
    let mut last = String::new();
    let turns = repair(messages, reader).into_iter().enumerate().map(|(n, turn)| {
        let mut message = turn.into_message();
        // An added turn needs an id too, and always the same one.
        if message.id.is_empty() {
            message.id = wire_id(&format!("{last}.{n}"), 1, false).unwrap_or_default();
        }
        last.clone_from(&message.id);
        message
    });
    turns.collect()
}
