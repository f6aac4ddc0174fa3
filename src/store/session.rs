//! A session in hand: its head, its context, and the batches that change them.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::json::{self, Fields, Object, Read};
use crate::message::{Message, rfc3339};
use crate::port::{Batch, Lineage};
use crate::slot::Slot;
use crate::state::{AgentState, Facts};
use crate::store::entry::{Entry, EntryKind, EntryRef, Outcome, messages};
use crate::store::head::{Anchor, Head, Piece};
use crate::store::id;
use crate::store::key::SlotKeys;

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
    /// What the model is shown.
    pub context: Vec<Rc<Message>>,
    /// About how much memory its messages take.
    pub bytes: usize,
    /// What of the context somebody outside may already have.
    pub lineage: Rc<Lineage>,
    /// What a session that is not stored begins with.
    pub template: Rc<Facts>,
}

/// An accepted input, as it is stored until its call has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The call.
    pub call_id: String,
    /// Whether its caller named the call, so that its outcome must be found again.
    pub named: bool,
    /// What was said; nothing, if it is in the log since an earlier try.
    pub messages: Vec<Rc<Message>>,
    /// What was said in that earlier try, as [`digest`](Input::digest) tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Input {
    /// The same call on an input that the log has already.
    pub fn again(&self) -> Input {
        Input { messages: Vec::new(), asked: Some(self.digest()), ..self.clone() }
    }

    /// Tells what was said from all else.
    pub fn digest(&self) -> String {
        let said: Vec<_> = self.messages.iter().map(|message| &message.content).collect();
        id::base32(&Sha256::digest(json::to_bytes(&said)))
    }

    /// Reads a stored input.
    pub fn from_json(value: &Value) -> Read<Input> {
        let fields = Fields::of(value)?;
        Ok(Input {
            call_id: fields.required("callId", json::text)?,
            named: fields.or_default("named", json::boolean)?,
            messages: fields.required("messages", messages)?,
            asked: fields.optional("asked", json::text)?,
            rest: fields.rest(&["callId", "named", "messages", "asked"]),
        })
    }
}

/// What a call leaves behind.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The id of its entry.
    pub id: String,
    /// What it is about.
    pub kind: EntryKind,
    /// The accepted input that it takes out of the waiting.
    pub input: Input,
    /// Everything said in it, the input included.
    pub messages: Vec<Rc<Message>>,
    /// How it ended.
    pub outcome: Outcome,
    /// The AgentState fields after it.
    pub facts: Facts,
}

/// A change of a session by hand.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    /// What becomes of the context.
    pub context: Context,
    /// The AgentState fields after it, if they change.
    pub facts: Option<Facts>,
    /// What the session is called after it, if that changes.
    pub title: Option<String>,
}

/// What a change by hand does to the context.
#[derive(Clone, Debug, Default)]
pub enum Context {
    /// Nothing.
    #[default]
    Kept,
    /// These messages follow.
    Grown(Vec<Rc<Message>>),
    /// These messages are all of it, but for the first few, which only go into the log. What was there stays in it.
    Replaced(Vec<Rc<Message>>, usize),
}

