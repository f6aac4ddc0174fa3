//! The tools for the files of a workspace. If a tool refuses an input, the model can read why.

mod change;
mod find;
mod glob;
mod read;

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Block;
use crate::policy::permission::is_dangerous;
use crate::port::{Effect, Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use crate::store::workspace::files::{Files, OwnerFiles};
use crate::store::workspace::path;

/// The descriptions and schemas for the model.
const SPECS: &str = include_str!("tools.json");

/// All tools, for these files.
pub fn tools(files: &Rc<Files>) -> Result<Vec<Rc<dyn Tool>>> {
    let specs = json::list(&json::parse(SPECS.as_bytes(), "tools.json")?, ToolSpec::from_json)
        .map_err(|misread| misread.into_error(ErrorKind::Internal, "tools.json"))?;
    let tool = |spec| FileTool { spec: Rc::new(spec), files: Rc::clone(files) };
    Ok(specs.into_iter().map(|spec| Rc::new(tool(spec)) as Rc<dyn Tool>).collect())
}

struct FileTool {
    spec: Rc<ToolSpec>,
    files: Rc<Files>,
}

impl FileTool {
    async fn run(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let files = self.files.of(run.slot);
        let input = FileInput(run.input);
        match self.spec.name.as_str() {
            "read_file" => read::read(&files, input, run.desk).await,
            "write_file" => change::write(&files, input).await,
            "edit_file" => change::edit(&files, input).await,
            "grep_files" => find::grep(&files, input).await,
            "glob_files" => find::glob(&files, input).await,
            _ => read::list(&files, input).await,
        }
    }
}

impl FileTool {
    /// Rules for files are patterns of paths. Reading needs no approval, except for dangerous files.
    fn opinion(&self, run: ToolRun<'_>, rules: &[&str]) -> Result<Opinion> {
        let Ok(path) = path::folder(FileInput(run.input).text("path")) else {
            // The tool refuses such a path later, and the model can read why.
            return Ok(Opinion { own: OwnDecision::Allow, ..Opinion::default() });
        };
        let fit = |rule: &&str| glob::glob(rule).map(|pattern| pattern.is_match(&path));
        let own = match self.spec.effect {
            _ if is_dangerous(&path) => {
                OwnDecision::Danger(format!("{path} may hold secrets or settings"))
            }
            Effect::Reads => OwnDecision::Allow,
            _ => OwnDecision::Pass,
        };
        let folders = run.desk.facts().permission_context.working_directories;
        let is_below = |folder: &String| {
            path::folder(folder.trim_start_matches('/')).is_ok_and(|it| path::is_within(&path, &it))
        };
        Ok(Opinion {
            own,
            fits: Some(rules.iter().map(fit).collect::<Result<_>>()?),
            is_edit: self.spec.effect == Effect::Edits
                && (folders.is_empty() || folders.iter().any(is_below)),
        })
    }
}

impl Tool for FileTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn check<'a>(&'a self, run: ToolRun<'a>, rules: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        Box::pin(std::future::ready(self.opinion(run, rules)))
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move { self.run(run).await.map_err(with_hint) })
    }
}

/// The input of a tool, after it was checked against the schema.
#[derive(Clone, Copy)]
struct FileInput<'a>(&'a Value);

impl<'a> FileInput<'a> {
    /// A text; "" if it is missing.
    fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A number; 0 if it is missing.
    fn count(self, name: &str) -> usize {
        let value = self.0.get(name).unwrap_or(&Value::Null);
        json::count(value).unwrap_or_default() as usize
    }
}

/// Puts the hint of an error into its message, because the model sees only the message.
fn with_hint(error: Error) -> Error {
    match error.hint_text() {
        Some(hint) => Error::new(error.kind(), format!("{error}: {hint}")),
        None => error,
    }
}

/// The error for a request of the model that cannot be done.
#[cold]
fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InputInvalid, message)
}

fn says(text: impl Into<String>) -> Result<Vec<Block>> {
    Ok(vec![Block::text(text)])
}
