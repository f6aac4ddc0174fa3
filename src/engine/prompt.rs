//! The instructions of a call: what the host says, and what the agent can do beside it.

use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::Result;
use crate::event::Event;
use crate::policy::plan;
use crate::port::ToolSpec;
use crate::slot::Slot;
use crate::state::{Facts, PlanModeContext};
use crate::store::session::Session;
use crate::store::task::is_child;
use crate::tool::skill::{self, LOAD_SKILL, Listed};

/// What the instructions of a call were made of.
#[derive(Default)]
pub(super) struct Brief {
    /// The skills that the model can load.
    pub(super) skills: Vec<Listed>,
    /// Whether the agent plans or acts.
    pub(super) plan: PlanModeContext,
    /// Whether it works for another.
    pub(super) is_child: bool,
    /// What is known of the user.
    pub(super) notes: String,
}

const SKILLS: &str = "Skills are instructions for particular jobs. Before you do such a job, read them with load_skill.";

impl Inner {
    /// What the instructions of a session are to be made of, and why some of it could not be read.
    pub(super) async fn brief(
        &self,
        slot: &Slot,
        facts: &Facts,
    ) -> (Brief, Vec<(&'static str, Error)>) {
        let mut unread = Vec::new();
        let skills = skill::catalog(&self.options.skills, self.files.as_deref(), slot).await;
        let skills = skills.unwrap_or_else(|error| {
            unread.push(("skills", error));
            Vec::new()
        });
        let notes = self.notes(slot).await.unwrap_or_else(|error| {
            unread.push(("memory", error));
            String::new()
        });
        let plan = facts.plan_mode_context.clone();
        (Brief { skills, plan, is_child: is_child(slot.session()), notes }, unread)
    }

    /// What a model is told first, before hooks have seen it.
    pub(super) fn instructions(&self, own: &str, brief: &Brief) -> String {
        let mut parts = vec![own.to_owned(), brief.notes.clone()];
        if let Some(mode) = &self.options.plan_mode {
            parts.push(plan::banner(&brief.plan, mode, brief.is_child));
        }
        if !brief.skills.is_empty() {
            let mut skills = SKILLS.to_owned();
            for skill in &brief.skills {
                skills += &["\n- ", &skill.name, ": ", &skill.description].concat();
            }
            parts.push(skills);
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// The tools that a session has on, in the order they were given.
    pub(super) fn tools_on(&self, groups: &[String], brief: &Brief) -> Vec<Rc<ToolSpec>> {
        let mut tools = self.tools.visible(groups);
        if brief.skills.is_empty() {
            tools.retain(|tool| tool.name != LOAD_SKILL);
        }
        tools
    }
}

impl Turn<'_> {
    /// Looks up what the instructions are to be made of. What cannot be read is left out, and the caller is told: a
    /// question is worth more than a list of skills or of notes.
    pub(super) async fn prepare_brief(&self) {
        let facts = self.live.facts.borrow().clone();
        let (brief, unread) = self.agent.brief(self.slot, &facts).await;
        self.brief.replace(brief);
        let unread = unread.into_iter().map(|(code, error)| (code, error.message().to_owned()));
        let complaint = self.agent.memory_complaint(self.slot).map(|message| ("memory", message));
        for (code, message) in unread.chain(complaint) {
            self.outbox.push(Event::Warning { code: code.to_owned(), message });
        }
    }

    /// Writes the instructions anew if planning has begun or ended in this call: they must not say what is no longer so.
    pub(super) async fn renew_prompt(&self, session: &Session) -> Result<()> {
        let plan = self.live.facts.borrow().plan_mode_context.clone();
        if self.agent.options.plan_mode.is_none() || self.brief.borrow().plan == plan {
            return Ok(());
        }
        self.brief.borrow_mut().plan = plan;
        let _shown = self.live.show(session);
        let prompt = self.hook_prompt().await?;
        self.prompt.replace(prompt);
        Ok(())
    }

    /// The tools that this session has on, in the order they were given.
    pub(super) fn visible_tools(&self) -> Vec<Rc<ToolSpec>> {
        let facts = self.live.facts.borrow();
        let groups = &facts.tool_context.activated_groups;
        let mut tools = self.agent.tools_on(groups, &self.brief.borrow());
        tools.retain(|tool| self.post.is_none_or(|post| post.has(tool)));
        tools
    }
}
