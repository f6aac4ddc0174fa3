//! What a model asks of its children, done.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use crate::engine::Inner;
use crate::engine::call::{Call, CallRequest};
use crate::engine::cancel::Cause;
use crate::engine::crew::tell::{End, report};
use crate::engine::crew::{Child, DEEPEST, Post, Present, Subagent, moved};
use crate::engine::live::Live;
use crate::engine::options::Options;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, race};
use crate::message::rfc3339;
use crate::port::{Tool, ToolRun};
use crate::slot::Slot;
use crate::store::id;
use crate::store::task::{Task, Which, child_session};
use crate::tool::subagents::{self, Crew as Orders, Order};

/// How often a task that runs elsewhere is looked at.
const LOOK_MS: u64 = 1_000;

/// Tags of children have this bit; those of a host's calls do not.
const CHILD_TAG: u32 = 1 << 31;

/// Takes the orders of an agent's tools.
#[derive(Default)]
pub(in crate::engine) struct Foreman(RefCell<Weak<Inner>>);

impl Foreman {
    /// The tools that give orders, if the options have them.
    pub(in crate::engine) fn tools(
        self: &Rc<Self>,
        options: &Options,
    ) -> Result<Vec<Rc<dyn Tool>>> {
        let Some(kinds) = &options.subagents else { return Ok(Vec::new()) };
        let line = |kind: &Subagent| format!("\n- {}: {}", kind.name, kind.description);
        let lines: String = kinds.iter().map(line).collect();
        subagents::tools(&(Rc::clone(self) as Rc<dyn Orders>), &lines)
    }

    /// Says whose they are.
    pub(in crate::engine) fn serve(&self, agent: &Rc<Inner>) {
        self.0.replace(Rc::downgrade(agent));
    }
}

impl Orders for Foreman {
    fn take<'a>(&'a self, order: Order<'a>, run: ToolRun<'a>) -> Local<'a, Result<String>> {
        Box::pin(async move {
            let agent = self.0.borrow().upgrade();
            let live = agent.as_ref().and_then(|agent| {
                agent.crew.parents.borrow().get(run.slot).and_then(Weak::upgrade)
            });
            let (Some(agent), Some(live)) = (agent, live) else {
                return Err(refused("There is no call that could have children."));
            };
            let desk = Desk { agent: &agent, live: &live, run };
            match order {
                Order::Spawn { agent, says, label, wait_ms } => {
                    desk.spawn(agent, says, label, wait_ms).await
                }
                Order::Send { to, says, wait_ms } => desk.send(to, says, wait_ms).await,
                Order::Agents => desk.agents().await,
                Order::Tasks(status) => desk.list(status).await,
                Order::Output { task, wait_ms } => desk.output(task, wait_ms).await,
                Order::Cancel(task) => desk.cancel(task).await,
                Order::Wait { tasks, all, wait_ms } => desk.wait(tasks, all, wait_ms).await,
            }
        })
    }
}

/// Where one tool call has its order done.
#[derive(Clone, Copy)]
struct Desk<'a> {
    agent: &'a Rc<Inner>,
    live: &'a Rc<Live>,
    run: ToolRun<'a>,
}

