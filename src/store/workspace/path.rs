//! Paths in a workspace: names joined by `/`, relative to a root that no path leaves.
//!
//! Paths are compared as bytes, without decoding or case folding, so two spellings are two files. Names that another
//! system could decode to `..` are refused, because files may be copied to such a system.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;

/// Longest path, in bytes.
const LONGEST: usize = 1_024;

/// Longest name in a path, in bytes, as on common file systems.
const LONGEST_NAME: usize = 255;

/// The path of a file, without `./`.
pub(in crate::store) fn file(path: &str) -> Result<String> {
    match folder(path)? {
        names if names.is_empty() || path.ends_with('/') => Err(refused(path, "names no file")),
        names => Ok(names),
    }
}

/// The path of a folder, which may end with `/`; the root is "".
pub(crate) fn folder(path: &str) -> Result<String> {
    if path.len() > LONGEST {
        return Err(refused(path, "is longer than 1024 bytes"));
    }
    if path.starts_with('/') {
        return Err(refused(path, "begins with /"));
    }
    let mut names = Vec::new();
    for name in path.strip_suffix('/').unwrap_or(path).split('/') {
        match complaint(name) {
            _ if name == "." || path.is_empty() => {}
            Some(why) => return Err(refused(path, why)),
            None => names.push(name),
        }
    }
    Ok(names.join("/"))
}

/// Whether a path is this file or folder, or is below it.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
    let behind = path.strip_prefix(folder);
    folder.is_empty() || behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a text cannot be a name; `None` if it can.
fn complaint(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("has an empty name in it")
    } else if name.len() > LONGEST_NAME {
        Some("has a name of more than 255 bytes in it")
    } else if name.contains('\\') || name.chars().any(char::is_control) {
        Some("has a backslash or a control character in it")
    } else if plain(name).split('/').any(is_dots) {
        Some("leads out of its folder")
    } else {
        None
    }
}

/// The name after case folding, percent-decoding and replacing look-alike characters, for comparison.
fn plain(name: &str) -> String {
    let mut plain = name.to_ascii_lowercase();
    // A name that is encoded twice is decoded twice.
    while plain.contains("%25") {
        plain = plain.replace("%25", "%");
    }
    for (code, meant) in [("%2e", "."), ("%2f", "/"), ("%5c", "/")] {
        plain = plain.replace(code, meant);
    }
    let folded = |char| match char {
        '\u{2024}' | '\u{fe52}' | '\u{ff0e}' | '\u{2025}' | '\u{2026}' => '.',
        '\u{2044}' | '\u{2215}' | '\u{ff0f}' | '\u{ff3c}' => '/',
        other => other,
    };
    plain.chars().map(folded).collect()
}

/// Whether a name consists only of dots.
fn is_dots(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char == '.')
}

#[cold]
fn refused(path: &str, why: &str) -> Error {
    let shown: String = path.chars().filter(|char| !char.is_control()).take(80).collect();
    Error::new(ErrorKind::PathInvalid, format!("the path \"{shown}\" {why}"))
        .hint("paths are relative to the workspace, such as notes/today.md")
}
