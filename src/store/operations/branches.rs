//! The branches of a session: listing them, and switching to one.
//!
//! A branch is a leaf of the log that is not the leaf of the head. A record keeps the head as it was when that leaf was
//! left. Switching never removes or changes messages; only the head moves.

use serde::Serialize;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::{Page, Record};
use crate::slot::Slot;
use crate::state::Persistence;
use crate::store::format::entry::Entry;
use crate::store::format::head::{Head, HeadRecord};
use crate::store::keys::EntryRef;
use crate::store::keys::SlotKeys;
use crate::store::log::{self, Entries, asked_in};
use crate::store::operations::sessions::{ATTEMPTS, Sessions, superseded};
use crate::store::records::{CommitOutcome, read};
use crate::store::session::Session;

/// A path of the log, as users see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The id of its last entry.
    pub id: String,
    /// The branch from which it separates; `None` for the oldest.
    pub parent: Option<String>,
    /// The question where it separates from other branches; the last question if there are no others.
    pub message_id: String,
    /// The time of the first answer.
    pub created_at: String,
    /// The last text, as one line.
    pub text: String,
    /// Whether it is the current branch.
    pub current: bool,
}

impl Sessions {
    /// Switches to a branch. `false`: the session was changed meanwhile; load it again.
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
        to.facts = follows.rolled_back(&to.facts, &head.facts);
        let change = self.records().change(|host| session.switch_change(head, &to, host));
        Ok(!matches!(self.records().commit(&change.batch).await?, CommitOutcome::Conflict))
    }

    /// The leaf of a branch; without a branch, the current leaf.
    pub(in crate::store) async fn leaf(
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
        // Only ids that we have made are used in a key.
        let is_id = !id.is_empty() && id.bytes().all(|it| it.is_ascii_alphanumeric());
        let key = keys.branch(id);
        let record = match is_id {
            true => self.records().get(key.clone()).await?,
            false => None,
        };
        let head = record.map(|record| read_branch(&key, &record, slot)).transpose()?.flatten();
        match head {
            Some(head) => Ok(head),
            _ => Err(Error::new(ErrorKind::InputInvalid, format!("{slot} has no such branch"))
                .hint("branches(slot) lists the current branches; a branch gets a new id when it continues")),
        }
    }

    /// The heads of all branches except the current one, as they were left. Fails if one of them is lost.
    pub(in crate::store) async fn left_heads(&self, session: &Session) -> Result<Vec<Head>> {
        let Session { slot, keys, head, .. } = session;
        let mut heads = Vec::new();
        for (key, record) in self.records().list(&keys.branch(""), Page::default()).await? {
            heads.extend(read_branch(&key, &record, slot)?);
        }
        let n_known = head.as_ref().and_then(Head::counts).map_or(0, |(_, branches)| branches);
        if (heads.len() as u64) < n_known && !self.has_moved_on(session).await? {
            let message = format!("{slot}: {} of {n_known} branches are left", heads.len());
            return Err(Error::new(ErrorKind::StoreCorrupt, message).hint(
                "the records are unchanged; repairSession makes a session of the readable ones",
            ));
        }
        Ok(heads)
    }

    /// The branches of a session in the order of the log. Each follows the branch from which it separates.
    pub async fn branches(&self, slot: &Slot) -> Result<Vec<Branch>> {
        for _ in 0..ATTEMPTS {
            let session = self.read_only(slot).await?;
            if let Some(branches) = self.branches_of(&session).await? {
                return Ok(branches);
            }
            self.check_unchanged(&session).await?;
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// The same for a session whose head was read. `None`: an entry is missing.
    async fn branches_of(&self, session: &Session) -> Result<Option<Vec<Branch>>> {
        let Some(head) = session.head.clone() else { return Ok(Some(Vec::new())) };
        let mut heads = self.left_heads(session).await?;
        heads.retain(|left| left.leaf != head.leaf);
        heads.push(head.clone());
        let newest = heads.iter().filter_map(|it| it.leaf.as_ref()).map(|leaf| leaf.seq).max();
        let Some(newest) = newest else { return Ok(Some(Vec::new())) };
        let mut window = 8;
        loop {
            let first = newest.saturating_sub(window);
            let entries = self.records().entries(&session.keys, first, newest).await?;
            let tree = Tree::grown(&entries, &heads);
            if tree.is_joined(&entries) {
                return Ok(Some(tree.branches(&entries, &head)));
            }
            if first == 0 {
                let leaves = heads.iter().filter_map(|head| head.leaf.as_ref());
                let is_whole = leaves.into_iter().all(|leaf| log::is_whole(&entries, leaf));
                return Ok(is_whole.then(|| tree.branches(&entries, &head)));
            }
            window = window.saturating_mul(4);
        }
    }
}

/// The paths of a log, sorted: each follows the path from which it separates.
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

    /// Whether the loaded entries reach back to where all paths join, and contain a question on each path.
    fn is_joined(&self, entries: &Entries) -> bool {
        let first = |(path, _): &(Vec<String>, &Head)| path.first().cloned();
        let top = self.0.first().and_then(first);
        let is_one = self.0.iter().all(|it| first(it) == top);
        let asked = |(path, _): &(Vec<String>, &Head)| {
            path.iter().any(|name| turn_of(entries, name).is_some())
        };
        is_one && self.0.iter().all(asked)
    }

    /// Number of entries that two paths have in common at the beginning.
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
            // The parent is the oldest path that is the same up to the point of separation.
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

/// The entry with this name, if it contains a question.
fn turn_of<'a>(entries: &'a Entries, name: &str) -> Option<&'a Entry> {
    let name = EntryRef::from_json(&name.into()).ok()?;
    entries.get(&name).filter(|entry| asked_in(entry).is_some())
}

/// Reads the head of a branch. Refuses that of another session, or of another branch.
pub(in crate::store) fn read_branch(
    key: &str,
    record: &Record,
    slot: &Slot,
) -> Result<Option<Head>> {
    let HeadRecord::Live(head) = read(key, record, Head::from_json, "a branch")? else {
        return Ok(None);
    };
    let is_own = head.session_id == slot.session() && head.user_id.as_deref() == slot.user();
    let leaf = head.leaf.as_ref().map(|leaf| leaf.id.as_str());
    match is_own && leaf == key.rsplit('/').next() {
        true => Ok(Some(*head)),
        false => Err(Error::new(
            ErrorKind::StoreCorrupt,
            format!("a branch of {slot} is the record of another branch"),
        )),
    }
}

fn is_leaf(head: &Head, id: &str) -> bool {
    head.leaf.as_ref().is_some_and(|leaf| leaf.id == id)
}
