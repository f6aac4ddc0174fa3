//! Collects the newest messages of a path for a reader, with the state of the turn of each question.

use std::rc::Rc;

use crate::message::{Message, TurnState};
use crate::store::format::entry::{CallUpdate, Entry, EntryKind};
use crate::store::keys::EntryRef;
use crate::store::log::Entries;

/// Messages that are accepted and not logged yet, and the state of their turn. If there are no messages, the state belongs to
/// the last question in the log.
pub(in crate::store) struct Unlogged {
    pub(in crate::store) messages: Vec<Rc<Message>>,
    pub(in crate::store) state: TurnState,
}

/// The newest messages of a path before the message `before`.
pub(in crate::store) struct Newest<'a> {
    before: Option<&'a str>,
    limit: usize,
    unlogged: Option<Unlogged>,
    /// The messages, newest first.
    found: Vec<Rc<Message>>,
}

impl<'a> Newest<'a> {
    pub(in crate::store) fn new(
        before: Option<&'a str>,
        limit: usize,
        unlogged: Option<Unlogged>,
    ) -> Newest<'a> {
        Newest { before, limit, unlogged, found: Vec::new() }
    }

    /// The largest number of messages.
    pub(in crate::store) fn limit(&self) -> usize {
        self.limit
    }

    /// The messages, oldest first.
    pub(in crate::store) fn into_messages(mut self) -> Vec<Rc<Message>> {
        self.found.reverse();
        self.found
    }

    /// Collects the messages on the path to `leaf` again, now from these entries. Returns whether the request is answered
    /// completely.
    pub(in crate::store) fn collect(&mut self, entries: &Entries, leaf: Option<&EntryRef>) -> bool {
        let Newest { before, limit, unlogged, found } = self;
        found.clear();
        let mut seen = before.is_none();
        let mut turns = TurnWalk::default();
        let mut later: Vec<&CallUpdate> = Vec::new();
        let mut take = |message: &Rc<Message>, state: Option<&TurnState>, later: &[&CallUpdate]| {
            if seen && found.len() < *limit {
                let mut message = Rc::clone(message);
                // `later` begins with the newest change, which must be applied last.
                let of_it = later.iter().rev().filter(|it| it.message == message.id);
                let of_it: Vec<&&CallUpdate> = of_it.collect();
                of_it.into_iter().for_each(|it| it.apply(&mut message));
                if let Some(state) = state {
                    Rc::make_mut(&mut message).set_turn(state);
                }
                found.push(message);
            }
            seen |= Some(message.id.as_str()) == *before;
            found.len() == *limit
        };
        if let Some(Unlogged { messages, state }) = unlogged {
            turns.begin(Some(state.clone()));
            for message in messages.iter().rev() {
                take(message, turns.state_of(message), &later);
            }
        }
        let (mut name, mut is_full) = (leaf, *limit == 0);
        while let Some(entry) = name.and_then(|name| entries.get(name)) {
            turns.enter(entry);
            let spoken = entry.messages.iter().rev().filter(|_| entry.kind != EntryKind::Summary);
            for message in spoken {
                is_full = take(message, turns.state_of(message), &later);
            }
            later.extend(entry.changes.iter().rev());
            name = entry.parent.as_ref();
            if is_full {
                break;
            }
        }
        is_full || name.is_none()
    }
}

/// The state of turns, while the messages of a path are walked from the newest to the oldest.
#[derive(Default)]
struct TurnWalk {
    /// The state of the turn that the walk is in.
    state: Option<TurnState>,
    /// Whether the walk has met a question of that turn.
    has_question: bool,
    /// Whether the walk is in a turn whose question it has not met. An entry that begins
    /// with a person's answers to tool calls belongs to the same turn.
    is_open: bool,
    /// Whether the walk has met any question.
    is_past_newest: bool,
    /// Whether the messages were put by hand, so that they may be of several turns.
    is_put: bool,
}

impl TurnWalk {
    /// Enters the turn that ends here.
    fn begin(&mut self, state: Option<TurnState>) {
        // Tool calls that a later question has closed are not open any more.
        self.state = state.filter(|it| *it != TurnState::Open || !self.is_past_newest);
        (self.has_question, self.is_open) = (false, true);
    }

    fn enter(&mut self, entry: &Entry) {
        self.is_put = matches!(entry.kind, EntryKind::Put);
        match &entry.outcome {
            Some(outcome) if !self.is_open || self.has_question => {
                self.begin(outcome.turn_state());
            }
            // Messages put by hand are of no turn, but a step is of the turn that the walk is in.
            None if self.has_question && self.is_put => self.state = None,
            _ => {}
        }
    }

    /// The state of the turn of a message, if the message is its question.
    fn state_of(&mut self, message: &Message) -> Option<&TurnState> {
        let is_question = message.is_question();
        if self.is_put && self.has_question && !is_question {
            self.state = None;
        }
        self.has_question |= is_question;
        self.is_past_newest |= is_question;
        self.state.as_ref().filter(|_| is_question)
    }
}
