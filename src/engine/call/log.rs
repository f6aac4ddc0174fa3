//! What a call adds to its session: messages, and updates of tool calls that are already stored.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::engine::call::checkpoints::Checkpoints;
use crate::engine::call::live::Live;
use crate::engine::call::scope::CallScope;
use crate::engine::stamp::{self, stamped};
use crate::message::{Block, CallState, Edit, Message};
use crate::port::Host;
use crate::store::format::entry::CallUpdate;
use crate::store::session::Session;

/// What a call has added to its session's context, and how much of it is stored.
pub(in crate::engine) struct CallLog<'a> {
    host: &'a dyn Host,
    live: &'a Live,
    checkpoints: &'a Checkpoints,
    /// Where the messages of this call begin in the context.
    first: Cell<usize>,
    /// How many messages of the context are stored.
    n_stored: Cell<usize>,
    /// Updates of tool calls in stored messages.
    changes: RefCell<Vec<CallUpdate>>,
    /// The messages of this call from before the context was revised. They are stored.
    earlier: RefCell<Vec<Rc<Message>>>,
}

impl<'a> CallLog<'a> {
    /// The log of a call that has added nothing to this session yet.
    pub(in crate::engine) fn new(scope: &CallScope<'a>, session: &Session) -> CallLog<'a> {
        let n_stored = session.context.len();
        let CallScope { host, live, checkpoints, .. } = *scope;
        CallLog {
            host,
            live,
            checkpoints,
            first: Cell::new(n_stored),
            n_stored: Cell::new(n_stored),
            changes: RefCell::default(),
            earlier: RefCell::default(),
        }
    }

    /// Where the messages of this call begin in the context.
    pub(in crate::engine) fn first(&self) -> usize {
        self.first.get()
    }

    /// How many messages of the context are stored.
    pub(in crate::engine) fn n_stored(&self) -> usize {
        self.n_stored.get()
    }

    /// How many messages of this call are stored.
    pub(in crate::engine) fn n_own_stored(&self) -> usize {
        self.earlier.borrow().len() + self.n_stored.get() - self.first.get()
    }

    /// Records that the whole context is stored.
    pub(in crate::engine) fn all_stored(&self, session: &Session) {
        self.n_stored.set(session.context.len());
    }

    /// Records that a summary has replaced the first `n` messages of the context.
    pub(in crate::engine) fn summarised(&self, n: usize) {
        self.first.set(self.first.get() + 1 - n);
        self.n_stored.set(self.n_stored.get() + 1 - n);
    }

    /// The messages of this call, unshortened.
    pub(in crate::engine) fn messages(&self, session: &Session) -> Vec<Rc<Message>> {
        let mut messages = self.earlier.borrow().clone();
        messages.extend(self.own_shown(session));
        messages
    }

    /// The messages of this call since the context was last revised, unshortened.
    pub(in crate::engine) fn own_shown(&self, session: &Session) -> Vec<Rc<Message>> {
        self.whole_from(session, self.first.get())
    }

    /// Records that the context was revised. All of it is in the log, or is stored with the next entry. `own` are the messages
    /// of this call that it had before.
    pub(in crate::engine) fn revised(&self, session: &Session, own: Vec<Rc<Message>>) {
        self.earlier.borrow_mut().extend(own);
        self.first.set(session.context.len());
        self.n_stored.set(session.context.len());
    }

    /// The messages that are not stored yet, unshortened.
    pub(in crate::engine) fn unstored(&self, session: &Session) -> Vec<Rc<Message>> {
        self.whole_from(session, self.n_stored.get())
    }

    /// Takes the updates of tool calls that are not stored yet.
    pub(in crate::engine) fn take_changes(&self) -> Vec<CallUpdate> {
        self.changes.take()
    }

    /// Gives messages an id and a time and appends them. A tool call whose result is appended is marked as finished.
    pub(in crate::engine) fn append(&self, session: &mut Session, messages: Vec<Message>) {
        let at = stamp::now(self.host);
        for message in messages {
            for block in &message.content {
                if let Block::ToolResult(result) = block {
                    self.mark(session, CallUpdate::new(&result.id, CallState::Finished));
                }
            }
            let message = stamped(message, self.host, &at);
            self.checkpoints.append(&message);
            session.context_mut().push(message);
        }
    }

    /// Changes the state of a tool call. If its message is stored already, the change is stored as an update.
    pub(in crate::engine) fn mark(&self, session: &mut Session, later: CallUpdate) {
        let Some((index, later)) = located(&session.context, later) else { return };
        if let Some(message) = session.context_mut().get_mut(index) {
            later.apply(message);
            session.lineage.changed(index);
        }
        if let Some(mut original) = self.live.original(&later.message) {
            later.apply(&mut original);
            self.live.keep_original(original);
        }
        if index < self.n_stored.get() {
            self.changes.borrow_mut().push(later);
        }
    }

    /// The unshortened message at this index of the context; `None` if only the store has it.
    pub(in crate::engine) fn whole(&self, session: &Session, index: usize) -> Option<Rc<Message>> {
        let message = session.context.get(index)?;
        if let Some(original) = self.live.original(&message.id) {
            return Some(original);
        }
        let stored = session.head.as_ref().and_then(|head| head.edits.of(&message.id));
        let is_shown_whole = stored.or(session.view_change.edits.of(&message.id)).is_none();
        is_shown_whole.then(|| Rc::clone(message))
    }

    /// Shortens how a message is shown to the model. The log keeps the whole message.
    pub(in crate::engine) fn edit(
        &self,
        session: &mut Session,
        index: usize,
        whole: &Rc<Message>,
        edit: Edit,
    ) {
        if let Some(message) = session.context_mut().get_mut(index) {
            *message = Rc::new(edit.apply(whole));
        }
        session.lineage.changed(index);
        session.view_change.edits.put(&whole.id, edit);
        if index >= self.n_stored.get() {
            self.live.keep_original(Rc::clone(whole));
        }
    }

    fn whole_from(&self, session: &Session, from: usize) -> Vec<Rc<Message>> {
        let shown = session.context.get(from..).unwrap_or_default();
        let whole = |it: &Rc<Message>| self.live.original(&it.id).unwrap_or_else(|| Rc::clone(it));
        shown.iter().map(whole).collect()
    }
}

/// The update with the id of the message that contains its tool call, and the index of that message in the context.
pub(in crate::engine) fn located(
    context: &[Rc<Message>],
    later: CallUpdate,
) -> Option<(usize, CallUpdate)> {
    let asked = |message: &Rc<Message>| message.tool_uses().any(|it| it.id == later.call);
    let index = context.iter().rposition(asked)?;
    let message = context.get(index)?.id.clone();
    Some((index, CallUpdate { message, ..later }))
}
