//! The tools of an agent: its own tools, and the built-in tools that its options turn on.

use std::rc::Rc;

use crate::engine::options::Options;
use crate::engine::session::lookup::SessionLookup;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::plan::PlanMode;
use crate::port::{Host, SessionReader, Store, Tool};
use crate::store::workspace::files::Files;
use crate::store::workspace::path;
use crate::tool::Registry;
use crate::tool::group::{ResetTools, ToolGroup};
use crate::tool::memory_tools::memory_tools;
use crate::tool::notebook::Notebook;
use crate::tool::plan::plan_tools;
use crate::tool::session_tools::session_tools;
use crate::tool::skill::{self, LoadSkill};
use crate::tool::todo::TodoWrite;
use crate::tool::workspace;

/// The files of an agent, if its options need any. Notes and plans are files too, even if there are no file tools.
pub(in crate::engine) fn files_of(
    options: &Options,
    store: &Rc<dyn Store>,
    host: &Rc<dyn Host>,
) -> Result<Option<Files>> {
    let Options { workspace, memory, plan_mode, .. } = options;
    if workspace.is_none() && memory.is_none() && plan_mode.is_none() {
        return Ok(None);
    }
    let (store, host) = (Rc::clone(store), Rc::clone(host));
    let config = workspace.clone().unwrap_or_default();
    Files::new(&options.name, config, store, host, options.timeouts.store).map(Some)
}

/// The notes about users, if the agent has a memory.
pub(in crate::engine) fn notebook_of(
    options: &Options,
    files: Option<&Rc<Files>>,
    host: &Rc<dyn Host>,
) -> Option<Rc<Notebook>> {
    let files = files.filter(|_| options.memory.is_some())?;
    Some(Rc::new(Notebook::new(files, host)))
}

/// The parts of the agent that the built-in tools use.
#[derive(Clone, Copy)]
pub(in crate::engine) struct BuiltIn<'a> {
    pub(in crate::engine) options: &'a Options,
    pub(in crate::engine) host: &'a Rc<dyn Host>,
    pub(in crate::engine) lookup: &'a Rc<SessionLookup>,
    pub(in crate::engine) files: Option<&'a Rc<Files>>,
    pub(in crate::engine) notebook: Option<&'a Rc<Notebook>>,
}

impl BuiltIn<'_> {
    /// All tools of an agent: its own tools, those for subagents, and the others. Fails if an option is wrong.
    pub(in crate::engine) fn registry(
        self,
        own: Vec<Rc<dyn Tool>>,
        for_subagents: Vec<Rc<dyn Tool>>,
    ) -> Result<Registry> {
        let options = self.options;
        let groups: Rc<[ToolGroup]> = options.tool_groups.clone().into();
        let mut tools = for_subagents;
        if options.session_tools {
            let reader = Rc::clone(self.lookup) as Rc<dyn SessionReader>;
            tools.extend(session_tools(&reader, &options.session_agents));
        }
        if options.task_list {
            tools.push(Rc::new(TodoWrite::new(Rc::clone(self.host))));
        }
        if options.meta_tool {
            tools.push(Rc::new(ResetTools::new(Rc::clone(&groups))));
        }
        skill::check(&options.skills, &groups)?;
        if self.files.is_some() || !options.skills.is_empty() {
            let files = self.files.cloned();
            tools.push(Rc::new(LoadSkill::new(Rc::clone(&options.skills), files)));
        }
        tools.extend(self.file_tools()?);
        tools.extend(self.notebook.iter().flat_map(|notebook| memory_tools(notebook)));
        let tools = Registry::new(own, tools, groups)?;
        check_plan_mode(options.plan_mode.as_ref(), &tools)?;
        Ok(tools)
    }

    /// The tools for files and for plans.
    fn file_tools(self) -> Result<Vec<Rc<dyn Tool>>> {
        let Some(files) = self.files else { return Ok(Vec::new()) };
        let Options { workspace, plan_mode, .. } = self.options;
        let mut tools = workspace::tools(files)?;
        tools.retain(|tool| {
            // An agent with plan mode can read its plan, even without a workspace.
            let reads_plan = plan_mode.is_some() && tool.spec().name == "read_file";
            workspace.is_some() || reads_plan
        });
        tools.extend(plan_mode.iter().flat_map(|mode| plan_tools(&mode.file, files)));
        Ok(tools)
    }
}

/// Refuses an invalid path for the plan file, and extra tools that do not exist.
fn check_plan_mode(mode: Option<&PlanMode>, tools: &Registry) -> Result<()> {
    let Some(mode) = mode else { return Ok(()) };
    let wrong = |message: String, hint| Err(Error::new(ErrorKind::Options, message).hint(hint));
    if let Err(error) = path::folder(&mode.file) {
        let message = format!("planMode.directory: {}", error.message());
        return wrong(message, "name a folder of the workspace, such as plans");
    }
    match mode.extra_tools.iter().find(|name| tools.find(name).is_none()) {
        Some(unknown) => {
            let message = format!("planMode.extraTools: there is no tool named \"{unknown}\"");
            wrong(message, "name tools of this agent that may run while it plans")
        }
        None => Ok(()),
    }
}
