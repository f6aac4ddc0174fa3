//! The end of a task, and its report to the parent: once, in the batch that stores the message with the report.

use std::rc::Rc;

use crate::engine::call::log::CallLog;
use crate::engine::call::outcome::answer_of;
use crate::engine::call::scope::CallScope;
use crate::engine::session::AgentSessions;
use crate::engine::session::recovery::recover;
use crate::engine::subagent::children::{CallChildren, RunningChildren};
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Reason;
use crate::future::{Either, race};
use crate::json;
use crate::message::{MAX_TOOL_TEXT, Message, Note, ResultState, shortened};
use crate::slot::Slot;
use crate::store::format::entry::{Entry, EntryKind};
use crate::store::format::task::TaskRecord;
use crate::store::id;
use crate::store::session::Session;
use crate::store::tasks::TaskFilter;

/// How long to wait for the session of a child that does not run in this process. If the session is still in use after
/// that, the child runs in another process.
const WAIT_MS: u64 = 250;

const LOST: &str = "It was cut off when its process ended. Its tools may have run. It is not run again by itself: agent_send goes on with it.";

/// The end of a task.
pub(in crate::engine) struct TaskEnd {
    /// The status of the task.
    pub(in crate::engine) status: &'static str,
    /// The reply of the child, or the reason why there is none.
    pub(in crate::engine) text: String,
}

impl TaskEnd {
    fn lost() -> TaskEnd {
        TaskEnd { status: "lost", text: LOST.to_owned() }
    }

    /// The end of a task from the entry in the child's log.
    fn of(entry: &Entry) -> TaskEnd {
        let Some(outcome) = &entry.outcome else { return TaskEnd::lost() };
        let answer = answer_of(&entry.messages).map(|message| message.text()).unwrap_or_default();
        let is = |reason: Reason| outcome.reason == Some(json::to_value(&reason));
        let (status, text) = match &outcome.code {
            Some(code) if code == ErrorKind::ShuttingDown.code() => return TaskEnd::lost(),
            Some(_) => ("failed", outcome.message.clone().unwrap_or_default()),
            None if entry.kind == EntryKind::Recovered => return TaskEnd::lost(),
            None if is(Reason::Interrupted) => ("cancelled", answer),
            None if outcome.is_open() => {
                let why = "It waits for a person to answer in its own session.";
                ("asking", [answer.as_str(), why].join("\n").trim_start().to_owned())
            }
            None => ("completed", answer),
        };
        TaskEnd { status, text }
    }
}

/// The end of a task; `None` while it runs, here or in another process.
pub(in crate::engine) async fn end_of(
    children: &RunningChildren,
    sessions: &AgentSessions,
    user: Option<&str>,
    task: &TaskRecord,
) -> Result<Option<TaskEnd>> {
    if children.find(&task.id).is_some() {
        return Ok(None);
    }
    let slot = Slot::new(user, &task.session)?;
    if let Some(entry) = sessions.stored().ended_call(&slot, &task.id).await? {
        return Ok(Some(TaskEnd::of(&entry)));
    }
    let free = race(recover_if_free(sessions, &slot), sessions.host().sleep(WAIT_MS));
    let is_free = match free.await {
        Either::First(is_free) => is_free?,
        Either::Second(()) => false,
    };
    if !is_free {
        return Ok(None);
    }
    let ended = sessions.stored().ended_call(&slot, &task.id).await?;
    Ok(Some(ended.as_ref().map_or_else(TaskEnd::lost, TaskEnd::of)))
}

/// Recovers a session whose calls were cut off. Returns `false` if another node has the session open.
async fn recover_if_free(sessions: &AgentSessions, slot: &Slot) -> Result<bool> {
    let ticket = sessions.gate().enter(slot);
    ticket.admitted().await;
    let _lock = sessions.lock(slot).await?;
    loop {
        let mut session = sessions.stored().load(slot, None).await?;
        if sessions.stored().other_lease(&session).is_some() {
            return Ok(false);
        }
        if recover(sessions, &mut session).await? {
            return Ok(true);
        }
    }
}

/// Adds messages about ended tasks to the conversation before a model request. A task that cannot be read now is
/// reported later.
pub(in crate::engine) async fn tell_ends(
    (own, children): (&CallChildren, &RunningChildren),
    sessions: &AgentSessions,
    (scope, log): (&CallScope<'_>, &CallLog<'_>),
    session: &mut Session,
) {
    if !own.has_changes(children) {
        return;
    }
    let open = sessions.stored().tasks(scope.slot, TaskFilter::Open).await.unwrap_or_default();
    for task in open {
        if own.is_told(&task.id) {
            continue;
        }
        if let Ok(Some(end)) = end_of(children, sessions, scope.slot.user(), &task).await {
            let text = report(&task, end.status, &end.text);
            let id = id::random_id(scope.host);
            let note = Message { id: id.clone(), ..Message::note_of(Note::TaskResult, text) };
            log.append(session, vec![note]);
            own.note_told(id, task, end.status);
        }
    }
}

/// The tasks whose end is reported in these messages. A tool call whose result was dropped has reported nothing.
pub(in crate::engine) fn told_in(own: &CallChildren, messages: &[Rc<Message>]) -> Vec<TaskRecord> {
    let is_result = |message: &Rc<Message>, by: &str| {
        let mut results = message.tool_results();
        results.any(|result| result.id == by && result.state == ResultState::Success)
    };
    let tells = |by: &str| messages.iter().any(|it| it.id == by || is_result(it, by));
    own.told().into_iter().filter(|(by, _)| tells(by)).map(|(_, task)| task).collect()
}

/// The report about a task, for the model of the parent.
pub(in crate::engine) fn report(task: &TaskRecord, status: &str, text: &str) -> String {
    let label = task.label.as_ref().map(|label| format!("label: {label}\n")).unwrap_or_default();
    let TaskRecord { id, agent, session, .. } = task;
    let head = format!(
        "task_id: {id}\nstatus: {status}\nagent_id: {agent}\nagent_key: {session}\n{label}"
    );
    let text = shortened(text.to_owned(), MAX_TOOL_TEXT);
    if text.is_empty() { head.trim_end().to_owned() } else { format!("{head}\n{text}") }
}
