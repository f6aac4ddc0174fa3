//! Batches that store a turn or a step: on the current path, as a side branch, or in place of the last answer.

use crate::json;
use crate::port::Batch;
use crate::state::{Facts, PermissionRight};
use crate::store::format::entry::{EntryKind, Outcome};
use crate::store::format::head::Head;
use crate::store::format::lease::Lease;
use crate::store::format::task::TaskRecord;
use crate::store::host_values::HostValues;
use crate::store::keys::EntryRef;
use crate::store::session::batches::last_line;
use crate::store::session::changes::{TurnCommit, ViewChange};
use crate::store::session::loaded::{Change, Session};

impl Session {
    /// Stores a turn, or a step of it, at the end of the path: entry, head and index in one batch.
    pub fn append_change(&self, head: &Head, turn: &TurnCommit, host: HostValues<'_>) -> Change {
        let mut head = head.clone();
        let mut batch = self.batch(&head, host);
        self.reshape(&mut head, &mut batch, (&turn.view_change, &turn.messages));
        let entry = EntryRef { seq: head.next, id: turn.id.clone() };
        self.put_entry(&mut batch, &entry, head.leaf.clone(), turn);
        self.mark_told(&mut batch, &turn.told_tasks);
        append(&mut head, entry.clone(), turn);
        note_cut_off(&mut head, turn);
        note_asked(&mut head, turn);
        head.change_facts(&turn.facts);
        if let Some(anchor) = head.anchor.as_ref().filter(|_| turn.is_forgotten) {
            let view = anchor.view.clone();
            head.show(view, (entry, turn.messages.len()));
        }
        head.card.line = last_line(&turn.messages).unwrap_or(head.card.line);
        if let Some(outcome) = &turn.outcome {
            head.card.asking = outcome.is_open();
            close(&mut head, turn, host);
            self.put_index(&mut head, &mut batch, host);
        }
        self.put_head(&mut head, &mut batch);
        Change { batch, head }
    }

    /// Stores a turn as a side branch: its entry is in the log, at the end of another path.
    pub(in crate::store) fn branch_change(
        &self,
        head: &Head,
        path: &Head,
        turn: &TurnCommit,
        host: HostValues<'_>,
    ) -> (Change, Head) {
        let (mut head, mut path) = (head.clone(), Head { next: head.next, ..path.clone() });
        let mut batch = self.batch(&head, host);
        self.reshape(&mut path, &mut batch, (&turn.view_change, &turn.messages));
        let entry = EntryRef { seq: path.next, id: turn.id.clone() };
        self.put_entry(&mut batch, &entry, path.leaf.clone(), turn);
        append(&mut path, entry, turn);
        note_cut_off(&mut path, turn);
        note_asked(&mut path, turn);
        path.change_facts(&turn.facts);
        path.card.line = last_line(&turn.messages).unwrap_or(path.card.line);
        head.next = path.next;
        self.keep_facts(&mut head, turn);
        if turn.outcome.is_some() {
            head.card.branches += 1;
            self.leave(&mut batch, &path);
            close(&mut head, turn, host);
            self.put_index(&mut head, &mut batch, host);
        }
        self.put_head(&mut head, &mut batch);
        (Change { batch, head }, path)
    }

    /// Keeps the changes that a resend has made to facts of the session, also if its path becomes a side branch.
    fn keep_facts(&self, head: &mut Head, turn: &TurnCommit) {
        let Some(left) = &self.left else { return };
        // Only a change of the turn itself counts here: nothing goes back.
        let rolls_back = self.rolls_back.with_right(PermissionRight::Given);
        let ours = rolls_back.rolled_back(&left.facts, &turn.facts);
        if let Some(facts) = Facts::merged(&left.facts, &ours, &head.facts) {
            head.change_facts(&facts);
        }
    }

