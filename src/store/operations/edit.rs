//! Changing a session by hand, and deleting it.

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::rarely;
use crate::slot::Slot;
use crate::store::format::view::ViewPiece;
use crate::store::log;
use crate::store::operations::load::missing_entry;
use crate::store::operations::sessions::{ATTEMPTS, Sessions, superseded};
use crate::store::records::CommitOutcome;
use crate::store::session::{Alteration, ContextChange, NewContext, NewSummary, Past, Session};

impl Sessions {
    /// Changes a session by hand. `false`: it was changed meanwhile; load it again.
    pub async fn alter(&self, session: &mut Session, alteration: &Alteration) -> Result<bool> {
        let past = match &alteration.context {
            ContextChange::Replaced(new) => match rarely(self.past(session, new)).await? {
                Some(past) => past,
                None => return Ok(false),
            },
            _ => Past::default(),
        };
        let id = || self.records().random_id();
        let change =
            self.records().change(|host| session.edit_change(alteration, &past, &id, host));
        // If another commit has followed ours, ours is done too; a second attempt would store it twice.
        let committed =
            !matches!(self.records().commit(&change.batch).await?, CommitOutcome::Conflict);
        if committed {
            let log = session.keys.log();
            let logged = change.batch.put.iter().filter(|(key, _)| key.starts_with(&log));
            session.bytes += logged.map(|(_, value)| value.len()).sum::<usize>();
            session.take(change);
        }
        Ok(committed)
    }

    /// What a session has said, for a new context. `None`: it was changed meanwhile.
    async fn past(&self, session: &Session, new: &NewContext) -> Result<Option<Past>> {
        let Some(head) = session.head.as_ref() else { return Ok(Some(Past::default())) };
        if new.messages.is_empty() && matches!(new.summary, NewSummary::None) {
            return Ok(Some(Past::default()));
        }
        let log = self.records().entries(&session.keys, 0, head.next).await?;
        let Some(path) = log::path_to(&log, head.leaf.as_ref()) else {
            let is_lost = !self.has_moved_on(session).await?;
            return if is_lost { Err(missing_entry(&session.slot)) } else { Ok(None) };
        };
        let summary = match head.view.first() {
            Some(ViewPiece::Summary { summary }) => log.get(summary).cloned(),
            _ => None,
        };
        Ok(Some(Past::of(&path, head.anchor.as_ref(), summary)))
    }

    /// Deletes a session, if there is one.
    pub async fn delete(&self, slot: &Slot) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let (session, lines) = self.load_to_delete(slot).await?;
            // A tombstone is put even if there is no session: a call whose input is just being accepted must not create it later.
            let fresh = || self.records().change(|host| session.new_head(host));
            let head = session.head.clone().unwrap_or_else(fresh);
            let mut batch = self.records().change(|host| session.delete_batch(&head, host));
            batch.remove.extend(lines);
            if !matches!(self.records().commit(&batch).await?, CommitOutcome::Conflict) {
                return Ok(());
            }
        }
        Err(superseded(slot, "the session changes faster than it can be deleted"))
    }

    /// Loads the head of a session to delete. If the head cannot be read, also returns the session's keys in the
    /// session list. An unreadable session may be deleted; a session of a newer version may not.
    async fn load_to_delete(&self, slot: &Slot) -> Result<(Session, Vec<String>)> {
        match self.load_head(slot).await {
            Err(error) if error.kind() == ErrorKind::StoreCorrupt => {
                let keys = self.keys(slot);
                let record = self.records().get(keys.head()).await?;
                let lines = self.old_lines(slot, &keys).await?;
                Ok((self.absent(slot, keys, record.map(|record| record.revision)), lines))
            }
            loaded => {
                let session = loaded?;
                session.check_format()?;
                Ok((session, Vec::new()))
            }
        }
    }
}
