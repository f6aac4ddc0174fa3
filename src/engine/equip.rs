//! The tools of an agent: its own, and those that its options bring.

use std::rc::Rc;

use crate::engine::archive::Shelves;
use crate::engine::options::Options;
use crate::engine::plan;
use crate::error::Result;
use crate::port::{Archive, Host, Store, Tool};
use crate::store::files::Files;
use crate::tool::Registry;
use crate::tool::group::{ResetTools, ToolGroup};
use crate::tool::memory_tools::memory_tools;
use crate::tool::notebook::Notebook;
use crate::tool::plan::plan_tools;
use crate::tool::session_tools::session_tools;
use crate::tool::skill::{self, LoadSkill};
use crate::tool::todo::TodoWrite;
use crate::tool::workspace;

/// The tools, and the files and notes that they work on.
pub(super) type Equipment = (Registry, Option<Rc<Files>>, Option<Rc<Notebook>>);

/// Equips an agent, or says what is wrong with its options.
pub(super) fn equip(
    options: &Options,
    own: Vec<Rc<dyn Tool>>,
    (store, host): (&Rc<dyn Store>, &Rc<dyn Host>),
    shelves: &Rc<Shelves>,
) -> Result<Equipment> {
    let Options { workspace, memory, plan_mode, .. } = options;
    let groups: Rc<[ToolGroup]> = options.tool_groups.clone().into();
    let mut tools = own;
    if options.session_tools {
        tools.extend(session_tools(&(Rc::clone(shelves) as Rc<dyn Archive>)));
    }
    if options.task_list {
        tools.push(Rc::new(TodoWrite::new(Rc::clone(host))));
    }
    if options.meta_tool {
        tools.push(Rc::new(ResetTools::new(Rc::clone(&groups))));
    }
    // Notes and plans are files, also where the model has no tools for files.
    let has_files = workspace.is_some() || memory.is_some() || plan_mode.is_some();
    let files = has_files.then(|| {
        let (store, host) = (Rc::clone(store), Rc::clone(host));
        let config = workspace.clone().unwrap_or_default();
        Files::new(&options.name, config, store, host, options.timeouts.store).map(Rc::new)
    });
    let files = files.transpose()?;
    skill::check(&options.skills, &groups)?;
    if files.is_some() || !options.skills.is_empty() {
        tools.push(Rc::new(LoadSkill::new(Rc::clone(&options.skills), files.clone())));
    }
    if let Some(files) = &files {
        // Who plans can read the plan.
        let mut of_files = workspace::tools(files)?;
        of_files.retain(|tool| {
            let reads_plan = plan_mode.is_some() && tool.spec().name == "read_file";
            workspace.is_some() || reads_plan
        });
        tools.extend(of_files);
        tools.extend(plan_mode.iter().flat_map(|mode| plan_tools(&mode.file, files)));
    }
    let notebook = files.as_ref().filter(|_| memory.is_some());
    let notebook = notebook.map(|files| Rc::new(Notebook::new(files, host)));
    tools.extend(notebook.iter().flat_map(memory_tools));
    let tools = Registry::new(tools, groups)?;
    plan::check(plan_mode.as_ref(), &tools)?;
    Ok((tools, files, notebook))
}
