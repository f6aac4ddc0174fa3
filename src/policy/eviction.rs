//! Which tool results are too large to be shown whole, and how they are shown.

use crate::message::{Block, EVICTED, Edit, Message, ResultState, Role, ToolResult};

/// Results of these tools are never evicted. Most of them read evicted results; the others give short results.
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

/// When a tool result is evicted from the context, and how much of it is still shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The most characters that are shown whole.
    pub max_chars: usize,
    /// How many characters are shown of the beginning, and of the end.
    pub preview_chars: usize,
    /// Tools whose results are never evicted; `None` for the built-in tools that read files.
    pub exclude: Option<Vec<String>>,
    /// The tool that searches the rest by words, "" if there is none; `None` if `read_file` can read it.
    pub by: Option<String>,
    /// The folder of evicted results, which ends with `/`; `None` if no file can have them.
    pub folder: Option<String>,
}

impl Default for Eviction {
    fn default() -> Eviction {
        Eviction { max_chars: 80_000, preview_chars: 2_000, exclude: None, by: None, folder: None }
    }
}

impl Eviction {
    /// The same for a model with this window: a result takes at most a quarter of it. (Three characters per token.)
    pub fn within(&self, window: Option<u64>) -> Eviction {
        let quarter = window.map_or(usize::MAX, |window| window as usize / 4 * 3);
        self.at_most(quarter)
    }

    /// The same for a model with these tools: it must be able to read the rest with one of them. Without a folder, no file
    /// has the rest.
    pub fn read_with<'a>(
        &self,
        tools: impl Iterator<Item = &'a str>,
        folder: Option<String>,
    ) -> Eviction {
        let mut by = Some(String::new());
        for tool in tools {
            match tool {
                "read_file" if folder.is_some() => by = None,
                "session_search" if by.is_some() => by = Some(tool.to_owned()),
                _ => {}
            }
        }
        Eviction { by, folder, ..self.clone() }
    }

    /// The same with a lower limit.
    pub fn at_most(&self, chars: usize) -> Eviction {
        let max_chars = self.max_chars.min(chars);
        // The preview must be much smaller than the result, or eviction saves nothing.
        let preview_chars = self.preview_chars.min(max_chars / 4);
        Eviction { max_chars, preview_chars, ..self.clone() }
    }

    /// The edit for a message that is a too large result, and the size of the result.
    pub fn edit(&self, message: &Message) -> Option<(Edit, usize)> {
        let result = message.tool_results().next().filter(|_| message.role == Role::Tool)?;
        if self.spares(result) {
            return None;
        }
        let n = Block::text_of(&result.output).chars().count();
        let path = self.folder.as_ref().map(|folder| path_of(folder, &message.id));
        let path = path.unwrap_or_default();
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

/// The path where the whole result of a message can be read.
pub fn path_of(folder: &str, message_id: &str) -> String {
    format!("{folder}{message_id}.txt")
}

/// The id of the message whose result has this path. The folder may be that of another session, from which this session was
/// forked.
pub fn message_at(path: &str) -> Option<&str> {
    let name = path.trim_start_matches("./").strip_prefix(EVICTED)?.strip_prefix('/')?;
    name.rsplit('/').next()?.strip_suffix(".txt")
}
