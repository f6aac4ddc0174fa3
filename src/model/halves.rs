//! Joins characters whose halves arrive in different deltas.

use serde_json::Value;

use crate::json::halves::{REPLACED, is_high, joined, mark_of, without_marks};
use crate::message::Delta;

/// The first halves that wait for their second halves. A half that stays alone is replaced, and reported with
/// [`Delta::Replaced`].
#[derive(Debug, Default)]
pub(super) struct OpenHalves(Vec<(Channel, u16)>);

/// A text that is sent in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Text,
    Thinking,
    /// The arguments of the tool call with this index.
    Arguments(u64),
}

impl OpenHalves {
    /// Whether no half waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Joins halves in the deltas of one frame. `is_marked`: private characters in them stand for halves.
    #[inline(never)]
    pub(super) fn join(&mut self, deltas: Vec<Delta>, is_marked: bool) -> Vec<Delta> {
        let mut out = Vec::new();
        for delta in deltas {
            match delta {
                Delta::Text(text) => {
                    self.close(|it| it == Channel::Thinking, &mut out);
                    let text = self.whole(Channel::Text, text, is_marked, &mut out);
                    if !text.is_empty() {
                        out.push(Delta::Text(text));
                    }
                }
                Delta::Thinking { text, signature } => {
                    self.close(|it| it == Channel::Text, &mut out);
                    let text = self.whole(Channel::Thinking, text, is_marked, &mut out);
                    out.push(Delta::Thinking { text, signature });
                }
                Delta::ToolCall { index, id, name, arguments, provider } => {
                    self.close(|it| !matches!(it, Channel::Arguments(_)), &mut out);
                    let channel = Channel::Arguments(index);
                    let arguments = self.whole(channel, arguments, is_marked, &mut out);
                    out.push(Delta::ToolCall { index, id, name, arguments, provider });
                }
                Delta::End | Delta::Finish(_) => {
                    self.end(&mut out);
                    out.push(delta);
                }
                Delta::Provider(_) | Delta::Usage { .. } | Delta::Replaced => out.push(delta),
            }
        }
        if is_marked {
            out.iter_mut().for_each(unmark);
        }
        out
    }

    /// Replaces the halves that still wait.
    pub(super) fn end(&mut self, out: &mut Vec<Delta>) {
        self.close(|_| true, out);
    }

    /// The text of a delta with the half before it. A first half at its end waits.
    fn whole(
        &mut self,
        channel: Channel,
        text: String,
        is_marked: bool,
        out: &mut Vec<Delta>,
    ) -> String {
        let before = self.0.iter().position(|(open, _)| *open == channel);
        if text.is_empty() || (before.is_none() && !is_marked) {
            return text;
        }
        let mut open = before.map(|at| self.0.swap_remove(at).1);
        let mut whole = String::with_capacity(text.len() + 4);
        for letter in text.chars() {
            let half = mark_of(letter).filter(|_| is_marked);
            let pair = open.zip(half).and_then(|(high, low)| joined(high, low));
            if open.take().is_some() && pair.is_none() {
                whole.push(REPLACED);
                out.push(Delta::Replaced);
            }
            match (pair, half) {
                (Some(pair), _) => whole.push(pair),
                (None, Some(high)) if is_high(high) => open = Some(high),
                (None, Some(_)) => {
                    whole.push(REPLACED);
                    out.push(Delta::Replaced);
                }
                (None, None) => whole.push(letter),
            }
        }
        self.0.extend(open.map(|half| (channel, half)));
        whole
    }

    fn close(&mut self, is_over: impl Fn(Channel) -> bool, out: &mut Vec<Delta>) {
        let text = REPLACED.to_string();
        self.0.retain(|(channel, _)| {
            if !is_over(*channel) {
                return true;
            }
            out.push(Delta::Replaced);
            out.push(match *channel {
                Channel::Text => Delta::Text(text.clone()),
                Channel::Thinking => Delta::Thinking { text: text.clone(), signature: None },
                Channel::Arguments(index) => Delta::ToolCall {
                    index,
                    id: None,
                    name: None,
                    arguments: text.clone(),
                    provider: None,
                },
            });
            false
        });
    }
}

/// Replaces the halves in what is not sent in pieces: ids, names and data of the provider.
fn unmark(delta: &mut Delta) {
    let texts: [Option<&mut String>; 2] = match delta {
        Delta::Thinking { signature, .. } => [signature.as_mut(), None],
        Delta::ToolCall { id, name, provider, .. } => {
            provider.iter_mut().for_each(unmark_value);
            [id.as_mut(), name.as_mut()]
        }
        Delta::Provider(value) => {
            unmark_value(value);
            [None, None]
        }
        _ => [None, None],
    };
    texts.into_iter().flatten().for_each(|text| *text = without_marks(text));
}

fn unmark_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_marks(text),
        Value::Array(items) => items.iter_mut().for_each(unmark_value),
        Value::Object(members) => members.values_mut().for_each(unmark_value),
        _ => {}
    }
}
