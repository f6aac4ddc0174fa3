//! Resend: answers the last question again. A new path begins before the question; it replaces the stored path if the turn
//! succeeds.

use std::rc::Rc;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::rarely;
use crate::message::Message;
use crate::state::{Facts, Persistence};
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::Head;
use crate::store::format::input::Input;
use crate::store::format::view;
use crate::store::keys::EntryRef;
use crate::store::log::{in_order, question};
use crate::store::operations::load::missing_entry;
use crate::store::operations::sessions::Sessions;
use crate::store::records::CommitOutcome;
use crate::store::session::{Session, TurnCommit};

/// Makes results for the tool calls in messages that have none.
pub(in crate::store) type CloseOpenCalls<'a> = &'a dyn Fn(&[Rc<Message>]) -> Vec<Rc<Message>>;

impl Sessions {
    /// Takes a loaded session back to before the question that the input asks for. Returns the question, and the facts before
    /// the question before it if they differ. `None`: there is no question.
    pub async fn rewind(
        &self,
        session: &mut Session,
        rolls_back: Persistence,
        input: &Input,
    ) -> Result<Option<(Vec<Rc<Message>>, Option<Facts>)>> {
        if let Some(from) = &input.from {
            return rarely(self.go_back_to(session, rolls_back, (from, &input.call_id))).await;
        }
        let Some(head) = session.head.clone() else { return Ok(None) };
        let Some(since) = self.since_anchor(session).await? else { return Ok(None) };
        let Some(path) = rewound(&head, &since, rolls_back) else { return Ok(None) };
        let ids = head.anchor.as_ref().map(|anchor| anchor.asked.as_slice()).unwrap_or_default();
        let asked = question(&since, ids);
        let mut earlier = since.iter().filter_map(|entry| entry.earlier.clone());
        let earlier = earlier.next().filter(|_| rolls_back.conversation);
        let context = match n_before(session, &head, &path, &since) {
            Some(n) => Rc::new(session.context.iter().take(n).cloned().collect()),
            None => self.context_of(session, &path).await?,
        };
        go_back(session, rolls_back, (path, context));
        Ok(Some((asked, earlier)))
    }

    /// The same for an earlier question. The copy of the messages before it in its entry is of the call with this id.
    async fn go_back_to(
        &self,
        session: &mut Session,
        rolls_back: Persistence,
        (from, call_id): (&str, &str),
    ) -> Result<Option<(Vec<Rc<Message>>, Option<Facts>)>> {
        let mut before = self.before_question(session, from, rolls_back).await?;
        let mut context = self.context_of(session, &before.path).await?;
        let name = EntryRef { seq: before.path.next, id: self.records().random_id() };
        let start = before.begin(name, call_id);
        if let Some((_, entry)) = &start {
            let context = Rc::make_mut(&mut context);
            for later in &entry.changes {
                later.apply_to(context);
            }
            let mut said = entry.messages.clone();
            before.path.edits.apply(&mut said);
            context.append(&mut said);
        }
        let earlier = before.earlier().filter(|_| rolls_back.conversation);
        go_back(session, rolls_back, (before.path, context));
        session.start = start.filter(|_| rolls_back.conversation);
        Ok(Some((before.asked, earlier)))
    }

    /// The messages of the view of a path.
    async fn context_of(&self, session: &Session, path: &Head) -> Result<Rc<Vec<Rc<Message>>>> {
        let context = self.context(&session.keys, path, None).await?;
        context.ok_or_else(|| missing_entry(&session.slot))
    }

    /// The entries on the path after the anchor, oldest first. `None`: there is no anchor.
    pub(in crate::store) async fn since_anchor(
        &self,
        session: &Session,
    ) -> Result<Option<Vec<Entry>>> {
        let Some(head) = session.stored_head() else { return Ok(None) };
        let Some(anchor) = &head.anchor else { return Ok(None) };
        // Entries are read one by one, because other answers to the same question may lie between them.
        let (mut since, mut name) = (Vec::new(), head.leaf.clone());
        while name != anchor.leaf
            && let Some(next) = &name
        {
            let entry = self.records().entry(&session.keys, next).await?;
            let entry = entry.ok_or_else(|| missing_entry(&session.slot))?;
            name = entry.parent.clone();
            since.push(entry);
        }
        since.reverse();
        Ok(Some(since))
    }

