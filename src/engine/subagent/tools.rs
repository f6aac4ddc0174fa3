//! Implements the subagent tools of the model.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::engine::call::Call;
use crate::engine::call::cancel::Cause;
use crate::engine::call::request::CallRequest;
use crate::engine::options::{Options, Subagent};
use crate::engine::session::AgentSessions;
use crate::engine::stamp;
use crate::engine::subagent::children::{CallChildren, Child, RunningChildren};
use crate::engine::subagent::kinds::SubagentKinds;
use crate::engine::subagent::report::{TaskEnd, end_of, report};
use crate::engine::subagent::role::{ChildRole, MAX_DEPTH};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, race};
use crate::port::{Tool, ToolRun};
use crate::slot::Slot;
use crate::store::format::task::TaskRecord;
use crate::store::format::task::child_session;
use crate::store::id;
use crate::store::tasks::TaskFilter;
use crate::store::workspace::files::Files;
use crate::tool::subagents::{self, Order, Subagents};

/// How often to check whether a task that runs in another process has ended.
const POLL_MS: u64 = 1_000;

/// This bit is set in the tags of children, and not in the tags of calls that the application makes.
const CHILD_TAG: u32 = 1 << 31;

/// A function that starts the call of a child.
pub(in crate::engine) type BeginChild = Box<dyn Fn(CallRequest, Rc<ChildRole>) -> Result<Call>>;

/// Implements the subagent tools of the model.
pub(in crate::engine) struct SubagentTools {
    sessions: Rc<AgentSessions>,
    children: Rc<RunningChildren>,
    files: Option<Rc<Files>>,
    /// Set after the agent was made, because the agent needs these tools first.
    begin: OnceCell<BeginChild>,
}

impl SubagentTools {
    pub(in crate::engine) fn new(
        sessions: &Rc<AgentSessions>,
        children: &Rc<RunningChildren>,
        files: Option<&Rc<Files>>,
    ) -> SubagentTools {
        let (sessions, children) = (Rc::clone(sessions), Rc::clone(children));
        SubagentTools { sessions, children, files: files.cloned(), begin: OnceCell::new() }
    }

    /// The tools for the model, if the options have subagents.
    pub(in crate::engine) fn tools(
        self: &Rc<Self>,
        options: &Options,
    ) -> Result<Vec<Rc<dyn Tool>>> {
        let Some(kinds) = &options.subagents else { return Ok(Vec::new()) };
        let line = |kind: &Subagent| format!("\n- {}: {}", kind.name, kind.description);
        let lines: String = kinds.iter().map(line).collect();
        subagents::tools(&(Rc::clone(self) as Rc<dyn Subagents>), &lines)
    }

    /// Sets the function that starts the call of a child.
    pub(in crate::engine) fn begin_with(&self, begin: BeginChild) {
        // This method is called once, when the agent is made.
        let _ = self.begin.set(begin);
    }

    fn kinds(&self) -> SubagentKinds<'_> {
        SubagentKinds::new(self.sessions.options(), self.files.as_deref())
    }
}

impl Subagents for SubagentTools {
    fn take<'a>(&'a self, order: Order<'a>, run: ToolRun<'a>) -> Local<'a, Result<String>> {
        Box::pin(async move {
            let Some(own) = self.children.of_parent(run.slot) else {
                return Err(refused("There is no call that could have children."));
            };
            let order_run = OrderRun { tools: self, own: &own, run };
            match order {
                Order::Spawn { agent, says, label, wait_ms } => {
                    order_run.spawn(agent, says, label, wait_ms).await
                }
                Order::Send { to, says, wait_ms } => order_run.send(to, says, wait_ms).await,
                Order::Agents => order_run.agents().await,
                Order::Tasks(status) => order_run.list(status).await,
                Order::Output { task, wait_ms } => order_run.output(task, wait_ms).await,
                Order::Cancel(task) => order_run.cancel(task).await,
                Order::Wait { tasks, all, wait_ms } => order_run.wait(tasks, all, wait_ms).await,
            }
        })
    }
}

/// One tool call with an order.
#[derive(Clone, Copy)]
struct OrderRun<'a> {
    tools: &'a SubagentTools,
    /// The children of the call that contains the tool call.
    own: &'a Rc<CallChildren>,
    run: ToolRun<'a>,
}

