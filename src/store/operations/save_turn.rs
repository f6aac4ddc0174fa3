//! Saves a turn: on top of what was stored meanwhile if that is allowed, otherwise as a side branch.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, rarely};
use crate::port::Batch;
use crate::seams;
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::format::entry::{EntryKind, Outcome};
use crate::store::format::head::{Head, HeadRecord};
use crate::store::host_values::HostValues;
use crate::store::keys::EntryRef;
use crate::store::log::in_order;
use crate::store::operations::load::read_head;
use crate::store::operations::sessions::ATTEMPTS;
use crate::store::operations::sessions::OnConflict;
use crate::store::operations::sessions::Sessions;
use crate::store::operations::sessions::superseded;
use crate::store::records::CommitOutcome;
use crate::store::session::takes_over;
use crate::store::session::{Session, TurnCommit};

/// The result of saving a turn.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    /// The new version of the session.
    pub version: u64,
    /// How many bytes were written.
    pub bytes: usize,
    /// Whether another writer has changed the session meanwhile, so that the loaded session is not complete.
    pub overtaken: bool,
}

impl Saved {
    /// Nothing was written: the loaded session is unchanged.
    fn unwritten(session: &Session) -> Saved {
        Saved { version: session.version(), bytes: 0, overtaken: true }
    }
}

