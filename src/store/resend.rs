//! Answering again: a path that is built beside the stored one, from before the last question, and takes its place when
//! it ends well.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::message::Message;
use crate::state::Persistence;
use crate::store::Sessions;
use crate::store::branch::{asked_in, is_question};
use crate::store::entry::{Entry, EntryKind, EntryRef};
use crate::store::head::Head;
use crate::store::records::{Landing, read};
use crate::store::session::{Change, Mint, Session, Turn};
use crate::store::view::{self, Entries};

/// Says which results are given to tool calls that messages leave without.
pub(super) type Closing<'a> = &'a dyn Fn(&[Rc<Message>]) -> Vec<Rc<Message>>;

impl Session {
    /// Ending a turn or a step, also that of a resend: one that ends well takes the place of the path that it leaves, all
    /// else goes beside it. `left` is another's leaf that this turn is put in place of.
    pub(super) fn closing(
        &self,
        head: &Head,
        turn: &Turn,
        left: Option<&Head>,
        mint: Mint<'_>,
    ) -> (Change, Option<Head>) {
        let (Some(path), true) = (&self.head, self.left.is_some()) else {
            let mut change = self.ending(head, turn, mint);
            left.into_iter().for_each(|left| self.leave(&mut change.batch, left));
            return (change, None);
        };
        if !takes_over(turn) {
            let (change, path) = self.branching(head, path, turn, mint);
            return (change, Some(path));
        }
        let mut onto = head.on_path(path);
        onto.card.branches += 1;
        let mut change = self.ending(&onto, turn, mint);
        self.leave(&mut change.batch, head);
        (change, None)
    }

    /// The path behind a step that arrived under this name, whatever number later tries gave it.
    pub(super) fn arrived(&self, path: &Head, turn: &Turn, own: &EntryRef, mint: Mint<'_>) -> Head {
        let n_before = u64::from(turn.reshaping.summary.is_some());
        let at = Head { next: own.seq.saturating_sub(n_before), ..path.clone() };
        self.branching(&at, &at, turn, mint).1
    }

    /// A turn, or a step of one, is stored. Whether what is in hand is what is stored now.
    pub(super) fn closed(&mut self, head: Head, path: Option<Head>, turn: &Turn) -> bool {
        match self.left.take() {
            Some(_) if turn.outcome.is_none() => {
                (self.head, self.left) = (path.or_else(|| self.head.take()), Some(head.into()));
                true
            }
            resent => {
                let is_aside = resent.is_some() && !takes_over(turn);
                self.head = Some(head);
                !is_aside && !turn.is_forgotten
            }
        }
    }
}

/// Whether the turn of a resend takes the place of the answer before it.
pub(super) fn takes_over(turn: &Turn) -> bool {
    turn.outcome.as_ref().is_some_and(|outcome| outcome.code.is_none())
        && turn.kind != EntryKind::Recovered
}

/// Notes what a turn was asked, unless that is all that the user says before it is answered.
pub(super) fn note_asked(head: &mut Head, turn: &Turn) {
    let is_asked =
        |message: &Rc<Message>| turn.input.messages.iter().any(|asked| asked.id == message.id);
    let asked: Vec<_> = turn.messages.iter().filter(|it| is_asked(it)).cloned().collect();
    if let Some(anchor) = head.anchor.as_mut()
        && !asked.is_empty()
        && asked != first_said(&turn.messages)
    {
        anchor.asked = asked.iter().map(|message| message.id.clone()).collect();
    }
}

impl Sessions {
    /// Takes a session in hand back to before its last question, and tells what that was. `None`: there is none.
    pub async fn rewind(
        &self,
        session: &mut Session,
        rolls_back: Persistence,
    ) -> Result<Option<Vec<Rc<Message>>>> {
        let Some(head) = session.head.clone() else { return Ok(None) };
        let Some(since) = self.since_anchor(session).await? else { return Ok(None) };
        let Some(mut path) = rewound(&head, &since, rolls_back) else { return Ok(None) };
        let ids = head.anchor.as_ref().map(|anchor| anchor.asked.as_slice()).unwrap_or_default();
        let asked = question(&since, ids);
        if !rolls_back.conversation {
            session.head = Some(Head { facts: path.facts, ..head });
            return Ok(Some(asked));
        }
        let context = match n_before(session, &head, &path, &since) {
            Some(n) => Rc::new(session.context.iter().take(n).cloned().collect()),
            None => self.context(&session.keys, &path, None).await?.ok_or_else(|| {
                let message = format!("{}: an entry of its log is missing", session.slot);
                Error::new(ErrorKind::StoreCorrupt, message)
            })?,
        };
        path.edits = path.edits.take(|id| context.iter().any(|message| message.id == id));
        session.lineage.changed(0);
        session.bytes = context.iter().map(|message| message.weight()).sum();
        (session.context, session.left, session.head) = (context, Some(head.into()), Some(path));
        Ok(Some(asked))
    }

