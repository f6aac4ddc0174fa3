//! When a conversation is compacted, and where it is cut.

use std::rc::Rc;

use crate::message::{Edit, Message, Role};
use crate::seams;

/// The options of compaction, which keeps a conversation within the model's window.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// When compaction happens.
    pub when: When,
    /// The number of messages that triggers compaction; 0 turns this trigger off.
    pub trigger_messages: usize,
    /// The number of tokens that triggers compaction; 0 turns this trigger off, `None` uses the model's window.
    pub trigger_tokens: Option<u64>,
    /// The tokens of the window that are kept free for the reply, if the trigger is the window.
    pub reserve: u64,
    /// How many messages are kept unchanged.
    pub keep_messages: usize,
    /// How many tokens of messages are kept unchanged; 0 uses the number of messages instead.
    pub keep_tokens: u64,
    /// The prompt for the summary in place of the default one. It contains `{messages}`.
    pub prompt: Option<String>,
    /// How long arguments of old tool calls are cut; `None`: they are not cut.
    pub truncation: Option<Truncation>,
    /// Whether facts are saved to the memory before a summary replaces the messages with these facts.
    pub flush: bool,
    /// Whether a summary tells the model how to read the replaced messages. (The log keeps them in any case.)
    pub offload: bool,
}

/// When a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never.
    Never,
    /// When a model refuses a request as too large.
    OnOverflow,
    /// When a trigger is reached, or a model refuses a request as too large.
    ByTrigger,
}

/// How long arguments are cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// The longest argument that is shown whole, in characters.
    pub max: usize,
    /// The text in place of what was cut; `None` for the default text.
    pub text: Option<String>,
}

impl Default for Truncation {
    fn default() -> Truncation {
        Truncation { max: 2_000, text: None }
    }
}

impl Default for Compaction {
    fn default() -> Compaction {
        Compaction {
            when: When::OnOverflow,
            trigger_messages: 50,
            trigger_tokens: None,
            reserve: 20_000,
            keep_messages: 20,
            keep_tokens: 0,
            prompt: None,
            truncation: None,
            flush: true,
            offload: true,
        }
    }
}

/// The trigger in tokens if the model's window is unknown.
const UNKNOWN_WINDOW: u64 = 80_000;

/// How much of a conversation is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The number of messages, if they fit into `tokens`.
    pub messages: usize,
    /// The most tokens of these messages.
    pub tokens: u64,
}

impl Keep {
    /// Keeps as little as possible.
    pub const LEAST: Keep = Keep { messages: 0, tokens: u64::MAX };
}

impl Compaction {
    /// The number of tokens that triggers compaction, for a model with this window; `None` means never.
    pub fn limit(&self, window: Option<u64>) -> Option<u64> {
        match (self.trigger_tokens, window) {
            (Some(0), _) => None,
            (Some(tokens), _) => Some(tokens),
            (None, None) => Some(UNKNOWN_WINDOW),
            // In a small window, at most half of it is kept free.
            (None, Some(window)) => Some((window - self.reserve.min(window / 2)).max(1)),
        }
    }

    /// Whether a request must be compacted before it is sent.
    pub fn is_due(&self, n_messages: usize, tokens: u64, window: Option<u64>) -> bool {
        let by_messages = self.trigger_messages > 0 && n_messages >= self.trigger_messages;
        by_messages || self.limit(window).is_some_and(|limit| tokens >= limit)
    }

    /// How much of a conversation is kept. At most half of the token trigger, because otherwise the next message would
    /// trigger compaction again.
    pub fn keep(&self, window: Option<u64>) -> Keep {
        if self.keep_tokens > 0 {
            return Keep { messages: usize::MAX, tokens: self.keep_tokens };
        }
        let tokens = self.limit(window).map_or(u64::MAX, |limit| limit / 2);
        Keep { messages: self.keep_messages, tokens }
    }
}

