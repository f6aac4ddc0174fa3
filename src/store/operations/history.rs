//! Reading messages: the newest of a session or a branch, and one by its id.

use std::rc::Rc;

use crate::error::Result;
use crate::message::Message;
use crate::slot::Slot;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::view::MessagePlace;
use crate::store::history::Newest;
use crate::store::keys::{EntryRef, SlotKeys};
use crate::store::log::{self, Entries};
use crate::store::operations::load::missing_entry;
use crate::store::operations::sessions::{ATTEMPTS, Sessions, superseded};
use crate::store::session::Session;

impl Sessions {
    /// The newest messages before the message `before`, oldest first, as they were said.
    pub async fn history(
        &self,
        slot: &Slot,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.history_of(slot, None, before, limit).await
    }

    /// The same for a branch.
    pub async fn history_of(
        &self,
        slot: &Slot,
        branch: Option<&str>,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        for _ in 0..ATTEMPTS {
            let (session, open) = self.read_open(slot).await?;
            let stored = self.leaf(&session, branch).await?;
            let is_current =
                stored.as_ref() == session.head.as_ref().and_then(|it| it.leaf.as_ref());
            // A running resend shows its own path, unless the stored path is asked for by its name.
            let (leaf, unlogged) = match open.path() {
                Some(path) if branch.is_none() => (path.leaf.clone(), open.unlogged()),
                Some(_) => (stored, None),
                None => (stored, open.unlogged().filter(|_| is_current)),
            };
            let mut newest = Newest::new(before, limit, unlogged);
            if self.look_back(&session.keys, leaf.as_ref(), &mut newest).await? {
                return Ok(newest.into_messages());
            }
            // If an entry is missing, the session may have been deleted, and perhaps created again.
            self.check_unchanged(&session).await?;
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// Call this if an entry that the head leads to is missing. If the head is still the same, the entry is lost.
    pub(in crate::store) async fn check_unchanged(&self, session: &Session) -> Result<()> {
        match self.has_moved_on(session).await? {
            true => Ok(()),
            false => Err(missing_entry(&session.slot)),
        }
    }

    /// Collects the newest messages on the path to `leaf`. Returns whether the request is answered completely.
    async fn look_back(
        &self,
        keys: &SlotKeys,
        leaf: Option<&EntryRef>,
        newest: &mut Newest<'_>,
    ) -> Result<bool> {
        let Some(leaf) = leaf else { return Ok(newest.collect(&Entries::new(), None)) };
        let mut window = newest.limit() as u64 + 1;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let entries = self.records().entries(keys, first, leaf.seq).await?;
            let whole = newest.collect(&entries, Some(leaf));
            if whole || first == 0 {
                return Ok(whole);
            }
            window = window.saturating_mul(4);
        }
    }

    /// A message on the path of the session, as it was said, and its place. The search begins with the newest entry.
    pub async fn find(
        &self,
        session: &Session,
        id: &str,
    ) -> Result<Option<(MessagePlace, Rc<Message>)>> {
        let Some(leaf) = session.head.as_ref().and_then(|head| head.leaf.clone()) else {
            return Ok(None);
        };
        let mut window = 4;
        loop {
            let first = leaf.seq.saturating_sub(window);
            let entries = self.records().entries(&session.keys, first, leaf.seq).await?;
            let found = log::find(&entries, &leaf, id);
            if found.is_none() && first == 0 {
                if !log::is_whole(&entries, &leaf) {
                    self.check_unchanged(session).await?;
                }
                let view = session.head.as_ref().map(|head| head.view.as_slice());
                return Ok(log::find_shown(&entries, view.unwrap_or_default(), id));
            }
            if found.is_some() {
                return Ok(found);
            }
            window = window.saturating_mul(4);
        }
    }

    /// The place of the first message of the question that contains this message. A question is the messages of the user that
    /// follow each other in one entry; that of a call is everything that was asked in its turn. `None`: the message is not on the
    /// path, was put by hand, or is not of this call.
    pub async fn first_of_question(
        &self,
        session: &Session,
        id: &str,
        call_id: Option<&str>,
    ) -> Result<Option<MessagePlace>> {
        let Some(((name, at), _)) = self.find(session, id).await? else { return Ok(None) };
        let Some(entry) = self.records().entry(&session.keys, &name).await? else {
            return Ok(None);
        };
        let is_other = call_id.is_some_and(|call_id| call_id != entry.call_id);
        if entry.kind == EntryKind::Put || is_other {
            return Ok(None);
        }
        let before = entry.messages.get(..at).unwrap_or_default();
        let n = before.iter().rev().take_while(|message| message.is_question()).count();
        let run = (name.clone(), at - n);
        match call_id {
            Some(_) => Ok(Some(self.first_of_turn(session, (name, entry)).await?.unwrap_or(run))),
            None => Ok(Some(run)),
        }
    }

    /// The place of the first question of a turn that the context shows. Later questions in the turn have joined it. The entry
    /// is the last of the turn.
    async fn first_of_turn(
        &self,
        session: &Session,
        (mut name, mut entry): (EntryRef, Entry),
    ) -> Result<Option<MessagePlace>> {
        let is_shown = |message: &Rc<Message>| {
            message.is_question() && session.context.iter().any(|it| it.id == message.id)
        };
        let (call_id, mut first) = (entry.call_id.clone(), None);
        loop {
            if entry.kind != EntryKind::Summary
                && let Some(index) = entry.messages.iter().position(is_shown)
            {
                first = Some((name.clone(), index));
            }
            let Some(parent) = entry.parent.take() else { return Ok(first) };
            let Some(earlier) = self.records().entry(&session.keys, &parent).await? else {
                return Ok(first);
            };
            (name, entry) = (parent, earlier);
            let is_step = entry.kind == EntryKind::Step && entry.call_id == call_id;
            if !is_step && entry.kind != EntryKind::Summary {
                return Ok(first);
            }
        }
    }

    /// The same for a session that is not loaded.
    pub async fn find_in(
        &self,
        slot: &Slot,
        id: &str,
    ) -> Result<Option<(MessagePlace, Rc<Message>)>> {
        let session = self.read_only(slot).await?;
        self.find(&session, id).await
    }
}
