//! Calls in the store: accepted inputs, and how calls have ended.

use crate::error::{Error, ErrorKind, Result};
use crate::json;
use crate::port::Page;
use crate::seams;
use crate::slot::Slot;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::head::revision_counter;
use crate::store::format::input::Input;
use crate::store::keys::EntryRef;
use crate::store::operations::load::missing_entry;
use crate::store::operations::sessions::Sessions;
use crate::store::records::{CommitOutcome, read};
use crate::store::session::{Session, TurnCommit};

impl Sessions {
    /// Stores an input. `false`: the session was changed meanwhile; load it again.
    pub async fn accept(&self, session: &mut Session, input: &Input) -> Result<bool> {
        let change = self.records().change(|host| session.accept_change(input, host));
        let committed = !seams::must_store_input()
            || matches!(self.records().commit(&change.batch).await?, CommitOutcome::Done);
        if committed {
            // An input that joins a call does not change the record of that call's own input.
            session.accepted.get_or_insert_with(|| change.batch.revision.clone());
            session.n_open += input.messages.len() as u64;
            session.start = None;
            session.take(change);
        }
        Ok(committed)
    }

    /// The accepted inputs that are not logged yet, in the order of acceptance. Their calls were cut off or still run.
    pub async fn inputs(&self, slot: &Slot) -> Result<Vec<Input>> {
        let inputs = self.inputs_with_revisions(slot).await?;
        Ok(inputs.into_iter().map(|(_, input)| input).collect())
    }

    /// The same for a session whose head was read. Fails if an input that the head names is lost.
    pub async fn inputs_of(&self, session: &Session) -> Result<Vec<Input>> {
        let inputs = self.inputs_with_revisions(&session.slot).await?;
        self.check_inputs(session, &inputs).await?;
        Ok(inputs.into_iter().map(|(_, input)| input).collect())
    }

    /// The same with the revision of each record, which a stored step changes.
    pub async fn inputs_with_revisions(&self, slot: &Slot) -> Result<Vec<(String, Input)>> {
        let keys = self.keys(slot);
        let mut inputs: Vec<(String, Input)> = Vec::new();
        for (key, record) in self.records().list(&keys.inputs(), Page::default()).await? {
            let input = read(&key, &record, Input::from_json, "an accepted input")?;
            if keys.input(&input.call_id) != key {
                let message = format!("an accepted input of {slot} is that of another call");
                return Err(Error::new(ErrorKind::StoreCorrupt, message));
            }
            let number = revision_counter(&record.revision);
            let place = inputs.partition_point(|(earlier, _)| revision_counter(earlier) <= number);
            inputs.insert(place, (record.revision, input));
        }
        Ok(inputs)
    }

    /// Logs an accepted input whose call has crashed. `false`: the session was changed meanwhile, perhaps because
    /// another node has logged the input; load the session again.
    pub async fn recover(&self, session: &mut Session, turn: &TurnCommit) -> Result<bool> {
        // Without a head there can be no input, so the session was created after its head was read.
        let Some(head) = session.head.clone() else { return Ok(false) };
        let change = self.records().change(|host| session.append_change(&head, turn, host));
        let committed = matches!(self.records().commit(&change.batch).await?, CommitOutcome::Done);
        if committed {
            session.take(change);
            session.bytes += turn.messages.iter().map(|message| message.weight()).sum::<usize>();
        }
        Ok(committed)
    }

    /// Whether the input of a call was logged as recovered, in an entry with this number or a later one.
    pub async fn is_recovered(&self, session: &Session, call_id: &str, first: u64) -> Result<bool> {
        let Some(head) = &session.head else { return Ok(false) };
        let entries = self.records().entries(&session.keys, first, head.next.max(first)).await?;
        let is_ours = |it: &Entry| it.kind == EntryKind::Recovered && it.call_id == call_id;
        Ok(entries.values().any(is_ours))
    }

    /// The last entry of a call whose caller chose the id, if the call has ended; and the digest of its input, if the input
    /// is in an earlier entry.
    pub async fn outcome(
        &self,
        session: &Session,
        call_id: &str,
    ) -> Result<Option<(Entry, Option<String>)>> {
        let key = session.keys.call(call_id);
        let Some(record) = self.records().get(key.clone()).await? else {
            return Ok(None);
        };
        let fields = |value: &_| {
            let fields = json::Fields::of(value)?;
            let name = fields.required("entry", EntryRef::from_json)?;
            Ok((name, fields.optional("asked", json::text)?))
        };
        let (name, asked) = read(&key, &record, fields, "a call")?;
        let entry = self.records().entry(&session.keys, &name).await?;
        let entry = match entry {
            Some(entry) => self.gathered(session, entry).await?,
            None => None,
        };
        let Some(entry) = entry else {
            // The session may have been deleted meanwhile.
            return match self.records().get(key).await? {
                Some(_) => Err(missing_entry(&session.slot)),
                None => Ok(None),
            };
        };
        Ok(Some((entry, asked)))
    }

    /// The last entry of a call whose caller chose the id, if the call has ended.
    pub async fn ended_call(&self, slot: &Slot, call_id: &str) -> Result<Option<Entry>> {
        let session = self.absent(slot, self.keys(slot), None);
        Ok(self.outcome(&session, call_id).await?.map(|(entry, _)| entry))
    }

    /// The last entry of a call with the messages of all its steps. `None`: one of them is missing.
    async fn gathered(&self, session: &Session, mut entry: Entry) -> Result<Option<Entry>> {
        let mut steps = Vec::new();
        let mut parent = entry.parent.clone();
        while let Some(name) = parent {
            let Some(step) = self.records().entry(&session.keys, &name).await? else {
                return Ok(None);
            };
            // A summary between two steps has no messages of the call.
            if step.kind == EntryKind::Summary {
                parent = step.parent;
                continue;
            }
            if step.kind != EntryKind::Step || step.call_id != entry.call_id {
                break;
            }
            parent = step.parent.clone();
            steps.push(step);
        }
        let mut messages = Vec::new();
        for step in steps.into_iter().rev() {
            for later in &step.changes {
                later.apply_to(&mut messages);
            }
            messages.extend(step.messages);
        }
        for later in &entry.changes {
            later.apply_to(&mut messages);
        }
        messages.append(&mut entry.messages);
        entry.messages = messages;
        Ok(Some(entry))
    }
}
