//! Pairs tool calls with their results, and gives them ids that providers accept.

use std::collections::HashMap;
use std::rc::Rc;

use crate::message::{Block, Message, Role, ToolResult};

/// The calls of a conversation, each with its result.
pub(super) struct Pairs<'a> {
    calls: Vec<WireCall<'a>>,
    /// The index of the first call of each message.
    first: Vec<usize>,
}

struct WireCall<'a> {
    id: &'a str,
    /// Number of earlier calls with the same id.
    nth: u32,
    /// The message and block of its result.
    result: Option<(usize, usize)>,
}

impl<'a> Pairs<'a> {
    /// Pairs the calls of a conversation: a result belongs to the last call with its id, if that has no result yet.
    pub(super) fn of(messages: &'a [Rc<Message>]) -> Pairs<'a> {
        let mut pairs = Pairs { calls: Vec::new(), first: Vec::with_capacity(messages.len()) };
        let mut last: HashMap<&str, usize> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            pairs.first.push(pairs.calls.len());
            for (place, block) in message.content.iter().enumerate() {
                match block {
                    Block::ToolUse(call) if message.role == Role::Assistant => {
                        let before = last.insert(&call.id, pairs.calls.len());
                        let before = before.and_then(|index| pairs.calls.get(index));
                        let nth = before.map_or(0, |before| before.nth + 1);
                        pairs.calls.push(WireCall { id: &call.id, nth, result: None });
                    }
                    Block::ToolResult(result) => {
                        let call = last.get(result.id.as_str());
                        let call = call.and_then(|index| pairs.calls.get_mut(*index));
                        if let Some(call) = call.filter(|call| call.result.is_none()) {
                            call.result = Some((at, place));
                        }
                    }
                    _ => {}
                }
            }
        }
        pairs
    }

    /// The id of a call for the provider, if it differs from its own.
    pub(super) fn wire_id(&self, message: usize, nth: usize, is_strict: bool) -> Option<String> {
        let call = self.call(message, nth)?;
        wire_id(call.id, call.nth, is_strict)
    }

    /// The result of a call of a message.
    pub(super) fn result(
        &self,
        message: usize,
        nth: usize,
        messages: &'a [Rc<Message>],
    ) -> Option<&'a ToolResult> {
        let (at, place) = self.call(message, nth)?.result?;
        match messages.get(at)?.content.get(place)? {
            Block::ToolResult(result) => Some(result),
            _ => None,
        }
    }

    /// The message with the result of the first call of a message.
    pub(super) fn message_of_result(
        &self,
        message: usize,
        messages: &'a [Rc<Message>],
    ) -> Option<&'a Message> {
        let (at, _) = self.call(message, 0)?.result?;
        messages.get(at).map(|message| &**message)
    }

    fn call(&self, message: usize, nth: usize) -> Option<&WireCall<'a>> {
        self.calls.get(self.first.get(message)? + nth)
    }
}

/// Whether every provider accepts an id.
pub(super) fn is_wire_id(id: &str, is_strict: bool) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || (!is_strict && (it == b'_' || it == b'-'));
    let lengths = if is_strict { 9..=9 } else { 1..=40 };
    lengths.contains(&id.len()) && id.bytes().all(fits)
}

/// The id that replaces one that a provider would refuse. The same id always gives the same replacement.
pub(super) fn wire_id(id: &str, nth: u32, is_strict: bool) -> Option<String> {
    if nth == 0 && is_wire_id(id, is_strict) {
        return None;
    }
    // FNV-1a: enough against accidental collisions; deliberate ones do no harm.
    let bytes = id.bytes().chain(nth.to_le_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut wire = String::from(if is_strict { "" } else { "call_" });
    for _ in 0..if is_strict { 9 } else { 12 } {
        wire.extend(char::from_digit((hash % 36) as u32, 36));
        hash /= 36;
    }
    Some(wire)
}
