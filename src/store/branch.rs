//! Paths beside the current one: what a leaf is left with, which there are, and the way back to one.
//!
//! A branch is a leaf of the log that is not the head's, with a record that holds the head as it was when the leaf was
//! left. Nothing here removes or changes what was said: only the head moves.

use std::rc::Rc;

use serde::Serialize;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::{Message, Role};
use crate::port::{Batch, Page};
use crate::slot::Slot;
use crate::state::Persistence;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::{Head, HeadRecord};
use crate::store::key::SlotKeys;
use crate::store::records::{Landing, read};
use crate::store::resend::note_asked;
use crate::store::session::{Change, Mint, Session, Turn, close, last_line};
use crate::store::view::Entries;

/// A path of the log, as a person chooses among them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The entry that it ends with.
    pub id: String,
    /// The branch that it parts from; none is the oldest.
    pub parent: Option<String>,
    /// The question where it parts from others; the last one where there are none.
    pub message_id: String,
    /// When it was first answered.
    pub created_at: String,
    /// The last thing said in it, as a line.
    pub text: String,
    /// Whether it is the one that goes on.
    pub current: bool,
}

impl Session {
    /// Keeping a turn beside the path: it stays in the log, at the end of a path of its own.
    pub(super) fn branching(
        &self,
        head: &Head,
        path: &Head,
        turn: &Turn,
        mint: Mint<'_>,
    ) -> (Change, Head) {
        let (mut head, mut path) = (head.clone(), Head { next: head.next, ..path.clone() });
        let mut batch = self.batch(&head, mint);
        self.reshape(&mut path, &mut batch, (&turn.reshaping, &turn.messages));
        let entry = EntryRef { seq: path.next, id: turn.id.clone() };
        self.put_entry(&mut batch, &entry, path.leaf.clone(), turn);
        path.append(entry, turn.messages.len());
        note_asked(&mut path, turn);
        path.change_facts(&turn.facts);
        path.card.line = last_line(&turn.messages).unwrap_or(path.card.line);
        head.next = path.next;
        if turn.outcome.is_some() {
            head.card.branches += 1;
            self.leave(&mut batch, &path);
            close(&mut head, turn, mint);
            self.put_index(&mut head, &mut batch, mint);
        }
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        (Change { batch, head }, path)
    }

    /// Keeps what a head holds where its leaf is left.
    pub(super) fn leave(&self, batch: &mut Batch, left: &Head) {
        if let Some(leaf) = &left.leaf {
            let record = Head { open: None, ..left.clone() };
            batch.put.push((self.keys.branch(&leaf.id), json::to_bytes(&record)));
        }
    }

    /// Going on from another leaf.
    fn switching(&self, head: &Head, to: &Head, mint: Mint<'_>) -> Change {
        let mut batch = self.batch(head, mint);
        self.leave(&mut batch, head);
        batch.remove.extend(to.leaf.iter().map(|leaf| self.keys.branch(&leaf.id)));
        let mut head = head.on_path(to);
        head.open = mint.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
        self.put_index(&mut head, &mut batch, mint);
        batch.put.push((self.keys.head(), json::to_bytes(&head)));
        Change { batch, head }
    }
}

impl Sessions {
    /// Goes on from the leaf of a branch. `false`: the session has moved on; load it again.
    pub async fn switch(
        &self,
        session: &Session,
        branch: &str,
        follows: Persistence,
    ) -> Result<bool> {
        let Some(head) = &session.head else { return Ok(false) };
        if is_leaf(head, branch) {
            return Ok(true);
        }
        let mut to = self.branch(&session.keys, &session.slot, branch).await?;
        to.check_format(&session.slot)?;
        to.facts = follows.pick(&to.facts, &head.facts);
        let change = self.records.change(|mint| session.switching(head, &to, mint));
        Ok(!matches!(self.records.commit(&change.batch).await?, Landing::Conflict))
    }

    /// The leaf of a branch, or the current one.
    pub(super) async fn leaf(
        &self,
        session: &Session,
        branch: Option<&str>,
    ) -> Result<Option<EntryRef>> {
        let Some(head) = &session.head else { return Ok(None) };
        match branch.filter(|branch| !is_leaf(head, branch)) {
            Some(branch) => Ok(self.branch(&session.keys, &session.slot, branch).await?.leaf),
            None => Ok(head.leaf.clone()),
        }
    }

    /// The head as it was when the leaf of a branch was left.
    async fn branch(&self, keys: &SlotKeys, slot: &Slot, id: &str) -> Result<Head> {
        // Ids are minted; whatever else somebody says is no key.
        let is_id = !id.is_empty() && id.bytes().all(|it| it.is_ascii_alphanumeric());
        let record = match is_id {
            true => self.records.get(keys.branch(id)).await?,
            false => None,
        };
        let head = record.map(|record| read(&record, Head::from_json, "a branch")).transpose()?;
        match head {
            Some(HeadRecord::Live(head)) => Ok(*head),
            _ => Err(Error::new(ErrorKind::InputInvalid, format!("{slot} has no such branch"))
                .hint("branches(slot) tells which there are now: one that goes on has another id")),
        }
    }

