//! How the turn of a question stands, as `history` shows it.

use crate::json::{Object, object_of};
use crate::message::{Message, Role};

/// The members of a message that say how its turn stands. They are computed when a history is read, and never stored.
const TURN: [&str; 2] = ["turn", "turnError"];

/// Other members of a message, without those that say how its turn stands: they are never taken from outside.
pub fn unmarked(mut members: Object) -> Object {
    TURN.iter().for_each(|name| drop(members.remove(*name)));
    members
}

/// How the turn of a question stands. An answered question has no state.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnState {
    /// Its call runs, asks a person, or waits for the result of a tool.
    Open,
    /// It was stopped, aborted, shut down, or cut off by a crash.
    Interrupted,
    /// It ended in an error with this code and message.
    Failed(String, String),
}

impl TurnState {
    /// Its word in a message.
    pub fn word(&self) -> &'static str {
        match self {
            TurnState::Open => "open",
            TurnState::Interrupted => "interrupted",
            TurnState::Failed(..) => "failed",
        }
    }
}

impl Message {
    /// Whether the message is from the user, and not a note of the engine.
    pub fn is_question(&self) -> bool {
        self.role == Role::User && self.name.as_deref() != Some("system")
    }

    /// Marks a question with the state of its turn.
    pub fn set_turn(&mut self, state: &TurnState) {
        let [turn, error] = TURN;
        self.rest.insert(turn.to_owned(), state.word().into());
        if let TurnState::Failed(code, message) = state {
            let mut members = object_of("code", code.as_str().into());
            members.insert("message".to_owned(), message.as_str().into());
            self.rest.insert(error.to_owned(), members.into());
        }
    }

    /// The word for the state of its turn, if it has one.
    pub fn turn(&self) -> Option<&str> {
        self.rest.get(TURN[0])?.as_str()
    }
}
