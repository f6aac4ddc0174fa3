//! What leaves the context when a provider rejects a turn for its content, so that later requests are not rejected too.

use std::ops::Range;
use std::rc::Rc;

use crate::message::{Message, Role};

/// What of a context the provider has rejected.
#[derive(Debug, PartialEq)]
pub struct Rejected {
    /// The index from which on messages leave the context. It is never between a tool call and its result.
    pub start: usize,
    /// The messages before it whose tool results are hidden, because no accepted request contained them.
    pub hidden: Range<usize>,
}

/// What the rejected call has asked the model to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedFor {
    /// A question of its own.
    Question,
    /// A question that is in the log already: the call resumes a turn, or repeats a failed call.
    EarlierQuestion,
    /// Answers to open tool calls. The provider has accepted the question before them.
    Answers,
}

/// What of a context the provider has rejected. The messages of the call begin at `own`.
pub fn rejected(context: &[Rc<Message>], own: usize, asking: AskedFor) -> Rejected {
    let (before, said) = context.split_at(own.min(context.len()));
    let n_results = said.iter().take_while(|message| message.role == Role::Tool).count();
    let start = before.len() + n_results;
    let last = |is: fn(&Message) -> bool| before.iter().rposition(|message| is(message));
    match asking {
        AskedFor::Question => Rejected { start, hidden: start..start },
        AskedFor::EarlierQuestion => {
            let start = last(Message::is_question).unwrap_or(start);
            Rejected { start, hidden: start..start }
        }
        AskedFor::Answers => {
            let asked = last(|message| message.role == Role::Assistant);
            Rejected { start, hidden: asked.map_or(start, |at| at + 1)..start }
        }
    }
}
