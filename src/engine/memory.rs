//! What users are known by, from one session to the next: looked for after a reply, told with the instructions.
//!
//! Nobody waits for it: the log keeps what was said, and a mark in the store how far it has been looked through. So
//! nothing is lost where the model fails, or where a summary takes the place of what was said; it is only later.

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::cancel::{Cancel, Cause};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, race};
use crate::message::Finish;
use crate::policy::memory::{self, Memory};
use crate::policy::redact;
use crate::policy::summary;
use crate::port::Model;
use crate::slot::Slot;
use crate::store::mark::Unread;
use crate::store::task::is_child;
use crate::tool::notebook::Notebook;

/// How often somebody else may write first.
const ATTEMPTS: u32 = 8;

/// Notes that could not be merged are not merged again before so long.
const REST_MS: f64 = 30.0 * 60_000.0;

/// So many complaints are kept until somebody calls.
const MOST_COMPLAINTS: usize = 100;

/// How many tokens are looked through at once where nobody knows the model's window.
const UNKNOWN_WINDOW: u64 = 20_000;

/// The notes of an agent, and what is still to be looked through.
pub(super) struct Remembering {
    notebook: Rc<Notebook>,
    due: RefCell<Vec<Due>>,
    /// Sessions that are looked through now.
    busy: RefCell<Vec<Slot>>,
    /// When notes were last merged in vain, by where they are.
    rests: RefCell<Vec<(String, f64)>>,
    /// What has failed last, to be told to the next call of the session.
    complaints: RefCell<Vec<(Slot, String)>>,
    stop: Cancel,
}

impl Remembering {
    pub(super) fn new(notebook: Rc<Notebook>) -> Remembering {
        Remembering {
            notebook,
            due: RefCell::default(),
            busy: RefCell::default(),
            rests: RefCell::default(),
            complaints: RefCell::default(),
            stop: Cancel::default(),
        }
    }

    /// The next session that is due and that nobody looks through yet.
    fn next(&self) -> Option<Busy<'_>> {
        let mut busy = self.busy.borrow_mut();
        let is_free = |due: &mut Due| !busy.contains(&due.slot);
        let due = self.due.borrow_mut().extract_if(.., is_free).next()?;
        busy.push(due.slot.clone());
        Some(Busy { of: self, due })
    }

    /// What has failed in a session, told once.
    fn complaint(&self, slot: &Slot) -> Option<String> {
        let is_its = |it: &mut (Slot, String)| it.0 == *slot;
        self.complaints.borrow_mut().extract_if(.., is_its).map(|it| it.1).next()
    }
}

/// A session in which something was said.
#[derive(Clone)]
struct Due {
    slot: Slot,
    /// All of it counts, however little it is.
    whatever: bool,
}

/// A session that is looked through, until this is dropped.
struct Busy<'a> {
    of: &'a Remembering,
    due: Due,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.of.busy.borrow_mut().retain(|slot| *slot != self.due.slot);
    }
}

impl Inner {
    /// Takes note that something was said in a session.
    pub(super) fn note_for_memory(&self, slot: &Slot) {
        self.note_due(Due { slot: slot.clone(), whatever: false });
    }

    /// Takes note that a summary takes the place of what was said: all of it is looked through, if it is to be.
    pub(super) fn note_before_compaction(&self, slot: &Slot) {
        if self.options.compaction.flush {
            self.note_due(Due { slot: slot.clone(), whatever: true });
        }
    }

    fn note_due(&self, new: Due) {
        // What an agent says to its children is not what its user says.
        let memory = self.memory.as_ref().filter(|_| !is_child(new.slot.session()));
        let Some(memory) = memory else { return };
        let mut due = memory.due.borrow_mut();
        match due.iter_mut().find(|known| known.slot == new.slot) {
            Some(known) => known.whatever |= new.whatever,
            None => due.push(new),
        }
    }

