//! The clients: they ask, retry, resend, join, answer open tool calls, stop, abort, leave, read, change and delete.

use std::rc::Rc;

use lockgate::engine::{Agent, Call, CallRequest, Cause, Overlap};
use lockgate::error::ErrorKind;
use lockgate::event::{AskKind, Event};
use lockgate::future::{Either, Local, race};
use lockgate::message::{Block, Message, Role};
use lockgate::port::Page;
use lockgate::slot::Slot;
use serde_json::json;

use crate::history::{Deletion, History, Note, Reading, Resend, ids};
use crate::schedule::Schedule;
use crate::world::Group;

impl Schedule {
    pub async fn client(self: Rc<Self>) {
        let chance = &self.world.chance;
        for _ in 0..2 + chance.below(3) {
            self.world.lag().await;
            let slot = self.slots[chance.below(self.slots.len() as u64) as usize].clone();
            let place = chance.below(self.nodes.borrow().len() as u64) as usize;
            match chance.below(37) {
                0 => self.delete(place, slot).await,
                1 => self.note(place, slot).await,
                2 => self.change(place, slot).await,
                3 | 34 => self.interrupt(place, &slot),
                35.. => self.clone().copy(place, slot).await,
                4..6 => self.clone().read(place, slot).await,
                24..28 => self.clone().resend(slot).await,
                28..34 => self.switch(place, slot).await,
                6..12 => {
                    // Two calls at once: the second waits behind the first, or on another node.
                    let other = Rc::clone(&self).persist(slot.clone());
                    let told = self.world.work(Group::Client, (), other);
                    self.clone().persist(slot).await;
                    told.wait().await;
                }
                _ => self.clone().persist(slot).await,
            }
        }
    }

    /// Asks a question. A question with a callId is repeated when it failed, and sometimes when it did not.
    pub async fn persist(self: Rc<Self>, slot: Slot) {
        let chance = &self.world.chance;
        let named = chance.below(2) == 0;
        let question = self.history.question(&slot, named);
        self.see_through(slot, question, named).await;
    }

    /// Resends the last question or an earlier one, or another in its place.
    async fn resend(self: Rc<Self>, slot: Slot) {
        let chance = &self.world.chance;
        let (named, how) = (chance.below(2) == 0, chance.pick(&[Resend::Same, Resend::Edited]));
        let question = self.history.resend(&slot, named, how);
        let answered = self.history.answered(&slot);
        if !answered.is_empty() && chance.below(3) == 0 {
            let from = chance.pick(&answered.iter().collect::<Vec<_>>()).clone();
            self.history.questions.borrow_mut()[question].from = Some(from);
            self.world.tally.count("resend from");
        }
        self.see_through(slot, question, named).await;
    }

    /// Asks, and answers open tool calls.
    async fn see_through(self: Rc<Self>, slot: Slot, question: usize, named: bool) {
        let chance = &self.world.chance;
        self.clone().insist(question, named).await;
        // An approval and a result are different answers, which are given in different calls.
        let approves = chance.below(2) == 0;
        let kind = if approves { AskKind::Approval } else { AskKind::Result };
        let open = self.history.asks(question, kind);
        if open.is_empty() || chance.below(4) == 0 {
            return;
        }
        // Some open tool calls are answered; the others are left to other clients.
        let n = 1 + chance.below(open.len() as u64) as usize;
        let named = chance.below(2) == 0;
        let answers = self.history.answers(&slot, named, &open[..n], approves);
        self.insist(answers, named).await;
    }

    /// Asks until there is an answer. A question without a callId is asked once.
    async fn insist(self: Rc<Self>, question: usize, named: bool) {
        let chance = &self.world.chance;
        for _ in 0..4 {
            let place = chance.below(self.nodes.borrow().len() as u64) as usize;
            let attempt = self.clone().ask_on(place, question).await;
            let answered = self.history.attempts.borrow()[attempt].reply().is_some();
            if !named || (answered && chance.below(3) > 0) {
                return;
            }
            self.world.lag().await;
        }
    }

