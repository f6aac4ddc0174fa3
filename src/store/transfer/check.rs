//! Checks that the parts of a document fit together. The time for any document grows only with its size: a session with a
//! ring, or with a view of a thousand times the same message, would block its readers.

use std::collections::HashSet;

use crate::json::{Misread, Read};
use crate::state::FORMAT;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::Head;
use crate::store::format::view::{MessagePlace, ViewPiece};
use crate::store::keys::EntryRef;
use crate::store::transfer::SessionCopy;
use crate::store::transfer::read::n_said;

/// Above the highest number of an entry: keys have twelve digits.
const END: u64 = 1_000_000_000_000;

/// Longest id of an entry.
const LONGEST_ID: usize = 64;

/// Fails at the first part that does not fit.
pub(super) fn check(copy: &SessionCopy) -> Read<()> {
    let tree = LogTree::grown(&copy.entries).map_err(|it| it.under("entries"))?;
    let last = copy.entries.last().map_or(0, |(name, _)| name.seq + 1);
    if copy.head.next < last || copy.head.next >= END {
        return Err(Misread::new("a number above those of all entries")
            .under("next")
            .under("head"));
    }
    if copy.head.format > FORMAT {
        return Err(Misread::new("a format that this version knows").under("format").under("head"));
    }
    tree.check_head(&copy.head).map_err(|it| it.under("head"))?;
    let mut leaves: HashSet<&str> = HashSet::new();
    leaves.extend(copy.head.leaf.iter().map(|leaf| leaf.id.as_str()));
    for (index, branch) in copy.branches.iter().enumerate() {
        let is_new = branch.leaf.as_ref().is_some_and(|leaf| leaves.insert(&leaf.id));
        let checked = match is_new {
            true => tree.check_head(branch),
            false => Err(Misread::new("a leaf that no other branch has").under("leaf")),
        };
        checked.map_err(|it| it.under(&format!("[{index}]")).under("branches"))?;
    }
    for (index, (name, entry)) in copy.entries.iter().enumerate() {
        let checked = tree.check_summary(name, entry);
        checked.map_err(|it| it.under(&format!("entries[{index}][1]")))?;
    }
    Ok(())
}

/// An entry in the tree of the log.
struct LogNode {
    parent: Option<usize>,
    /// Number of messages on the path to its end.
    n_said: u64,
    /// Its place among all entries if the tree is walked from the root, each path to its end.
    place: usize,
    /// Number of entries below it, and itself.
    size: usize,
    /// The place of the next entry below it.
    next: usize,
}

impl LogNode {
    /// Whether the other node is this one or below it.
    fn has_below(&self, other: &LogNode) -> bool {
        (self.place..self.place + self.size).contains(&other.place)
    }
}

/// The log as a tree.
struct LogTree<'a> {
    entries: &'a [(EntryRef, Entry)],
    nodes: Vec<LogNode>,
    n_messages: u64,
}

impl<'a> LogTree<'a> {
    /// Reads the tree. Fails if a name, an order or a parent is wrong.
    fn grown(entries: &'a [(EntryRef, Entry)]) -> Read<LogTree<'a>> {
        let n_messages = entries.iter().map(|(_, entry)| entry.messages.len() as u64).sum();
        let mut tree = LogTree { entries, nodes: Vec::new(), n_messages };
        let mut ids: HashSet<&str> = HashSet::new();
        let mut before: Option<&EntryRef> = None;
        for (index, (name, entry)) in entries.iter().enumerate() {
            let at = |misread: Misread| misread.under(&format!("[{index}]"));
            let is_after = before.is_none_or(|it| (it.seq, &it.id) < (name.seq, &name.id));
            if !is_after || !is_id(&name.id) || name.seq >= END || !ids.insert(&name.id) {
                let expected = "a name of its own, in the order of the log";
                return Err(at(Misread::new(expected).under("[0]")));
            }
            before = Some(name);
            let node = tree.node(name, entry).map_err(|it| at(it.under("[1]")))?;
            tree.nodes.push(node);
        }
        tree.number();
        Ok(tree)
    }

    /// The node of an entry, from those of the entries before it.
    fn node(&self, name: &EntryRef, entry: &Entry) -> Read<LogNode> {
        if entry.id != name.id {
            return Err(Misread::new("the id in the name of the entry").under("id"));
        }
        if entry.messages.iter().any(|message| message.id.is_empty()) {
            return Err(Misread::new("messages with ids").under("messages"));
        }
        // A parent has a lower number, so there are no rings.
        let parent = match &entry.parent {
            None => None,
            Some(parent) => match self.index(parent).filter(|_| parent.seq < name.seq) {
                None => return Err(Misread::new("the name of an earlier entry").under("parent")),
                found => found,
            },
        };
        let of_parent = parent.and_then(|it| self.nodes.get(it)).map_or(0, |it| it.n_said);
        Ok(LogNode { parent, n_said: of_parent + n_said(entry), place: 0, size: 1, next: 0 })
    }

    /// Numbers the nodes so that those below a node follow it without a gap.
    fn number(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let Some(LogNode { parent, size, .. }) = self.nodes.get(index) else { continue };
            let (parent, size) = (*parent, *size);
            if let Some(parent) = parent.and_then(|it| self.nodes.get_mut(it)) {
                parent.size += size;
            }
        }
        let mut free = 0;
        for index in 0..self.nodes.len() {
            let Some(LogNode { parent, size, .. }) = self.nodes.get(index) else { continue };
            let (parent, size) = (*parent, *size);
            let next = match parent.and_then(|it| self.nodes.get_mut(it)) {
                Some(parent) => &mut parent.next,
                None => &mut free,
            };
            let place = *next;
            *next += size;
            if let Some(node) = self.nodes.get_mut(index) {
                (node.place, node.next) = (place, place + 1);
            }
        }
    }

