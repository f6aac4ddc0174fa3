//! The head: the small, versioned record of a session. Everything but the messages, and which of them count.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::Edits;
use crate::mutants;
use crate::slot::Slot;
use crate::state::{FORMAT, Facts, Persistence};
use crate::store::entry::EntryRef;
use crate::store::lease::Open;

/// How many entries of other branches a span may run past.
const GAP: u64 = 32;

/// A message's place: the entry it is in, and the number before which it stands there.
pub type Place = (EntryRef, usize);

/// One piece of the context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Piece {
    /// The messages on the path from one place up to another, which may lie inside an entry.
    Span {
        /// The first message.
        from: Place,
        /// Behind the last message.
        to: Place,
    },
    /// A summary in place of what it replaced.
    Summary {
        /// The entry that holds its text and the pieces it replaced.
        summary: EntryRef,
    },
}

impl Piece {
    fn from_json(value: &Value) -> Read<Piece> {
        let fields = Fields::of(value)?;
        if let Some(summary) = fields.optional("summary", EntryRef::from_json)? {
            return Ok(Piece::Summary { summary });
        }
        Ok(Piece::Span { from: fields.required("from", place)?, to: fields.required("to", place)? })
    }
}

fn place(value: &Value) -> Read<Place> {
    match value.as_array().map(Vec::as_slice) {
        Some([entry, index]) => Ok((EntryRef::from_json(entry)?, json::count(index)? as usize)),
        _ => Err(Misread::new("a place, [entry, index]")),
    }
}

/// Reads the pieces of a view.
pub(super) fn pieces(value: &Value) -> Read<Vec<Piece>> {
    json::list(value, Piece::from_json)
}

/// What a resend goes back to: the session before its last question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anchor {
    /// The leaf then.
    pub leaf: Option<EntryRef>,
    /// The view then.
    pub view: Vec<Piece>,
    /// The messages that were asked then, where others of the user stand right behind them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The facts then; absent if they are still the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// How messages of that view were shown; absent if the head still tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Edits>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Anchor {
    /// What a resend goes back to from here on.
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

/// What the session's line in a list shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Card {
    /// What it is called.
    pub title: String,
    /// The last thing said.
    pub line: String,
    /// Messages in the log, on the path.
    pub messages: u64,
    /// When it began.
    pub created: String,
    /// When it last changed.
    pub updated: String,
    /// How many branches there are besides the current one.
    pub branches: u64,
    /// Whether tool calls are open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asking: bool,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

impl Card {
    fn from_json(value: &Value) -> Read<Card> {
        const KNOWN: &[&str] =
            &["title", "line", "messages", "created", "updated", "branches", "asking"];
        let fields = Fields::of(value)?;
        Ok(Card {
            title: fields.or_default("title", json::text)?,
            line: fields.or_default("line", json::text)?,
            messages: fields.or_default("messages", json::count)?,
            created: fields.or_default("created", json::text)?,
            updated: fields.or_default("updated", json::text)?,
            branches: fields.or_default("branches", json::count)?,
            asking: fields.or_default("asking", json::boolean)?,
            rest: fields.rest(KNOWN),
        })
    }
}

/// The head of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Head {
    /// The format it is written in.
    pub format: u64,
    /// Random at each creation of the session.
    pub epoch: String,
    /// Which conversation; compared on read.
    pub session_id: String,
    /// Whose; compared on read.
    pub user_id: Option<String>,
    /// Every AgentState field but the messages; absent while it is the default.
    #[serde(skip_serializing_if = "is_default")]
    pub facts: Facts,
    /// The context.
    pub view: Vec<Piece>,
    /// Messages of the context that are shown otherwise than they were said.
    #[serde(skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
    /// The last entry of the path.
    pub leaf: Option<EntryRef>,
    /// The number of the next entry.
    pub next: u64,
    /// What the list shows.
    pub card: Card,
    /// The key of the session's line in the list.
    pub index: String,
    /// What a resend goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// Who has it open, where machines share the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// Members we do not know.
    #[serde(flatten)]
    pub rest: Object,
}