impl Context {
    /// What is said anew.
    fn messages(&self) -> Option<&[Rc<Message>]> {
        match self {
            Context::Kept => None,
            Context::Grown(messages) | Context::Replaced(messages, _) => Some(messages),
        }
    }
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
            context: Vec::new(),
            bytes: 0,
            lineage: Rc::default(),
            template,
        }
    }

    /// The commits that made it.
    pub fn version(&self) -> u64 {
        if self.head.is_some() { self.revision.as_deref().map_or(0, counter) } else { 0 }
    }

    /// The AgentState fields.
    pub fn facts(&self) -> Facts {
        self.head.as_ref().map_or_else(|| (*self.template).clone(), |head| head.facts.clone())
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
            context: self.context.clone(),
            facts: head.facts.clone(),
            ..AgentState::fresh(&self.slot)
        }
    }

    /// Accepting an input: it is stored before the model is asked, and the head moves to a new revision.
    ///
    /// A new turn takes the anchor here, where the head still is what it was before the question.
    pub fn accepting(&self, input: &Input, mint: Mint<'_>) -> Change {
        let mut head = self.head_or_fresh(mint);
        head.anchor =
            Some(Anchor { leaf: head.leaf.clone(), view: head.view.clone(), facts: None });
        let mut batch = self.batch(&head, mint);
        batch.put.push((self.keys.input(&input.call_id), json::to_bytes(input)));
        if self.head.is_none() {
            head.card.title =
                input.messages.first().map(|message| line(&message.text())).unwrap_or_default();
            self.put_index(&mut head, &mut batch, mint);
        }
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Ending a turn on top of this session: entry, head and index in one batch.
    pub fn ending(&self, head: &Head, turn: &Turn, mint: Mint<'_>) -> Change {
        let mut head = head.clone();
        let entry = EntryRef { seq: head.next, id: turn.id.clone() };
        let mut batch = self.batch(&head, mint);
        self.put_entry(&mut batch, &entry, head.leaf.clone(), turn);
        if head.facts != turn.facts
            && let Some(anchor) = head.anchor.as_mut().filter(|anchor| anchor.facts.is_none())
        {
            anchor.facts = Some(head.facts.clone());
        }
        head.append(entry, turn.messages.len());
        head.facts = turn.facts.clone();
        let last = turn
            .messages
            .iter()
            .rev()
            .map(|message| line(&message.text()))
            .find(|text| !text.is_empty());
        head.card.line = last.unwrap_or(head.card.line);
        self.put_index(&mut head, &mut batch, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Keeping a turn that may not join the path: it stays in the log, hanging where it began.
    pub fn branching(
        &self,
        head: &Head,
        parent: Option<EntryRef>,
        turn: &Turn,
        mint: Mint<'_>,
    ) -> Change {
        let mut head = head.clone();
        let entry = EntryRef { seq: head.next, id: turn.id.clone() };
        let mut batch = self.batch(&head, mint);
        self.put_entry(&mut batch, &entry, parent, turn);
        head.next += 1;
        head.card.branches += 1;
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// Changing by hand: what is said goes into an entry of its own, so that other writers see that the leaf has moved.
    pub fn altering(&self, alteration: &Alteration, entry_id: String, mint: Mint<'_>) -> Change {
        let mut head = self.head_or_fresh(mint);
        let mut batch = self.batch(&head, mint);
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
                head.view = view;
                if start < messages.len() {
                    head.view.push(Piece::Span { from: (entry, start), to: end });
                }
                head.anchor = None;
            }
        }
        head.facts = alteration.facts.clone().unwrap_or(head.facts);
        let first = alteration.context.messages().and_then(<[_]>::first);
        let begun =
            first.filter(|_| head.card.title.is_empty()).map(|message| line(&message.text()));
        head.card.title = alteration.title.clone().or(begun).unwrap_or(head.card.title);
        self.put_index(&mut head, &mut batch, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }

    /// The head of a session that is not there.
    pub fn unmade(&self, mint: Mint<'_>) -> Head {
        Head::fresh(&self.slot, mint.epoch(), &mint.at())
    }

    /// Deleting: every record goes, and a tombstone stays so that a late commit cannot bring the session back.
    pub fn deleting(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let mut batch = self.batch(head, mint);
        batch.remove.extend(self.head.iter().map(|head| head.index.clone()));
        batch.remove_prefix.push(self.keys.all());
        batch
            .put
            .push((self.keys.head(), json::to_bytes(&Head::tombstone(&head.epoch, &mint.at()))));
        batch
    }

    fn head_or_fresh(&self, mint: Mint<'_>) -> Head {
        let fresh =
            || Head { facts: self.facts(), ..Head::fresh(&self.slot, mint.epoch(), &mint.at()) };
        self.head.clone().unwrap_or_else(fresh)
    }

    /// A batch that expects the head as it was read.
    fn batch(&self, head: &Head, mint: Mint<'_>) -> Batch {
        let counter = self.revision.as_deref().map_or(0, counter) + 1;
        Batch {
            expect: Some((self.keys.head(), self.revision.clone())),
            revision: format!("{}.{counter}.{}", head.epoch, mint.nonce()),
            ..Batch::default()
        }
    }

    fn put_entry(&self, batch: &mut Batch, name: &EntryRef, parent: Option<EntryRef>, turn: &Turn) {
        let call_id = turn.input.call_id.clone();
        if turn.input.named {
            let mut record = serde_json::json!({ "entry": name });
            if let (Some(asked), Some(record)) = (&turn.input.asked, record.as_object_mut()) {
                record.insert("asked".to_owned(), asked.as_str().into());
            }
            batch.put.push((self.keys.call(&call_id), json::to_bytes(&record)));
        }
        batch.remove.push(self.keys.input(&call_id));
        let entry = Entry {
            id: name.id.clone(),
            parent,
            kind: turn.kind,
            call_id,
            messages: turn.messages.clone(),
            changes: Vec::new(),
            outcome: Some(turn.outcome.clone()),
            rest: Object::new(),
        };
        batch.put.insert(0, (self.keys.entry(name), json::to_bytes(&entry)));
    }

    fn put_index(&self, head: &mut Head, batch: &mut Batch, mint: Mint<'_>) {
        if !head.index.is_empty() {
            batch.remove.push(head.index.clone());
        }
        head.card.updated = mint.at();
        head.index = self.keys.index(mint.now_ms);
        let card = &head.card;
        let info = serde_json::json!({
            "sessionId": head.session_id,
            "userId": head.user_id,
            "title": card.title,
            "summary": card.line,
            "messages": card.messages,
            "updatedAt": card.updated,
            "createdAt": card.created,
            "branches": card.branches,
        });
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

/// The counter in a revision, `<epoch>.<counter>.<nonce>`.
fn counter(revision: &str) -> u64 {
    revision.split('.').nth(1).and_then(|counter| counter.parse().ok()).unwrap_or(0)
}

/// The first line of a text that is not blank, cut to a title's length.
fn line(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match first.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None => first.to_owned(),
    }
}