    /// The entries on the path behind the anchor, oldest first; `None` if there is no anchor.
    async fn since_anchor(&self, session: &Session) -> Result<Option<Vec<Entry>>> {
        let Some(head) = session.stored_head() else { return Ok(None) };
        let Some(anchor) = &head.anchor else { return Ok(None) };
        // One by one: other answers to the same question may lie between.
        let (mut since, mut name) = (Vec::new(), head.leaf.clone());
        while name != anchor.leaf
            && let Some(next) = &name
            && let Some(record) = self.records.get(session.keys.entry(next)).await?
        {
            let entry = read(&record, Entry::from_json, "an entry")?;
            name = entry.parent.clone();
            since.push(entry);
        }
        since.reverse();
        Ok(Some(since))
    }

    /// Logs the input of a resend whose call is gone, beside the path: the old answer stays. `close` gives results to
    /// tool calls that were open there. `false`: the session has moved on; load it again.
    pub async fn recover_resend(
        &self,
        session: &mut Session,
        turn: &Turn,
        close: Closing<'_>,
    ) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(false) };
        let since = self.since_anchor(session).await?.unwrap_or_default();
        let before = rewound(&head, &since, Persistence::ALL).unwrap_or_else(|| head.clone());
        let mut path = before.clone();
        let first = path.leaf.as_ref().map_or(0, |leaf| leaf.seq);
        let log = in_order(self.records.entries(&session.keys, first, head.next).await?);
        for (name, entry) in log.into_iter().filter(|it| it.1.call_id == turn.input.call_id) {
            match entry.outcome {
                // Up to here it is an earlier try of the same name.
                Some(_) => path = before.clone(),
                None => path.append(name, entry.messages.len()),
            }
        }
        let mut turn = turn.clone();
        let context = self.context(&session.keys, &path, None).await?.unwrap_or_default();
        turn.messages.splice(..0, close(&context));
        turn.facts = path.facts.clone();
        let (change, _) = self.records.change(|mint| session.branching(&head, &path, &turn, mint));
        let landed = matches!(self.records.commit(&change.batch).await?, Landing::Done);
        if landed {
            session.take(change);
        }
        Ok(landed)
    }
}

/// The head before the last question; `since` is what was said from there on.
fn rewound(head: &Head, since: &[Entry], rolls_back: Persistence) -> Option<Head> {
    let mut path = head.rewound(rolls_back)?;
    let spoken = since.iter().filter(|entry| entry.kind != EntryKind::Summary);
    let n_since: usize = spoken.map(|entry| entry.messages.len()).sum();
    path.card.messages = path.card.messages.saturating_sub(n_since as u64);
    path.card.asking = false;
    Some(path)
}

/// How many messages of the context in hand were there before, where only its end has to be taken off.
fn n_before(session: &Session, head: &Head, path: &Head, since: &[Entry]) -> Option<usize> {
    let is_grown =
        view::growth(&path.view, &head.view).is_some() || head.view.starts_with(&path.view);
    // What became of tool calls since cannot be taken back from the messages in hand.
    let spoken = since.iter().filter(|it| it.kind != EntryKind::Summary && it.changes.is_empty());
    let n_since = spoken.clone().map(|entry| entry.messages.len()).sum();
    let is_all = is_grown && path.edits == head.edits && spoken.count() == since.len();
    session.context.len().checked_sub(n_since).filter(|_| is_all)
}

/// The question that a turn begins with: the messages of these ids, unless a hook has put others in their place.
fn question(turn: &[Entry], ids: &[String]) -> Vec<Rc<Message>> {
    let all = turn.iter().flat_map(|entry| &entry.messages);
    let asked: Vec<_> = all.filter(|message| ids.contains(&message.id)).cloned().collect();
    if !asked.is_empty() {
        return asked;
    }
    let entry = turn.iter().find(|entry| asked_in(entry).is_some());
    entry.map(|entry| first_said(&entry.messages)).unwrap_or_default()
}

/// What the user says before it is answered.
fn first_said(messages: &[Rc<Message>]) -> Vec<Rc<Message>> {
    let said = messages.iter().skip_while(|message| !is_question(message));
    said.take_while(|message| is_question(message)).cloned().collect()
}

/// Entries in the order of the log.
pub(super) fn in_order(entries: Entries) -> Vec<(EntryRef, Entry)> {
    let mut ordered: Vec<(EntryRef, Entry)> = Vec::new();
    for (name, entry) in entries {
        let place =
            ordered.partition_point(|(other, _)| (other.seq, &other.id) < (name.seq, &name.id));
        ordered.insert(place, (name, entry));
    }
    ordered
}
