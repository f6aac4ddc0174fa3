//! The AgentState of a call under way, for the tools and hooks that it runs: its own, and nobody else's.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::crew::Brood;
use crate::error::Result;
use crate::event::Event;
use crate::future::Local;
use crate::message::{Block, Message};
use crate::policy::eviction;
use crate::port::{Desk, Lineage};
use crate::slot::Slot;
use crate::state::{AgentState, Facts};
use crate::store::session::Session;

/// What a call's tools and hooks see and change of its session.
#[derive(Default)]
pub struct Live {
    /// The AgentState fields as this call has changed them.
    pub(super) facts: RefCell<Facts>,
    /// Tools whose result comes later, from outside, and why.
    suspended: RefCell<Vec<(String, String)>>,
    shown: RefCell<Option<Shown>>,
    /// What a tool has changed that an observer of the call is to see.
    news: RefCell<Vec<Event>>,
    /// Messages of this call as they were said, where they are shown otherwise: the log does not have them yet.
    originals: RefCell<Vec<Rc<Message>>>,
    /// Where older ones are found.
    log: RefCell<Option<(Rc<Inner>, Slot)>>,
    /// The children that move with the call.
    pub(super) brood: Brood,
}

/// The conversation where a tool or a hook looks at it, with what else its state has to tell.
#[derive(Clone)]
pub struct Shown {
    /// The messages.
    pub context: Rc<Vec<Rc<Message>>>,
    /// What of them somebody outside may already have.
    pub lineage: Rc<Lineage>,
    /// Everything but messages and fields.
    about: AgentState,
}

/// A conversation that is shown until this is dropped: to change it then costs no copy.
pub(super) struct Showing<'a>(&'a Live);

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        self.0.hide();
    }
}

impl Live {
    /// Shows a conversation to the tools and hooks that run now.
    pub(super) fn show(&self, session: &Session) -> Showing<'_> {
        self.put(session);
        Showing(self)
    }

    /// Shows a conversation until it is hidden.
    pub(super) fn put(&self, session: &Session) {
        let about = AgentState {
            version: session.version(),
            revision: session.revision.clone().unwrap_or_default(),
            summary: session.summary(),
            ..AgentState::fresh(&session.slot)
        };
        let (context, lineage) = (Rc::clone(&session.context), Rc::clone(&session.lineage));
        self.shown.replace(Some(Shown { context, lineage, about }));
    }

    /// Shows nothing any more.
    pub(super) fn hide(&self) {
        self.shown.take();
    }

    /// The conversation, while a tool or a hook runs.
    pub fn shown(&self) -> Option<Shown> {
        self.shown.borrow().clone()
    }

    /// The state but for its messages, while a tool or a hook runs.
    pub fn without_messages(&self) -> Option<AgentState> {
        let about = self.shown.borrow().as_ref()?.about.clone();
        Some(AgentState { facts: self.facts(), ..about })
    }

    /// Says where results are found that are shown only in part.
    pub(super) fn read_from(&self, agent: &Rc<Inner>, slot: &Slot) {
        self.log.replace(Some((Rc::clone(agent), slot.clone())));
    }

    /// A message of this call as it was said, if it is shown otherwise.
    pub(super) fn original(&self, id: &str) -> Option<Rc<Message>> {
        self.originals.borrow().iter().find(|message| message.id == id).cloned()
    }

    /// Keeps a message as it was said, or as it has become since.
    pub(super) fn keep_original(&self, message: Rc<Message>) {
        let mut originals = self.originals.borrow_mut();
        originals.retain(|other| other.id != message.id);
        originals.push(message);
    }

    /// What a tool has changed since this was last asked, as events.
    pub(super) fn take_news(&self) -> Vec<Event> {
        self.news.take()
    }

    /// Why a tool call waits for a result from outside, if it does.
    pub(super) fn take_suspended(&self, tool_call_id: &str) -> Option<String> {
        let is_this = |(id, _): &mut (String, String)| id == tool_call_id;
        self.suspended.borrow_mut().extract_if(.., is_this).last().map(|(_, why)| why)
    }
}

impl Desk for Live {
    fn state(&self) -> Option<AgentState> {
        let context = self.shown()?.context.to_vec();
        Some(AgentState { context, ..self.without_messages()? })
    }

    fn facts(&self) -> Facts {
        self.facts.borrow().clone()
    }

    fn change(&self, change: &mut dyn FnMut(&mut Facts)) {
        let before = self.facts();
        change(&mut self.facts.borrow_mut());
        let Facts { tasks_context, plan_mode_context, .. } = self.facts();
        let mut news = self.news.borrow_mut();
        if tasks_context != before.tasks_context {
            news.push(Event::Tasks { tasks: tasks_context.tasks });
        }
        if plan_mode_context != before.plan_mode_context {
            news.push(Event::Plan { plan: plan_mode_context });
        }
    }

    fn evicted<'a>(&'a self, path: &'a str) -> Local<'a, Result<Option<String>>> {
        Box::pin(async move {
            let Some(id) = eviction::message_at(path) else { return Ok(None) };
            let log = self.log.borrow().clone();
            let message = match (self.original(id), log) {
                (Some(own), _) => Some(own),
                (None, Some((agent, slot))) => {
                    agent.sessions.find_in(&slot, id).await?.map(|(_, message)| message)
                }
                (None, None) => None,
            };
            let result = message.as_ref().and_then(|message| message.tool_results().next());
            Ok(result.map(|result| Block::text_of(&result.output)))
        })
    }

    fn suspend(&self, tool_call_id: &str, why: &str) {
        self.suspended.borrow_mut().push((tool_call_id.to_owned(), why.to_owned()));
    }
}
