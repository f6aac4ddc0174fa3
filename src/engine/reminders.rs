//! Reminders at the end of a request: made anew from the state each time, and never stored.
//!
//! What was summarised away is still known this way, and since they stand behind the last message, everything before
//! them stays what the provider may have cached.

use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::prompt::Brief;
use crate::json::Object;
use crate::message::{Message, rfc3339};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::task::is_child;
use crate::tool::todo::checklist;

/// What every reminder begins with: it stands where a user's words could stand.
const NOT_THE_USER: &str = "(A reminder, not the user's words.)";

const PLANNING: &str = "Plan mode is on: change nothing.";

const HOW_TO_PLAN: &str = " Write the plan with plan_write, then call plan_exit.";

impl Inner {
    /// What a model is reminded of behind the last message, if there is anything.
    pub(super) fn reminder(
        &self,
        slot: &Slot,
        facts: &Facts,
        brief: &Brief,
    ) -> Option<Rc<Message>> {
        let mut notes = Vec::new();
        let tasks = &facts.tasks_context.tasks;
        if self.options.task_list && !tasks.is_empty() {
            notes.push(["Your tasks, as todo_write has them now:\n", &checklist(tasks)].concat());
        }
        if facts.plan_mode_context.plan_active {
            let has_tools = self.options.plan_mode.is_some() && !is_child(slot.session());
            let how = if has_tools { HOW_TO_PLAN } else { "" };
            notes.push([PLANNING, how].concat());
        }
        let loaded = facts.tool_context.activated_skills.iter();
        let is_there = |name: &&String| brief.skills.iter().any(|skill| skill.name == **name);
        let loaded: Vec<_> = loaded.filter(is_there).map(String::as_str).collect();
        if !loaded.is_empty() {
            let again = "Skills that you have loaded (load_skill reads them again): ";
            notes.push([again, &loaded.join(", "), "."].concat());
        }
        notes.extend(self.crew.reminder(slot));
        if notes.is_empty() {
            return None;
        }
        notes.insert(0, NOT_THE_USER.to_owned());
        let metadata = Object::from_iter([("reminder".to_owned(), true.into())]);
        Some(Rc::new(Message {
            id: "reminder".to_owned(),
            at: rfc3339(self.host.now_ms()),
            metadata: Some(metadata),
            ..Message::note(notes.join("\n\n"))
        }))
    }
}
