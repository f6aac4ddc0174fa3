//! What is sent of a conversation is valid, whatever was cut, denied, aborted, compacted or said to another provider.
//!
//! The conversation itself is never changed for a provider's sake: [`repair`] makes turns of it, a view in which
//!
//! - every tool call has exactly one result, in the turn right after it, in the order of the calls;
//! - results without their call, second results, empty words and thoughts of other models are left out;
//! - ids are of the alphabet that all providers take, and no two calls share one;
//! - a user's turn is first and a user's or tools' turn is last, and neighbours of one role are one turn.
//!
//! [`check`] says what of this is not so, by the rules of a dialect; every request is checked before it is sent.

mod check;
mod pairs;

pub use check::{Violation, check};

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value;

use crate::json::Object;
use crate::message::{Block, Message, ResultState, Role, ToolResult, ToolUse};
use crate::model::Dialect;
use crate::model::transcript::pairs::{Pairs, wire_id};

/// What stands first where a conversation does not begin with its user, and last where it ends with an answer.
const GO_ON: &str = "(The conversation goes on.)";

/// What stands between results and words where a provider wants an answer there.
const NOTED: &str = "(Noted.)";

/// The result of a call that has none.
const NO_RESULT: &str = "This call has no result: it was cut off. It may have run in part.";

/// For whom a conversation is written.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The language.
    pub dialect: Dialect,
    /// The model: it sees its own thoughts again, and nobody else's. None: every thought is kept.
    pub model: Option<&'a str>,
    /// Whether it is as strict as Mistral's: ids of nine letters, and an answer between results and words.
    pub is_strict: bool,
}

/// One turn of a conversation as a provider is to see it.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// Who speaks; never the system.
    pub role: Role,
    /// The first message that it is made of; none for one that is put in.
    pub message: Option<&'a Message>,
    /// What is said.
    pub blocks: Vec<Cow<'a, Block>>,
}

impl<'a> Turn<'a> {
    /// A message as it is.
    pub fn of(message: &'a Message) -> Turn<'a> {
        let blocks = message.content.iter().map(Cow::Borrowed).collect();
        Turn { role: message.role, message: Some(message), blocks }
    }

    fn put_in(role: Role, text: &str) -> Turn<'a> {
        Turn { role, message: None, blocks: vec![Cow::Owned(Block::text(text))] }
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

    /// It as a message of its own.
    pub fn into_message(self) -> Message {
        let content = self.blocks.into_iter().map(Cow::into_owned).collect();
        match self.message {
            Some(message) => Message { role: self.role, content, ..message.clone() },
            None => Message::draft(self.role, content),
        }
    }
}

/// The turns of a conversation as a provider is to see them.
pub fn repair<'a>(messages: &'a [Rc<Message>], reader: Reader<'_>) -> Vec<Turn<'a>> {
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
        turns.push(Turn { role, message: Some(message), blocks });
        if n_calls > 0 {
            turns.push_results(index, message, &pairs, messages);
        }
    }
    turns.close()
}

struct Turns<'a, 'r> {
    reader: Reader<'r>,
    turns: Vec<Turn<'a>>,
}

impl<'a> Turns<'a, '_> {
    fn push(&mut self, turn: Turn<'a>) {
        match self.turns.last_mut() {
            Some(last) if last.role == turn.role => last.blocks.extend(turn.blocks),
            Some(last)
                if last.role == Role::Tool && turn.role == Role::User && self.reader.is_strict =>
            {
                self.turns.push(Turn::put_in(Role::Assistant, NOTED));
                self.turns.push(turn);
            }
            None if turn.role == Role::Assistant => {
                self.turns.push(Turn::put_in(Role::User, GO_ON));
                self.turns.push(turn);
            }
            _ => self.turns.push(turn),
        }
    }

    /// The results of a message's calls, in their order. Files in them become words of the user where the dialect
    /// has no place for them.
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
        self.push(Turn { role: Role::Tool, message: first, blocks: results });
        if !files.is_empty() {
            files.insert(0, Cow::Owned(Block::text("(Files of the results above.)")));
            self.push(Turn { role: Role::User, message: None, blocks: files });
        }
    }

    fn close(mut self) -> Vec<Turn<'a>> {
        if self.turns.last().is_none_or(|last| last.role == Role::Assistant) {
            self.turns.push(Turn::put_in(Role::User, GO_ON));
        }
        self.turns
    }
}

impl Reader<'_> {
    /// Whether a block that is no call is to be seen.
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

    /// Whether something is of the model that is asked.
    pub fn is_own(&self, provider: Option<&Value>) -> bool {
        let of = provider.and_then(|provider| provider.get("model")).and_then(Value::as_str);
        match self.model {
            Some(model) => of == Some(model),
            None => true,
        }
    }
}

/// A call under the id that the provider is to see, with an input that is an object.
fn with_id<'a>(
    block: &'a Block,
    call: &'a ToolUse,
    id: Option<String>,
    reader: Reader<'_>,
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

/// The messages of a conversation as a provider could see them.
pub fn repaired(messages: &[Rc<Message>], dialect: Dialect) -> Vec<Message> {
    let reader = Reader { dialect, model: None, is_strict: false };
    let mut last = String::new();
    let turns = repair(messages, reader).into_iter().enumerate().map(|(n, turn)| {
        let mut message = turn.into_message();
        // What is put in needs an id too, and the same one every time.
        if message.id.is_empty() {
            message.id = wire_id(&format!("{last}.{n}"), 1, false).unwrap_or_default();
        }
        last.clone_from(&message.id);
        message
    });
    turns.collect()
}
