//! The head: the small, versioned record of a session. Everything but the messages, and which of them count.

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, Fields, Misread, Object, Read};
use crate::slot::Slot;
use crate::state::{FORMAT, Facts};
use crate::store::entry::EntryRef;

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

fn pieces(value: &Value) -> Read<Vec<Piece>> {
    json::list(value, Piece::from_json)
}

/// What a resend goes back to: the session before its last question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Anchor {
    /// The leaf then.
    pub leaf: Option<EntryRef>,
    /// The view then.
    pub view: Vec<Piece>,
    /// The facts then; absent if they are still the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
}

impl Anchor {
    fn from_json(value: &Value) -> Read<Anchor> {
        let fields = Fields::of(value)?;
        Ok(Anchor {
            leaf: fields.optional("leaf", EntryRef::from_json)?,
            view: fields.or_default("view", pieces)?,
            facts: fields.optional("facts", Facts::from_json)?,
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
}

impl Card {
    fn from_json(value: &Value) -> Read<Card> {
        let fields = Fields::of(value)?;
        Ok(Card {
            title: fields.or_default("title", json::text)?,
            line: fields.or_default("line", json::text)?,
            messages: fields.or_default("messages", json::count)?,
            created: fields.or_default("created", json::text)?,
            updated: fields.or_default("updated", json::text)?,
            branches: fields.or_default("branches", json::count)?,
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
    /// A session that was deleted; only a call that has read this may replace it.
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
            leaf: None,
            next: 0,
            card: Card { created: at.to_owned(), updated: at.to_owned(), ..Card::default() },
            index: String::new(),
            anchor: None,
            rest: Object::new(),
        }
    }

    /// What stands in place of a deleted session: epoch and time, no content.
    pub fn tombstone(epoch: &str, at: &str) -> Value {
        serde_json::json!({ "format": FORMAT, "epoch": epoch, "deleted": at })
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
            "leaf",
            "next",
            "card",
            "index",
            "anchor",
        ];
        let fields = Fields::of(value)?;
        if fields.value("deleted").is_some() {
            return Ok(HeadRecord::Tombstone);
        }
        Ok(HeadRecord::Live(Box::new(Head {
            format: fields.required("format", json::count)?,
            epoch: fields.required("epoch", json::text)?,
            session_id: fields.required("session_id", json::text)?,
            user_id: fields.optional("user_id", json::text)?,
            facts: fields.or_default("facts", Facts::from_json)?,
            view: fields.required("view", pieces)?,
            leaf: fields.optional("leaf", EntryRef::from_json)?,
            next: fields.required("next", json::count)?,
            card: fields.required("card", Card::from_json)?,
            index: fields.required("index", json::text)?,
            anchor: fields.optional("anchor", Anchor::from_json)?,
            rest: fields.rest(KNOWN),
        })))
    }

    /// Appends an entry of `n_messages` to the path and to the context.
    pub fn append(&mut self, entry: EntryRef, n_messages: usize) {
        let end = (entry.clone(), n_messages);
        match self.view.last_mut() {
            Some(Piece::Span { to, .. }) => *to = end,
            _ => self.view.push(Piece::Span { from: (entry.clone(), 0), to: end }),
        }
        self.next = entry.seq + 1;
        self.leaf = Some(entry);
        self.card.messages += n_messages as u64;
    }
}
