//! Export and import of a session: as our own document, or as the document of AgentScope Java.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::agentscope;
use crate::engine::call::outcome::shutting_down;
use crate::engine::session::edit::{Changing, forbidden, info, with_summary};
use crate::engine::session::lease::open;
use crate::engine::session::recovery::recover;
use crate::engine::session::{AgentSessions, no_such};
use crate::engine::stamp::all_stamped;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Read};
use crate::message::Message;
use crate::port::Host;
use crate::run::{open as open_calls, result_message};
use crate::slot::Slot;
use crate::state::{AgentState, FORMAT, Facts, PermissionRight};
use crate::store::Sessions;
use crate::store::format::head::Head;
use crate::store::format::session_info::SessionInfo;
use crate::store::id;
use crate::store::transfer::{ClosedCalls, Document, ImportedMessages, SessionCopy};

/// The format of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own format: the whole log and the state.
    Lockgate,
    /// The AgentState document of AgentScope Java.
    AgentScope,
}

/// A session read from a document.
enum SessionRead {
    /// With its log.
    Whole(Box<SessionCopy>),
    /// Only its messages.
    Messages(Box<ImportedMessages>),
}

impl SessionRead {
    /// Whether all its permissions are those of `own`: now, on other branches, and before earlier questions.
    fn has_only(&self, own: &Facts) -> bool {
        let is_own = |facts: &Facts| facts.permission_context == own.permission_context;
        let of_head = |head: &Head| {
            let before = head.anchor.as_ref().and_then(|anchor| anchor.facts.as_ref());
            is_own(&head.facts) && before.is_none_or(is_own)
        };
        match self {
            SessionRead::Messages(messages) => is_own(&messages.facts),
            SessionRead::Whole(copy) => {
                let mut earlier = copy.entries.iter().filter_map(|(_, it)| it.earlier.as_ref());
                of_head(&copy.head) && copy.branches.iter().all(of_head) && earlier.all(is_own)
            }
        }
    }
}

/// Exports a session as a document. Accepted inputs that are not logged yet are written as a recovery would log them.
pub(in crate::engine) async fn export(
    sessions: &AgentSessions,
    slot: &Slot,
    format: Format,
) -> Result<String> {
    let Some(copy) = sessions.stored().in_memory(slot).await? else {
        return document(sessions.stored(), slot, format).await;
    };
    let copy = sessions.over(copy);
    let mut session = copy.stored().load(slot, None).await?;
    recover(&copy, &mut session).await?;
    document(copy.stored(), slot, format).await
}

async fn document(stored: &Sessions, slot: &Slot, format: Format) -> Result<String> {
    if format == Format::Lockgate {
        let whole = stored.read_whole(slot).await?.ok_or_else(|| no_such(slot))?;
        return Ok(json::to_text(&Document::of(&whole)));
    }
    let session = stored.load(slot, None).await?;
    if session.head.is_none() {
        return Err(no_such(slot));
    }
    let state = session.state();
    // AgentScope shows its models a summary as a message. One that came as the member `summary` goes back there.
    let n_fixed = usize::from(session.context.first().is_some_and(|it| it.replaces().is_none()));
    let n_left_out = n_fixed.min(usize::from(session.has_summary()));
    let context = state.context.get(n_left_out..).unwrap_or_default();
    Ok(agentscope::export(slot, context, &state.summary, &state.facts).to_string())
}

/// Imports a session from a document. An existing session with messages is not replaced.
pub(in crate::engine) fn import(
    sessions: &Rc<AgentSessions>,
    slot: &Slot,
    text: &str,
    right: PermissionRight,
) -> Result<Changing<Option<SessionInfo>>> {
    let imported = read(text, sessions)?;
    if right == PermissionRight::Missing && !imported.has_only(&sessions.options().fresh_facts()) {
        return Err(forbidden("the document has other permissions than the agent's own"));
    }
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Ok(Box::pin(async move {
        let exclusive = exclusive.await?;
        let mut copy = match imported {
            SessionRead::Whole(copy) => *copy,
            SessionRead::Messages(messages) => sessions.stored().copy_of(&slot, &messages),
        };
        let host = &**sessions.host();
        copy.close_calls(&|said| closed(said, host), &|| id::random_id(host));
        write_copy(&sessions, &slot, copy, "import the document as").await?;
        drop(exclusive);
        info(&sessions, &slot).await
    }))
}

/// Gives results to tool calls that were allowed where the document was written. Nobody knows here whether they ran.
fn closed(said: &[Rc<Message>], host: &dyn Host) -> ClosedCalls {
    let results = open_calls::unfinished(said);
    let is_open = open_calls::open_calls(said).len() > results.len();
    let results = all_stamped(results.into_iter().map(result_message), host);
    ClosedCalls { results, is_open }
}

