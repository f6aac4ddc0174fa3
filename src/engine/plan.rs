//! Plan mode, as the host switches it: nobody is asked.

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::alter::{Changing, Makes};
use crate::engine::meet::nothing_open;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::policy::plan::{self, PlanMode};
use crate::port::ToolSpec;
use crate::slot::Slot;
use crate::state::{Facts, PlanModeContext};
use crate::store::path;
use crate::store::session::{Alteration, Session};
use crate::store::task::is_child;
use crate::tool::Registry;

/// Refuses a plan file that no workspace can have, and extra tools that are not there.
pub(super) fn check(mode: Option<&PlanMode>, tools: &Registry) -> Result<()> {
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

impl Inner {
    /// Why a tool may not run now, whatever its rules say, if it may not.
    pub(super) fn barred(&self, slot: &Slot, facts: &Facts, tool: &ToolSpec) -> Option<String> {
        let extra = self.options.plan_mode.as_ref().map_or(&[][..], |mode| &mode.extra_tools);
        plan::bars(&facts.plan_mode_context, tool, extra, is_child(slot.session()))
    }
}

impl Agent {
    /// Lets a session only plan from now on.
    pub fn enter_plan_mode(&self, slot: &Slot) -> Changing<()> {
        let Some(mode) = &self.0.options.plan_mode else {
            let error = Error::new(ErrorKind::Options, "the agent has no plan mode")
                .hint("make it with planMode: true");
            return Box::pin(std::future::ready(Err(error)));
        };
        let file = mode.file.clone();
        self.plan(slot, Makes::Session, Box::new(move |plan| plan.enter(&file)))
    }

    /// Lets a session act again, whether its plan was approved or not.
    pub fn exit_plan_mode(&self, slot: &Slot) -> Changing<()> {
        self.plan(slot, Makes::Nothing, Box::new(|plan| plan.plan_active = false))
    }

    fn plan(
        &self,
        slot: &Slot,
        makes: Makes,
        change: Box<dyn Fn(&mut PlanModeContext)>,
    ) -> Changing<()> {
        let switch = move |session: &Session| {
            nothing_open(session)?;
            let mut facts = session.facts();
            change(&mut facts.plan_mode_context);
            Ok(Alteration { facts: Some(facts), ..Alteration::default() })
        };
        self.0.alter(slot, makes, Box::new(switch))
    }
}
