//! Facts about users that are kept across sessions. They are found after a reply, and added to the system prompt.
//!
//! No call waits for this work. A mark in the store says how far the log was searched for facts, and the log keeps all
//! messages. So if the model fails, or a summary replaces messages, no fact is lost: it is only found later.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::call::cancel::{Cancel, Cause};
use crate::engine::models::{Models, SideQuestion};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, race};
use crate::message::Finish;
use crate::policy::memory::{self, Flush, Memory};
use crate::policy::redact;
use crate::policy::summary;
use crate::port::Host;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::format::task::is_child;
use crate::store::memory_mark::Unread;
use crate::tool::notebook::Notebook;

/// How often a write of notes is tried again because another writer was first.
const ATTEMPTS: u32 = 8;

/// How long to wait after a failed merge of notes before the next merge.
const MERGE_PAUSE_MS: f64 = 30.0 * 60_000.0;

/// Most failures that are kept until a call reports them.
const MAX_FAILURES: usize = 100;

/// How many tokens are searched at once if the model's window is unknown.
const UNKNOWN_WINDOW: u64 = 20_000;

/// The memory of an agent about its users, and the sessions that must still be searched for facts.
pub(in crate::engine) struct UserMemory {
    notebook: Rc<Notebook>,
    config: Memory,
    sessions: Rc<Sessions>,
    models: Rc<Models>,
    host: Rc<dyn Host>,
    due: RefCell<Vec<DueSession>>,
    /// Sessions that are searched now.
    busy: RefCell<Vec<Slot>>,
    /// When a merge of notes was last tried without success, by the place of the notes.
    failed_merges: RefCell<Vec<(String, f64)>>,
    /// The last failure for a session. Its next call reports it.
    failures: RefCell<Vec<(Slot, String)>>,
    stop: Cancel,
}

/// A session with new messages.
#[derive(Clone)]
struct DueSession {
    slot: Slot,
    /// Whether it is searched even if there is very little new text.
    is_forced: bool,
    /// Not searched before this time, unless it is forced.
    not_before_ms: f64,
}

impl DueSession {
    fn is_ripe(&self, now_ms: f64) -> bool {
        self.is_forced || self.not_before_ms <= now_ms
    }
}

/// A session that is searched, until this is dropped.
struct BusySession<'a> {
    of: &'a UserMemory,
    due: DueSession,
}

impl Drop for BusySession<'_> {
    fn drop(&mut self) {
        self.of.busy.borrow_mut().retain(|slot| *slot != self.due.slot);
    }
}

impl UserMemory {
    pub(in crate::engine) fn new(
        (notebook, config): (Rc<Notebook>, Memory),
        sessions: Rc<Sessions>,
        models: Rc<Models>,
        host: Rc<dyn Host>,
    ) -> UserMemory {
        UserMemory {
            notebook,
            config,
            sessions,
            models,
            host,
            due: RefCell::default(),
            busy: RefCell::default(),
            failed_merges: RefCell::default(),
            failures: RefCell::default(),
            stop: Cancel::default(),
        }
    }

    /// The notes about the user for the system prompt, within their token limit.
    pub(in crate::engine) async fn notes(&self, slot: &Slot) -> Result<String> {
        Ok(memory::shown(&self.notebook.read(slot).await?.notes, &self.config))
    }

    /// Takes the last failure for a session, so that it is reported once.
    pub(in crate::engine) fn take_failure(&self, slot: &Slot) -> Option<String> {
        let is_its = |it: &mut (Slot, String)| it.0 == *slot;
        self.failures.borrow_mut().extract_if(.., is_its).map(|it| it.1).next()
    }

    /// Records that a session has new messages. If `is_forced`, it is searched even if there is very little new text, or
    /// if it was searched a short time ago.
    pub(in crate::engine) fn note_said(&self, slot: &Slot, is_forced: bool) {
        self.note_due(DueSession { slot: slot.clone(), is_forced, not_before_ms: 0.0 });
    }

    fn note_due(&self, session: DueSession) {
        // In a session of a subagent, the agent speaks, not the user.
        if is_child(session.slot.session()) || self.config.flush == Flush::Never {
            return;
        }
        let mut due = self.due.borrow_mut();
        match due.iter_mut().find(|known| known.slot == session.slot) {
            Some(known) => known.is_forced |= session.is_forced,
            None => due.push(session),
        }
    }

    /// Whether sessions must be searched now.
    pub(in crate::engine) fn is_due(&self) -> bool {
        let now = self.host.now_ms();
        self.due.borrow().iter().any(|due| due.is_ripe(now))
    }

    /// Searches a session before a summary replaces its messages. If that fails, it is searched again after its next
    /// reply.
    pub(in crate::engine) async fn flush(&self, slot: &Slot) {
        self.note_said(slot, true);
        if let Some(busy) = self.next(|due| due.slot == *slot) {
            self.search(busy).await;
        }
    }

    /// Stops the search for facts.
    pub(in crate::engine) fn stop(&self) {
        self.stop.ask(Cause::Shutdown);
    }

    /// Searches the sessions with new messages. If the search of a session fails, it is searched again after its next
    /// reply.
    pub(in crate::engine) async fn run(&self) {
        let now = self.host.now_ms();
        while let Some(busy) = self.next(|due| due.is_ripe(now)) {
            self.search(busy).await;
        }
    }