    /// Asks once, and follows the call to its end or to the end of its node.
    pub async fn ask_on(self: Rc<Self>, place: usize, question: usize) -> usize {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let attempt = self.history.begin(question, life);
        self.world.tally.count("call");
        let joins = self.trouble.get() > 0 && self.world.chance.below(5) == 0;
        let request = {
            let question = &self.history.questions.borrow()[question];
            let answers = question.answers();
            let is_silent = !answers.is_empty() || question.resends == Some(Resend::Same);
            let may_join = answers.is_empty() && question.resends.is_none();
            self.history.attempts.borrow_mut()[attempt].joins = joins && may_join;
            CallRequest {
                messages: if is_silent { Vec::new() } else { vec![said(&question.text)] },
                answers,
                resends: question.resends.is_some(),
                from: question.from.clone(),
                overlap: if joins { Overlap::Steer } else { Overlap::Queue },
                call_id: question.name.clone(),
                tag: attempt as u32,
                ..CallRequest::new(question.slot.clone(), "")
            }
        };
        if !request.answers.is_empty() {
            let approves = self.history.questions.borrow()[question].approves;
            self.world.tally.count(if approves { "approval" } else { "confirm" });
        }
        if request.resends {
            self.world.tally.count("resend");
        }
        let over = Over(Rc::clone(&self.history), attempt);
        let Ok(call) = agent.begin(request) else {
            // Only a node that shuts down refuses calls.
            self.world.lag().await;
            return attempt;
        };
        self.history.named(attempt, call.id());
        self.trouble_the_call(&call, life);
        let this = Rc::clone(&self);
        let driving = async move { this.drive(call, attempt).await };
        self.world.work(Group::Node(life), over, driving).wait().await;
        attempt
    }

    async fn drive(self: Rc<Self>, mut call: Call, attempt: usize) {
        let calm = self.trouble.get() == 0;
        let impatient = !calm && self.world.chance.below(16) == 0;
        let patience = if impatient { self.world.chance.below(400) } else { u64::MAX / 2 };
        let (cancel, stops) = (call.cancel(), self.stops_at_once.get());
        let slot = call.slot().clone();
        let seen = async {
            while let Some(stamped) = call.next().await {
                if matches!(stamped.event, Event::Accepted { .. }) {
                    if stops {
                        cancel.ask(Cause::Stopped(Vec::new()));
                    }
                    if !calm && self.world.chance.below(4) == 0 {
                        self.look(&slot);
                    }
                }
                self.history.event(attempt, stamped);
            }
            if let Some(ended) = call.ended() {
                self.history.end(attempt, ended);
                let kind = ended.as_ref().err().map(|failed| failed.error.kind());
                if kind == Some(ErrorKind::Superseded) {
                    self.world.tally.count("superseded");
                }
                if self.history.attempts.borrow()[attempt].has_joined() {
                    self.world.tally.count("joined");
                }
            }
        };
        if let Either::Second(()) = race(seen, self.world.sleep(patience)).await {
            self.world.tally.count("call dropped");
        }
    }

    /// Another client reads the session on some node.
    fn look(self: &Rc<Self>, slot: &Slot) {
        let place = self.world.chance.below(self.nodes.borrow().len() as u64) as usize;
        self.world.spawn(Group::Client, Rc::clone(self).read(place, slot.clone()));
    }

    /// Stops or aborts some calls at a random moment.
    fn trouble_the_call(&self, call: &Call, life: u64) {
        let chance = &self.world.chance;
        if self.trouble.get() == 0 || chance.below(6) > 0 {
            return;
        }
        let (cause, name) = match chance.below(3) {
            0 => (Cause::Stopped(Vec::new()), "stop"),
            1 => (Cause::Stopped(vec![said(&self.history.words("stop", call.slot()))]), "stop"),
            _ => (Cause::Aborted, "abort"),
        };
        self.world.tally.count(name);
        let (cancel, wait) = (call.cancel(), self.world.lag());
        self.world.spawn(Group::Node(life), async move {
            wait.await;
            cancel.ask(cause);
        });
    }

    async fn delete(&self, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        self.world.tally.count("deletion");
        let begun = self.world.tick();
        let target = slot.clone();
        let deleting = async move { agent.delete_session(&target).await.is_ok() };
        let told = self.world.work(Group::Node(life), (), deleting);
        let done = told.wait().await == Some(true);
        self.history.deletions.borrow_mut().push(Deletion { slot, begun, done });
    }

    /// Appends messages to a session.
    async fn note(&self, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        self.world.tally.count("note");
        let text = self.history.words("note", &slot);
        let appending = agent.append(&slot, vec![said(&text)]);
        let appending = async move { appending.await.is_ok() };
        let told = self.world.work(Group::Node(life), (), appending);
        let done = told.wait().await == Some(true);
        self.history.notes.borrow_mut().push(Note { slot, text, done });
    }

