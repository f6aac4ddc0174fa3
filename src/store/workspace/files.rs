//! The files of a workspace. They belong to a user, or to one session if the user is anonymous.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::message::EVICTED;
use crate::port::{Batch, Host, Page, Record, Shared, Store};
use crate::slot::Slot;
use crate::store::keys::{self, SlotKeys};
use crate::store::records::{CommitOutcome, Records, read};
use crate::store::workspace::path;

/// Keys read at a time.
const PAGE: usize = 500;

/// The options of a workspace.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Files that exist until they are overwritten: path and text.
    pub templates: Vec<(String, String)>,
    /// Files and folders that tools may not write.
    pub read_only: Vec<String>,
    /// The largest file, in bytes.
    pub max_file_bytes: usize,
}

impl Default for Workspace {
    fn default() -> Self {
        let (templates, read_only) = (Vec::new(), Vec::new());
        Workspace { templates, read_only, max_file_bytes: 1 << 20 }
    }
}

/// A file as it was read.
pub struct File {
    /// Its text.
    pub text: String,
    /// The revision that a write expects to replace this file; `None` for a template.
    pub revision: Option<String>,
}

/// A change of several files that is applied completely or not at all.
#[derive(Default)]
pub struct FileChanges<'a> {
    /// The file that must be unchanged since it was read, or still absent.
    pub expect: (&'a str, Option<&'a File>),
    /// Files to write, by path.
    pub write: Vec<(String, String)>,
    /// A file to remove.
    pub remove: Option<&'a str>,
    /// A record of another kind that is written in the same batch: key and value.
    pub record: Option<(String, Vec<u8>)>,
}

/// The files of all users of an agent in one store.
pub struct Files {
    agent: String,
    records: Records,
    workspace: Workspace,
}

impl Files {
    /// The files of the agent with this name. Fails if the options of the workspace are wrong.
    pub fn new(
        agent: &str,
        workspace: Workspace,
        store: Rc<dyn Store>,
        host: Rc<dyn Host>,
        timeout_ms: u64,
    ) -> Result<Files> {
        let workspace = checked(workspace).map_err(|error| {
            let hint = error.hint_text().unwrap_or_default();
            Error::new(ErrorKind::Options, format!("workspace: {}", error.message())).hint(hint)
        })?;
        let records = Records::new(store, host, timeout_ms);
        Ok(Files { agent: agent.to_owned(), records, workspace })
    }

    /// The files that the tools of a session see.
    pub fn of(&self, slot: &Slot) -> OwnerFiles<'_> {
        let place = if self.is_per_session(slot.user()) {
            SlotKeys::new(&self.agent, slot).files()
        } else {
            keys::files(&keys::partition(&self.agent, slot.user()))
        };
        OwnerFiles { files: self, place }
    }

    /// Whether each session has files of its own. Sessions of the anonymous user may belong to different people, except in one
    /// browser.
    pub fn is_per_session(&self, user: Option<&str>) -> bool {
        user.is_none() && self.records.shared() != Shared::Origin
    }
}

/// The files of one owner: a user or a session.
pub struct OwnerFiles<'a> {
    files: &'a Files,
    place: String,
}

