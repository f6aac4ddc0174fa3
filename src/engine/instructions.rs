//! What a request contains besides the conversation: the system prompt, the tools, and the reminders.
//!
//! Reminders are at the end of a request. They are made from the state for each request and are never stored. So a
//! summary cannot remove them, and the messages before them stay in the provider's cache.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::memory::UserMemory;
use crate::engine::options::Options;
use crate::engine::stamp;
use crate::engine::subagent::children::RunningChildren;
use crate::engine::subagent::role::ChildRole;
use crate::error::Error;
use crate::json::object_of;
use crate::message::Message;
use crate::policy::plan;
use crate::port::{Host, ToolSpec};
use crate::slot::Slot;
use crate::state::{Facts, PlanModeContext};
use crate::store::format::task::is_child;
use crate::store::workspace::files::Files;
use crate::tool::Registry;
use crate::tool::skill::{self, LOAD_SKILL, Listed};
use crate::tool::todo::checklist;

/// The first line of every reminder. Without it, a reminder could be mistaken for a message of the user.
const NOT_THE_USER: &str = "(A reminder, not the user's words.)";

const PLANNING: &str = "Plan mode is on: change nothing.";

const HOW_TO_PLAN: &str = " Write the plan with plan_write, then call plan_exit.";

const SKILLS: &str = "Skills are instructions for particular jobs. Before you do such a job, read them with load_skill.";

/// The sources of an agent's instructions.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Sources<'a> {
    /// The options of the agent, or of the kind of subagent whose call this is.
    pub(in crate::engine) options: &'a Options,
    pub(in crate::engine) host: &'a dyn Host,
    pub(in crate::engine) tools: &'a Registry,
    pub(in crate::engine) files: Option<&'a Files>,
    pub(in crate::engine) memory: Option<&'a UserMemory>,
    pub(in crate::engine) children: &'a RunningChildren,
}

/// What the requests of one session contain besides the conversation.
pub(in crate::engine) struct Instructions<'a> {
    from: Sources<'a>,
    slot: &'a Slot,
    /// The differences in the call of a subagent.
    role: Option<&'a ChildRole>,
    read: RefCell<ReadSources>,
    prompt: RefCell<Rc<str>>,
}

/// The sources of the system prompt, as they were read.
#[derive(Default)]
struct ReadSources {
    /// The skills that the model can load.
    skills: Vec<Listed>,
    plan: PlanModeContext,
    /// The notes about the user.
    notes: String,
}

impl<'a> Instructions<'a> {
    pub(in crate::engine) fn new(
        from: Sources<'a>,
        slot: &'a Slot,
        role: Option<&'a ChildRole>,
    ) -> Instructions<'a> {
        Instructions { from, slot, role, read: RefCell::default(), prompt: RefCell::default() }
    }

    /// The session.
    pub(in crate::engine) fn slot(&self) -> &Slot {
        self.slot
    }

    /// Reads the sources of the system prompt. A source that cannot be read is left out and returned as a warning, so
    /// that the call can still answer.
    pub(in crate::engine) async fn read(&self, facts: &Facts) -> Vec<(&'static str, Error)> {
        let mut unread = Vec::new();
        let Sources { options, files, memory, .. } = self.from;
        let skills = skill::catalog(&options.skills, files, self.slot).await;
        let skills = skills.unwrap_or_else(|error| {
            unread.push(("skills", error));
            Vec::new()
        });
        let notes = match memory {
            Some(memory) => memory.notes(self.slot).await.unwrap_or_else(|error| {
                unread.push(("memory", error));
                String::new()
            }),
            None => String::new(),
        };
        let plan = facts.plan_mode_context.clone();
        self.read.replace(ReadSources { skills, plan, notes });
        unread
    }

    /// Updates the plan mode. Returns whether the system prompt must be written again.
    pub(in crate::engine) fn plan_has_changed(&self, facts: &Facts) -> bool {
        let plan = &facts.plan_mode_context;
        if self.from.options.plan_mode.is_none() || self.read.borrow().plan == *plan {
            return false;
        }
        self.read.borrow_mut().plan = plan.clone();
        true
    }

    /// The system prompt from the options and the sources, before middleware changes it.
    pub(in crate::engine) fn written_prompt(&self) -> String {
        let read = self.read.borrow();
        let options = self.from.options;
        let mut parts = vec![options.system_prompt.clone(), read.notes.clone()];
        if let Some(mode) = &options.plan_mode {
            parts.push(plan::banner(&read.plan, mode, is_child(self.slot.session())));
        }
        if !read.skills.is_empty() {
            let mut skills = SKILLS.to_owned();
            for skill in &read.skills {
                skills += &["\n- ", &skill.name, ": ", &skill.description].concat();
            }
            parts.push(skills);
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// Sets the system prompt of the next requests.
    pub(in crate::engine) fn set_prompt(&self, prompt: String) {
        self.prompt.replace(prompt.into());
    }

    /// The system prompt of the next request.
    pub(in crate::engine) fn prompt(&self) -> Rc<str> {
        Rc::clone(&self.prompt.borrow())
    }

    /// The active tools of the session, in the order of the agent's tools.
    pub(in crate::engine) fn tools(&self, facts: &Facts) -> Vec<Rc<ToolSpec>> {
        let mut tools = self.from.tools.visible(&facts.tool_context.activated_groups);
        if self.read.borrow().skills.is_empty() {
            tools.retain(|tool| tool.name != LOAD_SKILL);
        }
        tools.retain(|tool| self.role.is_none_or(|role| role.has(tool)));
        tools
    }

    /// The reminder after the last message, if there is anything to remind the model of.
    pub(in crate::engine) fn reminder(&self, facts: &Facts) -> Option<Rc<Message>> {
        let Sources { options, host, children, .. } = self.from;
        let mut notes = Vec::new();
        let tasks = &facts.tasks_context.tasks;
        if options.task_list && !tasks.is_empty() {
            notes.push(["Your tasks, as todo_write has them now:\n", &checklist(tasks)].concat());
        }
        if facts.plan_mode_context.plan_active {
            let has_tools = options.plan_mode.is_some() && !is_child(self.slot.session());
            let how = if has_tools { HOW_TO_PLAN } else { "" };
            notes.push([PLANNING, how].concat());
        }
        let read = self.read.borrow();
        let loaded = facts.tool_context.activated_skills.iter();
        let is_there = |name: &&String| read.skills.iter().any(|skill| skill.name == **name);
        let loaded: Vec<_> = loaded.filter(is_there).map(String::as_str).collect();
        if !loaded.is_empty() {
            let again = "Skills that you have loaded (load_skill reads them again): ";
            notes.push([again, &loaded.join(", "), "."].concat());
        }
        notes.extend(children.reminder(self.slot));
        if notes.is_empty() {
            return None;
        }
        notes.insert(0, NOT_THE_USER.to_owned());
        let metadata = object_of("reminder", true.into());
        Some(Rc::new(Message {
            id: "reminder".to_owned(),
            at: stamp::now(host),
            metadata: Some(metadata),
            ..Message::note(notes.join("\n\n"))
        }))
    }
}
