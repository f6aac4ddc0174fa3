//! Batches that change the view of a session: a summary replaces the oldest messages, or is undone.

use std::rc::Rc;

use crate::json;
use crate::message::Message;
use crate::port::Batch;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::Head;
use crate::store::format::view::{self, ViewPiece};
use crate::store::host_values::HostValues;
use crate::store::keys::EntryRef;
use crate::store::rejected::RejectedParts;
use crate::store::session::changes::{Revision, ViewChange};
use crate::store::session::loaded::{Change, Session};

impl Session {
    /// Changes only the view; the messages stay.
    pub(in crate::store) fn reshaping(
        &self,
        head: &Head,
        view_change: &ViewChange,
        host: HostValues<'_>,
    ) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, host);
        self.reshape(&mut head, &mut batch, (view_change, &[]));
        head.open = host.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Puts the messages back that a summary has replaced, except what providers have rejected.
    pub(in crate::store) fn restoring_view(
        &self,
        head: &Head,
        (name, summary): (&EntryRef, &Entry),
        rejected: &RejectedParts,
        host: HostValues<'_>,
    ) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, host);
        head.pin_edits();
        head.view = rejected.out_of(summary.undone(&head.view, name));
        let later = std::mem::replace(&mut head.edits, summary.edits.clone());
        head.edits.extend(&later);
        head.open = host.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Puts the entry of a revision into the log, and shows the revised view.
    fn put_revision(&self, head: &mut Head, batch: &mut Batch, revision: &Revision) {
        let name = EntryRef { seq: head.next, id: revision.id.clone() };
        head.pin_edits();
        let is_gone = |id: &str| !revision.kept.iter().any(|kept| kept == id);
        let entry = Entry {
            kind: EntryKind::Summary,
            messages: revision.messages.clone(),
            replaced: std::mem::replace(&mut head.view, revision.view(&name)),
            edits: head.edits.take(is_gone),
            revises: true,
            ..Entry::put(&name, head.leaf.clone())
        };
        batch.put.push((self.keys.entry(&name), json::to_bytes(&entry)));
        head.next += 1;
        head.move_leaf(name);
    }

    /// Applies a change of the view to the head: a summary goes into the log, and into the view instead of what it replaces.
    ///
    /// `new` are the messages of the same batch. They are newer than the anchor, so it
    /// does not store their edits.
    pub(in crate::store) fn reshape(
        &self,
        head: &mut Head,
        batch: &mut Batch,
        (view_change, new): (&ViewChange, &[Rc<Message>]),
    ) {
        if let Some(revision) = &view_change.revision {
            self.put_revision(head, batch, revision);
        }
        let is_old = |id: &str| !new.iter().any(|message| message.id == id);
        let is_replaced = |id: &str| {
            view_change.summary.iter().any(|summary| summary.replaced.iter().any(|it| it == id))
        };
        if view_change.edits.has(is_old) || head.edits.has(is_replaced) {
            head.pin_edits();
        }
        head.edits.extend(&view_change.edits);
        let Some(summary) = &view_change.summary else { return };
        let name = EntryRef { seq: head.next, id: summary.id.clone() };
        let (replaced, mut kept) = view::split(&head.view, summary.cut.as_ref());
        let edits = head.edits.take(is_replaced);
        let entry = Entry {
            kind: EntryKind::Summary,
            messages: vec![Rc::clone(&summary.message)],
            replaced,
            edits,
            ..Entry::put(&name, head.leaf.clone())
        };
        batch.put.push((self.keys.entry(&name), json::to_bytes(&entry)));
        kept.insert(0, ViewPiece::Summary { summary: name.clone() });
        head.view = kept;
        head.next += 1;
        head.move_leaf(name);
    }
}