    /// The path that a crashed resend has left.
    async fn before_crash(&self, session: &Session, head: &Head, input: &Input) -> Result<Head> {
        if let Some(from) = &input.from {
            // A copy of the messages before the question in its own entry is in the log already, as an entry of the call.
            match rarely(self.before_question(session, from, Persistence::ALL)).await {
                Ok(before) => return Ok(before.path),
                // Another writer may have changed the session since.
                Err(error) if error.kind() == ErrorKind::InputInvalid => {}
                Err(error) => return Err(error),
            }
        }
        let since = self.since_anchor(session).await?.unwrap_or_default();
        Ok(rewound(head, &since, Persistence::ALL).unwrap_or_else(|| head.clone()))
    }

    /// Logs the input of a crashed resend as a side branch. The old answer stays. `close` makes results for open tool
    /// calls. `false`: the session was changed meanwhile; load it again.
    pub async fn recover_resend(
        &self,
        session: &mut Session,
        turn: &TurnCommit,
        close: CloseOpenCalls<'_>,
    ) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(false) };
        let before = match self.before_crash(session, &head, &turn.input).await {
            // Entries may be missing because the session was changed or deleted.
            Err(_) if self.has_moved_on(session).await? => return Ok(false),
            before => before?,
        };
        let mut path = before.clone();
        let first = path.leaf.as_ref().map_or(0, |leaf| leaf.seq);
        let log = in_order(self.records().entries(&session.keys, first, head.next).await?);
        for (name, entry) in log.into_iter().filter(|it| it.1.call_id == turn.input.call_id) {
            match entry.outcome {
                // This entry ends an earlier call with the same id, so the entries so far belong to that call.
                Some(_) => path = before.clone(),
                None => path.append(name, entry.messages.len()),
            }
        }
        let mut turn = turn.clone();
        let context = match self.context(&session.keys, &path, None).await? {
            Some(context) => context,
            None if self.has_moved_on(session).await? => return Ok(false),
            None => return Err(missing_entry(&session.slot)),
        };
        turn.messages.splice(..0, close(&context));
        turn.facts = path.facts.clone();
        let (change, _) =
            self.records().change(|host| session.branch_change(&head, &path, &turn, host));
        let committed = matches!(self.records().commit(&change.batch).await?, CommitOutcome::Done);
        if committed {
            session.take(change);
        }
        Ok(committed)
    }
}

/// Takes a loaded session back to a path with this context.
fn go_back(
    session: &mut Session,
    rolls_back: Persistence,
    (mut path, context): (Head, Rc<Vec<Rc<Message>>>),
) {
    let Some(head) = session.head.take() else { return };
    if !rolls_back.conversation {
        session.head = Some(Head { facts: path.facts, ..head });
        return;
    }
    path.edits = path.edits.take(|id| context.iter().any(|message| message.id == id));
    session.lineage.changed(0);
    session.bytes = context.iter().map(|message| message.weight()).sum();
    (session.context, session.left, session.head) = (context, Some(head.into()), Some(path));
    session.rolls_back = rolls_back;
}

/// The head before the last question; `since` are the entries from there on.
fn rewound(head: &Head, since: &[Entry], rolls_back: Persistence) -> Option<Head> {
    let mut path = head.rewound(rolls_back)?;
    let spoken = since.iter().filter(|entry| entry.kind != EntryKind::Summary);
    let n_since: usize = spoken.map(|entry| entry.messages.len()).sum();
    path.card.messages = path.card.messages.saturating_sub(n_since as u64);
    path.card.asking = false;
    Some(path)
}

/// How many messages of the loaded context were there before the question. `None`: the context must be read again.
fn n_before(session: &Session, head: &Head, path: &Head, since: &[Entry]) -> Option<usize> {
    let is_grown =
        view::growth(&path.view, &head.view).is_some() || head.view.starts_with(&path.view);
    // Later changes of tool calls cannot be undone in the loaded messages.
    let is_plain = |it: &Entry| {
        !matches!(it.kind, EntryKind::Summary | EntryKind::Put) && it.changes.is_empty()
    };
    // The context does not contain what the provider has rejected.
    let is_since = |message: &&Rc<Message>| {
        since.iter().any(|entry| entry.messages.iter().any(|it| it.id == message.id))
    };
    let n_since = session.context.iter().rev().take_while(is_since).count();
    let is_all = is_grown && path.edits == head.edits && since.iter().all(is_plain);
    is_all.then(|| session.context.len() - n_since)
}