    pub(super) fn has_to_remember(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.due.borrow().is_empty())
    }

    pub(super) fn stop_remembering(&self) {
        self.memory.iter().for_each(|memory| memory.stop.ask(Cause::Shutdown));
    }

    /// Looks through what was said since, session by session. What fails is tried again after the next reply.
    pub(super) async fn remember_what_is_new(&self) {
        let (Some(memory), Some(config)) = (&self.memory, &self.options.memory) else { return };
        while let Some(busy) = memory.next() {
            let work = self.remember(memory, config, &busy.due);
            let failed = match race(memory.stop.asked(), work).await {
                Either::Second(Err(error)) => Some(error),
                _ => None,
            };
            let Some(error) = failed else { continue };
            let mut complaints = memory.complaints.borrow_mut();
            complaints.truncate(MOST_COMPLAINTS - 1);
            complaints.insert(0, (busy.due.slot.clone(), redact::redacted(error.message())));
        }
    }

    async fn remember(&self, memory: &Remembering, config: &Memory, due: &Due) -> Result<()> {
        let slot = &due.slot;
        let Some(unread) = self.sessions.unread(slot).await? else { return Ok(()) };
        let spoken = memory::spoken(&unread.messages);
        let is_enough = due.whatever || memory::is_enough(&spoken);
        if !is_enough || memory.notebook.check_writable(slot).is_err() {
            return Ok(());
        }
        let notes = memory::shown(&memory.notebook.read(slot).await?.notes, config);
        let facts = self.facts_in(slot, &notes, &summary::transcript(&spoken)).await?;
        self.keep(memory, &unread, slot, &facts).await?;
        self.merge(memory, config, slot).await
    }

    /// The facts that a model finds in a conversation, besides those in the notes.
    async fn facts_in(&self, slot: &Slot, notes: &str, text: &str) -> Result<Vec<String>> {
        let model = self.memory_model();
        let budget = model.window(0).map_or(UNKNOWN_WINDOW, |window| window / 3);
        let mut facts = Vec::new();
        for piece in summary::pieces(text, budget.max(1)) {
            let request = memory::request(notes, piece);
            let reply = self.ask_aside(model, (slot, 0), memory::SYSTEM, request).await?;
            let is_cut = reply.finish == Finish::Length;
            facts.extend(memory::facts(&reply.message.text(), is_cut));
        }
        Ok(facts)
    }

    /// Writes down what was found, together with the mark that it was looked for: once, whoever else does the same.
    async fn keep(
        &self,
        memory: &Remembering,
        unread: &Unread,
        slot: &Slot,
        facts: &[String],
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            // In this order: whoever is faster from here on has changed what was read.
            let pages = memory.notebook.read(slot).await?;
            if !self.sessions.is_unread(unread).await? {
                return Ok(());
            }
            let mark = Some(self.sessions.mark(unread));
            match memory.notebook.add(slot, &pages, facts, mark).await? {
                Some(0) => return self.sessions.mark_read(unread).await,
                Some(_) => return Ok(()),
                None => {}
            }
        }
        let message = "the notes change faster than they can be written";
        Err(Error::new(ErrorKind::Superseded, message))
    }

    /// Makes one file of all notes, now and then. One that is not as it should be changes nothing.
    async fn merge(&self, memory: &Remembering, config: &Memory, slot: &Slot) -> Result<()> {
        let pages = memory.notebook.read(slot).await?;
        let shelf = memory.notebook.shelf(slot);
        let now = self.host.now_ms();
        memory.rests.borrow_mut().retain(|(_, since)| now < since + REST_MS);
        let rests = memory.rests.borrow().iter().any(|(place, _)| place == shelf.place());
        let is_writable = shelf.check_writable(memory::FILE).is_ok();
        if rests || !is_writable || !memory::is_merge_due(&pages.notes, config) {
            return Ok(());
        }
        // From now on, until it has gone well: whatever happens, the next reply does not ask again.
        memory.rests.borrow_mut().push((shelf.place().to_owned(), now));
        let request = memory::merge_request(&pages.notes, config);
        let reply = self.ask_aside(self.memory_model(), (slot, 0), memory::SYSTEM, request).await?;
        if reply.finish == Finish::Length {
            return Err(Error::new(ErrorKind::ModelTruncated, "the merged notes were cut off"));
        }
        let text = memory::merged(&reply.message.text(), &pages.notes, config)
            .map_err(|why| Error::new(ErrorKind::ModelFailed, why))?;
        memory.notebook.replace(slot, &pages, text).await?;
        memory.rests.borrow_mut().retain(|(place, _)| place != shelf.place());
        Ok(())
    }

    fn memory_model(&self) -> &dyn Model {
        &**self.models.memory.as_ref().unwrap_or(&self.models.own)
    }

    /// What a model is told of the user, within its budget.
    pub(super) async fn notes(&self, slot: &Slot) -> Result<String> {
        let (Some(memory), Some(config)) = (&self.memory, &self.options.memory) else {
            return Ok(String::new());
        };
        Ok(memory::shown(&memory.notebook.read(slot).await?.notes, config))
    }

    /// What has failed in the memory of a session since its last call, told once.
    pub(super) fn memory_complaint(&self, slot: &Slot) -> Option<String> {
        self.memory.as_ref().and_then(|memory| memory.complaint(slot))
    }
}
