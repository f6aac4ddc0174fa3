//! The message that stands for the oldest messages of a conversation: a summary, or a note that they are left out.

use serde_json::Value;

use crate::message::{Block, Message, Note, Role};

/// The name of the author of a summary.
const NAME: &str = "summary";
/// The member of its metadata that says which messages it replaces.
const REPLACES: &str = "replaces";
const BEFORE: &str = "[The earlier part of this conversation is not shown any more. This is a summary of it: a record of \
                      what was said, not a message of the user.]\n<summary>\n";
const BEHIND: &str = "\n</summary>";
const WHERE: &str = "\n[session_search and session_history show all of it.]";
const LEFT_OUT: &str = "[The earlier messages of this conversation are left out, because they do not fit into the context \
                        window.]";

/// How a model can read the messages that a summary replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// With the tools that read the log.
    SessionTools,
    /// Not at all, or the model is not told.
    Nothing,
}

impl FoundBy {
    fn sentence(self) -> &'static str {
        match self {
            FoundBy::SessionTools => WHERE,
            FoundBy::Nothing => "",
        }
    }
}

impl Message {
    /// The message that replaces the summarised messages: the summary as data in a frame, with the role `user`.
    pub fn of_summary(summary: &str, found_by: FoundBy) -> Message {
        // The summary must not close the frame.
        let summary = summary.trim().replace("</summary", "< /summary");
        let text = format!("{BEFORE}{summary}{BEHIND}{}", found_by.sentence());
        Message {
            name: Some(NAME.to_owned()),
            ..Message::draft(Role::User, vec![Block::text(text)])
        }
    }

    /// The note that stands for messages which are left out. `summary` is the text of an earlier summary, which stays.
    pub fn left_out(summary: &str, found_by: FoundBy) -> Message {
        let framed = match summary {
            "" => String::new(),
            summary => format!("{BEFORE}{summary}{BEHIND}\n"),
        };
        Message::note_of(Note::LeftOut, format!("{framed}{LEFT_OUT}{}", found_by.sentence()))
    }

    /// Whether this is the message of a summary, or the note in place of one.
    pub fn is_summary(&self) -> bool {
        let is_named = self.role == Role::User && self.name.as_deref() == Some(NAME);
        is_named || self.is_note(Note::LeftOut)
    }

    /// What it says of the messages that it replaces.
    pub fn replaces(&self) -> Option<&Value> {
        self.metadata.as_ref()?.get(REPLACES)
    }

    /// Says what it replaces, unless it does so already.
    pub fn set_replaces(&mut self, replaces: Value) {
        self.metadata.get_or_insert_default().entry(REPLACES).or_insert(replaces);
    }

    /// Says no more what it replaces.
    pub fn forget_replaced(&mut self) {
        let metadata = self.metadata.take().map(|mut metadata| {
            metadata.remove(REPLACES);
            metadata
        });
        self.metadata = metadata.filter(|metadata| !metadata.is_empty());
    }

    /// The text of the summary in such a message, or "".
    pub fn summary(&self) -> String {
        let text = self.text();
        // The end of the frame occurs once, because a summary cannot contain it.
        let inside = text.strip_prefix(BEFORE).and_then(|text| text.split_once(BEHIND));
        match inside {
            Some((summary, _)) => summary.to_owned(),
            None if self.is_note(Note::LeftOut) => String::new(),
            None => text,
        }
    }
}
