//! Ending a turn: on top of what was stored meanwhile where that is allowed, beside it where it is not.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::Batch;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, Outcome};
use crate::store::head::{Head, HeadRecord};
use crate::store::records::Landing;
use crate::store::session::{Session, Turn};
use crate::store::sessions::{ATTEMPTS, read_head, superseded};

/// A turn that is stored.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    /// The session's version now.
    pub version: u64,
    /// How many bytes were written.
    pub bytes: usize,
    /// Somebody else wrote in between, so what is in hand is not the whole session.
    pub overtaken: bool,
}

impl Sessions {
    /// Stores a turn, on top of whatever was stored meanwhile where that is allowed.
    pub async fn finish(&self, session: &mut Session, turn: &Turn) -> Result<Saved> {
        let Some(base) = session.head.clone() else {
            return Err(Error::new(ErrorKind::Internal, "a turn ended that was never accepted"));
        };
        let accepted = session.revision.clone();
        let mut head = base.clone();
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            // What we have not changed stays as the other side has left it.
            let facts = if turn.facts == base.facts { &head.facts } else { &turn.facts };
            let turn = &Turn { facts: facts.clone(), ..turn.clone() };
            let change = self.records.change(|mint| session.ending(&head, turn, mint));
            match self.records.commit(&change.batch).await? {
                Landing::Conflict => overtaken = true,
                landing => {
                    let bytes = written(&change.batch);
                    session.take(change);
                    session.bytes +=
                        turn.messages.iter().map(|message| message.weight()).sum::<usize>();
                    overtaken |= matches!(landing, Landing::Overtaken);
                    return Ok(Saved { version: session.version(), bytes, overtaken });
                }
            }
            let record = self.records.get(session.keys.head()).await?;
            let live =
                record.as_ref().map(|record| read_head(&session.slot, record)).transpose()?;
            let theirs = match live {
                Some(HeadRecord::Live(theirs)) if theirs.epoch == base.epoch => *theirs,
                _ => {
                    return Err(superseded(
                        &session.slot,
                        "the session was deleted or replaced meanwhile",
                    ));
                }
            };
            session.revision = record.map(|record| record.revision);
            if let Some(why) =
                self.objection(session, &base, &theirs, turn, accepted.as_deref()).await?
            {
                return self.set_aside(session, &base, theirs, turn, why).await;
            }
            head = theirs;
        }
        Err(superseded(&session.slot, "the session changes faster than this turn can be saved"))
    }

    /// Logs an accepted input whose call is gone. `false`: the session has moved on, and perhaps the input with it;
    /// load it again.
    pub async fn recover(&self, session: &mut Session, turn: &Turn) -> Result<bool> {
        // The input of a session that was made after its head was looked for.
        let Some(head) = session.head.clone() else { return Ok(false) };
        let change = self.records.change(|mint| session.ending(&head, turn, mint));
        let landed = matches!(self.records.commit(&change.batch).await?, Landing::Done);
        if landed {
            session.take(change);
            session.bytes += turn.messages.iter().map(|message| message.weight()).sum::<usize>();
        }
        Ok(landed)
    }

    /// Whether the input of a call was logged, from this number on, as that of a call that was cut off.
    pub async fn is_recovered(&self, session: &Session, call_id: &str, first: u64) -> Result<bool> {
        let Some(head) = &session.head else { return Ok(false) };
        let entries = self.records.entries(&session.keys, first, head.next.max(first)).await?;
        let is_ours = |it: &Entry| it.kind == EntryKind::Recovered && it.call_id == call_id;
        Ok(entries.values().any(is_ours))
    }

    /// Why our turn may not go on top of what the other side has written, if it may not.
    async fn objection(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &Turn,
        accepted: Option<&str>,
    ) -> Result<Option<&'static str>> {
        let unchanged = theirs.leaf == base.leaf;
        if turn.facts != base.facts && theirs.facts != base.facts {
            return Ok(Some("the same part of the session was changed elsewhere"));
        }
        if unchanged {
            return Ok(None);
        }
        let ours = self.records.get(session.keys.input(&turn.input.call_id)).await?;
        if ours.is_none_or(|record| Some(record.revision.as_str()) != accepted) {
            return Ok(Some(
                "the input was taken up elsewhere, as that of a call that was cut off",
            ));
        }
        let Some(leaf) = &theirs.leaf else { return Ok(Some("the session was cleared elsewhere")) };
        let first = base.leaf.as_ref().map_or(0, |leaf| leaf.seq);
        let entries = self.records.entries(&session.keys, first, leaf.seq).await?;
        let mut name = Some(leaf.clone());
        while name != base.leaf {
            let entry = name.as_ref().and_then(|name| entries.get(name));
            match entry {
                Some(entry) if entry.kind != EntryKind::Put => name = entry.parent.clone(),
                _ => return Ok(Some("the session was taken to another branch elsewhere")),
            }
        }
        Ok(None)
    }

    /// Keeps a turn beside the path, and says so.
    async fn set_aside(
        &self,
        session: &Session,
        base: &Head,
        theirs: Head,
        turn: &Turn,
        why: &str,
    ) -> Result<Saved> {
        let mut session = session.clone();
        let mut theirs = theirs;
        // What was recovered elsewhere has its input and its `call/<callId>` in the log already.
        let call_id = &turn.input.call_id;
        let entries = self.records.entries(&session.keys, base.next, theirs.next).await?;
        let recovered = entries
            .into_iter()
            .find(|(_, entry)| entry.kind == EntryKind::Recovered && entry.call_id == *call_id);
        let mut turn = turn.clone();
        turn.outcome = Outcome::failed(ErrorKind::Superseded.code(), why);
        let parent = match recovered {
            Some((name, entry)) => {
                turn.messages.retain(|it| entry.messages.iter().all(|other| other.id != it.id));
                turn.input.named = false;
                Some(name)
            }
            None => base.leaf.clone(),
        };
        for _ in 0..ATTEMPTS {
            let change =
                self.records.change(|mint| session.branching(&theirs, parent.clone(), &turn, mint));
            if !matches!(self.records.commit(&change.batch).await?, Landing::Conflict) {
                let hint = "the turn is kept in the log as a branch of its own";
                return Err(superseded(&session.slot, why).hint(hint));
            }
            session = self.load_head(&session.slot).await?;
            match &session.head {
                Some(head) if head.epoch == base.epoch => theirs = head.clone(),
                _ => break,
            }
        }
        let hint = "the turn could not be kept; what was answered is in `partial`";
        Err(superseded(&session.slot, why).hint(hint))
    }
}

fn written(batch: &Batch) -> usize {
    batch.put.iter().map(|(_, value)| value.len()).sum()
}
