//! What was said, found again: by a host through the agent, by a model through its tools.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::engine::Agent;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Message;
use crate::port::{Archive, Page, Shared, Wanted};
use crate::slot::{self, Slot};
use crate::store::Sessions;
use crate::store::info::SessionInfo;
use crate::store::search::{Query, SearchHit, searchable};

/// The longest message that a model is shown of another session, in characters.
const LONGEST: usize = 500;

/// What tools read.
pub(super) struct Shelves {
    pub(super) sessions: Rc<Sessions>,
    /// Whether sessions without a user are one person's: only where a browser keeps them.
    pub(super) one_person: bool,
}

impl Shelves {
    pub(super) fn new(sessions: &Rc<Sessions>, shared: Shared) -> Shelves {
        Shelves { sessions: Rc::clone(sessions), one_person: shared == Shared::Origin }
    }

    /// Whether a session may see nothing but itself: nobody knows who else is nobody in particular.
    fn is_alone(&self, user: Option<&str>) -> bool {
        user.is_none() && !self.one_person
    }

    async fn list(&self, by: &Slot, limit: usize) -> Result<Value> {
        let infos = if self.is_alone(by.user()) {
            self.sessions.info(by).await?.into_iter().collect()
        } else {
            let page = Page { limit: Some(limit), ..Page::default() };
            self.sessions.list_sessions(by.user(), page).await?
        };
        let line = |info: &SessionInfo| {
            json!({
                "sessionId": info.session_id,
                "title": info.title,
                "lastSaid": info.summary,
                "messages": info.messages,
                "updatedAt": info.updated_at,
                "isThisOne": info.session_id == by.session(),
            })
        };
        Ok(infos.iter().map(line).collect())
    }

    async fn history(&self, by: &Slot, session: &str, last_n: usize) -> Result<Value> {
        let unknown = || {
            let message = format!("There is no session \"{session}\". See session_list.");
            Err(Error::new(ErrorKind::NoSuchSession, message))
        };
        let Ok(slot) = Slot::new(by.user(), session) else { return unknown() };
        if self.is_alone(by.user()) && slot != *by {
            return unknown();
        }
        let messages = self.sessions.history(&slot, None, last_n).await?;
        if messages.is_empty() && self.sessions.info(&slot).await?.is_none() {
            return unknown();
        }
        Ok(messages.iter().map(|message| shown(message)).collect())
    }

    async fn search(&self, by: &Slot, text: &str, limit: usize) -> Result<Value> {
        let session = self.is_alone(by.user()).then_some(by.session());
        let query = Query { text, user: by.user(), session, limit };
        let hits = self.sessions.search(query).await?.hits;
        let line = |hit: &SearchHit| {
            json!({
                "sessionId": hit.slot.session(),
                "role": hit.role,
                "at": hit.at,
                "excerpt": hit.excerpt,
            })
        };
        Ok(hits.iter().map(line).collect())
    }
}

impl Archive for Shelves {
    fn look_up<'a>(&'a self, by: &'a Slot, wanted: Wanted<'a>) -> Local<'a, Result<Value>> {
        match wanted {
            Wanted::Sessions(limit) => Box::pin(self.list(by, limit)),
            Wanted::History(session, last_n) => Box::pin(self.history(by, session, last_n)),
            Wanted::Hits(text, limit) => Box::pin(self.search(by, text, limit)),
        }
    }
}

/// A message as a model is shown it; one that is cut says so.
fn shown(message: &Message) -> Value {
    let text = searchable(message);
    let mut line = json!({ "role": message.role, "at": message.at });
    if let Some(members) = line.as_object_mut() {
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            members.insert("cut".to_owned(), true.into());
            members.insert("text".to_owned(), text.get(..end).unwrap_or_default().into());
        } else {
            members.insert("text".to_owned(), text.into());
        }
    }
    line
}

impl Agent {
    /// The messages of a user, or of one of their sessions, that fit some words best.
    pub async fn search(&self, query: Query<'_>) -> Result<Vec<SearchHit>> {
        if let Some(user) = query.user {
            slot::check("userId", user)?;
        }
        if query.session.is_none() && self.0.shelves.is_alone(query.user) {
            let message = "nobody knows whose the sessions without a user are";
            return Err(Error::new(ErrorKind::InputInvalid, message)
                .hint("name a userId, or the sessionId to be searched"));
        }
        let found = self.0.sessions.search(query).await?;
        for (slot, covered) in found.gaps {
            self.0.after.borrow_mut().mend(slot, covered);
        }
        Ok(found.hits)
    }
}
