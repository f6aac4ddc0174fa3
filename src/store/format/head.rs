//! The head: the small, versioned record of a session. It holds everything but the messages, and says which messages are
//! the context.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::Edits;
use crate::seams;
use crate::slot::Slot;
use crate::state::{FORMAT, Facts, Persistence};
use crate::store::format::lease::Lease;
use crate::store::format::view::{LeftOut, MessagePlace, ViewPiece, pieces, split};
use crate::store::keys::EntryRef;

/// Most entries of other branches that a span may contain.
pub(in crate::store) const GAP: u64 = 32;

/// The session before its last question: a resend goes back to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anchor {
    /// The leaf at that time.
    pub leaf: Option<EntryRef>,
    /// The view at that time.
    pub view: Vec<ViewPiece>,
    /// Ids of the messages of the question, if other messages of the user follow them directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The facts at that time; absent if they have not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The edits of that view; absent if they have not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Edits>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Anchor {
    /// The anchor for a question that follows this head.
    pub fn of(head: &Head) -> Anchor {
        Anchor {
            leaf: head.leaf.clone(),
            view: head.view.clone(),
            asked: Vec::new(),
            facts: None,
            edits: None,
            rest: Object::new(),
        }
    }

    fn from_json(value: &Value) -> Read<Anchor> {
        let fields = Fields::of(value)?;
        Ok(Anchor {
            leaf: fields.optional("leaf", EntryRef::from_json)?,
            view: fields.or_default("view", pieces)?,
            asked: fields.or_default("asked", json::texts)?,
            facts: fields.optional("facts", Facts::from_json)?,
            edits: fields.optional("edits", Edits::from_json)?,
            rest: fields.rest(&["leaf", "view", "asked", "facts", "edits"]),
        })
    }
}

/// What the session list shows about a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Card {
    /// Its title.
    pub title: String,
    /// The last text, as one line.
    pub line: String,
    /// Number of messages on the path.
    pub messages: u64,
    /// When it was created.
    pub created: String,
    /// When it last changed.
    pub updated: String,
    /// How many branches there are besides the current one.
    pub branches: u64,
    /// Whether tool calls wait for an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asking: bool,
    /// The id of the leaf whose turn a crash or a shutdown has cut off. Valid only if it equals the leaf: an older version,
    /// which does not know this member, keeps an outdated value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Card {
    fn from_json(value: &Value) -> Read<Card> {
        const KNOWN: &[&str] = &[
            "title",
            "line",
            "messages",
            "created",
            "updated",
            "branches",
            "asking",
            "interrupted",
        ];
        let fields = Fields::of(value)?;
        Ok(Card {
            title: fields.or_default("title", json::text)?,
            line: fields.or_default("line", json::text)?,
            messages: fields.or_default("messages", json::count)?,
            created: fields.or_default("created", json::text)?,
            updated: fields.or_default("updated", json::text)?,
            branches: fields.or_default("branches", json::count)?,
            asking: fields.or_default("asking", json::boolean)?,
            interrupted: fields.optional("interrupted", json::text)?,
            rest: fields.rest(KNOWN),
        })
    }
}

/// Which entries the log has. So a reader notices that one is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCount {
    /// Every number from this one up to that of the next entry has an entry with a seal.
    pub from: u64,
    /// Number of entries with lower numbers; `None` if it is unknown, because an older version has written the head.
    pub before: Option<u64>,
}

impl Serialize for LogCount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([Some(self.from), self.before].into_iter().flatten())
    }
}

impl LogCount {
    fn from_json(value: &Value) -> Read<LogCount> {
        match *json::list(value, json::count)? {
            [from] => Ok(LogCount { from, before: None }),
            [from, before] => Ok(LogCount { from, before: Some(before) }),
            _ => Err(Misread::new("one or two numbers")),
        }
    }
}

/// The head of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Head {
    /// The format it is written in.
    pub format: u64,
    /// Random at each creation of the session.
    pub epoch: String,
    /// The session id; compared on read.
    pub session_id: String,
    /// The user id; compared on read.
    pub user_id: Option<String>,
    /// Every AgentState field except the messages; absent while they are the defaults.
    #[serde(skip_serializing_if = "is_default")]
    pub facts: Facts,
    /// The context.
    pub view: Vec<ViewPiece>,
    /// Messages of the context that the model is shown in another form.
    #[serde(skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
    /// The last entry of the path.
    pub leaf: Option<EntryRef>,
    /// The number of the next entry.
    pub next: u64,
    /// What the session list shows.
    pub card: Card,
    /// The key of the session in the session list.
    pub index: String,
    /// The state to which a resend goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// The lease, where machines share the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<Lease>,
    /// Which entries the log has. Only the head of a session has it, and not the head of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogCount>,
    /// The last parts of the keys of accepted inputs that are stored. An older version may have stored others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