    /// Changes a session with a random method.
    async fn change(&self, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let text = self.history.words("put", &slot);
        let number: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
        let clear = |text: &str| self.history.clear(&slot, text);
        let changing: Local<'static, bool> = match self.world.chance.below(4) {
            0 => {
                self.world.tally.count("rename");
                let renamed = agent.rename_session(&slot, format!("title {number}"));
                Box::pin(async move { renamed.await.is_ok() })
            }
            1 => {
                self.world.tally.count("clear");
                clear("");
                let cleared = agent.clear_context(&slot);
                Box::pin(async move { cleared.await.is_ok() })
            }
            way => {
                self.world.tally.count("put");
                let text = if way == 2 { String::new() } else { text };
                if way == 3 {
                    clear(&text);
                }
                let slot = slot.clone();
                Box::pin(async move { put(&agent, &slot, number, &text).await.is_some() })
            }
        };
        let told = self.world.work(Group::Node(life), (), changing);
        let done = told.wait().await == Some(true);
        self.history.changed(number, done);
    }

    /// Switches to another branch, if there is one.
    pub async fn switch(&self, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        self.history.moves(&slot);
        let (world, history) = (Rc::clone(&self.world), Rc::clone(&self.history));
        let switching = async move {
            let listed = agent.branches(&slot).await.unwrap_or_default();
            let others: Vec<_> = listed.iter().filter(|branch| !branch.current).collect();
            if !others.is_empty() {
                let branch = others[world.chance.below(others.len() as u64) as usize];
                match agent.switch_branch(&slot, branch.id.clone()).await {
                    Ok(()) => world.tally.count("switch"),
                    Err(error) if error.kind() == ErrorKind::StoreCorrupt => {
                        history.problem(format!("switching {slot} fails with {error:?}"));
                    }
                    Err(_) => {}
                }
            }
        };
        self.world.work(Group::Node(life), (), switching).wait().await;
    }

    fn interrupt(&self, place: usize, slot: &Slot) {
        let agent = self.nodes.borrow()[place].1.clone();
        if agent.interrupt(slot, vec![said(&self.history.words("interrupt", slot))]) {
            self.world.tally.count("interrupt");
        }
    }

    /// Reads a session with all methods.
    pub async fn read(self: Rc<Self>, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let (history, world) = (Rc::clone(&self.history), Rc::clone(&self.world));
        let reading = async move {
            let begun = world.tick();
            let read = agent.history(&slot, None, 10_000).await;
            let listed = agent.list_sessions(slot.user(), Page::default()).await;
            let now = world.tick();
            let state = agent.state(&slot).await;
            let errors = read.as_ref().err().into_iter().chain(listed.as_ref().err());
            for error in errors.chain(state.as_ref().err()) {
                if !error.kind().is_retryable() {
                    history.problem(format!("reading {slot} fails with {error:?}"));
                }
            }
            let branches = agent.branches(&slot).await;
            let mut texts = read.as_ref().ok().map(|it| texts(it)).filter(|_| branches.is_ok());
            for branch in branches.unwrap_or_default() {
                // A branch that was continued meanwhile, or whose session was deleted, has another id or none.
                match agent.history_of(&slot, Some(&branch.id), None, 10_000).await {
                    Ok(messages) => {
                        texts.iter_mut().for_each(|it| it.extend(self::texts(&messages)))
                    }
                    Err(error) => {
                        texts = None;
                        let is_gone = error.kind() == ErrorKind::InputInvalid;
                        if !error.kind().is_retryable() && !is_gone {
                            history.problem(format!(
                                "reading a branch of {slot} fails with {error:?}"
                            ));
                        }
                    }
                }
            }
            let keep = |begun, ended, ids, texts: Option<Option<Vec<String>>>| {
                let (slot, of_log) = (slot.clone(), texts.is_some());
                let texts = texts.flatten();
                let reading = Reading { slot, begun, ended, ids, of_log, texts };
                history.readings.borrow_mut().push(reading);
            };
            for info in listed.into_iter().flatten() {
                if info.user_id.as_deref() != slot.user() {
                    history.problem(format!("{slot} is shown the session {info:?}"));
                }
            }
            for messages in read.iter().chain(state.as_ref().ok().map(|it| &it.context)) {
                history.check_words(&slot, messages, "a reader sees");
            }
            read.into_iter().for_each(|it| keep(begun, now, ids(&it), Some(texts.take())));
            state.into_iter().for_each(|it| keep(now, world.tick(), ids(&it.context), None));
        };
        self.world.work(Group::Node(life), (), reading).wait().await;
    }
}

/// The texts of messages.
fn texts(messages: &[Rc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}

/// Puts a state: with other fields only, or also with another conversation.
async fn put(agent: &Agent, slot: &Slot, number: u64, text: &str) -> Option<()> {
    let mut state = json!(agent.state(slot).await.ok()?);
    state["note"] = json!(number);
    if !text.is_empty() {
        let content = json!([{ "type": "text", "text": text }]);
        state["context"] = json!([{ "id": text, "role": "user", "content": content, "at": "" }]);
    }
    agent.put_state(slot, &state).ok()?.await.ok()
}

/// Records the moment at which a call is over, through its own end or the end of its node.
struct Over(Rc<History>, usize);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over(self.1);
    }
}

fn said(text: &str) -> Message {
    Message::draft(Role::User, vec![Block::text(text)])
}
