//! How a task ended, and telling its parent of it: once, in the batch that stores the message it is told in.

use std::rc::Rc;

use crate::engine::Inner;
use crate::engine::cancel::Cause;
use crate::engine::crew::Brood;
use crate::engine::drive::Driver;
use crate::engine::outcome::{Failed, answer_of};
use crate::engine::turn::Turn;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Reason, Reply};
use crate::future::{Either, race};
use crate::json;
use crate::message::{Message, ResultState};
use crate::slot::Slot;
use crate::state::Facts;
use crate::store::entry::{Entry, EntryKind};
use crate::store::id;
use crate::store::session::Session;
use crate::store::task::{Task, Which};

/// How long to wait for the session of a child that does not run here; one that is not free by then runs elsewhere.
const FREE_MS: u64 = 250;

const LOST: &str = "It was cut off when its process ended. Its tools may have run. It is not run again by itself: agent_send goes on with it.";

/// How a task ended.
pub(super) struct End {
    /// In a word.
    pub(super) status: &'static str,
    /// What the child said, or why it said nothing.
    pub(super) text: String,
}

impl End {
    fn lost() -> End {
        End { status: "lost", text: LOST.to_owned() }
    }

    /// As the child's log has it.
    fn of(entry: &Entry) -> End {
        let Some(outcome) = &entry.outcome else { return End::lost() };
        let answer = answer_of(&entry.messages).map(|message| message.text()).unwrap_or_default();
        let is = |reason: Reason| outcome.reason == Some(json::to_value(&reason));
        let (status, text) = match &outcome.code {
            Some(code) if code == ErrorKind::ShuttingDown.code() => return End::lost(),
            Some(_) => ("failed", outcome.message.clone().unwrap_or_default()),
            None if entry.kind == EntryKind::Recovered => return End::lost(),
            None if is(Reason::Interrupted) => ("cancelled", answer),
            None if outcome.is_open() => {
                let why = "It waits for a person to answer in its own session.";
                ("asking", [answer.as_str(), why].join("\n").trim_start().to_owned())
            }
            None => ("completed", answer),
        };
        End { status, text }
    }
}

impl Inner {
    /// How a task ended; none while it runs, here or elsewhere.
    pub(super) async fn end_of(&self, user: Option<&str>, task: &Task) -> Result<Option<End>> {
        if self.crew.find(&task.id).is_some() {
            return Ok(None);
        }
        let slot = Slot::new(user, &task.session)?;
        if let Some(entry) = self.sessions.ended_call(&slot, &task.id).await? {
            return Ok(Some(End::of(&entry)));
        }
        let is_free = match race(self.take_over(&slot), self.host.sleep(FREE_MS)).await {
            Either::First(is_free) => is_free?,
            Either::Second(()) => false,
        };
        if !is_free {
            return Ok(None);
        }
        let ended = self.sessions.ended_call(&slot, &task.id).await?;
        Ok(Some(ended.as_ref().map_or_else(End::lost, End::of)))
    }

    /// Logs what the calls of a session that are gone have left. `false`: another node has it open.
    async fn take_over(&self, slot: &Slot) -> Result<bool> {
        let ticket = self.gate.enter(slot);
        ticket.admitted().await;
        let _held = self.hold(slot).await?;
        loop {
            let mut session = self.sessions.load(slot, None).await?;
            if self.sessions.barred(&session).is_some() {
                return Ok(false);
            }
            if self.recover(&mut session).await? {
                return Ok(true);
            }
        }
    }
}

impl Turn<'_> {
    /// Puts into the conversation how tasks have ended, before the model is asked. What cannot be read now is told
    /// later.
    pub(in crate::engine) async fn tell_ends(&self, session: &mut Session) {
        let brood = &self.live.brood;
        let n_changes = self.agent.crew.n_changes.get();
        if brood.n_looked.get() == Some(n_changes) {
            return;
        }
        brood.n_looked.set(Some(n_changes));
        let open = self.agent.sessions.tasks(self.slot, Which::Open).await.unwrap_or_default();
        for task in open {
            if brood.is_heard(&task.id) {
                continue;
            }
            if let Ok(Some(end)) = self.agent.end_of(self.slot.user(), &task).await {
                let text = report(&task, end.status, &end.text);
                let id = id::mint(&*self.agent.host);
                let note = Message { id: id.clone(), ..Message::note(text) };
                self.append(session, vec![note]);
                brood.hear(id, task, end.status);
            }
        }
    }
}

impl Driver {
    /// The fields that the call begins with: a child's are under its parent's.
    pub(in crate::engine) fn under_parent(&self, facts: Facts) -> Facts {
        match &self.post {
            Some(post) => post.hand_down(facts),
            None => facts,
        }
    }

    /// The call, while its children move; what is left of them then goes on by itself.
    pub(in crate::engine) async fn beside_children(&mut self) -> Result<Reply, Failed> {
        let live = Rc::clone(&self.live);
        let ended = live.brood.beside(self.timed()).await;
        self.leave_children().await;
        ended
    }

    /// Children end with a call that is told to end; of others, what still runs goes on after it.
    async fn leave_children(&self) {
        let brood = &self.live.brood;
        if !matches!(self.cancel.cause(), None | Some(Cause::Shutdown)) {
            brood.end().await;
        }
        self.agent.crew.dismiss(&self.slot, &self.live);
        let left = brood.leave();
        let parent = self.post.as_ref().and_then(|post| post.parent.upgrade());
        let left = match parent {
            Some(parent) => parent.brood.adopt(left),
            None => left,
        };
        self.agent.after.borrow_mut().children.extend(left);
    }

    /// The tasks whose end is told in these messages.
    pub(in crate::engine) fn heard_in(&self, messages: &[Rc<Message>]) -> Vec<Task> {
        self.live.brood.heard_in(messages)
    }
}

impl Brood {
    /// Takes note that a message, or the result of a tool call, tells how a task ended.
    pub(super) fn hear(&self, by: String, task: Task, status: &str) {
        let task = Task { ended: Some(status.to_owned()), ..task };
        self.heard.borrow_mut().push((by, task));
    }

    /// Whether this call has been told already.
    pub(super) fn is_heard(&self, task: &str) -> bool {
        self.heard.borrow().iter().any(|(_, heard)| heard.id == task)
    }

    /// The tasks whose end is told in these messages; what was told by a tool whose result was dropped is not.
    pub(in crate::engine) fn heard_in(&self, messages: &[Rc<Message>]) -> Vec<Task> {
        let is_result = |message: &Rc<Message>, by: &str| {
            let mut results = message.tool_results();
            results.any(|result| result.id == by && result.state == ResultState::Success)
        };
        let tells = |by: &str| messages.iter().any(|it| it.id == by || is_result(it, by));
        let heard = self.heard.borrow();
        heard.iter().filter(|(by, _)| tells(by)).map(|(_, task)| task.clone()).collect()
    }
}

/// What a parent is told of a task.
pub(super) fn report(task: &Task, status: &str, text: &str) -> String {
    let label = task.label.as_ref().map(|label| format!("label: {label}\n")).unwrap_or_default();
    let Task { id, agent, session, .. } = task;
    let head = format!(
        "task_id: {id}\nstatus: {status}\nagent_id: {agent}\nagent_key: {session}\n{label}"
    );
    if text.is_empty() { head.trim_end().to_owned() } else { format!("{head}\n{text}") }
}