impl OwnerFiles<'_> {
    /// The prefix of the keys; it is different for each owner.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A file, if there is one.
    pub async fn read(&self, path: &str) -> Result<Option<File>> {
        let path = path::file(path)?;
        let Some(record) = self.record(&path).await? else {
            let mut templates = self.files.workspace.templates.iter();
            let template = templates.find(|(of, _)| *of == path);
            return Ok(template.map(|(_, text)| File { text: text.clone(), revision: None }));
        };
        let (of, text) = contents(&self.key(&path), &record)?;
        if of != path {
            let message = format!("the record of the file {path} belongs to another file");
            return Err(Error::new(ErrorKind::StoreCorrupt, message));
        }
        Ok(Some(File { text, revision: Some(record.revision) }))
    }

    /// Writes a file if it is still as `found`, or still absent. `false`: another writer has changed it.
    pub async fn write(&self, path: &str, text: &str, found: Option<&File>) -> Result<bool> {
        let path = path::file(path)?;
        let expected = found.and_then(|file| file.revision.clone());
        self.commit(&path, text, expected).await
    }

    /// Writes an evicted result, which may be larger than other files, if the record of its call still has the expected
    /// revision. A write that comes after the end of the call, or after a deletion, changes nothing.
    pub async fn write_evicted(
        &self,
        path: &str,
        text: &str,
        call: (String, String),
    ) -> Result<()> {
        let put = vec![self.unchecked_record(&path::file(path)?, text)];
        let expect = Some((call.0, Some(call.1)));
        let revision = self.files.records.random_id();
        let batch = Batch { expect, revision, put, ..Batch::default() };
        self.files.records.commit(&batch).await.map(|_| ())
    }

    /// Changes several files, if the expected file is unchanged. `false`: another writer has changed it.
    pub async fn change(&self, changes: FileChanges<'_>) -> Result<bool> {
        let (path, found) = changes.expect;
        let mut batch = self.batch(path, found.and_then(|file| file.revision.clone()));
        batch.put.extend(changes.record);
        for (path, text) in &changes.write {
            batch.put.push(self.record_of(path, text)?);
        }
        batch.remove.extend(changes.remove.map(|path| self.key(path)));
        Ok(!matches!(self.files.records.commit(&batch).await?, CommitOutcome::Conflict))
    }

    /// Writes a file, regardless of its current contents. Fails only if another writer changes it at the same moment.
    pub async fn put(&self, path: &str, text: &str) -> Result<()> {
        let path = path::file(path)?;
        let expected = self.record(&path).await?.map(|record| record.revision);
        if self.commit(&path, text, expected).await? {
            return Ok(());
        }
        let message = format!("the file {path} was changed by another writer at the same moment");
        Err(Error::new(ErrorKind::Superseded, message).hint("read the file and write it again"))
    }

    /// Removes a file, if there is one. A template appears again.
    pub async fn remove(&self, path: &str) -> Result<()> {
        let remove = vec![self.key(&path::file(path)?)];
        let revision = self.files.records.random_id();
        let batch = Batch { revision, remove, ..Batch::default() };
        self.files.records.commit(&batch).await.map(|_| ())
    }

    /// The paths of the file or folder and of everything below it, sorted; "" is everything.
    pub async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let folder = path::folder(folder)?;
        // A file with exactly this name has no `/` after its key.
        let below = keys::folders(&folder).0;
        let prefix = below.strip_suffix('/').unwrap_or(&below);
        self.listed(prefix, &|path| path::is_within(path, &folder)).await
    }

    /// The paths of all files that begin with `start`, sorted. After its last `/`, `start` may have only letters and digits.
    pub async fn list_like(&self, start: &str) -> Result<Vec<String>> {
        self.listed(&keys::path(start), &|path| path.starts_with(start)).await
    }

    async fn listed(&self, prefix: &str, is_meant: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut paths = Vec::new();
        // Keys are nearly in the order of paths, so an insertion rarely moves anything.
        let mut add = |path: String| {
            if is_meant(&path)
                && let Err(place) = paths.binary_search(&path)
            {
                paths.insert(place, path);
            }
        };
        self.files.workspace.templates.iter().for_each(|(path, _)| add(path.clone()));
        let prefix = format!("{}{prefix}", self.place);
        let mut after = None;
        loop {
            let page = Page { after: after.take(), limit: Some(PAGE), keys_only: true };
            let found = self.files.records.list(&prefix, page).await?;
            let last = found.get(PAGE - 1).map(|(key, _)| key.clone());
            for (key, _) in found {
                self.path_of(key).await?.into_iter().for_each(&mut add);
            }
            match last {
                Some(key) => after = Some(key),
                None => return Ok(paths),
            }
        }
    }

    /// Refuses a read-only path. Evicted results are read-only.
    pub fn check_writable(&self, path: &str) -> Result<()> {
        let path = path::file(path)?;
        let mut read_only = self.files.workspace.read_only.iter();
        if read_only.any(|folder| path::is_within(&path, folder)) || path::is_within(&path, EVICTED)
        {
            return Err(Error::new(ErrorKind::PathInvalid, format!("{path} is read-only"))
                .hint("write to another path"));
        }
        Ok(())
    }

    /// Refuses a text that is too large for a file.
    pub fn check_size(&self, path: &str, n_bytes: usize) -> Result<()> {
        check_size(path, n_bytes, self.files.workspace.max_file_bytes)
    }

    async fn commit(&self, path: &str, text: &str, expected: Option<String>) -> Result<bool> {
        let put = vec![self.record_of(path, text)?];
        let batch = Batch { put, ..self.batch(path, expected) };
        Ok(!matches!(self.files.records.commit(&batch).await?, CommitOutcome::Conflict))
    }

    /// An empty batch that expects the revision of a file.
    fn batch(&self, path: &str, expected: Option<String>) -> Batch {
        let expect = Some((self.key(path), expected));
        Batch { expect, revision: self.files.records.random_id(), ..Batch::default() }
    }

    fn record_of(&self, path: &str, text: &str) -> Result<(String, Vec<u8>)> {
        self.check_size(path, text.len())?;
        Ok(self.unchecked_record(path, text))
    }

    fn unchecked_record(&self, path: &str, text: &str) -> (String, Vec<u8>) {
        let value = serde_json::json!({ "path": path, "text": text });
        (self.key(path), json::to_bytes(&value))
    }

    fn key(&self, path: &str) -> String {
        format!("{}{}", self.place, keys::path(path))
    }

    async fn record(&self, path: &str) -> Result<Option<Record>> {
        self.files.records.get(self.key(path)).await
    }

    /// The path of the file with this key. If the key is hashed, the record is read. `None`: the record is gone.
    async fn path_of(&self, key: String) -> Result<Option<String>> {
        let parts = key.strip_prefix(&self.place).unwrap_or_default().split('/');
        let names: Option<Vec<String>> = parts.map(keys::unpart).collect();
        if let Some(names) = names {
            return Ok(Some(names.join("/")));
        }
        let record = self.files.records.get(key.clone()).await?;
        record.map(|record| contents(&key, &record).map(|(path, _)| path)).transpose()
    }
}

