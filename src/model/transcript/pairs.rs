//! Which result belongs to which call, and under which id a provider sees both.

use std::collections::HashMap;
use std::rc::Rc;

use crate::message::{Block, Message, Role, ToolResult};

/// The calls of a conversation, each with its result.
pub(super) struct Pairs<'a> {
    calls: Vec<Call<'a>>,
    /// Where the calls of a message begin.
    first: Vec<usize>,
}

struct Call<'a> {
    id: &'a str,
    /// How many calls before it have the same id.
    nth: u32,
    /// The message and block of its result.
    result: Option<(usize, usize)>,
}

impl<'a> Pairs<'a> {
    /// Looks a conversation through: a result belongs to the last call of its id, if that has none yet.
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
                        pairs.calls.push(Call { id: &call.id, nth, result: None });
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

    /// The id that a provider is to see for a message's call, if it is another one.
    pub(super) fn wire_id(&self, message: usize, nth: usize, is_strict: bool) -> Option<String> {
        let call = self.call(message, nth)?;
        wire_id(call.id, call.nth, is_strict)
    }

    /// The result of a message's call.
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

    /// The message that holds the result of a message's first call.
    pub(super) fn message_of_result(
        &self,
        message: usize,
        messages: &'a [Rc<Message>],
    ) -> Option<&'a Message> {
        let (at, _) = self.call(message, 0)?.result?;
        messages.get(at).map(|message| &**message)
    }

    fn call(&self, message: usize, nth: usize) -> Option<&Call<'a>> {
        self.calls.get(self.first.get(message)? + nth)
    }
}

/// Whether every provider takes an id as it is.
pub(super) fn is_wire_id(id: &str, is_strict: bool) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || (!is_strict && (it == b'_' || it == b'-'));
    let lengths = if is_strict { 9..=9 } else { 1..=40 };
    lengths.contains(&id.len()) && id.bytes().all(fits)
}

/// The id that a provider is to see in place of one that it would refuse: always the same for the same.
pub(super) fn wire_id(id: &str, nth: u32, is_strict: bool) -> Option<String> {
    if nth == 0 && is_wire_id(id, is_strict) {
        return None;
    }
    // FNV-1a: nobody is to be kept from finding a collision, only chance is.
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
