//! The kinds of children that there are: those of the options, and those that a workspace describes.

use std::fmt;
use std::rc::{Rc, Weak};

use crate::engine::Inner;
use crate::engine::crew::inherit::inherited;
use crate::engine::drive::Driver;
use crate::engine::live::Live;
use crate::engine::options::Options;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::compaction::Compaction;
use crate::port::{Model, ToolSpec};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::task::kind_of;
use crate::tool::front_matter::FrontMatter;
use crate::tool::subagents;

/// How deep children may have children.
pub(crate) const DEEPEST: u32 = 3;

/// The kind that is always there.
const GENERAL: &str = "general-purpose";

/// Whether to plan or to act is its parent's to decide, and the plan its parent's to write.
const PLANNING: &[&str] = &["plan_enter", "plan_write", "plan_exit"];

/// Where a workspace describes kinds of children.
const FOLDER: &str = "subagents";

/// A kind of child. What is absent is as it is for the agent itself.
#[derive(Clone, Default)]
pub struct Subagent {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// What its model is told first.
    pub system_prompt: Option<String>,
    /// Who answers.
    pub model: Option<Rc<dyn Model>>,
    /// The tools that it has, by name.
    pub tools: Option<Vec<String>>,
    /// How often a call asks the model before it closes.
    pub max_iterations: Option<u32>,
    /// How its conversations are kept within a model's window.
    pub compaction: Option<Compaction>,
}

impl fmt::Debug for Subagent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// What is different in a child's call.
pub(in crate::engine) struct Post {
    pub(in crate::engine) options: Options,
    pub(in crate::engine) model: Option<Rc<dyn Model>>,
    tools: Option<Vec<String>>,
    pub(in crate::engine) depth: u32,
    /// The call that has begun it.
    pub(in crate::engine) parent: Weak<Live>,
    /// The AgentState fields of that call; none where a host goes on with the child, which keeps its own.
    facts: Option<Facts>,
}

impl Post {
    /// The post of a child of this kind that this call begins.
    pub(super) fn new(agent: &Inner, kind: Subagent, parent: &Rc<Live>) -> Post {
        Post {
            depth: parent.brood.depth.get() + 1,
            parent: Rc::downgrade(parent),
            facts: Some(parent.facts.borrow().clone()),
            ..Post::alone(agent, kind)
        }
    }

    /// The post of a child of this kind that a host goes on with.
    fn alone(agent: &Inner, kind: Subagent) -> Post {
        let own = &agent.options;
        let options = Options {
            system_prompt: kind.system_prompt.unwrap_or_else(|| own.system_prompt.clone()),
            max_iterations: kind.max_iterations.unwrap_or(own.max_iterations),
            compaction: kind.compaction.unwrap_or_else(|| own.compaction.clone()),
            ..own.clone()
        };
        Post {
            options,
            model: kind.model,
            tools: kind.tools,
            depth: 1,
            parent: Weak::new(),
            facts: None,
        }
    }

    /// The fields that a child's call begins with.
    pub(in crate::engine) fn hand_down(&self, own: Facts) -> Facts {
        match &self.facts {
            Some(parent) => inherited(own, parent),
            None => own,
        }
    }

    /// Whether the child has this tool.
    pub(in crate::engine) fn has(&self, tool: &ToolSpec) -> bool {
        let is_named = self.tools.as_ref().is_none_or(|names| names.contains(&tool.name));
        let is_barred = self.depth >= DEEPEST && subagents::is_one(&tool.name);
        is_named && !is_barred && !PLANNING.contains(&tool.name.as_str())
    }
}

impl Driver {
    /// A child that a host goes on with, such as with the answer to what it asked, is still a child of its kind.
    pub(in crate::engine) async fn take_post(&mut self) -> Result<()> {
        let kind = kind_of(self.slot.session()).filter(|_| self.agent.options.subagents.is_some());
        if let (Some(kind), None) = (kind, &self.post) {
            let kind = self.agent.kind(&self.slot, kind).await?;
            self.post = Some(Rc::new(Post::alone(&self.agent, kind)));
            self.live.brood.depth.set(1);
        }
        Ok(())
    }
}

impl Inner {
    /// The kind of this name: as the session's workspace describes it, or else as the options do.
    pub(super) async fn kind(&self, slot: &Slot, name: &str) -> Result<Subagent> {
        let mut kinds = self.kinds(slot).await?;
        if let Some(place) = kinds.iter().position(|kind| kind.name == name) {
            return Ok(kinds.swap_remove(place));
        }
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let message =
            format!("There is no agent \"{name}\". The agents are: {}.", names.join(", "));
        Err(Error::new(ErrorKind::InputInvalid, message))
    }

    /// Every kind; what a workspace describes goes before the options.
    pub(super) async fn kinds(&self, slot: &Slot) -> Result<Vec<Subagent>> {
        let mut kinds = Vec::new();
        if let Some(files) = &self.files {
            let files = files.of(slot);
            for path in files.list(FOLDER).await? {
                let name = path.strip_prefix(FOLDER).and_then(|it| it.strip_prefix('/'));
                let name = name.and_then(|it| it.strip_suffix(".md"));
                let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
                let file = files.read(&path).await?;
                kinds.extend(file.and_then(|file| described(name, &file.text)));
            }
        }
        let general = Subagent {
            name: GENERAL.to_owned(),
            description: "does what you do, in a conversation of its own".to_owned(),
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

/// A kind as a file describes it; none if the file does not say what it is good for.
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