    /// The heads of all branches but the current one, as they were left.
    pub(super) async fn left_heads(&self, keys: &SlotKeys) -> Result<Vec<Head>> {
        let mut heads = Vec::new();
        for (_, record) in self.records.list(&keys.branch(""), Page::default()).await? {
            if let HeadRecord::Live(head) = read(&record, Head::from_json, "a branch")? {
                heads.push(*head);
            }
        }
        Ok(heads)
    }

    /// The branches of a session in the order of the log, each behind the one that it parts from.
    pub async fn branches(&self, slot: &Slot) -> Result<Vec<Branch>> {
        let session = self.read_only(slot).await?;
        let Some(head) = session.head else { return Ok(Vec::new()) };
        let mut heads = self.left_heads(&session.keys).await?;
        heads.retain(|left| left.leaf != head.leaf);
        heads.push(head.clone());
        let newest = heads.iter().filter_map(|it| it.leaf.as_ref()).map(|leaf| leaf.seq).max();
        let Some(newest) = newest else { return Ok(Vec::new()) };
        let mut window = 8;
        loop {
            let first = newest.saturating_sub(window);
            let entries = self.records.entries(&session.keys, first, newest).await?;
            let tree = Tree::grown(&entries, &heads);
            if first == 0 || tree.is_joined(&entries) {
                return Ok(tree.branches(&entries, &head));
            }
            window = window.saturating_mul(4);
        }
    }
}

/// Paths of a log, sorted: each stands behind the one that it parts from.
struct Tree<'a>(Vec<(Vec<String>, &'a Head)>);

impl<'a> Tree<'a> {
    fn grown(entries: &Entries, heads: &'a [Head]) -> Tree<'a> {
        let mut tree: Vec<(Vec<String>, &Head)> = Vec::new();
        for head in heads {
            let (mut path, mut name) = (Vec::new(), head.leaf.as_ref());
            while let Some(entry) = name.and_then(|name| entries.get(name)) {
                path.extend(name.map(EntryRef::to_string));
                name = entry.parent.as_ref();
            }
            path.reverse();
            tree.insert(tree.partition_point(|(other, _)| *other < path), (path, head));
        }
        Tree(tree)
    }

    /// Whether what is known reaches back to where all paths are one, and to a question.
    fn is_joined(&self, entries: &Entries) -> bool {
        let first = |(path, _): &(Vec<String>, &Head)| path.first().cloned();
        let top = self.0.first().and_then(first);
        let is_one = self.0.iter().all(|it| first(it) == top);
        let asked = |(path, _): &(Vec<String>, &Head)| {
            path.iter().any(|name| turn_of(entries, name).is_some())
        };
        is_one && self.0.iter().all(asked)
    }

    /// How long two paths are one.
    fn n_common(&self, one: usize, other: usize) -> usize {
        let path = |index: usize| self.0.get(index).map(|it| it.0.as_slice()).unwrap_or_default();
        path(one).iter().zip(path(other)).take_while(|(a, b)| a == b).count()
    }

    fn branches(&self, entries: &Entries, current: &Head) -> Vec<Branch> {
        let mut branches: Vec<Branch> = Vec::new();
        for (index, (path, head)) in self.0.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| self.n_common(before, index));
            let behind = self.0.get(index + 1).map(|_| self.n_common(index, index + 1));
            let parts = before.max(behind);
            let turn = |name: &String| turn_of(entries, name);
            let mut own = path.iter().skip(parts.unwrap_or(path.len())).filter_map(turn);
            let entry = own.next().or_else(|| path.iter().rev().find_map(turn));
            let asked = entry.and_then(asked_in);
            let last = entry.and_then(|entry| entry.messages.last());
            // It parts from the oldest of those that go the same way up to there.
            let parent = before.and_then(|n| {
                let same = |other: &usize| self.n_common(*other, index) >= n;
                let other = (0..index).find(same)?;
                branches.get(other).map(|branch| branch.id.clone())
            });
            branches.push(Branch {
                id: head.leaf.as_ref().map(|leaf| leaf.id.clone()).unwrap_or_default(),
                parent,
                message_id: asked.map(|message| message.id.clone()).unwrap_or_default(),
                created_at: last.map(|message| message.at.clone()).unwrap_or_default(),
                text: head.card.line.clone(),
                current: head.leaf == current.leaf,
            });
        }
        branches
    }
}

/// The entry of this name, if it has a question.
fn turn_of<'a>(entries: &'a Entries, name: &str) -> Option<&'a Entry> {
    let name = EntryRef::from_json(&name.into()).ok()?;
    entries.get(&name).filter(|entry| asked_in(entry).is_some())
}

/// The first question of an entry.
pub(super) fn asked_in(entry: &Entry) -> Option<&Rc<Message>> {
    let is_turn = !matches!(entry.kind, EntryKind::Summary | EntryKind::Put);
    entry.messages.iter().find(|message| is_turn && is_question(message))
}

/// What a user has said, and no note.
pub(super) fn is_question(message: &Message) -> bool {
    message.role == Role::User && message.name.as_deref() != Some("system")
}

fn is_leaf(head: &Head, id: &str) -> bool {
    head.leaf.as_ref().is_some_and(|leaf| leaf.id == id)
}