    async fn search(&self, busy: BusySession<'_>) {
        let work = self.remember(&busy.due);
        if let Either::Second(Err(error)) = race(self.stop.asked(), work).await {
            let mut failures = self.failures.borrow_mut();
            failures.truncate(MAX_FAILURES - 1);
            failures.insert(0, (busy.due.slot.clone(), redact::redacted(error.message())));
        }
    }

    /// The next session among these that is due and that no other run searches.
    fn next(&self, which: impl Fn(&DueSession) -> bool) -> Option<BusySession<'_>> {
        let mut busy = self.busy.borrow_mut();
        let is_free = |due: &mut DueSession| which(due) && !busy.contains(&due.slot);
        let due = self.due.borrow_mut().extract_if(.., is_free).next()?;
        busy.push(due.slot.clone());
        Some(BusySession { of: self, due })
    }

    async fn remember(&self, due: &DueSession) -> Result<()> {
        let slot = &due.slot;
        let Some(unread) = self.sessions.unread(slot).await? else { return Ok(()) };
        let spoken = memory::spoken(&unread.messages);
        let is_enough = due.is_forced || memory::is_enough(&spoken);
        if !is_enough || self.notebook.check_writable(slot).is_err() {
            return Ok(());
        }
        let pause = self.config.flush.pause_until(unread.searched_ms, self.host.now_ms());
        if let Some(not_before_ms) = pause.filter(|_| !due.is_forced) {
            // Another run would find the session due at once, so it is due again only after the pause.
            self.note_due(DueSession { not_before_ms, ..due.clone() });
            return Ok(());
        }
        let notes = self.notes(slot).await?;
        let facts = self.facts_in(slot, &notes, &summary::transcript(&spoken)).await?;
        self.keep(&unread, slot, &facts).await?;
        self.merge(slot).await
    }

    /// The facts that a model finds in a conversation and that are not in the notes yet.
    async fn facts_in(&self, slot: &Slot, notes: &str, text: &str) -> Result<Vec<String>> {
        let model = self.models.memory();
        let budget = self.models.window(model, 0).map_or(UNKNOWN_WINDOW, |window| window / 3);
        let mut facts = Vec::new();
        for piece in summary::pieces(text, budget.max(1)) {
            let request = memory::request(notes, piece);
            let reply = self.models.ask_aside(model, question(slot, &request)).await?;
            let is_cut = reply.finish == Finish::Length;
            facts.extend(memory::facts(&reply.message.text(), is_cut));
        }
        Ok(facts)
    }

    /// Stores the facts together with the mark that says how far the session was searched. If several nodes do this,
    /// only one of them stores its facts.
    async fn keep(&self, unread: &Unread, slot: &Slot, facts: &[String]) -> Result<()> {
        for _ in 0..ATTEMPTS {
            // The notes are read before the mark is checked. So if another node stores its facts after this line, `add`
            // finds that the notes have changed.
            let pages = self.notebook.read(slot).await?;
            if !self.sessions.is_unread(unread).await? {
                return Ok(());
            }
            let mark = Some(self.sessions.mark(unread, self.host.now_ms()));
            match self.notebook.add(slot, &pages, facts, mark).await? {
                Some(0) => return self.sessions.mark_read(unread, self.host.now_ms()).await,
                Some(_) => return Ok(()),
                None => {}
            }
        }
        let message = "other writers change the notes faster than facts can be added";
        Err(Error::new(ErrorKind::Superseded, message))
    }

    /// Merges all notes into one file, if that is due. An invalid merged file is not stored.
    async fn merge(&self, slot: &Slot) -> Result<()> {
        let pages = self.notebook.read(slot).await?;
        let files = self.notebook.files(slot);
        let now = self.host.now_ms();
        self.failed_merges.borrow_mut().retain(|(_, since)| now < since + MERGE_PAUSE_MS);
        let is_paused = self.failed_merges.borrow().iter().any(|(place, _)| place == files.place());
        let is_writable = files.check_writable(memory::FILE).is_ok();
        if is_paused || !is_writable || !memory::is_merge_due(&pages.notes, &self.config) {
            return Ok(());
        }
        // Counts as failed until it has succeeded, so that the next replies do not start another merge.
        self.failed_merges.borrow_mut().push((files.place().to_owned(), now));
        let request = memory::merge_request(&pages.notes, &self.config);
        let reply = self.models.ask_aside(self.models.memory(), question(slot, &request)).await?;
        if reply.finish == Finish::Length {
            return Err(Error::new(ErrorKind::ModelTruncated, "the merged notes were cut off"));
        }
        let text = memory::merged(&reply.message.text(), &pages.notes, &self.config)
            .map_err(|why| Error::new(ErrorKind::ModelFailed, why))?;
        self.notebook.replace(slot, &pages, text).await?;
        self.failed_merges.borrow_mut().retain(|(place, _)| place != files.place());
        Ok(())
    }
}

fn question<'a>(slot: &'a Slot, text: &'a str) -> SideQuestion<'a> {
    SideQuestion { slot, tag: 0, system: memory::SYSTEM, text, max_tokens: None }
}
