//! The AgentState of a running call, for its tools and hooks.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Result;
use crate::event::Event;
use crate::future::Local;
use crate::message::{Block, Message};
use crate::policy::eviction;
use crate::port::{Desk, Lineage};
use crate::slot::Slot;
use crate::state::{AgentState, Facts};
use crate::store::Sessions;
use crate::store::session::Session;

/// The part of the session that the tools and hooks of a call can read and change.
#[derive(Default)]
pub struct Live {
    /// The AgentState fields with the changes of this call.
    facts: RefCell<Facts>,
    /// Tool calls whose result comes later, from outside, each with the reason.
    suspended: RefCell<Vec<(String, String)>>,
    shown: RefCell<Option<Shown>>,
    /// Events about changes made by tools.
    news: RefCell<Vec<Event>>,
    /// The originals of messages of this call that are shown in part. The log does not have them yet.
    originals: RefCell<Vec<Rc<Message>>>,
    /// The log in which the originals of older messages are found.
    log: RefCell<Option<(Rc<Sessions>, Slot)>>,
}

/// The conversation that tools and hooks see, with the rest of the AgentState.
#[derive(Clone)]
pub struct Shown {
    /// The messages.
    pub context: Rc<Vec<Rc<Message>>>,
    /// Tells which of the messages JavaScript may already have.
    pub lineage: Rc<Lineage>,
    /// The AgentState without messages and facts.
    about: AgentState,
}

/// Shows a conversation until this value is dropped. After that, changing the conversation needs no copy.
pub(in crate::engine) struct Showing<'a>(&'a Live);

impl Drop for Showing<'_> {
    fn drop(&mut self) {
        self.0.hide();
    }
}

impl Live {
    /// Shows a conversation to the running tools and hooks, until the returned value is dropped.
    pub(in crate::engine) fn show(&self, session: &Session) -> Showing<'_> {
        self.put(session);
        Showing(self)
    }

    /// Shows a conversation until [`hide`](Live::hide) is called.
    pub(in crate::engine) fn put(&self, session: &Session) {
        let about = AgentState {
            version: session.version(),
            revision: session.revision.clone().unwrap_or_default(),
            summary: session.summary(),
            ..AgentState::fresh(&session.slot)
        };
        let (context, lineage) = (Rc::clone(&session.context), Rc::clone(&session.lineage));
        self.shown.replace(Some(Shown { context, lineage, about }));
    }

    /// Stops showing the conversation.
    pub(in crate::engine) fn hide(&self) {
        self.shown.take();
    }

    /// The conversation, while a tool or hook runs.
    pub fn shown(&self) -> Option<Shown> {
        self.shown.borrow().clone()
    }

    /// The state without its messages, while a tool or hook runs.
    pub fn without_messages(&self) -> Option<AgentState> {
        let about = self.shown.borrow().as_ref()?.about.clone();
        Some(AgentState { facts: self.facts(), ..about })
    }

    /// Sets the log in which the originals of shortened messages are found.
    pub(in crate::engine) fn read_from(&self, sessions: &Rc<Sessions>, slot: &Slot) {
        self.log.replace(Some((Rc::clone(sessions), slot.clone())));
    }

    /// Replaces the AgentState fields.
    pub(in crate::engine) fn set_facts(&self, facts: Facts) {
        self.facts.replace(facts);
    }

    /// Reads the AgentState fields without a copy.
    pub(in crate::engine) fn with_facts<T>(&self, read: impl FnOnce(&Facts) -> T) -> T {
        read(&self.facts.borrow())
    }

    /// Changes the AgentState fields.
    pub(in crate::engine) fn change_facts(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.borrow_mut());
    }

    /// The original of a message of this call, if the message is shown in part.
    pub(in crate::engine) fn original(&self, id: &str) -> Option<Rc<Message>> {
        self.originals.borrow().iter().find(|message| message.id == id).cloned()
    }

    /// Keeps the original of a message, or replaces it by a newer version.
    pub(in crate::engine) fn keep_original(&self, message: Rc<Message>) {
        let mut originals = self.originals.borrow_mut();
        originals.retain(|other| other.id != message.id);
        originals.push(message);
    }

    /// Takes the events about changes that tools have made since the last call of this method.
    pub(in crate::engine) fn take_news(&self) -> Vec<Event> {
        self.news.take()
    }

    /// Takes the reason why a tool call waits for a result from outside, if it does.
    pub(in crate::engine) fn take_suspended(&self, tool_call_id: &str) -> Option<String> {
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
                (None, Some((sessions, slot))) => {
                    sessions.find_in(&slot, id).await?.map(|(_, message)| message)
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
