//! Searches stored messages, for the application and for the tools of the model.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::engine::session::indexing::Indexing;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Message;
use crate::port::{Page, SessionQuery, SessionReader, Shared};
use crate::slot::{self, Slot};
use crate::store::Sessions;
use crate::store::format::session_info::SessionInfo;
use crate::store::search::{Query, SearchHit, searchable};

/// The longest message of another session that the model sees, in characters.
const LONGEST: usize = 500;

/// Reads stored sessions, limited to those that a user, or a tool in a session of this user, may see.
pub(in crate::engine) struct SessionLookup {
    sessions: Rc<Sessions>,
    /// Whether all sessions without a userId belong to one person. This is true only for stores of a browser.
    is_one_person: bool,
    /// The sessions of other agents that the tools may read, by the agent's name.
    others: Vec<(String, Sessions)>,
}

impl SessionLookup {
    pub(in crate::engine) fn new(
        sessions: &Rc<Sessions>,
        shared: Shared,
        others: Vec<(String, Sessions)>,
    ) -> SessionLookup {
        let is_one_person = shared == Shared::Origin;
        SessionLookup { sessions: Rc::clone(sessions), is_one_person, others }
    }

    /// The sessions that a tool asks for. Refuses agents that are not configured. A session without a user may read
    /// only itself on a shared store, so it reads no other agent there.
    fn of_agent(&self, by: &Slot, agent: Option<&str>) -> Result<&Sessions> {
        let Some(agent) = agent.filter(|name| *name != self.sessions.agent()) else {
            return Ok(&self.sessions);
        };
        if self.is_alone(by.user()) {
            let message = "Without a user, the sessions of other agents cannot be read.";
            return Err(Error::new(ErrorKind::InputInvalid, message));
        }
        let other = self.others.iter().find(|(name, _)| name == agent);
        other.map(|(_, sessions)| sessions).ok_or_else(|| {
            let names: Vec<&str> = self.others.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!(
                "The sessions of agent \"{agent}\" cannot be read. Other agents that can be read: {}.",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            );
            Error::new(ErrorKind::InputInvalid, message)
        })
    }

    /// Whether a session may read only itself: without a userId, other sessions may belong to other people.
    fn is_alone(&self, user: Option<&str>) -> bool {
        user.is_none() && !self.is_one_person
    }

    /// The messages that match a query best, in all sessions of a user or in one of them.
    pub(in crate::engine) async fn find(
        &self,
        query: Query<'_>,
        indexing: &Indexing,
    ) -> Result<Vec<SearchHit>> {
        if let Some(user) = query.user {
            slot::check("userId", user)?;
        }
        if query.session.is_none() && self.is_alone(query.user) {
            let message = "search needs a userId or a sessionId on a shared store";
            return Err(Error::new(ErrorKind::InputInvalid, message)
                .hint("pass a userId, or the sessionId to search"));
        }
        let found = self.sessions.search(query).await?;
        for (slot, covered) in found.gaps {
            indexing.index_again(slot, covered);
        }
        Ok(found.hits)
    }

    async fn list(&self, by: &Slot, agent: Option<&str>, limit: usize) -> Result<Value> {
        let sessions = self.of_agent(by, agent)?;
        let is_own = sessions.agent() == self.sessions.agent();
        let infos = if self.is_alone(by.user()) {
            sessions.info(by).await?.into_iter().collect()
        } else {
            let page = Page { limit: Some(limit), ..Page::default() };
            sessions.list_sessions(by.user(), page).await?
        };
        let line = |info: &SessionInfo| {
            json!({
                "sessionId": info.session_id,
                "title": info.title,
                "lastSaid": info.summary,
                "messages": info.messages,
                "updatedAt": info.updated_at,
                "isThisOne": is_own && info.session_id == by.session(),
            })
        };
        Ok(infos.iter().map(line).collect())
    }

    async fn history(
        &self,
        by: &Slot,
        agent: Option<&str>,
        (session, last_n): (&str, usize),
    ) -> Result<Value> {
        let sessions = self.of_agent(by, agent)?;
        let unknown = || {
            let message = format!("There is no session \"{session}\". See session_list.");
            Err(Error::new(ErrorKind::NoSuchSession, message))
        };
        let Ok(slot) = Slot::new(by.user(), session) else { return unknown() };
        if self.is_alone(by.user()) && slot != *by {
            return unknown();
        }
        let messages = sessions.history(&slot, None, last_n).await?;
        if messages.is_empty() && sessions.info(&slot).await?.is_none() {
            return unknown();
        }
        Ok(messages.iter().map(|message| shown(message)).collect())
    }

    async fn search(
        &self,
        by: &Slot,
        agent: Option<&str>,
        (text, limit): (&str, usize),
    ) -> Result<Value> {
        let sessions = self.of_agent(by, agent)?;
        let session = self.is_alone(by.user()).then_some(by.session());
        let query = Query { text, user: by.user(), session, limit };
        let hits = sessions.search(query).await?.hits;
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

impl SessionReader for SessionLookup {
    fn look_up<'a>(
        &'a self,
        by: &'a Slot,
        agent: Option<&'a str>,
        wanted: SessionQuery<'a>,
    ) -> Local<'a, Result<Value>> {
        match wanted {
            SessionQuery::Sessions(limit) => Box::pin(self.list(by, agent, limit)),
            SessionQuery::History(session, n) => Box::pin(self.history(by, agent, (session, n))),
            SessionQuery::Hits(text, limit) => Box::pin(self.search(by, agent, (text, limit))),
        }
    }
}

/// A message in the form for the model. `cut` marks a shortened text.
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
