//! Which tool results are too large to be shown whole, and how they are shown.

use crate::message::{Block, Edit, Message, ResultState, Role, ToolResult};

/// Results of these are never evicted: they are how evicted ones are read.
const EXCLUDED: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "grep_files",
    "glob_files",
    "list_files",
    "memory_search",
    "memory_get",
    "session_search",
    "session_history",
];

/// The folder of the workspace in which evicted results are found.
pub const FOLDER: &str = "tool-results/";

/// When a result leaves the context, and what of it stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The most characters that are shown whole.
    pub max_chars: usize,
    /// How many characters are shown of each end.
    pub preview_chars: usize,
    /// Tools whose results stay whatever their size; the built-in readers if none is named.
    pub exclude: Option<Vec<String>>,
    /// The tool that finds the rest by its words, "" if there is none; none where `read_file` reads it.
    pub by: Option<String>,
}

impl Default for Eviction {
    fn default() -> Eviction {
        Eviction { max_chars: 80_000, preview_chars: 2_000, exclude: None, by: None }
    }
}

impl Eviction {
    /// The same for a model of this window: a result takes at most a quarter of it. (Three characters to a token.)
    pub fn within(&self, window: Option<u64>) -> Eviction {
        let quarter = window.map_or(usize::MAX, |window| window as usize / 4 * 3);
        self.at_most(quarter)
    }

    /// The same for a model that has these tools: what it is not shown it must get at with one of them.
    pub fn read_with<'a>(&self, tools: impl Iterator<Item = &'a str>) -> Eviction {
        let mut by = Some(String::new());
        for tool in tools {
            match tool {
                "read_file" => by = None,
                "session_search" if by.is_some() => by = Some(tool.to_owned()),
                _ => {}
            }
        }
        Eviction { by, ..self.clone() }
    }

    /// The same with a lower limit.
    pub fn at_most(&self, chars: usize) -> Eviction {
        let max_chars = self.max_chars.min(chars);
        // What is left must be much smaller than what it stands for, or nothing is won.
        let preview_chars = self.preview_chars.min(max_chars / 4);
        Eviction { max_chars, preview_chars, ..self.clone() }
    }

    /// How a message is to be shown, if it is a result that is too large; and its size.
    pub fn edit(&self, message: &Message) -> Option<(Edit, usize)> {
        let result = message.tool_results().next().filter(|_| message.role == Role::Tool)?;
        if self.spares(result) {
            return None;
        }
        let n = Block::text_of(&result.output).chars().count();
        let path = path_of(&message.id);
        let (head, tail) = (self.preview_chars, self.preview_chars);
        let by = self.by.clone();
        (n > self.max_chars).then_some((Edit::Evicted { path, head, tail, by }, n))
    }

    fn spares(&self, result: &ToolResult) -> bool {
        let is_excluded = match &self.exclude {
            Some(names) => names.contains(&result.name),
            None => EXCLUDED.contains(&result.name.as_str()),
        };
        is_excluded || result.state == ResultState::Suspended
    }
}

/// Where the whole result of a message can be read.
pub fn path_of(message_id: &str) -> String {
    format!("{FOLDER}{message_id}.txt")
}

/// The message whose result is read there, if it is such a path.
pub fn message_at(path: &str) -> Option<&str> {
    path.trim_start_matches("./").trim_start_matches('/').strip_prefix(FOLDER)?.strip_suffix(".txt")
}