impl Desk<'_> {
    async fn spawn(
        self,
        agent: &str,
        says: &str,
        label: Option<&str>,
        wait_ms: u64,
    ) -> Result<String> {
        if self.live.brood.depth.get() >= DEEPEST {
            return Err(refused("An agent this deep has no agents of its own."));
        }
        let kind = self.agent.kind(self.run.slot, agent).await?;
        if let Some(label) = label {
            self.check_label(label).await?;
        }
        let session = child_session(&kind.name, &self.short_id());
        let post = Post::new(self.agent, kind, self.live);
        self.begin(self.task(agent, &session, label), post, says, wait_ms).await
    }

    async fn send(self, to: &str, says: &str, wait_ms: u64) -> Result<String> {
        let tasks = self.tasks(Which::All).await?;
        let known = tasks.iter().find(|it| it.session == to || it.label.as_deref() == Some(to));
        let Some(known) = known else {
            return Err(refused(format!(
                "There is no agent \"{to}\" in this session. See agent_list."
            )));
        };
        let kind = self.agent.kind(self.run.slot, &known.agent).await?;
        let post = Post::new(self.agent, kind, self.live);
        let task = self.task(&known.agent, &known.session, known.label.as_deref());
        self.begin(task, post, says, wait_ms).await
    }

    /// Begins a child, and waits for it as long as it is asked to: from then on it goes on by itself.
    async fn begin(self, task: Task, post: Post, says: &str, wait_ms: u64) -> Result<String> {
        self.agent.sessions.put_task(self.run.slot, &task).await?;
        let child = self.start(task, post, says)?;
        let until = self.until(wait_ms);
        // Once its input is accepted its session is held: nobody takes it for lost.
        loop {
            let changed = self.agent.crew.changed();
            let is_over = self.agent.crew.find(&child.task.id).is_none();
            if is_over || (child.is_accepted.get() && self.left(until) == 0) {
                break;
            }
            let left = if child.is_accepted.get() { self.left(until) } else { LOOK_MS };
            race(changed, self.agent.host.sleep(left)).await;
        }
        let task = &child.task;
        if let Some(why) = child.failed.borrow().as_ref().filter(|_| !child.is_accepted.get()) {
            let id = self.run.tool_call_id.to_owned();
            self.live.brood.hear(id, task.clone(), "failed");
            return Ok(report(task, "failed", why));
        }
        let promoted = "It goes on in the background. Its result comes to you as a message; task_output and wait_async_results wait for it.";
        self.told(task, promoted).await
    }

    fn start(self, task: Task, post: Post, says: &str) -> Result<Rc<Child>> {
        let slot = Slot::new(self.run.slot.user(), &task.session)?;
        let number = self.agent.n_calls.get() as u32 + 1;
        let request = CallRequest {
            call_id: Some(task.id.clone()),
            attributes: self.run.attributes.clone(),
            tag: CHILD_TAG | number,
            ..CallRequest::new(slot, says)
        };
        if self.agent.closing.get() {
            return Err(crate::engine::shutting_down());
        }
        let call = Call::begin_as(Rc::clone(self.agent), request, Some(Rc::new(post)))?;
        let child = Rc::new(Child {
            slot: call.slot().clone(),
            tag: CHILD_TAG | number,
            parent_tag: self.run.tag,
            cancel: call.cancel(),
            outbox: call.outbox(),
            live: call.live(),
            shown: RefCell::new(self.live.brood.outbox.borrow().clone()),
            is_accepted: Cell::new(false),
            failed: RefCell::default(),
            task,
        });
        self.agent.crew.running.borrow_mut().push(Rc::clone(&child));
        let present = Present(Rc::clone(self.agent), Rc::clone(&child));
        let moving = (Rc::clone(&child), Box::pin(moved(present, call)) as Local<'static, ()>);
        self.live.brood.moving.borrow_mut().push(moving);
        Ok(child)
    }

    async fn agents(self) -> Result<String> {
        let mut lines = vec!["Agents that you can spawn:".to_owned()];
        for kind in self.agent.kinds(self.run.slot).await? {
            lines.push(format!("- {}: {}", kind.name, kind.description));
        }
        lines.push("Agents that you have spawned:".to_owned());
        let mut seen: Vec<String> = Vec::new();
        let tasks = self.tasks(Which::All).await?;
        // The last task of an agent tells how it is.
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
        for task in self.tasks(Which::All).await? {
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
        let Some(child) = self.agent.crew.find(id) else {
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
            tasks = self.tasks(Which::Open).await?;
            tasks.retain(|task| !self.live.brood.is_heard(&task.id));
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

    /// Waits until one, or all, of these have ended, but not for ever.
    async fn wait_for(self, tasks: &[Task], all: bool, wait_ms: u64) -> Result<()> {
        let until = self.until(wait_ms);
        loop {
            let changed = self.agent.crew.changed();
            let mut n_ended = 0;
            let mut is_elsewhere = false;
            for task in tasks {
                let is_here = self.agent.crew.find(&task.id).is_some();
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
            let pause = if is_elsewhere { left.min(LOOK_MS) } else { left };
            race(changed, self.agent.host.sleep(pause)).await;
        }
    }

    /// What there is to tell of a task now; of one that has ended, the result of this tool call is what tells it.
    async fn told(self, task: &Task, while_running: &str) -> Result<String> {
        let Some(end) = self.end(task).await? else {
            return Ok(report(task, "running", while_running));
        };
        if task.ended.is_none() && !self.live.brood.is_heard(&task.id) {
            self.live.brood.hear(self.run.tool_call_id.to_owned(), task.clone(), end.status);
        }
        Ok(report(task, end.status, &end.text))
    }

    async fn end(self, task: &Task) -> Result<Option<End>> {
        self.agent.end_of(self.run.slot.user(), task).await
    }

    async fn status(self, task: &Task) -> Result<String> {
        Ok(match &task.ended {
            Some(ended) => ended.clone(),
            None => self.end(task).await?.map_or("running", |end| end.status).to_owned(),
        })
    }

    async fn line(self, task: &Task, name: &str) -> Result<String> {
        let label = task.label.as_ref().map(|label| format!(", {label}")).unwrap_or_default();
        Ok(format!("- {name} ({}{label}): {}", task.agent, self.status(task).await?))
    }

    async fn find(self, id: &str) -> Result<Task> {
        let tasks = self.tasks(Which::All).await?;
        let found = tasks.into_iter().find(|task| task.id == id);
        found.ok_or_else(|| {
            refused(format!("There is no task \"{id}\" in this session. See task_list."))
        })
    }

    async fn tasks(self, which: Which) -> Result<Vec<Task>> {
        self.agent.sessions.tasks(self.run.slot, which).await
    }

    /// Refuses a label that another agent of this session has, or is being given at this moment.
    async fn check_label(self, label: &str) -> Result<()> {
        let taken = self.tasks(Which::All).await?;
        let mut labels = self.live.brood.labels.borrow_mut();
        let is_own = |task: &Task| task.label.as_deref() == Some(label);
        if taken.iter().any(is_own) || labels.iter().any(|other| other == label) {
            return Err(refused(format!(
                "There is an agent \"{label}\" in this session already: agent_send goes on with it, or choose another label."
            )));
        }
        labels.push(label.to_owned());
        Ok(())
    }

    fn task(self, agent: &str, session: &str, label: Option<&str>) -> Task {
        Task {
            id: self.short_id(),
            parent: self.run.slot.session().to_owned(),
            agent: agent.to_owned(),
            session: session.to_owned(),
            label: label.map(str::to_owned),
            at: rfc3339(self.agent.host.now_ms()),
            ended: None,
        }
    }

    fn short_id(self) -> String {
        id::nonce(&*self.agent.host)
    }

    fn until(self, wait_ms: u64) -> f64 {
        self.agent.host.now_ms() + wait_ms as f64
    }

    fn left(self, until: f64) -> u64 {
        (until - self.agent.host.now_ms()).max(0.0).ceil() as u64
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InputInvalid, message)
}
