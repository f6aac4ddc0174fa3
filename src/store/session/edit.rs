//! Batches that change a session outside of a turn: accept an input, edit, switch branches, delete, change the lease.

use std::rc::Rc;

use crate::json;
use crate::message::Message;
use crate::port::Batch;
use crate::seams;
use crate::store::format::entry::Entry;
use crate::store::format::head::{Anchor, Head};
use crate::store::format::input::Input;
use crate::store::format::lease::Lease;
use crate::store::host_values::HostValues;
use crate::store::keys::{BUCKETS, EntryRef};
use crate::store::session::batches::line;
use crate::store::session::changes::{Alteration, ContextChange};
use crate::store::session::loaded::{Change, Session};
use crate::store::session::put::{Past, put};

impl Session {
    /// Accepts an input: it is stored before the model is asked, and the head gets a new revision.
    ///
    /// A new turn sets the anchor here, because the head is still as it was before the question.
    pub fn accept_change(&self, input: &Input, host: HostValues<'_>) -> Change {
        let mut head = self.head_or_fresh(host);
        if !input.messages.is_empty() && self.accepted.is_none() && !input.resends {
            head.anchor = Some(Anchor::of(&head));
        }
        if let Some(node) = host.node.filter(|_| self.accepted.is_none()) {
            head.open = Some(Lease::taken(head.open.as_ref(), &input.call_id, &node));
        }
        let mut batch = self.create_batch(&head, host);
        if let Some((name, _)) = &self.start {
            head.next = seams::number_after(name.seq);
        }
        let path = self.left.as_ref().filter(|_| self.accepted.is_none());
        let path = path.map(|_| self.path_to(None, 0));
        let record = json::to_bytes(&Input { path, ..input.clone() });
        batch.put.push((self.keys.input(&input.call_id), record));
        let start = self.start.iter();
        batch.put.extend(start.map(|(name, it)| (self.keys.entry(name), json::to_bytes(it))));
        if self.head.is_none() {
            head.card.title =
                input.messages.first().map(|message| line(&message.text())).unwrap_or_default();
        }
        self.put_line(&mut head, &mut batch, host, Some(input));
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Changes the session by hand. New messages get their own entry, so that other writers see a new leaf.
    ///
    /// `past` is needed to replace the context; `id` makes ids.
    pub(in crate::store) fn edit_change(
        &self,
        alteration: &Alteration,
        past: &Past,
        id: &dyn Fn() -> String,
        host: HostValues<'_>,
    ) -> Change {
        let mut head = self.head_or_fresh(host);
        let mut batch = self.create_batch(&head, host);
        let before = head.anchor.as_ref().and_then(|anchor| anchor.facts.as_ref());
        let before = before.unwrap_or(&head.facts);
        let is_other = alteration.facts.as_ref().unwrap_or(&head.facts) != before;
        let earlier = is_other.then(|| before.clone());
        let mut entries = match &alteration.context {
            ContextChange::Kept => Vec::new(),
            ContextChange::Grown(messages) => vec![grown(&mut head, messages, id())],
            ContextChange::Replaced(new) => put(&mut head, new, past, (id, &host.at())),
        };
        if let Some((_, last)) = entries.last_mut() {
            last.earlier = earlier;
        }
        for (name, entry) in &entries {
            batch.put.push((self.keys.entry(name), json::to_bytes(entry)));
        }
        if let Some(facts) = &alteration.facts {
            head.change_facts(facts);
        }
        head.open = host.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        let first = alteration.context.messages().first();
        let begun =
            first.filter(|_| head.card.title.is_empty()).map(|message| line(&message.text()));
        head.card.title = alteration.title.clone().or(begun).unwrap_or(head.card.title);
        self.put_index(&mut head, &mut batch, host);
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Changes only the lease.
    pub fn lease_change(&self, head: &Head, open: Lease, host: HostValues<'_>) -> Change {
        let mut head = Head { open: Some(open), ..head.clone() };
        let mut batch = self.batch(&head, host);
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Continues from another leaf.
    pub(in crate::store) fn switch_change(
        &self,
        head: &Head,
        to: &Head,
        host: HostValues<'_>,
    ) -> Change {
        let mut batch = self.batch(head, host);
        self.leave(&mut batch, head);
        batch.remove.extend(to.leaf.iter().map(|leaf| self.keys.branch(&leaf.id)));
        let mut head = head.on_path(to);
        head.open = host.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        self.put_index(&mut head, &mut batch, host);
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Replaces a head that cannot be read.
    pub fn restore_batch(&self, mut head: Head, host: HostValues<'_>) -> Batch {
        let mut batch = self.batch(&head, host);
        self.put_index(&mut head, &mut batch, host);
        self.put_head(&mut head, &mut batch);
        batch
    }

    /// A new head for a session that is not stored.
    pub fn new_head(&self, host: HostValues<'_>) -> Head {
        Head::fresh(&self.slot, host.epoch(), &host.at())
    }

    /// A batch that creates the session. It removes an empty session and the entries of an unfinished one.
    pub(in crate::store) fn replace_batch(&self, head: &Head, host: HostValues<'_>) -> Batch {
        let mut batch = self.batch(head, host);
        batch.remove_prefix.extend([self.keys.log(), self.keys.branch("")]);
        batch.remove.extend(self.head.iter().map(|head| head.index.clone()));
        batch
    }

    /// Deletes every record. A tombstone stays, so that a late commit cannot bring the session back.
    pub fn delete_batch(&self, head: &Head, host: HostValues<'_>) -> Batch {
        let mut batch = self.batch(head, host);
        batch.remove.extend(self.head.iter().map(|head| head.index.clone()));
        let owned = [self.keys.all(), self.keys.tasks(), self.keys.evicted()];
        batch.remove_prefix.extend(owned);
        batch.remove_prefix.extend((0..BUCKETS).map(|bucket| self.keys.segments(bucket)));
        let tombstone = json::to_bytes(&Head::tombstone(&head.epoch, &host.at()));
        batch.put.extend(seams::tombstone((self.keys.head(), tombstone)));
        batch
    }
}

/// Appends messages to the path and to the context of a head, in an entry of their own.
fn grown(head: &mut Head, messages: &[Rc<Message>], id: String) -> (EntryRef, Entry) {
    let name = EntryRef { seq: head.next, id };
    let entry = Entry { messages: messages.to_vec(), ..Entry::put(&name, head.leaf.clone()) };
    let is_still_cut_off = head.is_cut_off() && messages.is_empty();
    // Without a message the context stays as it is.
    let view = head.view.clone();
    head.append(name.clone(), messages.len());
    if messages.is_empty() {
        (head.view, head.anchor) = (view, None);
    }
    if is_still_cut_off {
        head.card.interrupted = Some(name.id.clone());
    }
    (name, entry)
}