fn is_default(facts: &Facts) -> bool {
    *facts == Facts::default()
}

/// The contents of a head record.
pub enum HeadRecord {
    /// A session.
    Live(Box<Head>),
    /// A session that was deleted or is still being created. Only a call that has read this record may replace it.
    Tombstone,
}

impl Head {
    /// The head of a new, empty session.
    pub fn fresh(slot: &Slot, epoch: String, at: &str) -> Head {
        Head {
            format: FORMAT,
            epoch,
            session_id: slot.session().to_owned(),
            user_id: slot.user().map(str::to_owned),
            facts: Facts::default(),
            view: Vec::new(),
            edits: Edits::default(),
            leaf: None,
            next: 0,
            card: Card { created: at.to_owned(), updated: at.to_owned(), ..Card::default() },
            index: String::new(),
            anchor: None,
            open: None,
            log: Some(LogCount { from: 0, before: Some(0) }),
            inputs: Vec::new(),
            rest: Object::new(),
        }
    }

    /// The record that replaces the head of a deleted session: epoch and time, no content.
    pub fn tombstone(epoch: &str, at: &str) -> Value {
        serde_json::json!({ "format": FORMAT, "epoch": epoch, "deleted": at })
    }

    /// Refuses to change a session that a newer version has written: members that we do not know could be lost.
    pub fn check_format(&self, slot: &Slot) -> crate::error::Result<()> {
        if self.format > FORMAT { Err(newer(slot)) } else { Ok(()) }
    }

    /// The format of a head record. Nothing else of the record is read.
    pub fn format_of(value: &Value) -> Read<u64> {
        Fields::of(value)?.required("format", json::count)
    }

    /// Reads a stored head.
    pub fn from_json(value: &Value) -> Read<HeadRecord> {
        const KNOWN: &[&str] = &[
            "format",
            "epoch",
            "session_id",
            "user_id",
            "facts",
            "view",
            "edits",
            "leaf",
            "next",
            "card",
            "index",
            "anchor",
            "open",
            "log",
            "inputs",
            "key",
            "check",
        ];
        let fields = Fields::of(value)?;
        if fields.value("deleted").is_some() || fields.value("building").is_some() {
            return Ok(HeadRecord::Tombstone);
        }
        Ok(HeadRecord::Live(Box::new(Head {
            format: fields.required("format", json::count)?,
            epoch: fields.required("epoch", json::text)?,
            session_id: fields.required("session_id", json::text)?,
            user_id: fields.optional("user_id", json::text)?,
            facts: fields.or_default("facts", Facts::from_json)?,
            view: fields.required("view", pieces)?,
            edits: fields.or_default("edits", Edits::from_json)?,
            leaf: fields.optional("leaf", EntryRef::from_json)?,
            next: fields.required("next", json::count)?,
            card: fields.required("card", Card::from_json)?,
            index: fields.required("index", json::text)?,
            anchor: fields.optional("anchor", Anchor::from_json)?,
            open: fields.optional("open", Lease::from_json)?,
            log: fields.optional("log", LogCount::from_json)?,
            inputs: fields.or_default("inputs", json::texts)?,
            rest: fields.rest(KNOWN),
        })))
    }

    /// Forgets what the head says about other records: an older version has written it. From here on it is known again.
    pub(in crate::store) fn forget_records(&mut self) {
        self.log = Some(LogCount { from: self.next, before: None });
        self.inputs.clear();
    }

    /// The number of entries in the log, and of records of other branches; `None` if it is unknown.
    pub(in crate::store) fn counts(&self) -> Option<(u64, u64)> {
        let LogCount { from, before } = self.log?;
        Some((before? + self.next.checked_sub(from)?, self.card.branches))
    }

    /// Appends an entry of `n_messages` to the path and to the context.
    pub fn append(&mut self, entry: EntryRef, n_messages: usize) {
        let (end, is_on) = ((entry.clone(), n_messages), self.leaf.is_some());
        match self.view.last_mut() {
            // Reading a span also reads entries of other branches in between. After a wide gap a new piece is cheaper.
            // Before the first entry of a path, a piece can only be of another path.
            Some(ViewPiece::Span { to, .. }) if is_on && entry.seq <= to.0.seq + GAP => *to = end,
            _ => self.view.push(ViewPiece::Span { from: (entry.clone(), 0), to: end }),
        }
        self.next = seams::number_after(entry.seq);
        self.leaf = Some(entry);
        self.card.messages += n_messages as u64;
    }
}