/// Where a turn is stored if another turn was saved first.
enum ConflictDecision {
    /// On top of the other, with these facts.
    OnTop(Box<Facts>),
    /// Instead of the other.
    Instead,
    /// As a side branch, and why.
    Aside(&'static str),
}

impl Sessions {
    /// Stores a turn or a step, on top of what was stored meanwhile if that is allowed. If it fails, the loaded session is
    /// unchanged, so that the caller can try again.
    pub fn save_turn<'a>(
        &'a self,
        session: &'a mut Session,
        turn: &'a TurnCommit,
    ) -> Local<'a, Result<Saved>> {
        // Boxed: a call that waits for its model does not hold the memory that saving needs.
        Box::pin(async move {
            let revision = session.revision.clone();
            let saved = self.save_on_newest(session, turn).await;
            if saved.is_err() {
                session.revision = revision;
            }
            seams::acknowledged(saved, || Saved::unwritten(session))
        })
    }

    async fn save_on_newest(&self, session: &mut Session, turn: &TurnCommit) -> Result<Saved> {
        let Some(base) = session.stored_head().cloned() else { return Err(never_accepted()) };
        let known = session.revision.clone();
        let mut head = base.clone();
        let mut turn = turn.clone();
        rarely(self.find_left_out(session, &mut turn)).await?;
        let mut left = None;
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let close =
                |host: HostValues<'_>| session.turn_change(&head, &turn, left.as_ref(), host);
            let (change, path) = self.records().change(close);
            match self.records().commit(&change.batch).await? {
                CommitOutcome::Conflict => {}
                outcome => {
                    let bytes = written(&change.batch);
                    session.accepted =
                        turn.outcome.is_none().then(|| change.batch.revision.clone());
                    session.revision = Some(change.batch.revision);
                    overtaken |= !session.take_turn(change.head, path, &turn);
                    session.stored(&turn);
                    overtaken |= matches!(outcome, CommitOutcome::Overtaken);
                    return Ok(Saved { version: session.version(), bytes, overtaken });
                }
            }
            let theirs = rarely(self.newer_head(session, &base)).await?;
            // If only the lease has changed, the loaded session is still complete. If the leaf or the view has changed,
            // it is not.
            overtaken |= theirs.leaf != base.leaf || theirs.view != base.view;
            // This may be the second attempt of a save that seemed to fail and was stored.
            let own = rarely(self.logged(session, &base, &theirs, &turn.id)).await?;
            if let Some(own) = seams::arrived(own) {
                return rarely(self.arrived(session, &turn, (own, theirs), known)).await;
            }
            match rarely(self.decide_conflict(session, &base, &theirs, &turn)).await? {
                ConflictDecision::OnTop(facts) => {
                    if theirs.view != base.view && session.left.is_none() {
                        turn.keep_own_edits();
                    }
                    turn.facts = *facts;
                    head = seams::head_below(theirs, &base);
                }
                ConflictDecision::Instead if session.left.is_some() => head = theirs,
                ConflictDecision::Instead => {
                    let mut card = theirs.card.clone();
                    card.branches += 1;
                    left = Some(theirs.clone());
                    let Head { leaf, view, edits, anchor, facts, .. } = base.clone();
                    head = Head { leaf, view, edits, anchor, card, facts, ..theirs };
                }
                ConflictDecision::Aside(why) => {
                    return rarely(self.set_aside(session, &base, theirs, &turn, why)).await;
                }
            }
        }
        Err(superseded(&session.slot, "the session changes faster than this turn can be saved"))
    }

    /// Finds the place from which on stored messages leave the context.
    async fn find_left_out(&self, session: &Session, turn: &mut TurnCommit) -> Result<()> {
        if let Some(left_out) = &mut turn.left_out
            && let Some(first) = &left_out.first
        {
            let call_id = left_out.call_id.as_deref();
            left_out.from = self.first_of_question(session, first, call_id).await?;
        }
        Ok(())
    }

    /// Ends a save that seemed to fail, but whose entry is in the log under the name `own`. `known` is the revision
    /// that we had read before.
    async fn arrived(
        &self,
        session: &mut Session,
        turn: &TurnCommit,
        (own, theirs): (EntryRef, Head),
        known: Option<String>,
    ) -> Result<Saved> {
        let version = session.version();
        let record = self.records().get(session.keys.entry(&own)).await?;
        let accepted = record.map(|record| record.revision).filter(|_| turn.outcome.is_none());
        // A step of a resend is not the leaf of the head, and recovering its input does not move the leaf.
        let is_step = session.left.is_some() && turn.outcome.is_none();
        let is_last = match is_step {
            true => self.is_waiting(session, turn, accepted.as_ref()).await?,
            false => theirs.leaf.as_ref() == Some(&own),
        };
        if is_last {
            let path = session.head.as_ref().filter(|_| is_step);
            let path = path.map(|path| {
                self.records().change(|it| session.path_after_step(path, turn, &own, it))
            });
            session.accepted = accepted;
            session.take_turn(theirs, path, turn);
            session.stored(turn);
        } else {
            // The loaded head is not the stored head, so the next write must conflict.
            session.revision = known;
        }
        Ok(Saved { version, bytes: 0, overtaken: !is_last })
    }

    /// The head that another writer has stored, if it is still the same session.
    async fn newer_head(&self, session: &mut Session, base: &Head) -> Result<Head> {
        let record = self.records().get(session.keys.head()).await?;
        let live = record.as_ref();
        let live =
            live.map(|record| read_head(&session.slot, &session.keys, record)).transpose()?;
        session.revision = record.map(|record| record.revision);
        match live {
            Some(HeadRecord::Live(theirs))
                if seams::is_same_session(theirs.epoch == base.epoch) =>
            {
                theirs.check_format(&session.slot)?;
                Ok(*theirs)
            }
            _ => Err(superseded(&session.slot, "the session was deleted or replaced meanwhile")),
        }
    }

    /// Decides where our turn is stored, now that another writer was first.
    async fn decide_conflict(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &TurnCommit,
    ) -> Result<ConflictDecision> {
        let overwrites = self.on_conflict() == OnConflict::Overwrite;
        let moved = theirs.leaf != base.leaf;
        let resends = session.left.is_some();
        // Recovering a resend does not move the leaf.
        let accepted = session.accepted.as_ref();
        if (moved || resends) && !self.is_waiting(session, turn, accepted).await? {
            let why = "another node has logged the input, because it took the call for cut off";
            return Ok(ConflictDecision::Aside(why));
        }
        if moved && self.is_told(&session.slot, turn).await? {
            return Ok(ConflictDecision::Aside("another turn has reported the end of a task"));
        }
        if resends && !takes_over(turn) {
            return Ok(ConflictDecision::OnTop(Box::new(turn.facts.clone())));
        }
        if moved && overwrites {
            return Ok(ConflictDecision::Instead);
        }
        if moved && resends {
            return Ok(ConflictDecision::Aside(
                "another turn was saved while the question was answered again",
            ));
        }
        if moved && let Some(why) = self.objection(session, base, theirs, turn).await? {
            return Ok(ConflictDecision::Aside(why));
        }
        Ok(match Facts::merged(&base.facts, &turn.facts, &theirs.facts) {
            Some(facts) => ConflictDecision::OnTop(Box::new(facts)),
            None if overwrites => ConflictDecision::OnTop(Box::new(turn.facts.clone())),
            None => {
                ConflictDecision::Aside("another writer has changed the same part of the session")
            }
        })
    }

    /// Whether another turn has already reported the end of a task that this turn reports.
    async fn is_told(&self, slot: &Slot, turn: &TurnCommit) -> Result<bool> {
        let keys = self.keys(slot);
        let keys: Vec<_> = turn.told_tasks.iter().map(|task| keys.open_task(&task.id)).collect();
        Ok(!keys.is_empty() && self.records().get_all(&keys).await?.contains(&None))
    }

    /// The entry with this id, if it was logged since we loaded the session.
    async fn logged(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        id: &str,
    ) -> Result<Option<EntryRef>> {
        let entries = self.records().entries(&session.keys, base.next, theirs.next).await?;
        Ok(entries.into_keys().find(|name| name.id == id))
    }

    /// Whether the record of the accepted input still has the revision that we wrote, and no input that has joined the
    /// turn was logged by another node.
    async fn is_waiting(
        &self,
        session: &Session,
        turn: &TurnCommit,
        revision: Option<&String>,
    ) -> Result<bool> {
        let found = self.records().get(session.keys.input(&turn.input.call_id)).await?;
        let is_ours = found.is_some_and(|it| Some(&it.revision) == revision);
        let joined: Vec<_> = turn.joined.iter().map(|it| session.keys.input(&it.call_id)).collect();
        let all_wait = joined.is_empty() || !self.records().get_all(&joined).await?.contains(&None);
        Ok(seams::still_waits(is_ours && all_wait))
    }

    /// Why our turn must not be stored on top of the other; `None` if it may.
    async fn objection(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &TurnCommit,
    ) -> Result<Option<&'static str>> {
        if self.on_conflict() == OnConflict::Fail {
            return Ok(Some("another turn was saved first"));
        }
        let leaves_open = turn.outcome.as_ref().is_some_and(Outcome::is_open);
        let answers = !turn.changes.is_empty() || !turn.input.answers.is_empty();
        if leaves_open || answers || base.card.asking || theirs.card.asking {
            return Ok(Some("another turn was saved while tool calls were open"));
        }
        let Some(leaf) = &theirs.leaf else {
            return Ok(Some("another writer has cleared the session"));
        };
        let first = base.leaf.as_ref().map_or(0, |leaf| leaf.seq);
        let entries = self.records().entries(&session.keys, first, leaf.seq).await?;
        let mut name = Some(leaf.clone());
        while name != base.leaf {
            let entry = name.as_ref().and_then(|name| entries.get(name));
            match entry {
                Some(entry) if entry.kind != EntryKind::Put => name = entry.parent.clone(),
                _ => return Ok(Some("another writer has switched the session to another branch")),
            }
        }
        Ok(None)
    }

    /// Stores a turn as a side branch. It always returns the error that says so.
    async fn set_aside(
        &self,
        session: &Session,
        base: &Head,
        theirs: Head,
        turn: &TurnCommit,
        why: &str,
    ) -> Result<Saved> {
        let mut session = session.clone();
        let mut theirs = theirs;
        let mut turn = turn.clone();
        turn.outcome = Some(Outcome::failed(ErrorKind::Superseded.code(), why));
        turn.keep_own_edits();
        turn.left_out = None;
        let mut path = session.head.clone().unwrap_or_else(|| base.clone());
        let resends = session.left.is_some();
        let mut seen = base.next;
        for _ in 0..ATTEMPTS {
            // Read again in each attempt: the writer that was faster may have recovered another input of ours.
            let entries = self.records().entries(&session.keys, seen, theirs.next).await?;
            let new = in_order(entries).into_iter().filter(|(name, _)| name.seq < theirs.next);
            for (name, entry) in new {
                let fresh_id = || self.records().random_id();
                turn.leave_out(&mut path, (name, entry), (resends, &fresh_id));
            }
            seen = theirs.next;
            let (change, _) =
                self.records().change(|host| session.branch_change(&theirs, &path, &turn, host));
            if !matches!(self.records().commit(&change.batch).await?, CommitOutcome::Conflict) {
                let hint = "the turn is kept in the log as a side branch";
                return Err(superseded(&session.slot, why).hint(hint));
            }
            session = self.load_head(&session.slot).await?;
            match &session.head {
                Some(head) if head.epoch == base.epoch => theirs = head.clone(),
                _ => break,
            }
        }
        let hint = "the turn could not be stored; the answer is in `partial`";
        Err(superseded(&session.slot, why).hint(hint))
    }
}

fn never_accepted() -> Error {
    Error::new(ErrorKind::Internal, "a turn ended, but its input was never accepted")
}

fn written(batch: &Batch) -> usize {
    batch.put.iter().map(|(_, value)| value.len()).sum()
}
