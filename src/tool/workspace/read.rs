//! `read_file` and `list_files`.

use crate::error::Result;
use crate::message::Block;
use crate::port::Desk;
use crate::tool::workspace::{FileInput, OwnerFiles, refused, says};

/// Most bytes of a file that one call shows.
const MOST_BYTES: usize = 40_000;

/// Most names that one call lists.
pub(super) const MOST_NAMES: usize = 1_000;

pub(super) async fn read(
    files: &OwnerFiles<'_>,
    input: FileInput<'_>,
    desk: &dyn Desk,
) -> Result<Vec<Block>> {
    let path = input.text("path");
    let text = match files.read(path).await? {
        Some(file) => file.text,
        None => match desk.evicted(path).await? {
            Some(text) => text,
            None => return Err(refused(format!("There is no file {path}."))),
        },
    };
    if text.is_empty() {
        return says("(The file is empty.)");
    }
    let (start, end) = range(&text, input);
    if start == end {
        let n_lines = n_lines(&text);
        return Err(refused(format!("There is nothing there: the file has {n_lines} lines.")));
    }
    let mut blocks = vec![Block::text(text.get(start..end).unwrap_or_default())];
    blocks.extend(note(&text, start, end).map(Block::text));
    Ok(blocks)
}

/// The requested lines, as many as fit. Lines are whole, unless the first one alone is too long.
fn range(text: &str, input: FileInput<'_>) -> (usize, usize) {
    let from = |n_bytes: usize| text.get(n_bytes..).unwrap_or_default();
    let lines = |text: &str, n: usize| text.split_inclusive('\n').take(n).map(str::len).sum();
    let line: usize = lines(text, input.count("offset"));
    let limit = Some(input.count("limit")).filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let end = line + lines(from(line), limit);
    let column = from(line).char_indices().nth(input.count("column"));
    let start = column.map_or(end, |(n_bytes, _)| line + n_bytes).min(end);
    if end - start <= MOST_BYTES {
        return (start, end);
    }
    let end = text.floor_char_boundary(start + MOST_BYTES);
    let whole = text.get(start..end).and_then(|piece| piece.rfind('\n'));
    (start, whole.map_or(end, |n_bytes| start + n_bytes + 1))
}

/// A note that says which lines are shown and how to continue, if it is not the whole file.
fn note(text: &str, start: usize, end: usize) -> Option<String> {
    if end - start == text.len() {
        return None;
    }
    let before = |n_bytes| text.get(..n_bytes).unwrap_or_default();
    let (first, last) = (n_ended(before(start)) + 1, n_lines(before(end)));
    let mut note = format!("(Lines {first} to {last} of {}.", n_lines(text));
    if end < text.len() {
        let column = before(end).rsplit('\n').next().unwrap_or_default().chars().count();
        note.push_str(&format!(" Go on with offset {}", n_ended(before(end))));
        if column > 0 {
            note.push_str(&format!(" and column {column}"));
        }
        note.push('.');
    }
    note.push(')');
    Some(note)
}

/// Number of lines of a text. The last line may have no line feed.
fn n_lines(text: &str) -> usize {
    n_ended(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[inline(never)]
fn n_ended(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

pub(super) async fn list(files: &OwnerFiles<'_>, input: FileInput<'_>) -> Result<Vec<Block>> {
    let folder = input.text("path");
    let paths = files.list(folder).await?;
    let normal = folder.split('/').filter(|name| !matches!(*name, "" | ".")).count();
    let mut names: Vec<String> = paths.iter().map(|path| child(path, normal)).collect();
    // Paths of one folder follow each other.
    names.dedup();
    names_of(names, "The folder is empty.")
}

/// The name of a path in a folder above it. The name of a folder ends with `/`.
fn child(path: &str, n_names: usize) -> String {
    let mut names = path.split('/').skip(n_names);
    match (names.next(), names.next()) {
        (Some(name), None) => name.to_owned(),
        (Some(folder), Some(_)) => format!("{folder}/"),
        // The requested path is a file itself.
        (None, _) => path.to_owned(),
    }
}

/// The names, one per line; and how many there are, if not all are shown.
pub(super) fn names_of(mut names: Vec<String>, if_none: &str) -> Result<Vec<Block>> {
    let n_names = names.len();
    if n_names == 0 {
        return says(if_none);
    }
    if n_names > MOST_NAMES {
        names.truncate(MOST_NAMES);
        names.push(format!("(The first {MOST_NAMES} of {n_names}.)"));
    }
    says(names.join("\n"))
}