    /// Stores a turn or a step, including that of a resend. A resend that succeeds replaces the path that it leaves; otherwise
    /// it becomes a side branch. `left` is the head of another writer that this turn replaces.
    pub(in crate::store) fn turn_change(
        &self,
        head: &Head,
        turn: &TurnCommit,
        left: Option<&Head>,
        host: HostValues<'_>,
    ) -> (Change, Option<Head>) {
        let (Some(path), true) = (&self.head, self.left.is_some()) else {
            let mut change = self.append_change(head, turn, host);
            left.into_iter().for_each(|left| self.leave(&mut change.batch, left));
            return (change, None);
        };
        if !takes_over(turn) {
            let (change, path) = self.branch_change(head, path, turn, host);
            return (change, Some(path));
        }
        let mut onto = head.on_path(path);
        onto.card.branches += 1;
        let mut change = self.append_change(&onto, turn, host);
        self.leave(&mut change.batch, head);
        (change, None)
    }

    /// The path after a step that is stored under this name. Later attempts may have given it another number.
    pub(in crate::store) fn path_after_step(
        &self,
        path: &Head,
        turn: &TurnCommit,
        own: &EntryRef,
        host: HostValues<'_>,
    ) -> Head {
        let ViewChange { revision, summary, .. } = &turn.view_change;
        let n_before = u64::from(summary.is_some()) + u64::from(revision.is_some());
        let at = Head { next: own.seq.saturating_sub(n_before), ..path.clone() };
        self.branch_change(&at, &at, turn, host).1
    }

    /// Takes over the heads after a turn or a step was stored. Returns whether the loaded session equals the stored one.
    pub(in crate::store) fn take_turn(
        &mut self,
        head: Head,
        path: Option<Head>,
        turn: &TurnCommit,
    ) -> bool {
        match self.left.take() {
            Some(_) if turn.outcome.is_none() => {
                (self.head, self.left) = (path.or_else(|| self.head.take()), Some(head.into()));
                true
            }
            resent => {
                let is_aside = resent.is_some() && !takes_over(turn);
                self.head = Some(head);
                !is_aside && !turn.is_forgotten && turn.left_out.is_none()
            }
        }
    }

    /// Stores the head as a branch, because the session leaves its leaf.
    pub(in crate::store) fn leave(&self, batch: &mut Batch, left: &Head) {
        if let Some(leaf) = &left.leaf {
            let record = Head { open: None, log: None, inputs: Vec::new(), ..left.clone() };
            batch.put.push((self.keys.branch(&leaf.id), json::to_bytes(&record)));
        }
    }

    /// Marks tasks as told in the same batch.
    fn mark_told(&self, batch: &mut Batch, told_tasks: &[TaskRecord]) {
        for task in told_tasks {
            batch.remove.push(self.keys.open_task(&task.id));
            batch.put.push((self.keys.told_task(&task.id), json::to_bytes(task)));
        }
    }
}

/// Appends the entry of a turn to a path.
fn append(path: &mut Head, entry: EntryRef, turn: &TurnCommit) {
    match &turn.left_out {
        Some(left_out) => path.append_in_part(entry, turn.messages.len(), left_out),
        None => path.append(entry, turn.messages.len()),
    }
}

/// Whether the turn of a resend replaces the earlier answer.
pub(in crate::store) fn takes_over(turn: &TurnCommit) -> bool {
    turn.outcome.as_ref().is_some_and(|outcome| outcome.code.is_none())
        && turn.kind != EntryKind::Recovered
}

/// Notes whether a crash or a shutdown has cut off the turn, which is now the leaf.
fn note_cut_off(head: &mut Head, turn: &TurnCommit) {
    let is_cut_off = |it: &Outcome| it.is_cut_off(turn.kind) && !turn.is_forgotten;
    let is_cut_off = turn.outcome.as_ref().is_some_and(is_cut_off);
    head.card.interrupted = is_cut_off.then(|| turn.id.clone());
}

/// Notes the ids of the question in the anchor, if other messages of the user follow the question directly.
fn note_asked(head: &mut Head, turn: &TurnCommit) {
    let asked = turn.asked();
    if let Some(anchor) = head.anchor.as_mut()
        && !asked.is_empty()
    {
        anchor.asked = asked;
    }
}

/// Ends the lease of the call of a turn. A recovered turn leaves the lease to the call that recovers it.
fn close(head: &mut Head, turn: &TurnCommit, host: HostValues<'_>) {
    let is_own = |open: &Lease| open.call_id == turn.input.call_id;
    if turn.kind != EntryKind::Recovered && head.open.as_ref().is_some_and(is_own) {
        head.open = host.node.and_then(|node| head.open.as_ref()?.passed_on(&node));
    }
}