fn is_default(facts: &Facts) -> bool {
    *facts == Facts::default()
}

/// What a head record holds.
pub enum HeadRecord {
    /// A session.
    Live(Box<Head>),
    /// A session that was deleted, or is still being made; only a call that has read this may replace it.
    Tombstone,
}

impl Head {
    /// The head of a session that has nothing yet.
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
            rest: Object::new(),
        }
    }

    /// What stands in place of a deleted session: epoch and time, no content.
    pub fn tombstone(epoch: &str, at: &str) -> Value {
        serde_json::json!({ "format": FORMAT, "epoch": epoch, "deleted": at })
    }

    /// Refuses to change a session that a newer version has written: what we do not know of it could be lost.
    pub fn check_format(&self, slot: &Slot) -> Result<()> {
        if self.format > FORMAT { Err(newer(slot)) } else { Ok(()) }
    }

    /// The format of a head record, whatever else it holds.
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
            open: fields.optional("open", Open::from_json)?,
            rest: fields.rest(KNOWN),
        })))
    }

    /// Appends an entry of `n_messages` to the path and to the context.
    pub fn append(&mut self, entry: EntryRef, n_messages: usize) {
        let end = (entry.clone(), n_messages);
        match self.view.last_mut() {
            // Whoever reads a span reads what lies between on other branches, too: a wide gap is worth a piece.
            Some(Piece::Span { to, .. }) if entry.seq <= to.0.seq + GAP => *to = end,
            _ => self.view.push(Piece::Span { from: (entry.clone(), 0), to: end }),
        }
        self.next = if mutants::is("same-number") { entry.seq } else { entry.seq + 1 };
        self.leaf = Some(entry);
        self.card.messages += n_messages as u64;
    }
}

impl Head {
    /// Changes the facts; the anchor keeps those that it goes back to.
    pub(super) fn change_facts(&mut self, facts: &Facts) {
        if self.facts == *facts {
            return;
        }
        let before = std::mem::replace(&mut self.facts, facts.clone());
        if let Some(anchor) = &mut self.anchor {
            anchor.facts.get_or_insert(before);
        }
    }

    /// How messages are shown is about to change: the anchor keeps how they were.
    pub(super) fn pin_edits(&mut self) {
        if let Some(anchor) = &mut self.anchor {
            anchor.edits.get_or_insert_with(|| self.edits.clone());
        }
    }

    /// The head as it was before the last question, but for what a resend leaves as it is.
    pub fn rewound(&self, rolls_back: Persistence) -> Option<Head> {
        let anchor = self.anchor.clone()?;
        let then = anchor.facts.as_ref().unwrap_or(&self.facts);
        let facts = rolls_back.pick(then, &self.facts);
        let then = Some(then.clone()).filter(|then| *then != facts);
        let edits = anchor.edits.clone().unwrap_or_else(|| self.edits.clone());
        let (leaf, view) = (anchor.leaf.clone(), anchor.view.clone());
        let anchor = Some(Anchor { facts: then, edits: None, asked: Vec::new(), ..anchor });
        Some(Head { leaf, view, edits, facts, anchor, ..self.clone() })
    }

    /// This session on another path of its log.
    pub(super) fn on_path(&self, path: &Head) -> Head {
        let Head { leaf, view, edits, facts, anchor, card, .. } = path.clone();
        let Card { messages, line, asking, .. } = card;
        let card = Card { messages, line, asking, ..self.card.clone() };
        Head { leaf, view, edits, facts, anchor, card, ..self.clone() }
    }
}

/// The session was written by a newer version.
pub(super) fn newer(slot: &Slot) -> Error {
    let message = format!("{slot} was written by a newer version of lockgate");
    Error::new(ErrorKind::StateVersion, message)
        .hint("update the package to change it; nothing was changed")
}
