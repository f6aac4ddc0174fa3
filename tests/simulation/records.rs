//! Reads sessions from the stored records, without the engine.

use std::collections::BTreeMap;

use lockgate::port::Record;
use lockgate::store::format::entry::Entry;
use lockgate::store::format::head::{Head, HeadRecord};
use lockgate::store::keys::EntryRef;
use serde_json::Value;

/// A session, read from its records.
#[derive(Default)]
pub struct Session {
    pub head: Option<Box<Head>>,
    pub entries: BTreeMap<String, Entry>,
    pub inputs: Vec<String>,
    /// The keys of stored parts of answers.
    pub pieces: Vec<String>,
    /// The names (`<seq>.<id>`) of the entries from the root to the leaf.
    pub path: Vec<String>,
    /// The same for every other branch.
    pub others: Vec<Vec<String>>,
}

impl Session {
    /// The names of the entries from the root to a leaf.
    pub fn path_to(&self, leaf: Option<EntryRef>) -> Result<Vec<String>, String> {
        let (mut path, mut name) = (Vec::new(), leaf);
        while let Some(next) = name {
            let entry = self.entries.get(&next.to_string());
            let entry = entry.ok_or_else(|| format!("entry {next} of the path is missing"))?;
            path.push(next.to_string());
            name = entry.parent.clone();
        }
        path.reverse();
        Ok(path)
    }
}

/// Reads the records below a prefix. An unreadable record is a problem of its own.
pub fn read(records: &[(String, Record)], prefix: &str) -> Result<Session, String> {
    let (mut session, mut left) = (Session::default(), Vec::new());
    for (key, record) in records {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        let value: Value = serde_json::from_slice(&record.value).map_err(|it| it.to_string())?;
        let misread = |_| format!("{rest} is misread");
        if rest == "head" {
            if let HeadRecord::Live(head) = Head::from_json(&value).map_err(misread)? {
                session.head = Some(head);
            }
        } else if let Some(name) = rest.strip_prefix("log/") {
            let entry = Entry::from_json(&value).map_err(misread)?;
            session.entries.insert(name.to_owned(), entry);
        } else if rest.starts_with("branch/") {
            if let HeadRecord::Live(head) = Head::from_json(&value).map_err(misread)? {
                left.push(head.leaf);
            }
        } else if rest.starts_with("input/") {
            session.inputs.push(value.to_string());
        } else if rest.starts_with("partial/") {
            session.pieces.push(rest.to_owned());
        }
    }
    session.path = session.path_to(session.head.as_ref().and_then(|head| head.leaf.clone()))?;
    for leaf in left {
        let path = session.path_to(leaf)?;
        session.others.push(path);
    }
    Ok(session)
}
