//! What a call, or a change by hand, leaves behind in a session.

use std::rc::Rc;

use crate::message::{Edits, Message};
use crate::state::Facts;
use crate::store::entry::{EntryKind, Later, Outcome};
use crate::store::head::Place;
use crate::store::input::Input;
use crate::store::task::Task;

/// What a call leaves behind.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The id of its entry.
    pub id: String,
    /// What it is about.
    pub kind: EntryKind,
    /// The accepted input that it takes out of the waiting.
    pub input: Input,
    /// Other accepted inputs that it takes out with it.
    pub joined: Vec<Input>,
    /// Everything said in it that is not stored yet, the input included.
    pub messages: Vec<Rc<Message>>,
    /// What became of tool calls that are stored.
    pub changes: Vec<Later>,
    /// How it ended; a step has not.
    pub outcome: Option<Outcome>,
    /// The AgentState fields after it.
    pub facts: Facts,
    /// What it has changed in how earlier messages, and its own, are shown.
    pub reshaping: Reshaping,
    /// Whether the context is to be what it was before the question; the log has the turn all the same.
    pub is_forgotten: bool,
    /// The tasks whose end is told in its messages: the batch that stores those marks these.
    pub heard: Vec<Task>,
}

impl Turn {
    /// Somebody else has changed what is shown: theirs stands, but for how our own messages are shown.
    pub(super) fn keep_own_edits(&mut self) {
        let own = |id: &str| self.messages.iter().any(|message| message.id == id);
        let edits = self.reshaping.edits.take(own);
        self.reshaping = Reshaping { summary: None, edits };
    }
}

/// What has changed in how messages are shown. The log has them as they were said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reshaping {
    /// A summary in place of the oldest.
    pub summary: Option<Summary>,
    /// Messages that are shown otherwise.
    pub edits: Edits,
}

impl Reshaping {
    /// Whether everything is shown as it was.
    pub fn is_empty(&self) -> bool {
        self.summary.is_none() && self.edits.is_empty()
    }
}

/// A summary that is not stored yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The id of its entry.
    pub id: String,
    /// What is shown.
    pub message: Rc<Message>,
    /// The first stored message that stays; none if it replaces all that is stored.
    pub cut: Option<Place>,
    /// The messages that it replaces.
    pub replaced: Vec<String>,
}

/// A change of a session by hand.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    /// What becomes of the context.
    pub context: Context,
    /// The AgentState fields after it, if they change.
    pub facts: Option<Facts>,
    /// What the session is called after it, if that changes.
    pub title: Option<String>,
}

/// What a change by hand does to the context.
#[derive(Clone, Debug, Default)]
pub enum Context {
    /// Nothing.
    #[default]
    Kept,
    /// These messages follow.
    Grown(Vec<Rc<Message>>),
    /// These messages are all of it, but for the first few, which only go into the log. What was there stays in it.
    Replaced(Vec<Rc<Message>>, usize),
}

impl Context {
    /// What is said anew.
    pub(super) fn messages(&self) -> Option<&[Rc<Message>]> {
        match self {
            Context::Kept => None,
            Context::Grown(messages) | Context::Replaced(messages, _) => Some(messages),
        }
    }
}
