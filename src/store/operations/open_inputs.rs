//! The accepted inputs of a session that are not logged yet, for readers: readers see them, but never log them.

use std::rc::Rc;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, TurnState};
use crate::slot::Slot;
use crate::store::format::head::Head;
use crate::store::format::input::{Input, ResendPath};
use crate::store::history::Unlogged;
use crate::store::keys::SlotKeys;
use crate::store::operations::sessions::{ATTEMPTS, Sessions, superseded};
use crate::store::session::{Session, last_line};

/// The accepted inputs of a session that a reader shows, and whether their calls run.
#[derive(Default)]
pub(in crate::store) struct OpenInputs {
    /// Each input with the stored part of its answer.
    inputs: Vec<(Input, Vec<Rc<Message>>)>,
    is_live: bool,
}

impl OpenInputs {
    /// Their messages and the stored parts of their answers, in the order of acceptance.
    pub(in crate::store) fn messages(&self) -> Vec<Rc<Message>> {
        let said = self.inputs.iter().flat_map(|(input, said)| input.messages.iter().chain(said));
        said.cloned().collect()
    }

    /// The path of a running resend.
    pub(in crate::store) fn path(&self) -> Option<&ResendPath> {
        self.inputs.iter().find_map(|(input, _)| input.path.as_ref())
    }

    /// Their messages with the state of their turn.
    pub(in crate::store) fn unlogged(&self) -> Option<Unlogged> {
        let state = if self.is_live { TurnState::Open } else { TurnState::Interrupted };
        let has_any = !self.inputs.is_empty();
        has_any.then(|| Unlogged { messages: self.messages(), state })
    }

    /// The number of messages of the path that a reader shows.
    pub(in crate::store) fn count(&self, head: &Head) -> u64 {
        let logged = self.path().map_or(head.card.messages, |path| path.messages);
        logged + self.messages().len() as u64
    }

    /// The last text in them, as one line.
    pub(in crate::store) fn last_line(&self) -> Option<String> {
        last_line(&self.messages())
    }

    /// Whether one of these calls runs.
    pub(in crate::store) fn is_live(&self) -> bool {
        self.is_live && !self.inputs.is_empty()
    }

    /// Whether these calls were cut off.
    pub(in crate::store) fn is_cut_off(&self) -> bool {
        !self.is_live && !self.inputs.is_empty()
    }
}

impl Sessions {
    /// Reads the head and the accepted inputs of one moment. An input is never missing: until its entry is in the log, it is
    /// among the inputs.
    pub(in crate::store) async fn read_open(&self, slot: &Slot) -> Result<(Session, OpenInputs)> {
        // The inputs are read first: an input that is logged after that is on the path of the head.
        let mut inputs = self.inputs_with_revisions(slot).await?;
        for _ in 0..ATTEMPTS {
            let session = self.read_only(slot).await?;
            let is_whole = has_inputs(&session, &inputs);
            if is_whole && inputs.is_empty() || session.head.is_none() {
                return Ok((session, OpenInputs::default()));
            }
            let is_live = self.is_live(&session, &inputs).await?;
            let open = self.with_partials(&session, inputs.clone(), is_live).await?;
            // A step that is stored changes the revision of its input, so the parts of the answer are those after this head.
            let now = self.inputs_with_revisions(slot).await?;
            if now == inputs && is_whole {
                return Ok((session, open));
            }
            if !is_whole {
                self.check_inputs(&session, &now).await?;
            }
            inputs = now;
        }
        Err(superseded(slot, "the session changes faster than it can be read"))
    }

    /// Fails if an input that the head names is lost. `inputs` were read after the head.
    pub async fn check_inputs(&self, session: &Session, inputs: &[(String, Input)]) -> Result<()> {
        if has_inputs(session, inputs) || self.has_moved_on(session).await? {
            return Ok(());
        }
        let message = format!("{}: an accepted input is missing", session.slot);
        Err(Error::new(ErrorKind::StoreCorrupt, message)
            .hint("the records are unchanged; repairSession continues without it"))
    }

    /// Reads the stored parts of the answers. A resend that was cut off changes nothing on the stored path, so it is left out.
    async fn with_partials(
        &self,
        session: &Session,
        mut inputs: Vec<(String, Input)>,
        is_live: bool,
    ) -> Result<OpenInputs> {
        inputs.retain(|(_, input)| is_live || !input.resends);
        let mut open = OpenInputs { inputs: Vec::new(), is_live };
        for (_, input) in inputs {
            let said = self.partial(&session.keys, &input.call_id).await?;
            open.inputs.push((input, said.messages));
        }
        Ok(open)
    }

    /// Whether the calls of these inputs run. A new call logs the inputs of dead calls before its own input is accepted. So
    /// either all of these calls run, or none.
    async fn is_live(&self, session: &Session, inputs: &[(String, Input)]) -> Result<bool> {
        let ids: Vec<&str> = inputs.iter().map(|(_, input)| input.call_id.as_str()).collect();
        if self.is_here(&session.slot, &ids) || self.running_elsewhere(session).is_some() {
            return Ok(true);
        }
        self.is_locked(&session.keys).await
    }

    /// Whether one of these calls waits or runs in this process.
    pub(in crate::store) fn is_here(&self, slot: &Slot, call_ids: &[&str]) -> bool {
        self.liveness().is_some_and(|liveness| liveness.is_here(slot, call_ids))
    }

    /// Whether a call of any tab or agent holds the lock of a session.
    pub(in crate::store) async fn is_locked(&self, keys: &SlotKeys) -> Result<bool> {
        match self.liveness() {
            Some(liveness) => liveness.is_locked(&keys.lock()).await,
            None => Ok(false),
        }
    }
}

/// Whether these inputs have all those that the stored head names.
fn has_inputs(session: &Session, inputs: &[(String, Input)]) -> bool {
    let keys: Vec<_> = inputs.iter().map(|(_, it)| session.keys.input(&it.call_id)).collect();
    let prefix = session.keys.inputs();
    let is_there = |name: &String| keys.iter().any(|key| key.strip_prefix(&prefix) == Some(name));
    session.stored_head().is_none_or(|head| head.inputs.iter().all(is_there))
}
