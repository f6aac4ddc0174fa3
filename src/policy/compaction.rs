//! When a conversation is made shorter, and where it may be cut.

use std::rc::Rc;

use crate::message::{Edit, Message, Role};
use crate::mutants;

/// How a conversation is kept within a model's window.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// When it is made shorter.
    pub when: When,
    /// From so many messages on; 0 is never by their number.
    pub trigger_messages: usize,
    /// From so many tokens on; 0 is never by tokens, and none is by the model's window.
    pub trigger_tokens: Option<u64>,
    /// What is left of the window for the answer, where the trigger is by the window.
    pub reserve: u64,
    /// How many messages stay as they are.
    pub keep_messages: usize,
    /// How many tokens of messages stay as they are, in place of a number of messages; 0 is by messages.
    pub keep_tokens: u64,
    /// What the summary is asked for with, in place of ours; it holds `{messages}`.
    pub prompt: Option<String>,
    /// Whether long arguments of old tool calls are cut.
    pub truncation: Option<Truncation>,
    /// Whether facts go into the memory before a summary replaces what they were said in.
    pub flush: bool,
    /// Whether a summary tells how to get at what it stands for. (The log keeps that in any case.)
    pub offload: bool,
}

/// When a conversation is made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never.
    Never,
    /// When a model refuses a request as too large.
    OnOverflow,
    /// Then, and before that by trigger.
    ByTrigger,
}

/// How long arguments are cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// The longest argument that is shown whole, in characters.
    pub max: usize,
    /// What stands where a longer one was cut, if not the usual.
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

/// The trigger where nobody knows the model's window.
const UNKNOWN_WINDOW: u64 = 80_000;

/// What is left of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many messages, if they fit.
    pub messages: usize,
    /// The most tokens that they may have.
    pub tokens: u64,
}

impl Keep {
    /// As little as may be.
    pub const LEAST: Keep = Keep { messages: 0, tokens: u64::MAX };
}

impl Compaction {
    /// From how many tokens on, for a model of this window; none is never.
    pub fn limit(&self, window: Option<u64>) -> Option<u64> {
        match (self.trigger_tokens, window) {
            (Some(0), _) => None,
            (Some(tokens), _) => Some(tokens),
            (None, None) => Some(UNKNOWN_WINDOW),
            (None, Some(window)) if window > self.reserve => Some(window - self.reserve),
            (None, Some(window)) => Some((window / 2).max(1)),
        }
    }

    /// Whether a request is to be made shorter before it is sent.
    pub fn is_due(&self, n_messages: usize, tokens: u64, window: Option<u64>) -> bool {
        let by_messages = self.trigger_messages > 0 && n_messages >= self.trigger_messages;
        by_messages || self.limit(window).is_some_and(|limit| tokens >= limit)
    }

    /// What is left of a conversation. Of one that is too large by tokens, half of what triggers it at most: or the
    /// next message would trigger it again.
    pub fn keep(&self, window: Option<u64>) -> Keep {
        if self.keep_tokens > 0 {
            return Keep { messages: usize::MAX, tokens: self.keep_tokens };
        }
        let tokens = self.limit(window).map_or(u64::MAX, |limit| limit / 2);
        Keep { messages: self.keep_messages, tokens }
    }
}

impl Truncation {
    /// How a message is to be shown, if arguments in it are too long.
    pub fn edit(&self, message: &Message) -> Option<Edit> {
        let edit = Edit::Truncated { max: self.max, text: self.text.clone() };
        let is_long = message.tool_uses().any(|call| call.input.to_string().len() > self.max);
        // Several short arguments may be long together.
        (is_long && edit.apply(message) != *message).then_some(edit)
    }
}

/// Where the conversation is cut: what stands before it can be replaced, what stands behind it is kept. Calls stay with
/// their results. Never cut is what stands from `open` on, nor from the last question on. `None` if there is nothing
/// to replace but the `n_fixed` first messages, which are a summary already.
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

/// Where the last question begins, which may be several messages of the user; without one, the last message.
fn last_question(messages: &[Rc<Message>], n_fixed: usize) -> usize {
    let asks = |message: &Rc<Message>| {
        message.role == Role::User && message.name.as_deref() != Some("system")
    };
    let said = messages.get(n_fixed..).unwrap_or_default();
    let last = said.iter().rposition(asks);
    let before = last.and_then(|last| said.get(..last)).unwrap_or_default();
    let begins = before.iter().rposition(|message| !asks(message)).map_or(0, |at| at + 1);
    n_fixed + last.map_or(said.len().saturating_sub(1), |_| begins)
}

/// Before which messages a cut parts no call from its result.
fn safe_places(messages: &[Rc<Message>]) -> Vec<bool> {
    let mut is_safe: Vec<bool> = messages.iter().map(|it| it.role != Role::Tool).collect();
    if mutants::is("split-pair") {
        is_safe.fill(true);
    }
    for (index, message) in messages.iter().enumerate() {
        for result in message.tool_results() {
            let before = messages.get(..index).unwrap_or_default();
            let asks = |it: &Rc<Message>| it.tool_uses().any(|call| call.id == result.id);
            let asked = before.iter().rposition(asks).filter(|_| !mutants::is("split-pair"));
            let Some(asked) = asked else { continue };
            is_safe.iter_mut().take(index + 1).skip(asked + 1).for_each(|safe| *safe = false);
        }
    }
    is_safe
}
