//! Changes that are not stored yet: the result of a turn, a changed view, a change by hand.

use std::rc::Rc;
use std::slice::from_ref;

use crate::message::{Edits, Message, Role};
use crate::seams;
use crate::state::Facts;
use crate::store::format::entry::{CallUpdate, Entry, EntryKind, Outcome};
use crate::store::format::head::Head;
use crate::store::format::input::Input;
use crate::store::format::partial::PartialPiece;
use crate::store::format::task::TaskRecord;
use crate::store::format::view::{LeftOut, MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::log::first_said;

/// The result of a turn or of a step, before it is stored.
#[derive(Clone, Debug)]
pub struct TurnCommit {
    /// The id of its entry.
    pub id: String,
    /// The kind of its entry.
    pub kind: EntryKind,
    /// The accepted input of the call. Its record is removed when the turn is stored.
    pub input: Input,
    /// Inputs of other calls that have joined this one. Their records are removed too.
    pub joined: Vec<Input>,
    /// Its messages that are not stored yet, including the input.
    pub messages: Vec<Rc<Message>>,
    /// Changes of tool calls that are stored already.
    pub changes: Vec<CallUpdate>,
    /// How the call ended; `None` for a step.
    pub outcome: Option<Outcome>,
    /// The AgentState fields after the turn.
    pub facts: Facts,
    /// How the turn has changed the view of messages.
    pub view_change: ViewChange,
    /// Whether the context goes back to what it was before the question. The log keeps the turn.
    pub is_forgotten: bool,
    /// What leaves the context, if the provider has rejected the turn for its content. The log keeps the turn.
    pub left_out: Option<LeftOut>,
    /// The tasks whose end its messages report. The same batch marks them as told.
    pub told_tasks: Vec<TaskRecord>,
    /// The keys of the parts of its answer that may be stored as checkpoints. The same batch removes them.
    pub pieces: Vec<String>,
}

impl TurnCommit {
    /// The ids of the messages of its question, if other messages of the user follow them directly: those of calls that have
    /// joined it, or a message that stopped it.
    pub(in crate::store) fn asked(&self) -> Vec<String> {
        let is_asked =
            |it: &&Rc<Message>| self.input.messages.iter().any(|asked| asked.id == it.id);
        let asked: Vec<_> = self.messages.iter().filter(is_asked).cloned().collect();
        let is_all = asked == first_said(&self.messages);
        asked.iter().filter(|_| !is_all).map(|message| message.id.clone()).collect()
    }

    /// Drops our changes of the view, except the edits of our own messages. Used if another writer has changed the
    /// view.
    pub(in crate::store) fn keep_own_edits(&mut self) {
        let own = |id: &str| self.messages.iter().any(|message| message.id == id);
        let edits = self.view_change.edits.take(own);
        self.view_change = ViewChange { edits, ..ViewChange::default() };
        if let Some(left_out) = &mut self.left_out {
            (left_out.first, left_out.from) = (None, None);
        }
    }

    /// Removes what the log has already: inputs that another node has recovered, with the records of their outcomes, and steps
    /// whose save seemed to fail and was stored. A message of an answer gets an id of its own if the log has only a part of it,
    /// or has it on another path, so that neither hides the other.
    pub(in crate::store) fn leave_out(
        &mut self,
        path: &mut Head,
        (name, entry): (EntryRef, Entry),
        (resends, fresh_id): (bool, &dyn Fn() -> String),
    ) {
        let mut inputs = self.joined.iter_mut().chain([&mut self.input]);
        let Some(input) = inputs.find(|it| it.call_id == entry.call_id) else { return };
        if entry.kind == EntryKind::Recovered {
            input.named = false;
            // The recovery has removed our pieces. Pieces under these keys may be those of a later call with the same callId.
            self.pieces.clear();
        }
        // An input that joined a resend may have been recovered on the old path. Then the new path still needs its messages. A
        // step is always on the new path, also behind a summary.
        let is_elsewhere = resends && entry.kind != EntryKind::Step && entry.parent != path.leaf;
        let edits = &mut self.view_change.edits;
        // Whether the last answer is not in this entry. Then results behind it are those of its own tool calls: another call may
        // have the same id.
        let mut is_behind = false;
        self.messages.retain_mut(|message| {
            let is_other = |it: &Rc<Message>| match is_elsewhere {
                true => it.id == message.id && message.role != Role::User,
                false => is_part(it, message),
            };
            if seams::is_only_part(entry.messages.iter().any(is_other)) {
                let id = fresh_id();
                let edit = edits.take(|edited| edited == message.id);
                edit.iter().for_each(|(_, edit)| edits.put(&id, edit.clone()));
                Rc::make_mut(message).id = id;
            }
            let says_the_same = |it: &Rc<Message>| {
                it.id == message.id || (!is_behind && has_same_result(it, message))
            };
            let stays = is_elsewhere || !entry.messages.iter().any(says_the_same);
            if message.role == Role::Assistant {
                is_behind = stays;
            }
            stays
        });
        if !is_elsewhere {
            path.append(name, entry.messages.len());
        }
    }
}

/// Whether a message of the log is only a part of this answer.
fn is_part(part: &Rc<Message>, whole: &Rc<Message>) -> bool {
    let is_answer = part.id == whole.id && whole.role == Role::Assistant;
    is_answer && PartialPiece::between(from_ref(part), from_ref(whole)).is_some()
}

/// Whether two messages are results of a tool call with the same id.
fn has_same_result(one: &Message, other: &Message) -> bool {
    let result = |message: &Message| message.tool_results().next().map(|it| it.id.clone());
    one.role == Role::Tool && result(one) == result(other)
}

/// A change of the view: how messages are shown to the model. The log keeps the messages as they were said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewChange {
    /// The context as a hook has revised it. It comes before the summary.
    pub revision: Option<Revision>,
    /// A summary that replaces the oldest messages.
    pub summary: Option<Summary>,
    /// Messages that are shown in another form.
    pub edits: Edits,
}

