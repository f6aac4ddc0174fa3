//! Loading a session: its head, and the messages of its context.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json;
use crate::message::Message;
use crate::port::{Page, Record};
use crate::slot::Slot;
use crate::state::FORMAT;
use crate::store::format::entry::EntryKind;
use crate::store::format::head::{Head, HeadRecord, newer};
use crate::store::format::view::{self, ViewPiece};
use crate::store::keys::SlotKeys;
use crate::store::log::SpanMessages;
use crate::store::operations::sessions::{ATTEMPTS, Sessions, superseded};
use crate::store::seal::{Seal, opened};
use crate::store::session::Session;

impl Sessions {
    /// Loads a session as it is stored now. Of a `known` session only what has changed is read.
    pub async fn load(&self, slot: &Slot, known: Option<Session>) -> Result<Session> {
        let mut known = known;
        for _ in 0..ATTEMPTS {
            let keys = self.keys(slot);
            let Some(record) = self.records().get(keys.head()).await? else {
                if self.is_absent(slot, &keys).await? {
                    return Ok(self.absent(slot, keys, None));
                }
                continue;
            };
            let known = match known.take() {
                Some(session) if session.revision.as_ref() == Some(&record.revision) => {
                    return Ok(session);
                }
                other => other,
            };
            let HeadRecord::Live(head) = read_head(slot, &keys, &record)? else {
                return Ok(self.absent(slot, keys, Some(record.revision)));
            };
            // If an entry is missing, a newer head may no longer contain it: read the head again.
            if let Some(context) = Box::pin(self.context(&keys, &head, known)).await? {
                let bytes = context.iter().map(|message| message.weight()).sum();
                let absent = self.absent(slot, keys, Some(record.revision));
                return Ok(Session { head: Some(*head), context, bytes, ..absent });
            }
        }
        Err(missing_entry(slot))
    }

    /// Loads the head without the context.
    pub(in crate::store) async fn load_head(&self, slot: &Slot) -> Result<Session> {
        let keys = self.keys(slot);
        let Some(record) = self.records().get(keys.head()).await? else {
            return Ok(self.absent(slot, keys, None));
        };
        let revision = Some(record.revision.clone());
        let session = self.absent(slot, keys, revision);
        match read_head(slot, &session.keys, &record)? {
            HeadRecord::Live(head) => Ok(Session { head: Some(*head), ..session }),
            HeadRecord::Tombstone => Ok(session),
        }
    }