impl Head {
    /// Appends an entry of `n_messages` to the path. What is left out leaves the context, or does not enter it.
    pub(in crate::store) fn append_in_part(
        &mut self,
        entry: EntryRef,
        n_messages: usize,
        left_out: &LeftOut,
    ) {
        let before = self.view.clone();
        self.append(entry.clone(), n_messages);
        let shown = match &left_out.from {
            Some(from) => split(&before, Some(from)).0,
            None if left_out.n_kept == 0 => before,
            None => split(&self.view, Some(&(entry.clone(), left_out.n_kept))).0,
        };
        self.show(shown, (entry, n_messages));
    }

    /// Sets the view. The messages between these pieces and the end of the path, which is at `end`, are not shown.
    pub(in crate::store) fn show(&mut self, pieces: Vec<ViewPiece>, end: MessagePlace) {
        self.view = pieces;
        self.view.pop_if(|piece| matches!(piece, ViewPiece::Span { from, to } if from == to));
        // The next entry extends the last piece. So an empty piece begins after the messages that are not shown.
        self.view.push(ViewPiece::Span { from: end.clone(), to: end });
    }

    /// Whether a crash or a shutdown has cut off the last turn, so that a call can continue it.
    pub fn is_cut_off(&self) -> bool {
        let leaf = self.leaf.as_ref().map(|leaf| &leaf.id);
        leaf.is_some() && self.card.interrupted.as_ref() == leaf && !self.card.asking
    }

    /// Moves the leaf to an entry without messages of the conversation.
    pub(in crate::store) fn move_leaf(&mut self, to: EntryRef) {
        self.card.interrupted = self.is_cut_off().then(|| to.id.clone());
        self.leaf = Some(to);
    }

    /// Changes the facts. The anchor keeps the facts from before.
    pub(in crate::store) fn change_facts(&mut self, facts: &Facts) {
        if self.facts == *facts {
            return;
        }
        let before = std::mem::replace(&mut self.facts, facts.clone());
        if let Some(anchor) = &mut self.anchor {
            anchor.facts.get_or_insert(before);
        }
    }

    /// Call this before the edits change: the anchor keeps the edits from before.
    pub(in crate::store) fn pin_edits(&mut self) {
        if let Some(anchor) = &mut self.anchor {
            anchor.edits.get_or_insert_with(|| self.edits.clone());
        }
    }

    /// The head as it was before the last question. `rolls_back` says which facts go back too.
    pub fn rewound(&self, rolls_back: Persistence) -> Option<Head> {
        let anchor = self.anchor.clone()?;
        let then = anchor.facts.as_ref().unwrap_or(&self.facts);
        let facts = rolls_back.rolled_back(then, &self.facts);
        let then = Some(then.clone()).filter(|then| *then != facts);
        let edits = anchor.edits.clone().unwrap_or_else(|| self.edits.clone());
        let (leaf, view) = (anchor.leaf.clone(), anchor.view.clone());
        let anchor = Some(Anchor { facts: then, edits: None, asked: Vec::new(), ..anchor });
        Some(Head { leaf, view, edits, facts, anchor, ..self.clone() })
    }

    /// The head of the same session on another path of its log.
    pub(in crate::store) fn on_path(&self, path: &Head) -> Head {
        let Head { leaf, view, edits, facts, anchor, card, .. } = path.clone();
        let Card { messages, line, asking, interrupted, .. } = card;
        let card = Card { messages, line, asking, interrupted, ..self.card.clone() };
        Head { leaf, view, edits, facts, anchor, card, ..self.clone() }
    }
}

/// The session was written by a newer version.
pub(in crate::store) fn newer(slot: &Slot) -> Error {
    let message = format!("{slot} was written by a newer version of lockgate");
    Error::new(ErrorKind::StateVersion, message)
        .hint("update the package to change it; nothing was changed")
}

/// The counter in a revision, `<epoch>.<counter>.<nonce>`.
pub(in crate::store) fn revision_counter(revision: &str) -> u64 {
    revision.split('.').nth(1).and_then(|counter| counter.parse().ok()).unwrap_or(0)
}
