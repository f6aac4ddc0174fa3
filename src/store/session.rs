//! A session in hand: its head, its context, and the batches that change them.

use std::rc::Rc;

use crate::error::Result;
use crate::json;
use crate::message::{Edits, Message, rfc3339};
use crate::mutants;
use crate::port::{Batch, Lineage};
use crate::slot::Slot;
use crate::state::{AgentState, Facts};
use crate::store::entry::{Entry, EntryKind, EntryRef, Later};
use crate::store::head::{Anchor, Head, Piece};
use crate::store::input::Input;
use crate::store::key::SlotKeys;
use crate::store::lease::{Node, Open};
use crate::store::resend::note_asked;
use crate::store::search::terms::BUCKETS;
use crate::store::task::is_child;
pub use crate::store::turn::{Alteration, Context, Reshaping, Summary, Turn};

/// How long a title or a last line may be, in characters.
const LINE: usize = 80;

/// A session as it was read, or a fresh one that is not stored yet.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose, and which.
    pub slot: Slot,
    /// Its keys.
    pub keys: SlotKeys,
    /// Its head, if it is stored.
    pub head: Option<Head>,
    /// The revision of the head record or of the tombstone, if there is one.
    pub revision: Option<String>,
    /// The revision that our accepted input was last written with.
    pub accepted: Option<String>,
    /// What the model is shown. Tools and hooks that look at it share it; it is copied only if it then changes.
    pub context: Rc<Vec<Rc<Message>>>,
    /// About how much memory its messages take.
    pub bytes: usize,
    /// What of the context somebody outside may already have.
    pub lineage: Rc<Lineage>,
    /// What a session that is not stored begins with.
    pub template: Rc<Facts>,
    /// How the context differs from the stored view.
    pub reshaping: Reshaping,
    /// The stored head, while a resend builds another path in its place: then `head` is on that path.
    pub left: Option<Box<Head>>,
}

