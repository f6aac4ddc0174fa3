//! `grep_files` and `glob_files`.

use regex_lite::Regex;

use crate::error::Result;
use crate::message::Block;
use crate::tool::workspace::read::names_of;
use crate::tool::workspace::{FileInput, OwnerFiles, glob, says};

/// Most lines that one search shows.
const MOST_LINES: usize = 200;

/// Most bytes of a line that are shown, and how many of them before the match.
const SHOWN: (usize, usize) = (400, 100);

pub(super) async fn glob(files: &OwnerFiles<'_>, input: FileInput<'_>) -> Result<Vec<Block>> {
    let pattern = glob::glob(input.text("pattern"))?;
    let mut paths = files.list(input.text("path")).await?;
    paths.retain(|path| pattern.is_match(path));
    names_of(paths, "No file fits the pattern.")
}

pub(super) async fn grep(files: &OwnerFiles<'_>, input: FileInput<'_>) -> Result<Vec<Block>> {
    let (pattern, n_bytes) = glob::regex(input.text("pattern"))?;
    let only = Some(input.text("glob")).filter(|it| !it.is_empty()).map(glob::glob).transpose()?;
    let mut search = Search { pattern, n_bytes, lines: Vec::new() };
    for path in files.list(input.text("path")).await? {
        if only.as_ref().is_some_and(|only| !only.is_match(&path)) {
            continue;
        }
        // A file that is gone by now is skipped.
        let Some(file) = files.read(&path).await? else { continue };
        if let Some(note) = search.file(&path, &file.text) {
            search.lines.push(note);
            break;
        }
    }
    if search.lines.is_empty() {
        return says("Nothing was found.");
    }
    says(search.lines.join("\n"))
}

/// A running search.
struct Search {
    pattern: Regex,
    /// How many bytes it may still search.
    n_bytes: usize,
    /// The matches, as `path:line:text`.
    lines: Vec<String>,
}

impl Search {
    /// Searches a file. Returns why the search stops, if it does.
    fn file(&mut self, path: &str, text: &str) -> Option<String> {
        for (index, line) in text.lines().enumerate() {
            let place = format_args!("{path}:{}", index + 1);
            if self.n_bytes <= line.len() {
                return Some(format!(
                    "(The search ended at {place}: give a path or a glob, or a simpler pattern.)"
                ));
            }
            self.n_bytes -= line.len() + 1;
            let Some(hit) = self.pattern.find(line) else { continue };
            if self.lines.len() == MOST_LINES {
                return Some("(There is more: make the pattern narrower.)".to_owned());
            }
            self.lines.push(format!("{place}:{}", excerpt(line, hit.start())));
        }
        None
    }
}

/// The part of a line that is shown.
fn excerpt(line: &str, hit: usize) -> &str {
    let start = if line.len() <= SHOWN.0 { 0 } else { hit.saturating_sub(SHOWN.1) };
    let start = line.floor_char_boundary(start);
    let end = line.floor_char_boundary(start + SHOWN.0);
    line.get(start..end).unwrap_or(line)
}