    fn index(&self, name: &EntryRef) -> Option<usize> {
        let known = self.entries.get(..self.nodes.len())?;
        let index = known.partition_point(|(it, _)| (it.seq, &it.id) < (name.seq, &name.id));
        known.get(index).filter(|(it, _)| it == name).map(|_| index)
    }

    fn find(&self, name: &EntryRef) -> Option<(&LogNode, &'a Entry)> {
        let index = self.index(name)?;
        Some((self.nodes.get(index)?, &self.entries.get(index)?.1))
    }

    fn check_head(&self, head: &'a Head) -> Read<()> {
        let n_said = match &head.leaf {
            None => 0,
            Some(leaf) => match self.find(leaf) {
                Some((node, _)) => node.n_said,
                None => return Err(Misread::new("the name of an entry").under("leaf")),
            },
        };
        if head.card.messages != n_said {
            let expected = format!("{n_said}, the number of messages on the path");
            return Err(Misread::new(&expected).under("messages").under("card"));
        }
        self.check_view(&head.view, END).map_err(|it| it.under("view"))?;
        let undone = self.undone(&head.view);
        self.check_end(undone, head.leaf.as_ref()).map_err(|it| it.under("view"))?;
        if let Some(anchor) = &head.anchor {
            let at = |misread: Misread| misread.under("anchor");
            if anchor.leaf.as_ref().is_some_and(|leaf| self.find(leaf).is_none()) {
                return Err(at(Misread::new("the name of an entry").under("leaf")));
            }
            self.check_view(&anchor.view, END).map_err(|it| at(it.under("view")))?;
            let checked = self.check_end(&anchor.view, anchor.leaf.as_ref());
            checked.map_err(|it| at(it.under("view")))?;
        }
        Ok(())
    }

    /// Checks what a summary replaces: only what was there before it. Other entries replace nothing.
    fn check_summary(&self, name: &EntryRef, entry: &Entry) -> Read<()> {
        if entry.kind == EntryKind::Summary && !entry.revises && entry.messages.len() != 1 {
            return Err(Misread::new("the one message of a summary").under("messages"));
        }
        self.check_view(&entry.replaced, name.seq).map_err(|it| it.under("replaced"))
    }

    /// Checks the pieces of a view of entries with numbers below `end`. Together they have no more messages than the log.
    fn check_view(&self, view: &[ViewPiece], end: u64) -> Read<()> {
        let mut n_shown = 0;
        for (index, piece) in view.iter().enumerate() {
            let at = |misread: Misread| misread.under(&format!("[{index}]"));
            n_shown += self.check_piece(piece, end).map_err(at)?;
            if n_shown > self.n_messages {
                return Err(at(Misread::new("each message once")));
            }
        }
        Ok(())
    }

    /// The view that a view with nothing but a summary becomes if its summaries are undone.
    fn undone(&self, view: &'a [ViewPiece]) -> &'a [ViewPiece] {
        let mut view = view;
        // What a summary replaces has lower numbers, so this ends.
        let mut end = END;
        while let [ViewPiece::Summary { summary }] = view
            && let Some((_, entry)) = self.find(summary).filter(|_| summary.seq < end)
        {
            (view, end) = (&entry.replaced, summary.seq);
        }
        view
    }

    /// Checks that a view ends on the path to the leaf: there it grows.
    fn check_end(&self, view: &[ViewPiece], leaf: Option<&EntryRef>) -> Read<()> {
        let Some((leaf, _)) = leaf.and_then(|leaf| self.find(leaf)) else { return Ok(()) };
        let has_leaf =
            |to: &MessagePlace| self.find(&to.0).is_some_and(|(node, _)| node.has_below(leaf));
        match view.last() {
            Some(ViewPiece::Span { to, .. }) if !has_leaf(to) => {
                Err(Misread::new("an end on the path to the leaf"))
            }
            _ => Ok(()),
        }
    }

    /// The number of messages of a piece.
    fn check_piece(&self, piece: &ViewPiece, end: u64) -> Read<u64> {
        let (from, to) = match piece {
            ViewPiece::Summary { summary } => {
                let found =
                    self.find(summary).filter(|(_, entry)| entry.kind == EntryKind::Summary);
                return match found.filter(|_| summary.seq < end) {
                    Some(_) => Ok(1),
                    None => Err(Misread::new("the name of an earlier summary").under("summary")),
                };
            }
            ViewPiece::Span { from, to } => (from, to),
        };
        let first = self.place(from, end).map_err(|it| it.under("from"))?;
        let last = self.place(to, end).map_err(|it| it.under("to"))?;
        let is_below = first.0.has_below(last.0);
        let is_in_order = from.0 != to.0 || from.1 <= to.1;
        match last.1.checked_sub(first.1).filter(|_| is_below && is_in_order) {
            Some(n) => Ok(n),
            None => Err(Misread::new("a place on the path after `from`").under("to")),
        }
    }

    /// The entry of a place, and the number of messages on the path up to the place.
    fn place(&self, (name, index): &MessagePlace, end: u64) -> Read<(&LogNode, u64)> {
        let found = self.find(name).filter(|_| name.seq < end);
        let Some((node, entry)) = found.filter(|(_, entry)| *index <= entry.messages.len()) else {
            return Err(Misread::new("a place in the log"));
        };
        let n_behind = n_said(entry).saturating_sub(*index as u64);
        Ok((node, node.n_said - n_behind))
    }
}

/// Whether an entry can have this id: it is a part of keys.
fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(is_plain)
}
