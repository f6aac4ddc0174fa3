//! Sessions as the records that are left tell them, read without the engine.

use std::collections::BTreeMap;

use lockgate::port::Record;
use lockgate::store::entry::Entry;
use lockgate::store::head::{Head, HeadRecord};
use serde_json::Value;

/// A session as its records tell it.
#[derive(Default)]
pub struct Session {
    pub head: Option<Box<Head>>,
    pub entries: BTreeMap<String, Entry>,
    pub inputs: Vec<String>,
    /// The names of the entries from the root to the leaf.
    pub path: Vec<String>,
}

/// Reads the records below a prefix; what cannot be read is a problem of its own.
pub fn read(records: &[(String, Record)], prefix: &str) -> Result<Session, String> {
    let mut session = Session::default();
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
        } else if rest.starts_with("input/") {
            session.inputs.push(value.to_string());
        }
    }
    let mut name = session.head.as_ref().and_then(|head| head.leaf.clone());
    while let Some(next) = name {
        let entry = session.entries.get(&next.to_string());
        let entry = entry.ok_or_else(|| format!("entry {next} of the path is missing"))?;
        session.path.push(next.to_string());
        name = entry.parent.clone();
    }
    session.path.reverse();
    Ok(session)
}
