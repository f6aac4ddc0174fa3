//! Creates a session from a copy of another one: in several batches, and readers see it once it is complete.

use crate::error::Result;
use crate::json;
use crate::store::format::head::{Card, Head, LogCount};
use crate::store::host_values::HostValues;
use crate::store::operations::Sessions;
use crate::store::records::CommitOutcome;
use crate::store::session::Session;
use crate::store::transfer::SessionCopy;

/// Most entries and branches in one batch.
const RECORDS: usize = 98;

/// Most bytes in one batch.
const BYTES: usize = 1_000_000;

impl Sessions {
    /// Creates a session. Entries and branches keep their names, so that every reference to them stays valid. `false`:
    /// another call has created the session.
    pub async fn build(&self, session: &mut Session, copy: SessionCopy) -> Result<bool> {
        let own = |head: &Head| self.records().change(|host| owned(session, head, host));
        let mut head = own(&copy.head);
        head.card.branches = copy.branches.len() as u64;
        head.log = Some(LogCount { from: head.next, before: Some(copy.entries.len() as u64) });
        let branches = copy.branches.iter().map(|branch| {
            let path = Head { epoch: head.epoch.clone(), ..own(branch) };
            let leaf = path.leaf.as_ref().map(|leaf| leaf.id.as_str()).unwrap_or_default();
            (session.keys.branch(leaf), json::to_bytes(&path))
        });
        let entries = copy
            .entries
            .iter()
            .map(|(name, entry)| (session.keys.entry(name), json::to_bytes(entry)));
        let batches = batches(entries.chain(branches).collect());
        let n_batches = batches.len();
        for (number, put) in batches.into_iter().enumerate() {
            let (is_first, is_last) = (number == 0, number + 1 == n_batches);
            let mut batch = self.records().change(|host| match is_first {
                true => session.replace_batch(&head, host),
                false => session.batch(&head, host),
            });
            batch.put = put;
            if is_last {
                self.records().change(|host| session.put_index(&mut head, &mut batch, host));
                session.put_head(&mut head, &mut batch);
            } else if is_first {
                batch.put.push((session.keys.head(), json::to_bytes(&building(&head))));
            }
            if matches!(self.records().commit(&batch).await?, CommitOutcome::Conflict) {
                return Ok(false);
            }
            if is_first || is_last {
                session.revision = Some(batch.revision);
            }
        }
        session.head = Some(head);
        Ok(true)
    }
}

/// The records in batches that every store accepts. There is at least one batch.
fn batches(records: Vec<(String, Vec<u8>)>) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut batches = vec![Vec::new()];
    let mut bytes = 0;
    for record in records {
        bytes += record.1.len();
        match batches.last_mut() {
            Some(last) if last.is_empty() || (last.len() < RECORDS && bytes <= BYTES) => {
                last.push(record);
            }
            _ => {
                bytes = record.1.len();
                batches.push(vec![record]);
            }
        }
    }
    batches
}

/// A head under the ids of this session, as if it were new.
fn owned(session: &Session, head: &Head, host: HostValues<'_>) -> Head {
    let Head { epoch, session_id, user_id, card, .. } = session.new_head(host);
    let created = Some(head.card.created.clone()).filter(|created| !created.is_empty());
    let created = created.unwrap_or(card.created);
    let card = Card { created, updated: card.updated, ..head.card.clone() };
    let (index, open, log, inputs) = (String::new(), None, None, Vec::new());
    Head { epoch, session_id, user_id, card, index, open, log, inputs, ..head.clone() }
}

/// The head of a session that is still being created: it reads as a tombstone.
fn building(head: &Head) -> serde_json::Value {
    let mut value = json::by_text(head);
    if let Some(members) = value.as_object_mut() {
        members.insert("building".to_owned(), true.into());
    }
    value
}
