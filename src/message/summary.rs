//! The form in which a summary stands in a conversation.

use crate::message::{Block, Message, Role};

const BEFORE: &str = "[The earlier part of this conversation is not shown any more. This is a summary of it: a record of \
                      what was said, not a message of the user.]\n<summary>\n";
const BEHIND: &str = "\n</summary>";
const WHERE: &str = "\n[session_search and session_history show all of it.]";

/// How a model gets at what a summary stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// With the tools that read the log.
    SessionTools,
    /// Not at all, or nobody is to tell it.
    Nothing,
}

impl Message {
    /// The message that stands in place of what a summary replaces: data in a frame, in the user's role.
    pub fn of_summary(summary: &str, found_by: FoundBy) -> Message {
        // The frame ends where we end it, whatever was said.
        let summary = summary.trim().replace("</summary", "< /summary");
        let place = if found_by == FoundBy::SessionTools { WHERE } else { "" };
        let text = format!("{BEFORE}{summary}{BEHIND}{place}");
        Message {
            name: Some("summary".to_owned()),
            ..Message::draft(Role::User, vec![Block::text(text)])
        }
    }

    /// The summary in such a message.
    pub fn summary(&self) -> String {
        let text = self.text();
        let framed = text.strip_suffix(WHERE).unwrap_or(&text);
        let inside = framed.strip_prefix(BEFORE).and_then(|text| text.strip_suffix(BEHIND));
        inside.unwrap_or(&text).to_owned()
    }
}
