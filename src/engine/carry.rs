//! Carrying a session out of a store and into another: as our own document, or as the reference writes it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::agentscope;
use crate::engine::Agent;
use crate::engine::alter::{Changing, Decide, Makes};
use crate::engine::drive::stamped;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::message::{Message, rfc3339};
use crate::slot::Slot;
use crate::state::{AgentState, Facts};
use crate::store::info::SessionInfo;
use crate::store::session::{Alteration, Context, Session};

/// The format of our own documents.
const VERSION: u64 = 1;

/// How a session is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: the whole log, and the state.
    Lockgate,
    /// The AgentState document of AgentScope Java.
    AgentScope,
}

/// A session as we write it down.
#[derive(Serialize)]
struct Document<'a> {
    lockgate: u64,
    title: &'a str,
    history: &'a [Rc<Message>],
    state: &'a AgentState,
}

/// A session as it was written down.
struct Carried {
    title: Option<String>,
    history: Vec<Message>,
    context: Vec<Message>,
    facts: Facts,
}

impl Agent {
    /// The session as a document.
    pub async fn export_session(&self, slot: &Slot, format: Format) -> Result<String> {
        let session = self.0.sessions.load(slot, None).await?;
        let Some(head) = &session.head else {
            return Err(Error::new(ErrorKind::NoSuchSession, format!("there is no {slot}")));
        };
        let state = session.state();
        if format == Format::AgentScope {
            return Ok(
                agentscope::export(slot, &state.context, &state.summary, &state.facts).to_string()
            );
        }
        let history = self.0.sessions.history(slot, None, u32::MAX as usize).await?;
        let title = &head.card.title;
        Ok(json::to_text(&Document { lockgate: VERSION, title, history: &history, state: &state }))
    }

    /// Makes a session of a document. One that is there and has messages is not replaced.
    pub fn import_session(&self, slot: &Slot, text: &str) -> Result<Changing<Option<SessionInfo>>> {
        let imported = self.0.alter(slot, Makes::Session, self.importing(text)?);
        let (agent, slot) = (self.clone(), slot.clone());
        Ok(Box::pin(async move {
            imported.await?;
            agent.session(&slot).await
        }))
    }

    fn importing(&self, text: &str) -> Result<Decide> {
        let Carried { title, history, context, facts } = read(text)?;
        let known: HashSet<&str> = context.iter().map(|message| message.id.as_str()).collect();
        let only_logged = history.iter().filter(|message| !known.contains(message.id.as_str()));
        let only_logged: Vec<Message> = only_logged.cloned().collect();
        let start = only_logged.len();
        let at = rfc3339(self.0.host.now_ms());
        let stamp = |message| Rc::new(stamped(message, &self.0, &at));
        let messages: Vec<Rc<Message>> =
            only_logged.into_iter().chain(context).map(stamp).collect();
        Ok(Box::new(move |session: &Session| {
            if session.head.as_ref().is_some_and(|head| head.card.messages > 0) {
                let message = format!("{} is there already and has messages", session.slot);
                let hint = "import it as another session, or delete this one first";
                return Err(Error::new(ErrorKind::InputInvalid, message).hint(hint));
            }
            let context = Context::Replaced(messages.clone(), start);
            Ok(Alteration { context, facts: Some(facts.clone()), title: title.clone() })
        }))
    }
}

fn read(text: &str) -> Result<Carried> {
    let wrong = |message: &str| {
        let hint = "give what exportSession answered with, or an AgentState document of AgentScope";
        Error::new(ErrorKind::InputInvalid, message).hint(hint)
    };
    let document: Value = json::foreign(text.as_bytes(), json::DEEPEST_DOCUMENT)
        .map_err(|why| wrong(&format!("the document is not JSON: {why}")))?;
    let Some(version) = document.get("lockgate") else {
        let imported = agentscope::import(&document)?;
        let (context, facts) = (imported.context, imported.facts);
        return Ok(Carried { title: None, history: Vec::new(), context, facts });
    };
    if version.as_u64().is_none_or(|version| version > VERSION) {
        let message = "the document was written by a newer version of lockgate";
        return Err(Error::new(ErrorKind::StateVersion, message).hint("update the package"));
    }
    ours(&document).map_err(|misread| {
        wrong(misread.into_error(ErrorKind::InputInvalid, "the document").message())
    })
}

fn ours(document: &Value) -> Read<Carried> {
    let messages = |value: &Value| json::list(value, Message::from_json);
    let fields = Fields::of(document)?;
    let state = fields.required("state", json::any)?;
    let of_state = Fields::of(&state)?;
    let known = ["format", "version", "revision", "session_id", "user_id", "context", "summary"];
    let history = fields.or_default("history", messages)?;
    let mut context = of_state.required("context", messages)?;
    // What is shown only in part is whole in the log.
    let whole: HashMap<&str, &Message> = history.iter().map(|it| (it.id.as_str(), it)).collect();
    for message in &mut context {
        if let Some(whole) = whole.get(message.id.as_str()) {
            *message = (*whole).clone();
        }
    }
    Ok(Carried {
        title: fields.optional("title", json::text)?,
        history,
        context,
        facts: Facts::from_json(&Value::Object(of_state.rest(&known)))?,
    })
}