    /// Loads the head of a session that is not going to be changed.
    pub(in crate::store) async fn read_only(&self, slot: &Slot) -> Result<Session> {
        for _ in 0..ATTEMPTS {
            let session = self.load_head(slot).await?;
            if session.revision.is_some() || self.is_absent(slot, &session.keys).await? {
                return Ok(session);
            }
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// Whether the head was written or removed since it was read.
    pub async fn has_moved_on(&self, session: &Session) -> Result<bool> {
        let record = self.records().get(session.keys.head()).await?;
        Ok(record.map(|record| record.revision) != session.revision)
    }

    /// Whether a session without a head has no other records of a conversation either. Such records without a head are an
    /// error. `false`: the head was written meanwhile.
    async fn is_absent(&self, slot: &Slot, keys: &SlotKeys) -> Result<bool> {
        let Some(left) = self.left_behind(keys).await? else { return Ok(true) };
        if self.records().get(keys.head()).await?.is_some() {
            return Ok(false);
        }
        let message = format!("the head of {slot} is missing, but {left} exists");
        Err(Error::new(ErrorKind::StoreCorrupt, message)
            .hint("repairSession makes a new head from the log; nothing was changed"))
    }

    /// What is stored of a session without a head. Its files and the mark of its memory can be there without a conversation.
    async fn left_behind(&self, keys: &SlotKeys) -> Result<Option<&'static str>> {
        let of_conversation = [
            (keys.log(), "its log"),
            (keys.inputs(), "an accepted input"),
            (keys.branch(""), "a branch"),
        ];
        let mut after = None;
        loop {
            let one = Page { after, limit: Some(1), keys_only: true };
            let found = self.records().list(&keys.all(), one).await?;
            let Some((key, _)) = found.into_iter().next() else { return Ok(None) };
            let is_below = |(prefix, _): &&(String, &'static str)| key.starts_with(prefix.as_str());
            if let Some((_, what)) = of_conversation.iter().find(is_below) {
                return Ok(Some(what));
            }
            // Goes on behind all records of the same kind.
            let kind = key.strip_prefix(&keys.all()).and_then(|below| below.split('/').next());
            after = Some(format!("{}{}0", keys.all(), kind.unwrap_or_default()));
        }
    }

    /// The messages of the view of a head. `None`: an entry is missing.
    pub(in crate::store) async fn context(
        &self,
        keys: &SlotKeys,
        head: &Head,
        known: Option<Session>,
    ) -> Result<Option<Rc<Vec<Rc<Message>>>>> {
        if let Some(Session { head: Some(old), mut context, .. }) = known
            && (&old.epoch, &old.edits) == (&head.epoch, &head.edits)
            && let Some((was, is)) = view::growth(&old.view, &head.view)
            && let Some(new) = self.records().span(keys, was, is).await?
        {
            grow(Rc::make_mut(&mut context), new);
            return Ok(Some(context));
        }
        let mut context = Vec::new();
        // A damaged view could show the log a thousand times, and fill the memory.
        let (mut most, mut is_counted) = (head.card.messages as usize + head.view.len(), false);
        for piece in &head.view {
            let (from, to) = match piece {
                ViewPiece::Span { from, to } => (from.clone(), to.clone()),
                ViewPiece::Summary { summary } => ((summary.clone(), 0), (summary.clone(), 1)),
            };
            let Some(span) = self.records().span(keys, &from, &to).await? else { return Ok(None) };
            grow(&mut context, span);
            if context.len() > most && !is_counted {
                let log = self.records().entries(keys, 0, head.next).await?;
                // What a summary has replaced can be shown besides what else shows it, once it is undone.
                let n_summaries = log.values().filter(|it| it.kind == EntryKind::Summary).count();
                let n_messages: usize = log.values().map(|entry| entry.messages.len()).sum();
                most = n_messages * (1 + n_summaries);
                is_counted = true;
            }
            if context.len() > most {
                return Ok(None);
            }
        }
        head.edits.apply(&mut context);
        Ok(Some(Rc::new(context)))
    }
}

/// Appends the messages of a span to the messages before it.
fn grow(context: &mut Vec<Rc<Message>>, span: SpanMessages) {
    for later in &span.of_earlier {
        later.apply_to(context);
    }
    context.extend(span.messages);
}

/// Reads a head. Refuses the head of another session. What a head says about other records counts only if its seal is whole.
pub(in crate::store) fn read_head(
    slot: &Slot,
    keys: &SlotKeys,
    record: &Record,
) -> Result<HeadRecord> {
    let what = format!("the head of {slot}");
    let (value, seal) = opened(&keys.head(), record, &what).map_err(repairable)?;
    let corrupt =
        |misread: json::Misread| repairable(misread.into_error(ErrorKind::StoreCorrupt, &what));
    // A newer format is read as far as we know it. Changing it is refused elsewhere.
    let is_newer = Head::format_of(&value).map_err(corrupt)? > FORMAT;
    let mut head = Head::from_json(&value)
        .map_err(|misread| if is_newer { newer(slot) } else { corrupt(misread) })?;
    if let HeadRecord::Live(head) = &mut head
        && (seal != Seal::Whole || head.log.is_none())
    {
        head.forget_records();
    }
    if let HeadRecord::Live(head) = &head
        && (head.session_id != slot.session() || head.user_id.as_deref() != slot.user())
    {
        return Err(Error::new(
            ErrorKind::StoreCorrupt,
            format!("the head of {slot} belongs to another session"),
        ));
    }
    Ok(head)
}

/// The error for a log of which an entry is gone.
pub(in crate::store) fn missing_entry(slot: &Slot) -> Error {
    Error::new(ErrorKind::StoreCorrupt, format!("{slot}: an entry of its log is missing"))
        .hint("the records are unchanged; repairSession makes a session of the readable ones")
}

fn repairable(error: Error) -> Error {
    error.hint("its bytes are kept; repairSession makes a new head from the log")
}
