//! A user's notes, kept in the files of their workspace: read, added to, and merged without losing what others write.

use std::rc::Rc;

use crate::error::Result;
use crate::policy::memory::{self, Notes};
use crate::port::Host;
use crate::slot::Slot;
use crate::store::files::{Changes, File, Files, Shelf};

/// The notes of an agent's users.
pub struct Notebook {
    files: Rc<Files>,
    host: Rc<dyn Host>,
}

/// A user's notes as they were read, so that a change of them can tell whether they still are.
pub struct Pages {
    /// What they say.
    pub notes: Notes,
    known: Option<File>,
    days: Vec<(String, File)>,
}

impl Notebook {
    /// Notes in these files, dated by this clock.
    pub fn new(files: &Rc<Files>, host: &Rc<dyn Host>) -> Notebook {
        Notebook { files: Rc::clone(files), host: Rc::clone(host) }
    }

    /// The files that a session's notes are in.
    pub fn shelf(&self, slot: &Slot) -> Shelf<'_> {
        self.files.of(slot)
    }

    /// Whether notes may be added: the host may have said that no tool writes there.
    pub fn check_writable(&self, slot: &Slot) -> Result<()> {
        self.shelf(slot).check_writable(&memory::day_file(self.host.now_ms()))
    }

    /// What a session's user is known by.
    pub async fn read(&self, slot: &Slot) -> Result<Pages> {
        let shelf = self.shelf(slot);
        let known = shelf.read(memory::FILE).await?;
        let mut days = Vec::new();
        for path in shelf.list_like(memory::DAYS).await? {
            // One that is gone by now has just been merged.
            days.extend(shelf.read(&path).await?.map(|file| (path, file)));
        }
        let notes = Notes {
            known: known.as_ref().map(|file| file.text.clone()).unwrap_or_default(),
            days: days.iter().map(|(_, file)| file.text.clone()).collect(),
        };
        Ok(Pages { notes, known, days })
    }

    /// Adds facts to today's notes, but for those that are noted already, and a record that goes with them: how many
    /// facts were new. With none nothing is written. `None`: somebody has written since the notes were read; nothing is
    /// changed.
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
        let changes = Changes { expect: (&today, found), write, record, ..Changes::default() };
        Ok(self.shelf(slot).change(changes).await?.then_some(n_new))
    }

    /// Puts a merged file in place of all notes that were read; what it replaces goes into the archive. Notes that
    /// somebody has written meanwhile stay where they are. `false`: the file itself is such, and nothing is changed.
    pub async fn replace(&self, slot: &Slot, pages: &Pages, text: String) -> Result<bool> {
        let shelf = self.shelf(slot);
        let mut write = vec![(memory::FILE.to_owned(), text)];
        write.extend(
            pages.known.as_ref().map(|it| (memory::archived(memory::FILE), it.text.clone())),
        );
        let expect = (memory::FILE, pages.known.as_ref());
        if !shelf.change(Changes { expect, write, ..Changes::default() }).await? {
            return Ok(false);
        }
        for (path, day) in &pages.days {
            let place = memory::archived(path);
            let earlier = shelf.read(&place).await?.map(|file| file.text).unwrap_or_default();
            let write = vec![(place, earlier + &day.text)];
            let (expect, remove) = ((path.as_str(), Some(day)), Some(path.as_str()));
            shelf.change(Changes { expect, write, remove, ..Changes::default() }).await?;
        }
        Ok(true)
    }
}