impl ViewChange {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.revision.is_none() && self.summary.is_none() && self.edits.is_empty()
    }
}

/// A revised context that is not stored yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// The id of its entry.
    pub id: String,
    /// The messages of its entry: new ones, and ones that have changed.
    pub messages: Vec<Rc<Message>>,
    /// The new view.
    pub pieces: Vec<RevisedPiece>,
    /// The ids of the messages that stay as they are.
    pub kept: Vec<String>,
}

/// A piece of a revised context.
#[derive(Clone, Debug, PartialEq)]
pub enum RevisedPiece {
    /// A piece of stored messages.
    Kept(ViewPiece),
    /// Messages of the entry of the revision, by their indexes.
    New(usize, usize),
}

impl Revision {
    /// Adds a new message at the end.
    pub(in crate::store) fn add(&mut self, message: Rc<Message>) {
        let index = self.messages.len();
        self.messages.push(message);
        match self.pieces.last_mut() {
            Some(RevisedPiece::New(_, end)) if *end == index => *end = index + 1,
            _ => self.pieces.push(RevisedPiece::New(index, index + 1)),
        }
    }

    /// The view, with the entry of the revision under this name.
    pub(in crate::store) fn view(&self, name: &EntryRef) -> Vec<ViewPiece> {
        let place = |index| (name.clone(), index);
        let is_summary = self.messages.first().is_some_and(|it| it.is_summary());
        let mut view = Vec::new();
        for (number, piece) in self.pieces.iter().enumerate() {
            let mut from = match piece {
                RevisedPiece::Kept(piece) => {
                    view.push(piece.clone());
                    continue;
                }
                RevisedPiece::New(from, _) => *from,
            };
            if number == 0 && is_summary {
                view.push(ViewPiece::Summary { summary: name.clone() });
                from = 1;
            }
            let RevisedPiece::New(_, to) = piece else { continue };
            if from < *to {
                view.push(ViewPiece::Span { from: place(from), to: place(*to) });
            }
        }
        // Later entries extend the last piece. The empty piece also says which revision this is.
        let end = place(self.messages.len());
        view.push(ViewPiece::Span { from: end.clone(), to: end });
        view
    }
}

/// A summary that is not stored yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The id of its entry.
    pub id: String,
    /// The message that is shown.
    pub message: Rc<Message>,
    /// The place of the first stored message that stays; `None` if all stored messages are replaced.
    pub cut: Option<MessagePlace>,
    /// The ids of the messages that it replaces.
    pub replaced: Vec<String>,
}

/// A change of a session by hand.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    /// The change of the context.
    pub context: ContextChange,
    /// The new AgentState fields, if they change.
    pub facts: Option<Facts>,
    /// The new title, if it changes.
    pub title: Option<String>,
}

/// How a change by hand changes the context.
#[derive(Clone, Debug, Default)]
pub enum ContextChange {
    /// It stays.
    #[default]
    Kept,
    /// These messages are appended.
    Grown(Vec<Rc<Message>>),
    /// This context replaces it. The log keeps the old messages.
    Replaced(NewContext),
}

/// A context that replaces another.
#[derive(Clone, Debug, Default)]
pub struct NewContext {
    /// Its messages, without the summary. A message that is in the log, with the same id and content, is not logged again.
    pub messages: Vec<Rc<Message>>,
    /// Its summary.
    pub summary: NewSummary,
}

/// The summary of a context that replaces another.
#[derive(Clone, Debug, Default)]
pub enum NewSummary {
    /// It has none.
    #[default]
    None,
    /// The summary of the old context.
    Kept,
    /// The summary in this message.
    Text(Rc<Message>),
}

impl ContextChange {
    /// The messages that are appended, or that replace the others.
    pub(in crate::store) fn messages(&self) -> &[Rc<Message>] {
        match self {
            ContextChange::Kept => &[],
            ContextChange::Grown(messages) => messages,
            ContextChange::Replaced(new) => &new.messages,
        }
    }
}

impl Alteration {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self.context, ContextChange::Kept) && self.facts.is_none() && self.title.is_none()
    }
}