/// Writes a copy into a session that has no messages yet. `how` begins the hint where else the copy could go.
pub(in crate::engine) async fn write_copy(
    sessions: &AgentSessions,
    slot: &Slot,
    copy: SessionCopy,
    how: &str,
) -> Result<()> {
    if sessions.calls().is_closing() {
        return Err(shutting_down());
    }
    sessions.take_cached(slot);
    sessions.save_unsaved(slot).await?;
    let mut session = open(sessions, slot, None, None).await?;
    let is_whole = recover(sessions, &mut session).await?;
    if session.head.as_ref().is_some_and(|head| head.card.messages > 0) {
        let message = format!("{slot} already exists and has messages");
        let hint = format!("{how} another session, or delete this session first");
        return Err(Error::new(ErrorKind::InputInvalid, message).hint(hint));
    }
    let n_bytes = copy.weight();
    if is_whole && sessions.stored().build(&mut session, copy).await? {
        sessions.note_written(&session, n_bytes);
        return Ok(());
    }
    let message = format!("another writer has created {slot} meanwhile");
    Err(Error::new(ErrorKind::Superseded, message).hint(format!("{how} another session")))
}

fn read(text: &str, sessions: &AgentSessions) -> Result<SessionRead> {
    let document: Value = json::foreign(text.as_bytes(), json::DEEPEST_DOCUMENT)
        .map_err(|why| wrong(&format!("the document is not JSON: {why}")))?;
    let document = unwrapped(&document);
    let misread = |misread: Misread| {
        wrong(misread.into_error(ErrorKind::InputInvalid, "the document").message())
    };
    let fields = Fields::of(document).map_err(misread)?;
    let own = if fields.value("lockgate").is_some() {
        let version = check_version(&fields, "lockgate", Document::VERSION).map_err(misread)??;
        if version == Document::VERSION {
            let copy = SessionCopy::from_json(document).map_err(misread)?;
            return Ok(SessionRead::Whole(Box::new(copy)));
        }
        read_first(document).map_err(misread)?
    } else if fields.value("format").is_some() {
        check_version(&fields, "format", FORMAT).map_err(misread)??;
        read_state(document).map_err(misread)?
    } else {
        let is_known = |name: &str| fields.value(name).is_some();
        if !["context", "memory_messages", "toolkit_activeGroups"].into_iter().any(is_known) {
            return Err(wrong(
                "the document is not a session: expected a member \"lockgate\" or \"context\"",
            ));
        }
        let agentscope::Imported { context, summary, facts, .. } = agentscope::import(document)?;
        MessagesRead { title: None, history: Vec::new(), context, summary: Some(summary), facts }
    };
    Ok(SessionRead::Messages(Box::new(own.imported(sessions))))
}

/// Messages read from a document without a log.
struct MessagesRead {
    title: Option<String>,
    history: Vec<Message>,
    context: Vec<Message>,
    summary: Option<String>,
    facts: Facts,
}

impl MessagesRead {
    fn imported(self, sessions: &AgentSessions) -> ImportedMessages {
        let MessagesRead { title, history, context, summary, facts } = self;
        let history = all_stamped(history, &**sessions.host());
        let mut context = all_stamped(context, &**sessions.host());
        // The history has the original of a message that the context shows in part.
        let whole: HashMap<&str, &Rc<Message>> =
            history.iter().map(|it| (it.id.as_str(), it)).collect();
        for message in &mut context {
            if let Some(whole) = whole.get(message.id.as_str()) {
                *message = Rc::clone(whole);
            }
        }
        let found_by = sessions.options().found_by();
        let context = with_summary(None, context, summary.as_deref(), found_by);
        ImportedMessages { history, context, facts, title }
    }
}

/// The error for a text that is not a session.
fn wrong(message: &str) -> Error {
    let hint = "pass the result of exportSession, or an AgentState document of AgentScope";
    Error::new(ErrorKind::InputInvalid, message).hint(hint)
}

/// The document inside the envelopes of a state store: `{"agent_state": …}` and `{"version", "value"}`.
fn unwrapped(document: &Value) -> &Value {
    let is_own = ["context", "lockgate"].iter().any(|name| document.get(name).is_some());
    let has_version = document.get("version").is_some();
    let inside = document.get("agent_state").or(document.get("value").filter(|_| has_version));
    match inside.filter(|inside| inside.is_object() && !is_own) {
        Some(inside) => unwrapped(inside),
        None => document,
    }
}

/// The version of a document. Refuses a newer one.
fn check_version(fields: &Fields<'_>, name: &str, newest: u64) -> Read<Result<u64>> {
    let version = fields.required(name, |value| match json::count(value) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(Misread::new("the number of a version")),
    })?;
    let message = "the document was written by a newer version of lockgate";
    let newer = || Error::new(ErrorKind::StateVersion, message).hint("update the package");
    Ok(if version > newest { Err(newer()) } else { Ok(version) })
}

/// Reads the state that `getAgentState` returns.
fn read_state(state: &Value) -> Read<MessagesRead> {
    read_first(&Value::Object(json::object_of("state", state.clone())))
}

/// Reads a document of version 1: the messages of the log, and the state.
fn read_first(document: &Value) -> Read<MessagesRead> {
    let messages = |value: &Value| json::list(value, Message::from_json);
    let fields = Fields::of(document)?;
    let state = fields.required("state", json::any)?;
    let of_state = Fields::of(&state)?;
    Ok(MessagesRead {
        title: fields.optional("title", json::text)?,
        history: fields.or_default("history", messages)?,
        context: of_state.required("context", messages)?,
        summary: of_state.optional("summary", json::text)?,
        facts: AgentState::facts_of(&state)?,
    })
}