fn contents(key: &str, record: &Record) -> Result<(String, String)> {
    let fields = |value: &_| -> Read<(String, String)> {
        let fields = Fields::of(value)?;
        Ok((fields.required("path", json::text)?, fields.required("text", json::text)?))
    };
    read(key, record, fields, "a file of the workspace")
}

fn check_size(path: &str, n_bytes: usize, most: usize) -> Result<()> {
    if n_bytes <= most {
        return Ok(());
    }
    let message = format!("{path} would have {n_bytes} bytes, and a file has at most {most}");
    Err(Error::new(ErrorKind::StateTooLarge, message).hint("write less, or several files"))
}

/// The options with normalised paths.
fn checked(workspace: Workspace) -> Result<Workspace> {
    let Workspace { templates, read_only, max_file_bytes } = workspace;
    let template = |(name, text): (String, String)| {
        check_size(&name, text.len(), max_file_bytes)?;
        Ok((path::file(&name)?, text))
    };
    let folder = |name: String| {
        if name.contains('*') {
            let message = format!("readOnly has the pattern \"{name}\"");
            return Err(Error::new(ErrorKind::Options, message)
                .hint("name a file or a folder; everything below a folder is read-only too"));
        }
        path::folder(&name)
    };
    Ok(Workspace {
        templates: templates.into_iter().map(template).collect::<Result<_>>()?,
        read_only: read_only.into_iter().map(folder).collect::<Result<_>>()?,
        max_file_bytes,
    })
}