impl OrderRun<'_> {
    async fn spawn(
        self,
        agent: &str,
        says: &str,
        label: Option<&str>,
        wait_ms: u64,
    ) -> Result<String> {
        if self.own.depth() >= MAX_DEPTH {
            return Err(refused("An agent this deep has no agents of its own."));
        }
        let kind = self.tools.kinds().find(self.run.slot, agent).await?;
        if let Some(label) = label {
            self.check_label(label).await?;
        }
        let session = child_session(&kind.name, &self.short_id());
        let role = ChildRole::under(self.own, self.tools.sessions.options(), kind);
        self.begin(self.task(agent, &session, label), role, says, wait_ms).await
    }

    async fn send(self, to: &str, says: &str, wait_ms: u64) -> Result<String> {
        let tasks = self.tasks(TaskFilter::All).await?;
        let known = tasks.iter().find(|it| it.session == to || it.label.as_deref() == Some(to));
        let Some(known) = known else {
            return Err(refused(format!(
                "There is no agent \"{to}\" in this session. See agent_list."
            )));
        };
        let kind = self.tools.kinds().find(self.run.slot, &known.agent).await?;
        let role = ChildRole::under(self.own, self.tools.sessions.options(), kind);
        let task = self.task(&known.agent, &known.session, known.label.as_deref());
        self.begin(task, role, says, wait_ms).await
    }

    /// Starts a child and waits up to `wait_ms` for its end. After that the child continues in the background.
    async fn begin(
        self,
        task: TaskRecord,
        role: ChildRole,
        says: &str,
        wait_ms: u64,
    ) -> Result<String> {
        self.tools.sessions.stored().put_task(self.run.slot, &task).await?;
        let child = self.start(task, role, says)?;
        let until = self.until(wait_ms);
        // Once its input is accepted, the child holds its session, so that no other node can take it for lost.
        loop {
            let changed = self.tools.children.changed();
            let is_over = self.tools.children.find(&child.task.id).is_none();
            if is_over || (child.is_accepted() && self.left(until) == 0) {
                break;
            }
            let left = if child.is_accepted() { self.left(until) } else { POLL_MS };
            race(changed, self.tools.sessions.host().sleep(left)).await;
        }
        let task = &child.task;
        if let Some(why) = child.refusal() {
            self.own.note_told(self.run.tool_call_id.to_owned(), task.clone(), "failed");
            return Ok(report(task, "failed", &why));
        }
        let promoted = "It goes on in the background. Its result comes to you as a message; task_output and wait_async_results wait for it.";
        self.told(task, promoted).await
    }

    fn start(self, task: TaskRecord, role: ChildRole, says: &str) -> Result<Rc<Child>> {
        let slot = Slot::new(self.run.slot.user(), &task.session)?;
        let tag = CHILD_TAG | self.tools.sessions.calls().next_number() as u32;
        let request = CallRequest {
            call_id: Some(task.id.clone()),
            attributes: self.run.attributes.clone(),
            tag,
            ..CallRequest::new(slot, says)
        };
        let Some(begin) = self.tools.begin.get() else {
            return Err(refused("The agent cannot begin calls."));
        };
        let call = begin(request, Rc::new(role))?;
        Ok(self.own.add(&self.tools.children, (task, call), (tag, self.run.tag)))
    }

    async fn agents(self) -> Result<String> {
        let mut lines = vec!["Agents that you can spawn:".to_owned()];
        for kind in self.tools.kinds().all(self.run.slot).await? {
            lines.push(format!("- {}: {}", kind.name, kind.description));
        }
        lines.push("Agents that you have spawned:".to_owned());
        let mut seen: Vec<String> = Vec::new();
        let tasks = self.tasks(TaskFilter::All).await?;
        // The status of an agent is the status of its last task.
        for task in tasks.iter().rev() {
            if !seen.contains(&task.session) {
                seen.push(task.session.clone());
                lines.push(self.line(task, &task.session).await?);
            }
        }
        if seen.is_empty() {
            lines.push("none".to_owned());
        }
        Ok(lines.join("\n"))
    }

    async fn list(self, status: Option<&str>) -> Result<String> {
        let mut lines = Vec::new();
        for task in self.tasks(TaskFilter::All).await? {
            let line = self.line(&task, &task.id).await?;
            if status.is_none_or(|status| line.ends_with(&format!(": {status}"))) {
                lines.push(line);
            }
        }
        let none = || "There are no such tasks in this session.".to_owned();
        Ok(if lines.is_empty() { none() } else { lines.join("\n") })
    }

    async fn output(self, id: &str, wait_ms: u64) -> Result<String> {
        let task = self.find(id).await?;
        self.wait_for(std::slice::from_ref(&task), true, wait_ms).await?;
        self.told(&task, "").await
    }

    async fn cancel(self, id: &str) -> Result<String> {
        let task = self.find(id).await?;
        let Some(child) = self.tools.children.find(id) else {
            return Err(match self.status(&task).await?.as_str() {
                "running" => {
                    refused(format!("Task {id} runs in another process, which alone can stop it."))
                }
                status => refused(format!("Task {id} has ended already: {status}.")),
            });
        };
        child.cancel.ask(Cause::Stopped(Vec::new()));
        self.wait_for(std::slice::from_ref(&task), true, u64::MAX).await?;
        self.told(&task, "").await
    }

    async fn wait(self, ids: &[String], all: bool, wait_ms: u64) -> Result<String> {
        let mut tasks = Vec::new();
        for id in ids {
            tasks.push(self.find(id).await?);
        }
        if ids.is_empty() {
            tasks = self.tasks(TaskFilter::Open).await?;
            tasks.retain(|task| !self.own.is_told(&task.id));
        }
        if tasks.is_empty() {
            return Err(refused(
                "There is nothing to wait for: you have heard of the end of every task.",
            ));
        }
        self.wait_for(&tasks, all, wait_ms).await?;
        let mut reports = Vec::new();
        for task in &tasks {
            reports.push(self.told(task, "").await?);
        }
        Ok(reports.join("\n\n"))
    }

    /// Waits until one of these tasks, or all of them, have ended, but not longer than `wait_ms`.
    async fn wait_for(self, tasks: &[TaskRecord], all: bool, wait_ms: u64) -> Result<()> {
        let until = self.until(wait_ms);
        loop {
            let changed = self.tools.children.changed();
            let mut n_ended = 0;
            let mut is_elsewhere = false;
            for task in tasks {
                let is_here = self.tools.children.find(&task.id).is_some();
                if !is_here && self.end(task).await?.is_some() {
                    n_ended += 1;
                } else {
                    is_elsewhere |= !is_here;
                }
            }
            let left = self.left(until);
            if left == 0 || n_ended == tasks.len() || (!all && n_ended > 0) {
                return Ok(());
            }
            let pause = if is_elsewhere { left.min(POLL_MS) } else { left };
            race(changed, self.tools.sessions.host().sleep(pause)).await;
        }
    }

    /// The current report about a task. If the task has ended, the result of this tool call reports its end.
    async fn told(self, task: &TaskRecord, while_running: &str) -> Result<String> {
        let Some(end) = self.end(task).await? else {
            return Ok(report(task, "running", while_running));
        };
        if task.ended.is_none() && !self.own.is_told(&task.id) {
            self.own.note_told(self.run.tool_call_id.to_owned(), task.clone(), end.status);
        }
        Ok(report(task, end.status, &end.text))
    }

    async fn end(self, task: &TaskRecord) -> Result<Option<TaskEnd>> {
        end_of(&self.tools.children, &self.tools.sessions, self.run.slot.user(), task).await
    }

    async fn status(self, task: &TaskRecord) -> Result<String> {
        Ok(match &task.ended {
            Some(ended) => ended.clone(),
            None => self.end(task).await?.map_or("running", |end| end.status).to_owned(),
        })
    }

    async fn line(self, task: &TaskRecord, name: &str) -> Result<String> {
        let label = task.label.as_ref().map(|label| format!(", {label}")).unwrap_or_default();
        Ok(format!("- {name} ({}{label}): {}", task.agent, self.status(task).await?))
    }

    async fn find(self, id: &str) -> Result<TaskRecord> {
        let tasks = self.tasks(TaskFilter::All).await?;
        let found = tasks.into_iter().find(|task| task.id == id);
        found.ok_or_else(|| {
            refused(format!("There is no task \"{id}\" in this session. See task_list."))
        })
    }

    async fn tasks(self, which: TaskFilter) -> Result<Vec<TaskRecord>> {
        self.tools.sessions.stored().tasks(self.run.slot, which).await
    }

    /// Refuses a label that is used by, or reserved for, another agent of this session.
    async fn check_label(self, label: &str) -> Result<()> {
        let taken = self.tasks(TaskFilter::All).await?;
        let is_own = |task: &TaskRecord| task.label.as_deref() == Some(label);
        if taken.iter().any(is_own) || !self.own.reserve_label(label) {
            return Err(refused(format!(
                "There is an agent \"{label}\" in this session already: agent_send goes on with it, or choose another label."
            )));
        }
        Ok(())
    }

    fn task(self, agent: &str, session: &str, label: Option<&str>) -> TaskRecord {
        TaskRecord {
            id: self.short_id(),
            parent: self.run.slot.session().to_owned(),
            agent: agent.to_owned(),
            session: session.to_owned(),
            label: label.map(str::to_owned),
            at: stamp::now(&**self.tools.sessions.host()),
            ended: None,
        }
    }

    fn short_id(self) -> String {
        id::nonce(&**self.tools.sessions.host())
    }

    fn until(self, wait_ms: u64) -> f64 {
        self.tools.sessions.host().now_ms() + wait_ms as f64
    }

    fn left(self, until: f64) -> u64 {
        (until - self.tools.sessions.host().now_ms()).max(0.0).ceil() as u64
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InputInvalid, message)
}
