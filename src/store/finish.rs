//! Ending a turn: on top of what was stored meanwhile where that is allowed, beside it where it is not.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, rarely};
use crate::message::{Message, Role};
use crate::mutants;
use crate::port::Batch;
use crate::state::Facts;
use crate::store::Sessions;
use crate::store::entry::{Entry, EntryKind, EntryRef, Outcome};
use crate::store::head::{Head, HeadRecord};
use crate::store::records::Landing;
use crate::store::resend::{in_order, takes_over};
use crate::store::session::{Mint, Session, Turn};
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

/// What to do with a turn that meets another's, saved meanwhile without our lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Goes on top of it where that is allowed, beside it where it is not.
    #[default]
    Rebase,
    /// Goes beside it.
    Fail,
    /// Goes in its place; the other stays in the log as a branch.
    Overwrite,
}

/// Where a turn goes that met another's.
enum Stand {
    /// On top, with these facts.
    OnTop(Box<Facts>),
    /// In place of it.
    Instead,
    /// Beside it, and why.
    Aside(&'static str),
}

impl Sessions {
    /// Stores a turn or a step, on top of whatever was stored meanwhile where that is allowed. If it cannot be stored the
    /// session in hand is as it was, so that it can be tried again.
    pub fn finish<'a>(
        &'a self,
        session: &'a mut Session,
        turn: &'a Turn,
    ) -> Local<'a, Result<Saved>> {
        // In a box of its own: a call that waits for its model does not hold the room in which it will be saved.
        Box::pin(async move {
            let revision = session.revision.clone();
            let saved = self.finish_on(session, turn).await;
            if saved.is_err() {
                session.revision = revision;
            }
            if mutants::is("early-acknowledge") {
                return Ok(Saved { version: session.version(), bytes: 0, overtaken: true });
            }
            saved
        })
    }

    async fn finish_on(&self, session: &mut Session, turn: &Turn) -> Result<Saved> {
        let Some(base) = session.stored_head().cloned() else {
            return Err(Error::new(ErrorKind::Internal, "a turn ended that was never accepted"));
        };
        let known = session.revision.clone();
        let mut head = base.clone();
        let mut turn = turn.clone();
        let mut left = None;
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let close = |mint: Mint<'_>| session.closing(&head, &turn, left.as_ref(), mint);
            let (change, path) = self.records.change(close);
            match self.records.commit(&change.batch).await? {
                Landing::Conflict => {}
                landing => {
                    let bytes = written(&change.batch);
                    session.accepted =
                        turn.outcome.is_none().then(|| change.batch.revision.clone());
                    session.revision = Some(change.batch.revision);
                    overtaken |= !session.closed(change.head, path, &turn);
                    session.stored(&turn);
                    overtaken |= matches!(landing, Landing::Overtaken);
                    return Ok(Saved { version: session.version(), bytes, overtaken });
                }
            }
            let theirs = rarely(self.newer_head(session, &base)).await?;
            // Who has it open may have changed; what was said may not, or we do not have it all.
            overtaken |= theirs.leaf != base.leaf || theirs.view != base.view;
            // A save that seemed to fail may have arrived, and this is its second try.
            if let Some(own) = rarely(self.logged(session, &base, &theirs, &turn.id)).await?
                && !mutants::is("second-append")
            {
                return rarely(self.arrived(session, &turn, (own, theirs), known)).await;
            }
            match rarely(self.stand(session, &base, &theirs, &turn)).await? {
                Stand::OnTop(facts) => {
                    if theirs.view != base.view && session.left.is_none() {
                        turn.keep_own_edits();
                    }
                    turn.facts = *facts;
                    head = if mutants::is("lost-update") { base.clone() } else { theirs };
                }
                Stand::Instead if session.left.is_some() => head = theirs,
                Stand::Instead => {
                    let mut card = theirs.card.clone();
                    card.branches += 1;
                    left = Some(theirs.clone());
                    let Head { leaf, view, edits, anchor, facts, .. } = base.clone();
                    head = Head { leaf, view, edits, anchor, card, facts, ..theirs };
                }
                Stand::Aside(why) => {
                    return rarely(self.set_aside(session, &base, theirs, &turn, why)).await;
                }
            }
        }
        Err(superseded(&session.slot, "the session changes faster than this turn can be saved"))
    }

    /// A save that seemed to fail is in the log, under this name; `known` is the revision that we had read before.
    async fn arrived(
        &self,
        session: &mut Session,
        turn: &Turn,
        (own, theirs): (EntryRef, Head),
        known: Option<String>,
    ) -> Result<Saved> {
        let version = session.version();
        let record = self.records.get(session.keys.entry(&own)).await?;
        let accepted = record.map(|record| record.revision).filter(|_| turn.outcome.is_none());
        // A step of a resend is no leaf of the head, and nobody who recovers its input moves that.
        let is_step = session.left.is_some() && turn.outcome.is_none();
        let is_last = match is_step {
            true => self.is_waiting(session, turn, accepted.as_ref()).await?,
            false => theirs.leaf.as_ref() == Some(&own),
        };
        if is_last {
            let path = session.head.as_ref().filter(|_| is_step);
            let path =
                path.map(|path| self.records.change(|it| session.arrived(path, turn, &own, it)));
            session.accepted = accepted;
            session.closed(theirs, path, turn);
            session.stored(turn);
        } else {
            // The head in hand is not the one that was read: whoever writes next is to meet it.
            session.revision = known;
        }
        Ok(Saved { version, bytes: 0, overtaken: !is_last })
    }

    /// The head that somebody else has written, if it still is the session we know.
    async fn newer_head(&self, session: &mut Session, base: &Head) -> Result<Head> {
        let record = self.records.get(session.keys.head()).await?;
        let live = record.as_ref().map(|record| read_head(&session.slot, record)).transpose()?;
        session.revision = record.map(|record| record.revision);
        match live {
            Some(HeadRecord::Live(theirs))
                if theirs.epoch == base.epoch || mutants::is("no-epoch") =>
            {
                theirs.check_format(&session.slot)?;
                Ok(*theirs)
            }
            _ => Err(superseded(&session.slot, "the session was deleted or replaced meanwhile")),
        }
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

    /// Where our turn goes, now that the other side has written.
    async fn stand(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &Turn,
    ) -> Result<Stand> {
        let overwrites = self.on_conflict == OnConflict::Overwrite;
        let moved = theirs.leaf != base.leaf;
        let resends = session.left.is_some();
        // Whoever recovers a resend leaves the leaf where it is.
        let accepted = session.accepted.as_ref();
        if (moved || resends) && !self.is_waiting(session, turn, accepted).await? {
            let why = "the input was taken up elsewhere, as that of a call that was cut off";
            return Ok(Stand::Aside(why));
        }
        if moved && self.is_told(&session.slot, turn).await? {
            return Ok(Stand::Aside("the end of a task was told elsewhere"));
        }
        if resends && !takes_over(turn) {
            return Ok(Stand::OnTop(Box::new(turn.facts.clone())));
        }
        if moved && overwrites {
            return Ok(Stand::Instead);
        }
        if moved && resends {
            return Ok(Stand::Aside("the session moved on elsewhere while it was answered again"));
        }
        if moved && let Some(why) = self.objection(session, base, theirs, turn).await? {
            return Ok(Stand::Aside(why));
        }
        Ok(match Facts::merged(&base.facts, &turn.facts, &theirs.facts) {
            Some(facts) => Stand::OnTop(Box::new(facts)),
            None if overwrites => Stand::OnTop(Box::new(turn.facts.clone())),
            None => Stand::Aside("the same part of the session was changed elsewhere"),
        })
    }

    /// The entry of this id, if the log has it, from where we began.
    async fn logged(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        id: &str,
    ) -> Result<Option<EntryRef>> {
        let entries = self.records.entries(&session.keys, base.next, theirs.next).await?;
        Ok(entries.into_keys().find(|name| name.id == id))
    }

    /// Whether the accepted input waits as we wrote it, with this revision.
    async fn is_waiting(
        &self,
        session: &Session,
        turn: &Turn,
        revision: Option<&String>,
    ) -> Result<bool> {
        let found = self.records.get(session.keys.input(&turn.input.call_id)).await?;
        let is_ours = found.is_some_and(|it| Some(&it.revision) == revision);
        Ok(is_ours || mutants::is("doubled-input"))
    }

    /// Why our turn may not go on top of what the other side has said, if it may not.
    async fn objection(
        &self,
        session: &Session,
        base: &Head,
        theirs: &Head,
        turn: &Turn,
    ) -> Result<Option<&'static str>> {
        if self.on_conflict == OnConflict::Fail {
            return Ok(Some("another turn was saved first"));
        }
        let leaves_open = turn.outcome.as_ref().is_some_and(Outcome::is_open);
        let answers = !turn.changes.is_empty() || !turn.input.answers.is_empty();
        if leaves_open || answers || base.card.asking || theirs.card.asking {
            return Ok(Some("tool calls were open while the session moved on elsewhere"));
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
        let mut turn = turn.clone();
        turn.outcome = Some(Outcome::failed(ErrorKind::Superseded.code(), why));
        turn.keep_own_edits();
        let mut path = session.head.clone().unwrap_or_else(|| base.clone());
        let resends = session.left.is_some();
        let mut seen = base.next;
        for _ in 0..ATTEMPTS {
            // Every time anew: whoever was faster than the last try may have recovered another input of ours.
            let entries = self.records.entries(&session.keys, seen, theirs.next).await?;
            let new = in_order(entries).into_iter().filter(|(name, _)| name.seq < theirs.next);
            for (name, entry) in new {
                leave_out(&mut turn, &mut path, (name, entry), resends);
            }
            seen = theirs.next;
            let (change, _) =
                self.records.change(|mint| session.branching(&theirs, &path, &turn, mint));
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

/// Takes out of a turn what the log has already: what was recovered elsewhere has its input and its `call/<callId>`
/// there, also that of a call which had joined this one; neither is a step said again that arrived after all.
fn leave_out(turn: &mut Turn, path: &mut Head, (name, entry): (EntryRef, Entry), resends: bool) {
    let mut inputs = turn.joined.iter_mut().chain([&mut turn.input]);
    let Some(input) = inputs.find(|it| it.call_id == entry.call_id) else { return };
    input.named &= entry.kind != EntryKind::Recovered;
    // What had joined a resend is recovered on the path that the resend leaves: here it stays said. A step is of this path
    // in any case; a summary may lie between.
    if resends && entry.kind != EntryKind::Step && entry.parent != path.leaf {
        return;
    }
    turn.messages.retain(|it| !entry.messages.iter().any(|other| says_the_same(it, other)));
    path.append(name, entry.messages.len());
}

/// Whether two messages are one, or give results to the same tool call.
fn says_the_same(one: &Message, other: &Message) -> bool {
    let result = |message: &Message| message.tool_results().next().map(|it| it.id.clone());
    one.id == other.id || (one.role == Role::Tool && result(one) == result(other))
}

fn written(batch: &Batch) -> usize {
    batch.put.iter().map(|(_, value)| value.len()).sum()
}
