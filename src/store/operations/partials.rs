//! Checkpoints: the stored parts of answers whose calls have not ended.

use std::rc::Rc;

use crate::error::{Error, ErrorKind, Result};
use crate::json;
use crate::message::Message;
use crate::port::{Batch, Page};
use crate::seams;
use crate::slot::Slot;
use crate::store::format::partial::PartialPiece;
use crate::store::keys::SlotKeys;
use crate::store::operations::sessions::{ATTEMPTS, Sessions};
use crate::store::records::{CommitOutcome, read};
use crate::store::session::Session;

/// The input whose answer a call gives: the id of its call, and the revision with which its record was written.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredInput {
    /// The call.
    pub call_id: String,
    /// The revision of the record.
    pub revision: String,
}

/// The stored part of an answer, and the keys of its pieces.
#[derive(Clone, Debug, Default)]
pub struct PartialAnswer {
    /// The messages.
    pub messages: Vec<Rc<Message>>,
    /// The keys.
    pub pieces: Vec<String>,
}

impl Sessions {
    /// Stores a part of an answer. `false`: nothing was stored, because the record of the input has changed. So a part that
    /// arrives after the end of its call, or after its recovery, leaves nothing behind.
    pub async fn put_piece(
        &self,
        keys: &SlotKeys,
        input: &AnsweredInput,
        (key, piece): (&str, &PartialPiece),
    ) -> Result<bool> {
        let AnsweredInput { call_id, revision } = input;
        let base = revision.rsplit_once('.').map_or("", |(base, _)| base);
        let batch = Batch {
            expect: seams::expected_input(Some((keys.input(call_id), Some(revision.clone())))),
            revision: self.records().change(|host| format!("{base}.{}", host.nonce())),
            put: vec![(key.to_owned(), json::to_bytes(piece))],
            ..Batch::default()
        };
        Ok(!matches!(self.records().commit(&batch).await?, CommitOutcome::Conflict))
    }

    /// The stored part of the answer of a call that has not ended.
    pub async fn partial(&self, keys: &SlotKeys, call_id: &str) -> Result<PartialAnswer> {
        let mut answer = PartialAnswer::default();
        for _ in 0..ATTEMPTS {
            let before = std::mem::take(&mut answer);
            let mut is_whole = true;
            let listed = self.records().list(&keys.partial(call_id), Page::default()).await?;
            for (key, record) in listed {
                let piece = read(&key, &record, PartialPiece::from_json, "a part of an answer")?;
                is_whole = is_whole && piece.add_to(&mut answer.messages);
                answer.pieces.push(key);
            }
            if is_whole {
                return Ok(answer);
            }
            // The parts may just be removed, because their call ends.
            if before.pieces == answer.pieces {
                break;
            }
        }
        let message = format!("a part of the answer of the call {call_id} is missing");
        Err(Error::new(ErrorKind::StoreCorrupt, message)
            .hint("the records are unchanged; repairSession continues without it"))
    }

    /// The messages of all accepted inputs of a session that are not logged yet, each with the stored part of its answer.
    pub(in crate::store) async fn said_in_inputs(&self, slot: &Slot) -> Result<Vec<Rc<Message>>> {
        let keys = self.keys(slot);
        let mut messages = Vec::new();
        for input in self.inputs(slot).await? {
            messages.extend(input.messages);
            messages.extend(self.partial(&keys, &input.call_id).await?.messages);
        }
        Ok(messages)
    }

    /// Finds the parts of answers that belong to no input, in a session whose inputs are all logged. An older version may have
    /// left them, or a call that died while its input was logged. Looks again only if another writer has changed the session.
    pub async fn find_orphans(&self, session: &mut Session) -> Result<()> {
        if session.orphans.is_none() && session.head.is_some() {
            let page = Page { keys_only: true, ..Page::default() };
            let found = self.records().list(&session.keys.partials(), page).await?;
            session.orphans = Some(found.into_iter().map(|(key, _)| key).collect());
        }
        Ok(())
    }
}
