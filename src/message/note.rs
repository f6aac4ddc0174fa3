//! Notes: messages that the engine writes into a conversation, and their kinds.

use crate::json::object_of;
use crate::message::{Block, Message, Role};

/// The member of a message's metadata that holds the kind of a note.
const NOTE: &str = "note";

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The turn before it was cut off.
    CutOff,
    /// The answer before it had no visible text.
    BlankAnswer,
    /// A task of a subagent has ended.
    TaskResult,
    /// Messages at this place are left out.
    LeftOut,
}

impl Note {
    /// All kinds.
    pub const ALL: &'static [Note] =
        &[Note::CutOff, Note::BlankAnswer, Note::TaskResult, Note::LeftOut];

    /// Its word in `metadata.note`.
    pub fn word(self) -> &'static str {
        match self {
            Note::CutOff => "cut-off",
            Note::BlankAnswer => "blank-answer",
            Note::TaskResult => "task-result",
            Note::LeftOut => "left-out",
        }
    }
}

impl Message {
    /// A note of the engine to the model: it has the role `user` and the name `system`.
    pub fn note(text: impl Into<String>) -> Message {
        Message {
            name: Some("system".into()),
            ..Message::draft(Role::User, vec![Block::text(text)])
        }
    }

    /// Whether this is a note of this kind.
    pub fn is_note(&self, kind: Note) -> bool {
        self.metadata.as_ref().and_then(|it| it.get(NOTE)?.as_str()) == Some(kind.word())
    }

    /// A note that is stored, marked with its kind.
    pub fn note_of(kind: Note, text: impl Into<String>) -> Message {
        let metadata = Some(object_of(NOTE, kind.word().into()));
        Message { metadata, ..Message::note(text) }
    }
}