impl Truncation {
    /// The edit that shortens the arguments in a message, if they are too long.
    pub fn edit(&self, message: &Message) -> Option<Edit> {
        let edit = Edit::Truncated { max: self.max, text: self.text.clone() };
        let is_long = message.tool_uses().any(|call| call.input.to_string().len() > self.max);
        // The input can be too long although each of its arguments is short.
        (is_long && edit.apply(message) != *message).then_some(edit)
    }
}

/// The index at which the conversation is cut: messages before it are replaced, messages from it on are kept. Tool
/// calls stay with their results. Messages from `open` on and messages from the last question on are always kept.
/// `None` if there is nothing to replace except the first `n_fixed` messages, which are a summary already.
pub fn cut(
    messages: &[Rc<Message>],
    n_fixed: usize,
    open: usize,
    keep: Keep,
    size: impl Fn(&Message) -> u64,
) -> Option<usize> {
    let limit = open.min(last_question(messages, n_fixed));
    let is_safe = safe_places(messages);
    let safe = |at: &usize| is_safe.get(*at).copied().unwrap_or(false);
    let wanted = messages.len().saturating_sub(keep.messages).min(limit);
    let mut at = (0..=wanted).rev().find(safe).unwrap_or(0);
    let mut tail: u64 = messages.iter().skip(at).map(|message| size(message)).sum();
    while tail > keep.tokens
        && let Some(next) = (at + 1..=limit).find(safe)
    {
        tail -= messages.iter().take(next).skip(at).map(|message| size(message)).sum::<u64>();
        at = next;
    }
    (at > n_fixed).then_some(at)
}

/// The index from which whole turns are kept: the newest turn, and before it as many turns as have at most `tokens` tokens.
/// Messages from `open` on and messages from the last question on are the newest turn.
pub fn cut_turns(
    messages: &[Rc<Message>],
    n_fixed: usize,
    open: usize,
    tokens: u64,
    size: impl Fn(&Message) -> u64,
) -> usize {
    let is_safe = safe_places(messages);
    let safe = |at: &usize| is_safe.get(*at).copied().unwrap_or(false);
    let limit = open.min(last_question(messages, n_fixed));
    let mut at = (0..=limit).rev().find(safe).unwrap_or(0);
    let mut kept = 0;
    for index in (n_fixed..at).rev() {
        kept += messages.get(index).map_or(0, |message| size(message));
        if kept > tokens {
            break;
        }
        let is_question = |index: usize| messages.get(index).is_some_and(asks);
        let begins = index == n_fixed || (is_question(index) && !is_question(index - 1));
        if begins && safe(&index) {
            at = index;
        }
    }
    at
}

fn asks(message: &Rc<Message>) -> bool {
    message.is_question()
}

/// The index of the last question, which can be several messages of the user; without a question, of the last message.
fn last_question(messages: &[Rc<Message>], n_fixed: usize) -> usize {
    let said = messages.get(n_fixed..).unwrap_or_default();
    let last = said.iter().rposition(asks);
    let before = last.and_then(|last| said.get(..last)).unwrap_or_default();
    let begins = before.iter().rposition(|message| !asks(message)).map_or(0, |at| at + 1);
    n_fixed + last.map_or(said.len().saturating_sub(1), |_| begins)
}

/// For each index, whether a cut before this message keeps every tool call with its result.
fn safe_places(messages: &[Rc<Message>]) -> Vec<bool> {
    let mut is_safe: Vec<bool> = messages.iter().map(|it| it.role != Role::Tool).collect();
    for (index, message) in messages.iter().enumerate() {
        for result in message.tool_results() {
            let before = messages.get(..index).unwrap_or_default();
            let asks = |it: &Rc<Message>| it.tool_uses().any(|call| call.id == result.id);
            let Some(asked) = before.iter().rposition(asks) else { continue };
            is_safe.iter_mut().take(index + 1).skip(asked + 1).for_each(|safe| *safe = false);
        }
    }
    seams::safe_cuts(is_safe)
}
