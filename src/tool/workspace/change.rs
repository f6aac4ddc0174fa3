//! `write_file` and `edit_file`.

use crate::error::Error;
use crate::error::Result;
use crate::message::Block;
use crate::store::workspace::files::File;
use crate::tool::workspace::{FileInput, OwnerFiles, refused, says};

pub(super) async fn write(files: &OwnerFiles<'_>, input: FileInput<'_>) -> Result<Vec<Block>> {
    let (path, text) = (input.text("path"), input.text("content"));
    files.check_writable(path)?;
    let found = files.read(path).await?;
    if found.is_some() && !input.flag("overwrite") {
        return Err(exists(path));
    }
    if !files.write(path, text, found.as_ref()).await? {
        return Err(if found.is_some() { changed(path) } else { exists(path) });
    }
    says(format!("Wrote {path}."))
}

pub(super) async fn edit(files: &OwnerFiles<'_>, input: FileInput<'_>) -> Result<Vec<Block>> {
    let path = input.text("path");
    files.check_writable(path)?;
    let Some(found) = files.read(path).await? else {
        return Err(refused(format!("There is no file {path}. Make one with write_file.")));
    };
    let (old, new) = (input.text("old_string"), input.text("new_string"));
    let n_places = places(&found, old, input.flag("replace_all"))?;
    // Checked before the text is made: many short texts may be replaced by a long one.
    let kept = found.text.len() - n_places * old.len();
    files.check_size(path, kept.saturating_add(n_places.saturating_mul(new.len())))?;
    let text = found.text.replace(old, new);
    if !files.write(path, &text, Some(&found)).await? {
        return Err(changed(path));
    }
    says(format!("Replaced {n_places} in {path}."))
}

/// How often a text is replaced in a file, or why it cannot be replaced.
fn places(file: &File, old: &str, all: bool) -> Result<usize> {
    if old.is_empty() {
        return Err(refused("old_string is empty. Say which text is to be replaced."));
    }
    let Some(first) = file.text.find(old) else {
        return Err(refused("old_string is not in the file. Read it, and copy the text exactly."));
    };
    // Occurrences that overlap count separately.
    let behind = file.text.ceil_char_boundary(first + 1);
    let is_again = file.text.get(behind..).is_some_and(|rest| rest.contains(old));
    if !all && is_again {
        let why = "old_string is in the file more than once. Give more of what is around it, or set replace_all.";
        return Err(refused(why));
    }
    Ok(file.text.matches(old).count())
}

fn exists(path: &str) -> Error {
    refused(format!(
        "There is a file {path} already. Change it with edit_file, or set overwrite to replace it."
    ))
}

fn changed(path: &str) -> Error {
    refused(format!(
        "{path} was written by somebody else meanwhile; nothing was changed. Read it again first."
    ))
}
