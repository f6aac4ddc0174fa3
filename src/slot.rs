//! Whose conversation, and which one.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;

/// The most bytes an id may have.
const LONGEST: usize = 256;

/// A user, or nobody in particular, and one of their sessions. Bytes decide: no folding, no trimming.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slot {
    session_id: Rc<str>,
    user_id: Option<Rc<str>>,
}

impl Slot {
    /// The slot of these ids; `None` is the anonymous user.
    pub fn new(user: Option<&str>, session: &str) -> Result<Slot> {
        check("sessionId", session)?;
        if let Some(user) = user {
            check("userId", user)?;
        }
        Ok(Slot { session_id: session.into(), user_id: user.map(Rc::from) })
    }

    /// Which conversation.
    pub fn session(&self) -> &str {
        &self.session_id
    }

    /// Whose; `None` is the anonymous user.
    pub fn user(&self) -> Option<&str> {
        self.user_id.as_deref()
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user() {
            Some(user) => write!(out, "session \"{}\" of user \"{user}\"", self.session()),
            None => write!(out, "session \"{}\"", self.session()),
        }
    }
}

/// Refuses what cannot be an id: blank, over-long, with control characters.
pub fn check(name: &str, id: &str) -> Result<()> {
    let complaint = if id.trim().is_empty() {
        format!("{name} is empty")
    } else if id.len() > LONGEST {
        format!("{name} has {} bytes", id.len())
    } else if id.chars().any(char::is_control) {
        format!("{name} has a control character")
    } else {
        return Ok(());
    };
    let hint =
        format!("{name} is a string of 1 to {LONGEST} UTF-8 bytes without control characters");
    Err(Error::new(ErrorKind::IdInvalid, complaint).hint(hint))
}
