//! `memory_search`, `memory_get` and `memory_save`: the model searches, reads and adds notes about its user.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::policy::memory;
use crate::port::{Effect, Tool, ToolRun, ToolSpec};
use crate::store::workspace::files::OwnerFiles;
use crate::tool::notebook::Notebook;

/// How often a save is tried because another writer was first.
const ATTEMPTS: u32 = 8;

/// Most lines that a search shows, and most lines of a part of a file.
const MOST_HITS: usize = 20;
const MOST_LINES: usize = 400;

/// What a memory tool does.
#[derive(Clone, Copy)]
enum MemoryAction {
    Search,
    Get,
    Save,
}

/// Names, descriptions and input schemas of the tools.
const TOOLS: &[(MemoryAction, &str, &str, &str)] = &[
    (
        MemoryAction::Search,
        "memory_search",
        "Finds notes about this user by their words, also old ones. Answers with path#line: note.",
        r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#,
    ),
    (
        MemoryAction::Get,
        "memory_get",
        "Shows lines of a file of notes, such as MEMORY.md or one that memory_search has named.",
        r#"{"type":"object","properties":{"path":{"type":"string"},"startLine":{"type":"integer","minimum":1,"default":1},"endLine":{"type":"integer","minimum":1}},"required":["path"]}"#,
    ),
    (
        MemoryAction::Save,
        "memory_save",
        "Notes facts about this user for later conversations, one a line. Use it when asked to remember something.",
        r#"{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}"#,
    ),
];

struct MemoryTool {
    spec: Rc<ToolSpec>,
    kind: MemoryAction,
    notebook: Rc<Notebook>,
}

/// The three tools.
pub fn memory_tools(notebook: &Rc<Notebook>) -> Vec<Rc<dyn Tool>> {
    let made = TOOLS.iter().map(|(kind, name, description, schema)| {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        // Facts about a user outlive the session, so saving is not only a note for the agent itself.
        let effect = if matches!(kind, MemoryAction::Save) { Effect::Edits } else { Effect::Notes };
        let spec = ToolSpec::new(*name, *description, schema);
        let spec = Rc::new(ToolSpec { effect, ..spec });
        Rc::new(MemoryTool { spec, kind: *kind, notebook: Rc::clone(notebook) }) as Rc<dyn Tool>
    });
    made.collect()
}

impl Tool for MemoryTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move {
            let text = match self.kind {
                MemoryAction::Search => search(&self.notebook.files(run.slot), run.input).await?,
                MemoryAction::Get => get(&self.notebook.files(run.slot), run.input).await?,
                MemoryAction::Save => self.save(run).await?,
            };
            Ok(vec![Block::text(text)])
        })
    }
}

impl MemoryTool {
    async fn save(&self, run: ToolRun<'_>) -> Result<String> {
        self.notebook.check_writable(run.slot)?;
        let lines = text(run.input, "content").lines().map(|line| format!("- {}", plain(line)));
        let facts = memory::facts(&lines.collect::<Vec<_>>().join("\n"), false);
        for _ in 0..ATTEMPTS {
            let pages = self.notebook.read(run.slot).await?;
            if let Some(n_new) = self.notebook.add(run.slot, &pages, &facts, None).await? {
                let known = facts.len() - n_new;
                return Ok(match (n_new, known) {
                    (0, 0) => "There was nothing to note.".to_owned(),
                    (_, 0) => format!("Noted {n_new}."),
                    _ => format!("Noted {n_new}; {known} were known already."),
                });
            }
        }
        Err(refused("Others write notes all the time. Try again."))
    }
}

/// The lines that contain most of the words, without duplicates.
async fn search(files: &OwnerFiles<'_>, input: &Value) -> Result<String> {
    let query = memory::folded(text(input, "query"));
    let words: Vec<&str> = query.split(' ').filter(|word| !word.is_empty()).collect();
    let mut paths = files.list(memory::FOLDER).await?;
    // The newest notes come first, the archive last.
    let archive: Vec<_> = paths.extract_if(.., |it| it.starts_with(memory::ARCHIVE)).collect();
    let paths = paths.into_iter().rev().chain(archive.into_iter().rev());
    let mut hits: Vec<Vec<String>> = vec![Vec::new(); words.len()];
    let mut seen = Vec::new();
    for path in std::iter::once(memory::FILE.to_owned()).chain(paths) {
        let Some(file) = files.read(&path).await? else { continue };
        for (index, line) in file.text.lines().enumerate() {
            let folded = memory::folded(line);
            let n_words = words.iter().filter(|word| folded.contains(**word)).count();
            let place = words.len() - n_words;
            if let Some(hits) = hits.get_mut(place)
                && !seen.contains(&folded)
            {
                hits.push(format!("{path}#{}: {}", index + 1, plain(line)));
                seen.push(folded);
            }
        }
    }
    let hits: Vec<_> = hits.into_iter().flatten().take(MOST_HITS).collect();
    if hits.is_empty() {
        return Ok("Nothing is noted about that.".to_owned());
    }
    Ok(hits.join("\n"))
}

async fn get(files: &OwnerFiles<'_>, input: &Value) -> Result<String> {
    let path = text(input, "path");
    let is_note = path == memory::FILE || path.starts_with(memory::FOLDER);
    let Some(file) = (if is_note { files.read(path).await? } else { None }) else {
        return Err(refused("There is no such file of notes. See memory_search."));
    };
    let line = |name| input.get(name).and_then(Value::as_u64).map(|n| n as usize);
    let start = line("startLine").unwrap_or(1).max(1);
    let n_lines = line("endLine").map_or(MOST_LINES, |end| (end + 1).saturating_sub(start));
    let lines = file.text.lines().enumerate().skip(start - 1).take(n_lines.min(MOST_LINES));
    let lines: Vec<_> = lines.map(|(index, line)| format!("{}|{line}", index + 1)).collect();
    if lines.is_empty() {
        return Err(refused("There are no such lines in it."));
    }
    Ok(lines.join("\n"))
}

fn text<'a>(input: &'a Value, name: &str) -> &'a str {
    input.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A note without its bullet.
fn plain(line: &str) -> &str {
    line.trim().trim_start_matches(['-', '*', '•']).trim_start()
}

#[cold]
fn refused(message: &str) -> Error {
    Error::new(ErrorKind::InputInvalid, message)
}
