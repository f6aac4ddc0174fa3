//! The files of evicted tool results. They belong to the session, and all sessions of its user can read them.

use crate::engine::call::log::CallLog;
use crate::engine::call::scope::CallScope;
use crate::future::{Either, race};
use crate::message::{Block, Edit, Message};
use crate::policy::eviction::path_of;
use crate::store::Sessions;
use crate::store::session::Session;
use crate::store::workspace::files::Files;

/// Writes the files of evicted results. Without a workspace there are none.
#[derive(Clone, Copy)]
pub(in crate::engine) struct EvictedFiles<'a> {
    pub(in crate::engine) scope: &'a CallScope<'a>,
    /// The workspace, if tools can read its files.
    pub(in crate::engine) files: Option<&'a Files>,
    pub(in crate::engine) stored: &'a Sessions,
    pub(in crate::engine) call_id: &'a str,
}

impl EvictedFiles<'_> {
    /// The folder of a session; `None` if nobody could read a file in it.
    pub(in crate::engine) fn folder(&self, session: &Session) -> Option<String> {
        self.files.map(|_| session.keys.evicted_folder())
    }

    /// Writes the file of an evicted result. If that fails, `read_file` still finds the result in the log.
    pub(in crate::engine) async fn write(&self, session: &Session, path: &str, whole: &Message) {
        let (Some(files), Some(revision)) = (self.files, session.accepted.clone()) else { return };
        let Some(result) = whole.tool_results().next() else { return };
        let (files, text) = (files.of(&session.slot), Block::text_of(&result.output));
        let call = (session.keys.input(self.call_id), revision);
        let writing = files.write_evicted(path, &text, call);
        if let Either::Second(Err(error)) = race(self.scope.cancel.asked(), writing).await {
            let message = format!("a large tool result is not in a file: {}", error.message());
            self.scope.warn("storage", message);
        }
    }

    /// Gives this session files of its own for results that it shows with a path of another session, from which it was
    /// forked or imported.
    pub(in crate::engine) async fn adopt(&self, session: &mut Session, log: &CallLog<'_>) {
        let Some(folder) = self.folder(session) else { return };
        let is_foreign = |(_, edit): &&(String, Edit)| match edit {
            Edit::Evicted { path, .. } => !path.is_empty() && !path.starts_with(&folder),
            _ => false,
        };
        let edits = session.head.iter().flat_map(|head| head.edits.iter());
        let foreign: Vec<(String, Edit)> = edits.filter(is_foreign).cloned().collect();
        for (id, edit) in foreign {
            let found = self.stored.find(session, &id).await.ok().flatten();
            let index = session.context.iter().position(|message| message.id == id);
            let (Some((_, whole)), Some(index)) = (found, index) else { continue };
            let Edit::Evicted { head, tail, by, .. } = edit else { continue };
            let path = path_of(&folder, &id);
            self.write(session, &path, &whole).await;
            log.edit(session, index, &whole, Edit::Evicted { path, head, tail, by });
        }
    }
}
