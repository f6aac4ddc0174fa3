//! A session of messages that come without a log: from a document of version 1, or from AgentScope.

use std::collections::HashSet;
use std::rc::Rc;

use crate::message::{Message, rfc3339};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::format::entry::Entry;
use crate::store::format::head::Head;
use crate::store::format::view::ViewPiece;
use crate::store::keys::EntryRef;
use crate::store::operations::Sessions;
use crate::store::session::{NewContext, NewSummary, Past, last_line, line, put};
use crate::store::transfer::SessionCopy;

/// Most messages in one entry.
const MESSAGES: usize = 64;

/// Most bytes of messages in one entry.
const BYTES: usize = 200_000;

/// The messages of a session without a log, and its fields.
pub struct ImportedMessages {
    /// The messages that were said, in order. Those of the context that are missing here come last.
    pub history: Vec<Rc<Message>>,
    /// The messages that the model is shown.
    pub context: NewContext,
    /// The other AgentState fields.
    pub facts: Facts,
    /// The title, if it is known.
    pub title: Option<String>,
}

impl Sessions {
    /// Makes a session of imported messages.
    pub fn copy_of(&self, slot: &Slot, imported: &ImportedMessages) -> SessionCopy {
        let ImportedMessages { history, context, facts, title } = imported;
        let (id, at) = (|| self.records().random_id(), rfc3339(self.records().now_ms()));
        let head = Head { facts: facts.clone(), ..Head::fresh(slot, String::new(), &at) };
        let mut copy = SessionCopy { head, entries: Vec::new(), branches: Vec::new() };
        let mut ids: HashSet<&str> = HashSet::new();
        let mut said: Vec<Rc<Message>> = Vec::new();
        for message in history {
            let mut own = Rc::clone(message);
            if !ids.insert(&message.id) {
                Rc::make_mut(&mut own).id = id();
            }
            said.push(own);
        }
        said.extend(context.messages.iter().filter(|it| ids.insert(&it.id)).cloned());
        for messages in parts(&said) {
            let name = EntryRef { seq: copy.head.next, id: id() };
            let parent = copy.head.leaf.clone();
            let entry = Entry { messages: messages.to_vec(), ..Entry::put(&name, parent) };
            copy.head.append(name.clone(), messages.len());
            copy.entries.push((name, entry));
        }
        let is_same = |(one, other): (&Rc<Message>, &Rc<Message>)| one.id == other.id;
        let is_all =
            said.len() == context.messages.len() && said.iter().zip(&context.messages).all(is_same);
        if !is_all || matches!(context.summary, NewSummary::Text(_)) {
            copy.show(context, (&id, &at));
        }
        let SessionCopy { head, .. } = &mut copy;
        let first = || said.first().map(|message| line(&message.text()));
        head.card.title = title.clone().or_else(first).unwrap_or_default();
        head.card.line = last_line(&said).unwrap_or_default();
        if head.facts.shutdown_interrupted {
            head.card.interrupted = head.leaf.as_ref().map(|leaf| leaf.id.clone());
        }
        copy
    }
}

impl SessionCopy {
    /// Shows a context of its messages.
    fn show(&mut self, context: &NewContext, (id, at): (&dyn Fn() -> String, &str)) {
        let SessionCopy { head, entries, .. } = self;
        let replaces = match &context.summary {
            NewSummary::Text(message) => message.replaces().cloned(),
            _ => None,
        };
        let replaced = replaces.as_ref().and_then(|it| it.get("first")?.as_str());
        // The summary stands for the messages from the first that it names. Of others nothing is known.
        let is_known = |message: &&Rc<Message>| Some(message.id.as_str()) == replaced;
        let places = entries.iter().flat_map(|(name, entry)| {
            entry.messages.iter().enumerate().map(move |(index, it)| ((name, index), it))
        });
        let first = places.into_iter().find(|(_, it)| is_known(it)).map(|(place, _)| place);
        if let (Some((name, index)), Some(ViewPiece::Span { from, .. })) =
            (first, head.view.first_mut())
        {
            *from = (name.clone(), index);
        }
        let is_unknown = first.is_none();
        if is_unknown {
            head.view.clear();
        }
        let past = Past::of(entries, None, None);
        let mut new = put(head, context, &past, (id, at));
        if let Some((_, summary)) = new.first_mut().filter(|_| is_unknown) {
            summary.replaced.clear();
            if replaces.is_none() {
                summary.messages.iter_mut().for_each(|it| Rc::make_mut(it).forget_replaced());
            }
        }
        entries.extend(new);
    }
}

/// Messages in parts of the size of an entry.
fn parts(messages: &[Rc<Message>]) -> Vec<&[Rc<Message>]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (index, message) in messages.iter().enumerate() {
        let weight = message.weight();
        if index > start && (index - start == MESSAGES || bytes + weight > BYTES) {
            parts.extend(messages.get(start..index));
            (start, bytes) = (index, 0);
        }
        bytes += weight;
    }
    parts.extend(messages.get(start..).filter(|rest| !rest.is_empty()));
    parts
}
