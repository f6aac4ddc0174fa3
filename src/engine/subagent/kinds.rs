//! The kinds of subagents: those in the agent's options, and those described in files of the workspace.

use crate::engine::options::{Options, Subagent};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::slot::Slot;
use crate::store::workspace::files::Files;
use crate::tool::front_matter::FrontMatter;

/// The kind that exists in every agent with subagents.
const GENERAL: &str = "general-purpose";

/// The description of this kind if the agent has none.
const LIKE_YOU: &str = "does what you do, in a conversation of its own";

/// The folder of the workspace with the descriptions of kinds.
const FOLDER: &str = "subagents";

/// The kinds of subagents of an agent.
#[derive(Clone, Copy)]
pub(in crate::engine) struct SubagentKinds<'a> {
    options: &'a Options,
    files: Option<&'a Files>,
}

impl<'a> SubagentKinds<'a> {
    pub(in crate::engine) fn new(options: &'a Options, files: Option<&'a Files>) -> Self {
        SubagentKinds { options, files }
    }

    /// Finds a kind by name, first in the session's workspace and then in the options.
    pub(in crate::engine) async fn find(self, slot: &Slot, name: &str) -> Result<Subagent> {
        let mut kinds = self.all(slot).await?;
        if let Some(place) = kinds.iter().position(|kind| kind.name == name) {
            return Ok(kinds.swap_remove(place));
        }
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let message =
            format!("There is no agent \"{name}\". The agents are: {}.", names.join(", "));
        Err(Error::new(ErrorKind::InputInvalid, message))
    }

    /// All kinds. A kind of the workspace replaces a kind of the options with the same name.
    pub(in crate::engine) async fn all(self, slot: &Slot) -> Result<Vec<Subagent>> {
        let mut kinds = Vec::new();
        if let Some(files) = self.files {
            let files = files.of(slot);
            for path in files.list(FOLDER).await? {
                let name = path.strip_prefix(FOLDER).and_then(|it| it.strip_prefix('/'));
                let name = name.and_then(|it| it.strip_suffix(".md"));
                let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
                let file = files.read(&path).await?;
                kinds.extend(file.and_then(|file| described(name, &file.text)));
            }
        }
        let description = self.options.description.as_deref();
        let general = Subagent {
            name: GENERAL.to_owned(),
            description: description.unwrap_or(LIKE_YOU).to_owned(),
            ..Subagent::default()
        };
        let declared = self.options.subagents.iter().flatten().cloned().chain([general]);
        for kind in declared {
            if !kinds.iter().any(|other: &Subagent| other.name == kind.name) {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }
}

/// Reads a kind from a file. `None` if the file has no description.
fn described(name: &str, text: &str) -> Option<Subagent> {
    let front = FrontMatter::of(text);
    let list = |text: &str| {
        let items = text.trim_matches(['[', ']']).split(',').map(|it| it.trim().to_owned());
        items.filter(|it| !it.is_empty()).collect()
    };
    Some(Subagent {
        name: name.to_owned(),
        description: front.get("description")?.to_owned(),
        system_prompt: Some(front.body.trim().to_owned()).filter(|body| !body.is_empty()),
        tools: front.get("tools").map(list),
        max_iterations: front.get("maxIterations").and_then(|number| number.parse().ok()),
        ..Subagent::default()
    })
}
