//! A session as it was loaded: its head, its context, and how the context differs from what is stored.

use std::rc::Rc;

use crate::error::Result;
use crate::message::Message;
use crate::port::{Batch, Lineage};
use crate::slot::Slot;
use crate::state::{AgentState, Facts, Persistence};
use crate::store::format::entry::{CallUpdate, Entry};
use crate::store::format::head::Head;
use crate::store::format::head::revision_counter;
use crate::store::format::view::{MessagePlace, ViewPiece};
use crate::store::keys::{EntryRef, SlotKeys};
use crate::store::session::changes::{Revision, Summary, TurnCommit, ViewChange};

/// A session as it was loaded, or a new one that is not stored yet.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its user and session id.
    pub slot: Slot,
    /// Its keys.
    pub keys: SlotKeys,
    /// Its head, if it is stored.
    pub head: Option<Head>,
    /// The revision of the head record or of the tombstone, if there is one.
    pub revision: Option<String>,
    /// The revision with which our accepted input was last written.
    pub accepted: Option<String>,
    /// Number of messages of our accepted inputs that are not logged yet.
    pub n_open: u64,
    /// The messages that the model is shown. Tools and hooks share them; they are copied only if they change afterwards.
    pub context: Rc<Vec<Rc<Message>>>,
    /// Estimated size of its messages in memory, in bytes.
    pub bytes: usize,
    /// Which part of the context JavaScript may already have.
    pub lineage: Rc<Lineage>,
    /// The AgentState fields of a session that is not stored.
    pub template: Rc<Facts>,
    /// How the context differs from the stored view.
    pub view_change: ViewChange,
    /// The keys of parts of answers that belong to no input: the next commit removes them. `None`: nobody has looked for them.
    pub orphans: Option<Vec<String>>,
    /// The stored head during a resend; then `head` is on the new path.
    pub left: Option<Box<Head>>,
    /// During a resend of a question in the middle of an entry: a copy of the messages before it. It is stored with the input.
    pub start: Option<(EntryRef, Entry)>,
    /// Which facts belong to the path of a resend. The others belong to the session.
    pub rolls_back: Persistence,
}

/// A batch, and the head after it. The session takes the head over once the batch is committed.
pub struct Change {
    /// The batch. Its first put is a record that no other batch writes.
    pub batch: Batch,
    /// The head after it.
    pub head: Head,
}

impl Session {
    /// A session that is not stored; `revision` is that of a tombstone.
    pub fn absent(
        slot: &Slot,
        keys: SlotKeys,
        revision: Option<String>,
        template: Rc<Facts>,
    ) -> Session {
        Session {
            slot: slot.clone(),
            keys,
            head: None,
            revision,
            accepted: None,
            n_open: 0,
            context: Rc::default(),
            bytes: 0,
            lineage: Rc::default(),
            template,
            view_change: ViewChange::default(),
            orphans: None,
            left: None,
            start: None,
            rolls_back: Persistence::ALL,
        }
    }

    /// The head as it is stored.
    pub fn stored_head(&self) -> Option<&Head> {
        self.left.as_deref().or(self.head.as_ref())
    }

    /// The number of commits so far.
    pub fn version(&self) -> u64 {
        if self.head.is_some() { self.revision.as_deref().map_or(0, revision_counter) } else { 0 }
    }

    /// The AgentState fields.
    pub fn facts(&self) -> Facts {
        self.head.as_ref().map_or_else(|| (*self.template).clone(), |head| head.facts.clone())
    }

    /// The facts before the last question, if they have changed since.
    pub fn earlier_facts(&self) -> Option<Facts> {
        let head = self.head.as_ref()?;
        let before = head.anchor.as_ref()?.facts.clone()?;
        Some(before).filter(|before| *before != head.facts)
    }

    /// The context, for changes.
    pub fn context_mut(&mut self) -> &mut Vec<Rc<Message>> {
        Rc::make_mut(&mut self.context)
    }

    /// Refuses to change a session that a newer version has written.
    pub fn check_format(&self) -> Result<()> {
        self.head.as_ref().map_or(Ok(()), |head| head.check_format(&self.slot))
    }

    /// Applies changes of tool calls to the loaded messages.
    pub fn amend(&mut self, changes: &[CallUpdate]) {
        for later in changes {
            let place = self.context.iter().rposition(|message| message.id == later.message);
            if let Some(index) = place
                && let Some(message) = self.context_mut().get_mut(index)
            {
                later.apply(message);
                self.lineage.changed(index);
            }
        }
    }

    /// Whether the context has the message as it is at its place in the log.
    pub fn shows(&self, id: &str, place: &MessagePlace) -> bool {
        let order = |place: &MessagePlace| (place.0.seq, place.1);
        let holds = |piece: &ViewPiece| match piece {
            ViewPiece::Span { from, to } => (order(from)..order(to)).contains(&order(place)),
            ViewPiece::Summary { .. } => false,
        };
        let revision = self.view_change.revision.as_ref();
        revision.is_none_or(|revision| revision.kept.iter().any(|kept| kept == id))
            && self.head.as_ref().is_some_and(|head| head.view.iter().any(holds))
    }

    /// The session as an AgentState.
    pub fn state(&self) -> AgentState {
        let Some(head) = &self.head else {
            return AgentState { facts: self.facts(), ..AgentState::fresh(&self.slot) };
        };
        AgentState {
            format: head.format,
            version: self.version(),
            revision: self.revision.clone().unwrap_or_default(),
            context: self.context.to_vec(),
            summary: self.summary(),
            facts: head.facts.clone(),
            ..AgentState::fresh(&self.slot)
        }
    }

    /// Whether the context begins with a summary.
    pub fn has_summary(&self) -> bool {
        if let (Some(_), None) = (&self.view_change.revision, &self.view_change.summary) {
            return self.context.first().is_some_and(|message| message.is_summary());
        }
        let stored = self.head.as_ref().and_then(|head| head.view.first());
        self.view_change.summary.is_some() || matches!(stored, Some(ViewPiece::Summary { .. }))
    }

    /// The summary that the context begins with, or "".
    pub fn summary(&self) -> String {
        let first = self.context.first().filter(|_| self.has_summary());
        first.map(|message| message.summary()).unwrap_or_default()
    }

    /// Replaces the first `n` messages of the context by a summary.
    pub fn summarise(&mut self, n: usize, summary: Summary) {
        let n_before = self.context.len();
        self.context_mut().splice(..n.min(n_before), [Rc::clone(&summary.message)]);
        self.lineage.changed(0);
        self.view_change.summary = Some(summary);
    }

    /// Shows a revised context.
    pub(in crate::store) fn revise(&mut self, context: Vec<Rc<Message>>, revision: Revision) {
        self.context = Rc::new(context);
        self.lineage.changed(0);
        self.view_change.revision = Some(revision);
    }

    /// Takes over the head of a committed change.
    pub(in crate::store) fn take(&mut self, change: Change) {
        self.revision = Some(change.batch.revision);
        self.orphans = Some(Vec::new());
        match &mut self.left {
            Some(left) => **left = change.head,
            None => self.head = Some(change.head),
        }
    }

    /// Updates what is counted after a turn or a step was stored; its change of the view is stored too.
    pub(in crate::store) fn stored(&mut self, turn: &TurnCommit) {
        self.n_open = 0;
        self.orphans = Some(Vec::new());
        let weight =
            |messages: &[Rc<Message>]| messages.iter().map(|it| it.weight()).sum::<usize>();
        self.bytes = match std::mem::take(&mut self.view_change).is_empty() {
            true => self.bytes + weight(&turn.messages),
            false => weight(&self.context),
        };
    }
}
