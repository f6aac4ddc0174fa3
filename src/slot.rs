//! A slot: the user and the session id that name one conversation.

use std::fmt;
use std::rc::Rc;

use serde::Serialize;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;

/// The most bytes an id may have.
const LONGEST: usize = 256;

/// A user (or the anonymous user) and one of the user's sessions. Ids are compared byte by byte, without case folding
/// or trimming.
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

    /// The session id.
    pub fn session(&self) -> &str {
        &self.session_id
    }

    /// The user id; `None` is the anonymous user.
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

/// Refuses an invalid id: blank, too long, or with control characters.
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
