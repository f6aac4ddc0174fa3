//! The notes about a user, in files of the workspace. Adding and merging never lose the changes of another writer.

use std::rc::Rc;

use crate::error::Result;
use crate::policy::memory::{self, Notes};
use crate::port::Host;
use crate::slot::Slot;
use crate::store::workspace::files::{File, FileChanges, Files, OwnerFiles};

/// The notes about the users of an agent.
pub struct Notebook {
    files: Rc<Files>,
    host: Rc<dyn Host>,
}

/// Notes as they were read. A later change fails if they are no longer the same.
pub struct Pages {
    /// Their text.
    pub notes: Notes,
    known: Option<File>,
    days: Vec<(String, File)>,
}

impl Notebook {
    /// Notes in these files, dated by this clock.
    pub fn new(files: &Rc<Files>, host: &Rc<dyn Host>) -> Notebook {
        Notebook { files: Rc::clone(files), host: Rc::clone(host) }
    }

    /// The files that contain the notes of a session.
    pub fn files(&self, slot: &Slot) -> OwnerFiles<'_> {
        self.files.of(slot)
    }

    /// Whether notes may be added. The host may have made the folder read-only.
    pub fn check_writable(&self, slot: &Slot) -> Result<()> {
        self.files(slot).check_writable(&memory::day_file(self.host.now_ms()))
    }

    /// Reads the notes about the user of a session.
    pub async fn read(&self, slot: &Slot) -> Result<Pages> {
        let files = self.files(slot);
        let known = files.read(memory::FILE).await?;
        let mut days = Vec::new();
        for path in files.list_like(memory::DAYS).await? {
            // A file that is gone by now was just merged.
            days.extend(files.read(&path).await?.map(|file| (path, file)));
        }
        let notes = Notes {
            known: known.as_ref().map(|file| file.text.clone()).unwrap_or_default(),
            days: days.iter().map(|(_, file)| file.text.clone()).collect(),
        };
        Ok(Pages { notes, known, days })
    }

    /// Adds the facts that are new to today's notes, together with a record. Returns the number of new facts; with none
    /// nothing is written. `None`: another writer has changed the notes since they were read, and nothing is written.
    pub async fn add(
        &self,
        slot: &Slot,
        pages: &Pages,
        facts: &[String],
        record: Option<(String, Vec<u8>)>,
    ) -> Result<Option<usize>> {
        let today = memory::day_file(self.host.now_ms());
        let found = pages.days.iter().find(|(path, _)| *path == today).map(|(_, file)| file);
        let text = found.map(|file| file.text.as_str()).unwrap_or_default();
        let Some((text, n_new)) = memory::with_facts(text, facts, &pages.notes) else {
            return Ok(Some(0));
        };
        let write = vec![(today.clone(), text)];
        let changes =
            FileChanges { expect: (&today, found), write, record, ..FileChanges::default() };
        Ok(self.files(slot).change(changes).await?.then_some(n_new))
    }

    /// Replaces all notes that were read by one merged file. The replaced notes go into the archive. Notes that another
    /// writer has changed since they were read stay. Returns `false` if the file itself was changed: then nothing is
    /// written.
    pub async fn replace(&self, slot: &Slot, pages: &Pages, text: String) -> Result<bool> {
        let files = self.files(slot);
        let mut write = vec![(memory::FILE.to_owned(), text)];
        write.extend(
            pages.known.as_ref().map(|it| (memory::archived(memory::FILE), it.text.clone())),
        );
        let expect = (memory::FILE, pages.known.as_ref());
        if !files.change(FileChanges { expect, write, ..FileChanges::default() }).await? {
            return Ok(false);
        }
        for (path, day) in &pages.days {
            let place = memory::archived(path);
            let earlier = files.read(&place).await?.map(|file| file.text).unwrap_or_default();
            let write = vec![(place, earlier + &day.text)];
            let (expect, remove) = ((path.as_str(), Some(day)), Some(path.as_str()));
            files.change(FileChanges { expect, write, remove, ..FileChanges::default() }).await?;
        }
        Ok(true)
    }
}