/// What a batch would make of a session, to be taken over once it is committed.
pub struct Change {
    /// The batch. Its first put is a record that nobody else writes.
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
            context: Rc::default(),
            bytes: 0,
            lineage: Rc::default(),
            template,
            reshaping: Reshaping::default(),
            left: None,
        }
    }

    /// The head that the store has.
    pub fn stored_head(&self) -> Option<&Head> {
        self.left.as_deref().or(self.head.as_ref())
    }

    /// The commits that made it.
    pub fn version(&self) -> u64 {
        if self.head.is_some() { self.revision.as_deref().map_or(0, counter) } else { 0 }
    }

    /// The AgentState fields.
    pub fn facts(&self) -> Facts {
        self.head.as_ref().map_or_else(|| (*self.template).clone(), |head| head.facts.clone())
    }

    /// The context, to be changed.
    pub fn context_mut(&mut self) -> &mut Vec<Rc<Message>> {
        Rc::make_mut(&mut self.context)
    }

    /// Refuses to change it if a newer version has written it.
    pub fn check_format(&self) -> Result<()> {
        self.head.as_ref().map_or(Ok(()), |head| head.check_format(&self.slot))
    }

    /// Makes later facts true of the messages in hand.
    pub fn amend(&mut self, changes: &[Later]) {
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

    /// The session as callers see it.
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

    /// Accepting an input: it is stored before the model is asked, and the head moves to a new revision.
    ///
    /// A new turn takes the anchor here, where the head still is what it was before the question.
    pub fn accepting(&self, input: &Input, mint: Mint<'_>) -> Change {
        let mut head = self.head_or_fresh(mint);
        if !input.messages.is_empty() && self.accepted.is_none() && !input.resends {
            head.anchor = Some(Anchor::of(&head));
        }
        if let Some(node) = mint.node.filter(|_| self.accepted.is_none()) {
            head.open = Some(Open::taken(head.open.as_ref(), &input.call_id, &node));
        }
        let mut batch = self.making(&head, mint);
        batch.put.push((self.keys.input(&input.call_id), json::to_bytes(input)));
        if self.head.is_none() {
            head.card.title =
                input.messages.first().map(|message| line(&message.text())).unwrap_or_default();
            self.put_index(&mut head, &mut batch, mint);
        }
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Ending a turn, or a step of it, on top of this session: entry, head and index in one batch.
    pub fn ending(&self, head: &Head, turn: &Turn, mint: Mint<'_>) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, mint);
        self.reshape(&mut head, &mut batch, (&turn.reshaping, &turn.messages));
        let entry = EntryRef { seq: head.next, id: turn.id.clone() };
        self.put_entry(&mut batch, &entry, head.leaf.clone(), turn);
        self.mark_told(&mut batch, &turn.heard);
        head.append(entry, turn.messages.len());
        note_asked(&mut head, turn);
        head.change_facts(&turn.facts);
        if let Some(anchor) = head.anchor.as_ref().filter(|_| turn.is_forgotten) {
            head.view = anchor.view.clone();
        }
        head.card.line = last_line(&turn.messages).unwrap_or(head.card.line);
        if let Some(outcome) = &turn.outcome {
            head.card.asking = outcome.is_open();
            close(&mut head, turn, mint);
            self.put_index(&mut head, &mut batch, mint);
        }
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Changing by hand: what is said goes into an entry of its own, so that other writers see that the leaf has moved.
    pub fn altering(&self, alteration: &Alteration, entry_id: String, mint: Mint<'_>) -> Change {
        let mut head = self.head_or_fresh(mint);
        let mut batch = self.making(&head, mint);
        let entry = EntryRef { seq: head.next, id: entry_id };
        if let Some(messages) = alteration.context.messages() {
            let record =
                Entry { messages: messages.to_vec(), ..Entry::put(&entry, head.leaf.clone()) };
            batch.put.push((self.keys.entry(&entry), json::to_bytes(&record)));
            let end = (entry.clone(), messages.len());
            let shown = match alteration.context {
                Context::Replaced(_, start) => Some((start, Vec::new())),
                _ => messages.is_empty().then(|| (0, head.view.clone())),
            };
            head.append(entry.clone(), messages.len());
            if let Some((start, view)) = shown {
                // What is put is shown as it is put.
                if matches!(alteration.context, Context::Replaced(..)) {
                    head.edits = Edits::default();
                }
                head.view = view;
                if start < messages.len() {
                    head.view.push(Piece::Span { from: (entry, start), to: end });
                }
                head.anchor = None;
            }
        }
        if let Some(facts) = &alteration.facts {
            head.change_facts(facts);
        }
        head.open = mint.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        let first = alteration.context.messages().and_then(<[_]>::first);
        let begun =
            first.filter(|_| head.card.title.is_empty()).map(|message| line(&message.text()));
        head.card.title = alteration.title.clone().or(begun).unwrap_or(head.card.title);
        self.put_index(&mut head, &mut batch, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Changing who has it open, and nothing else.
    pub fn opening(&self, head: &Head, open: Open, mint: Mint<'_>) -> Change {
        let head = Head { open: Some(open), ..head.clone() };
        let mut batch = self.batch(&head, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Putting a head in place of one that cannot be read.
    pub fn restoring(&self, mut head: Head, mint: Mint<'_>) -> Batch {
        let mut batch = self.batch(&head, mint);
        self.put_index(&mut head, &mut batch, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        batch
    }

    /// The head of a session that is not there.
    pub fn unmade(&self, mint: Mint<'_>) -> Head {
        Head::fresh(&self.slot, mint.epoch(), &mint.at())
    }

    /// Deleting: every record goes, and a tombstone stays so that a late commit cannot bring the session back.
    pub fn deleting(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let mut batch = self.batch(head, mint);
        batch.remove.extend(self.head.iter().map(|head| head.index.clone()));
        batch.remove_prefix.extend([self.keys.all(), self.keys.tasks()]);
        batch.remove_prefix.extend((0..BUCKETS).map(|bucket| self.keys.segments(bucket)));
        batch
            .put
            .push((self.keys.head(), json::to_bytes(&Head::tombstone(&head.epoch, &mint.at()))));
        batch
    }

    /// A batch that may make the session. One that was never finished, such as a fork whose process died, has left
    /// entries behind.
    pub(super) fn making(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let mut batch = self.batch(head, mint);
        if self.head.is_none() && self.revision.is_some() {
            batch.remove_prefix.push(self.keys.log());
        }
        batch
    }

    fn head_or_fresh(&self, mint: Mint<'_>) -> Head {
        let fresh =
            || Head { facts: self.facts(), ..Head::fresh(&self.slot, mint.epoch(), &mint.at()) };
        self.stored_head().cloned().unwrap_or_else(fresh)
    }

    /// A batch that expects the head as it was read.
    pub(super) fn batch(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let counter = self.revision.as_deref().map_or(0, counter) + 1;
        let nonce = if mutants::is("one-nonce") { String::new() } else { mint.nonce() };
        Batch {
            expect: Some((self.keys.head(), self.revision.clone()))
                .filter(|_| !mutants::is("no-compare")),
            revision: format!("{}.{counter}.{nonce}", head.epoch),
            ..Batch::default()
        }
    }

    pub(super) fn put_entry(
        &self,
        batch: &mut Batch,
        name: &EntryRef,
        parent: Option<EntryRef>,
        turn: &Turn,
    ) {
        for input in turn.joined.iter().chain([&turn.input]) {
            let key = self.keys.input(&input.call_id);
            if turn.outcome.is_none() && !mutants::is("input-ends-with-step") {
                // The log has what was said; the record stays, so that a call that dies is found.
                batch.put.push((key, json::to_bytes(&input.again())));
                continue;
            }
            if input.named && !mutants::is("nameless") {
                let mut record = serde_json::json!({ "entry": name });
                if let (Some(asked), Some(record)) = (&input.asked, record.as_object_mut()) {
                    record.insert("asked".to_owned(), asked.as_str().into());
                }
                batch.put.push((self.keys.call(&input.call_id), json::to_bytes(&record)));
            }
            batch.remove.extend(Some(key).filter(|_| !mutants::is("waiting-input")));
        }
        let entry = Entry {
            id: name.id.clone(),
            parent,
            kind: turn.kind,
            call_id: turn.input.call_id.clone(),
            messages: turn.messages.clone(),
            changes: turn.changes.clone(),
            outcome: turn.outcome.clone(),
            ..Entry::put(name, None)
        };
        batch.put.insert(0, (self.keys.entry(name), json::to_bytes(&entry)));
    }

    pub(super) fn put_index(&self, head: &mut Head, batch: &mut Batch, mint: Mint<'_>) {
        if !head.index.is_empty() && !mutants::is("two-lines") {
            batch.remove.push(head.index.clone());
        }
        head.card.updated = mint.at();
        if is_child(&head.session_id) {
            return;
        }
        head.index = self.keys.index(mint.now_ms);
        let card = &head.card;
        let mut info = serde_json::json!({
            "sessionId": head.session_id,
            "userId": head.user_id,
            "title": card.title,
            "summary": card.line,
            "messages": card.messages,
            "updatedAt": card.updated,
            "createdAt": card.created,
            "branches": card.branches,
        });
        if let Some(info) = info.as_object_mut().filter(|_| card.asking) {
            info.insert("asking".to_owned(), true.into());
        }
        batch.put.push((head.index.clone(), json::to_bytes(&info)));
    }
}

/// The chance and the time that a batch needs, as values.
#[derive(Clone, Copy)]
pub struct Mint<'a> {
    /// Makes a short random word.
    pub word: &'a dyn Fn() -> String,
    /// Milliseconds since 1970.
    pub now_ms: f64,
    /// Who we are, where machines share the store.
    pub node: Option<Node<'a>>,
}

impl Mint<'_> {
    fn epoch(&self) -> String {
        (self.word)()
    }

    fn nonce(&self) -> String {
        (self.word)()
    }

    fn at(&self) -> String {
        rfc3339(self.now_ms)
    }
}

/// Ends the lease of a turn's own call; what was recovered leaves that to whoever recovers it.
pub(super) fn close(head: &mut Head, turn: &Turn, mint: Mint<'_>) {
    let is_own = |open: &Open| open.call_id == turn.input.call_id;
    if turn.kind != EntryKind::Recovered && head.open.as_ref().is_some_and(is_own) {
        head.open = mint.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
    }
}

/// The counter in a revision, `<epoch>.<counter>.<nonce>`.
pub(super) fn counter(revision: &str) -> u64 {
    revision.split('.').nth(1).and_then(|counter| counter.parse().ok()).unwrap_or(0)
}

/// The last thing that messages say, as a line.
pub(super) fn last_line(messages: &[Rc<Message>]) -> Option<String> {
    let lines = messages.iter().rev().map(|message| line(&message.text()));
    lines.into_iter().find(|text| !text.is_empty())
}

/// The first line of a text that is not blank, cut to a title's length.
pub(super) fn line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match first.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None => first.to_owned(),
    }
}
