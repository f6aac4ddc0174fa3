//! How a message is shown to the model if it is too large. The log keeps the original message.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, Memo, Message, Source, ToolResult};

/// How many characters of a long argument are still shown.
const SHOWN: usize = 20;

/// The folder of evicted tool results in a workspace, with a folder for each session.
pub const EVICTED: &str = "tool-results";
const HIDDEN: &str =
    "[This result is not shown: the provider rejected a request that contained it.]";

const TRUNCATED: &str = "...(argument truncated)";

/// A change to how a message is shown. Only its parameters are stored: the shown text is computed from the message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    /// Only the beginning and the end of the tool result are shown. The log has the rest, which tools read under this path.
    Evicted {
        /// The path of the file.
        path: String,
        /// How many characters of the beginning are shown.
        head: usize,
        /// How many characters of the end are shown.
        tail: usize,
        /// The tool that searches the rest by words, "" if there is none; `None` if `read_file` can read the file.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Long arguments of tool calls are cut.
    Truncated {
        /// The longest text that is shown whole, in characters.
        max: usize,
        /// The text in place of what was cut; `None` for the default text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Files with a URL are not shown, because the provider could not load them any more.
    Faded {
        /// Whether no result of a tool is shown at all, because the provider rejected a request with these results.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        results: bool,
    },
}

impl Edit {
    fn from_json(value: &Value) -> Read<Edit> {
        let size =
            |fields: &Fields<'_>, name| fields.required(name, json::count).map(|n| n as usize);
        let fields = Fields::of(value)?;
        if let Some(evicted) = fields.optional("evicted", json::any)? {
            let fields = Fields::of(&evicted)?;
            let path = fields.required("path", json::text)?;
            return Ok(Edit::Evicted {
                path,
                head: size(&fields, "head")?,
                tail: size(&fields, "tail")?,
                by: fields.optional("by", json::text)?,
            });
        }
        if let Some(truncated) = fields.optional("truncated", json::any)? {
            let fields = Fields::of(&truncated)?;
            let text = fields.optional("text", json::text)?;
            return Ok(Edit::Truncated { max: size(&fields, "max")?, text });
        }
        if let Some(faded) = fields.optional("faded", json::any)? {
            let results = Fields::of(&faded)?.or_default("results", json::boolean)?;
            return Ok(Edit::Faded { results });
        }
        Err(Misread::new("evicted, truncated or faded"))
    }

    /// The message as the model sees it. Ids, states and the provider's data stay unchanged.
    pub fn apply(&self, message: &Message) -> Message {
        let mut shown = Message { tokens: Memo::default(), ..message.clone() };
        for block in &mut shown.content {
            match (self, block) {
                (Edit::Evicted { path, head, tail, by }, Block::ToolResult(result)) => {
                    evict(result, &rest(path, by.as_deref()), *head, *tail);
                }
                (Edit::Truncated { max, text }, Block::ToolUse(call)) => {
                    truncate(&mut call.input, *max, text.as_deref().unwrap_or(TRUNCATED));
                }
                (Edit::Faded { results: true }, Block::ToolResult(result)) => {
                    result.output = vec![Block::text(HIDDEN)];
                }
                (Edit::Faded { .. }, Block::ToolResult(result)) => {
                    result.output.iter_mut().for_each(fade);
                }
                (Edit::Faded { .. }, block) => fade(block),
                _ => {}
            }
        }
        shown
    }
}

/// Keeps the beginning and the end of a result, and says how to read the rest. Media blocks stay.
fn evict(result: &mut ToolResult, rest: &str, head: usize, tail: usize) {
    let whole = Block::text_of(&result.output);
    let n = whole.chars().count();
    let start: String = whole.chars().take(head).collect();
    let end: String = whole.chars().skip(n.saturating_sub(tail).max(head)).collect();
    let notice = format!(
        "[This result has {n} characters: too many to be shown here. {rest}Its beginning and its end:]\n\n\
         {start}\n\n[…]\n\n{end}"
    );
    result.output.retain(|block| !matches!(block, Block::Text { .. }));
    result.output.insert(0, Block::text(notice));
}

/// A sentence that tells the model how to read what is not shown, with the tools that it has.
fn rest(path: &str, by: Option<&str>) -> String {
    match by {
        None => format!(
            "All of it is in the file {path}; read the part you need with read_file and a range of lines. "
        ),
        Some("") => String::new(),
        Some(tool) => format!("All of it is kept; {tool} finds parts of it by their words. "),
    }
}

/// Replaces a file with a URL by a text about it.
fn fade(block: &mut Block) {
    if let Block::Media { source: Source::Url { .. }, name, .. } = block {
        let name = name.as_deref().unwrap_or("without a name");
        *block =
            Block::text(format!("[A file was shown here: {name}. It can no longer be loaded.]"));
    }
}

/// Cuts every text in an argument that is longer than `max` characters.
fn truncate(value: &mut Value, max: usize, marker: &str) {
    match value {
        Value::String(text) if text.chars().nth(max).is_some() => {
            let end = text.char_indices().nth(SHOWN.min(max)).map_or(text.len(), |(at, _)| at);
            text.truncate(end);
            text.push_str(marker);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| truncate(item, max, marker)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| truncate(member, max, marker));
        }
        _ => {}
    }
}

/// The edits of a view by message id. A message has at most one edit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits(Vec<(String, Edit)>);

impl Serialize for Edits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, edit)| (id, edit)))
    }
}

impl Edits {
    /// The edits, each with the id of its message.
    pub fn iter(&self) -> impl Iterator<Item = &(String, Edit)> {
        self.0.iter()
    }

    /// Reads edits by message id.
    pub fn from_json(value: &Value) -> Read<Edits> {
        let members: Object = json::object(value)?;
        let mut edits = Edits::default();
        for (id, edit) in &members {
            edits.0.push((id.clone(), Edit::from_json(edit)?));
        }
        Ok(edits)
    }

    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The edit of a message, if it has one.
    pub fn of(&self, id: &str) -> Option<&Edit> {
        self.0.iter().find(|(other, _)| other == id).map(|(_, edit)| edit)
    }

    /// Whether one of these messages has an edit.
    pub fn has(&self, belongs: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|(id, _)| belongs(id))
    }

    /// Sets the edit of a message.
    pub fn put(&mut self, id: &str, edit: Edit) {
        self.0.retain(|(other, _)| other != id);
        self.0.push((id.to_owned(), edit));
    }

    /// Adds later edits. They replace earlier edits of the same messages.
    pub fn extend(&mut self, others: &Edits) {
        others.0.iter().for_each(|(id, edit)| self.put(id, edit.clone()));
    }

    /// Removes the edits of these messages and returns them.
    pub fn take(&mut self, belongs: impl Fn(&str) -> bool) -> Edits {
        Edits(self.0.extract_if(.., |(id, _)| belongs(id)).collect())
    }

    /// Applies the edits to these messages.
    pub fn apply(&self, messages: &mut [Rc<Message>]) {
        if self.is_empty() {
            return;
        }
        for message in messages {
            if let Some(edit) = self.of(&message.id) {
                *message = Rc::new(edit.apply(message));
            }
        }
    }
}
