//! The files of a workspace, for the host.

use crate::engine::Agent;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::store::files::Shelf;

impl Agent {
    /// A user's files. Without a user they may be a session's: then it is the agent's default session.
    pub fn files(&self, user: Option<&str>) -> Result<Shelf<'_>> {
        let files = self.0.files.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Options, "the agent has no workspace")
                .hint("make it with workspace: true, or memory: true")
        })?;
        if !files.is_per_session(user) {
            // No session has a part in this; the ids are checked all the same.
            return self.slot(user, Some("files")).map(|slot| files.of(&slot));
        }
        let slot = self.slot(None, None).map_err(|error| {
            error.hint("without a userId each session has files of its own: name a user, or give the agent a defaultSessionId")
        })?;
        Ok(files.of(&slot))
    }
}
