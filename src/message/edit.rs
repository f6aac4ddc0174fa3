//! How a message is shown where it is too large to be shown whole: the log keeps it as it was said.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, Memo, Message, Source, ToolResult};

/// What of a long argument is still shown.
const SHOWN: usize = 20;

const TRUNCATED: &str = "...(argument truncated)";

/// A message is shown otherwise than it was said. Only parameters: the text follows from the message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    /// A tool's result is a file, and only its two ends are shown.
    Evicted {
        /// The file.
        path: String,
        /// How many characters of its beginning are shown.
        head: usize,
        /// How many of its end.
        tail: usize,
        /// The tool that finds the rest by its words, "" if there is none; absent where `read_file` reads it.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Arguments of tool calls are cut.
    Truncated {
        /// The longest text that is shown whole, in characters.
        max: usize,
        /// What stands where a longer one was cut, if not the usual.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Files that are named by their address are not shown: they could not be loaded any more.
    Faded {},
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
        if fields.value("faded").is_some() {
            return Ok(Edit::Faded {});
        }
        Err(Misread::new("evicted, truncated or faded"))
    }

    /// The message as it is shown. Its id, its states and what providers want back stay as they are.
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
                (Edit::Faded {}, Block::ToolResult(result)) => {
                    result.output.iter_mut().for_each(fade);
                }
                (Edit::Faded {}, block) => fade(block),
                _ => {}
            }
        }
        shown
    }
}

/// The two ends of a result, and how to read what is between. Pictures and files stay.
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

/// How a model gets at what is not shown, with the tools that it has.
fn rest(path: &str, by: Option<&str>) -> String {
    match by {
        None => format!(
            "All of it is in the file {path}; read the part you need with read_file and a range of lines. "
        ),
        Some("") => String::new(),
        Some(tool) => format!("All of it is kept; {tool} finds parts of it by their words. "),
    }
}

/// Tells of a file instead of showing it, if it is somewhere else.
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

/// The edits of a view, by message; a message has at most one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits(Vec<(String, Edit)>);

impl Serialize for Edits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, edit)| (id, edit)))
    }
}

impl Edits {
    /// Reads edits by message id.
    pub fn from_json(value: &Value) -> Read<Edits> {
        let members: Object = json::object(value)?;
        let mut edits = Edits::default();
        for (id, edit) in &members {
            edits.0.push((id.clone(), Edit::from_json(edit)?));
        }
        Ok(edits)
    }

    /// Whether no message is shown otherwise than it was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How a message is shown, if not as it was said.
    pub fn of(&self, id: &str) -> Option<&Edit> {
        self.0.iter().find(|(other, _)| other == id).map(|(_, edit)| edit)
    }

    /// Whether one of these messages is shown otherwise.
    pub fn has(&self, belongs: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|(id, _)| belongs(id))
    }

    /// Shows a message otherwise from now on.
    pub fn put(&mut self, id: &str, edit: Edit) {
        self.0.retain(|(other, _)| other != id);
        self.0.push((id.to_owned(), edit));
    }

    /// Takes in other edits, which come later.
    pub fn extend(&mut self, others: &Edits) {
        others.0.iter().for_each(|(id, edit)| self.put(id, edit.clone()));
    }

    /// Takes out the edits of these messages.
    pub fn take(&mut self, belongs: impl Fn(&str) -> bool) -> Edits {
        Edits(self.0.extract_if(.., |(id, _)| belongs(id)).collect())
    }

    /// Makes messages what they are shown as.
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
