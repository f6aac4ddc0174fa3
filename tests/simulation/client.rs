//! What clients do: ask, ask again, stop, abort, leave, read, put in, delete.

use std::rc::Rc;

use lockgate::engine::{Call, CallRequest, Cause};
use lockgate::error::ErrorKind;
use lockgate::future::{Either, race};
use lockgate::message::{Block, Message, Role};
use lockgate::port::Page;
use lockgate::slot::Slot;

use crate::history::{Deletion, History, Note, Reading, ids};
use crate::schedule::Schedule;
use crate::world::{Group, oneshot};

impl Schedule {
    pub async fn client(self: Rc<Self>) {
        let chance = &self.world.chance;
        for _ in 0..2 + chance.below(3) {
            self.world.lag().await;
            let slot = self.slots[chance.below(self.slots.len() as u64) as usize].clone();
            let place = chance.below(self.nodes.borrow().len() as u64) as usize;
            match chance.below(20) {
                0 => self.delete(place, slot).await,
                1 => self.note(place, slot).await,
                2..4 => self.clone().read(place, slot).await,
                4..8 => {
                    // Two at once: the second waits behind the first, or on another node.
                    let (tell, told) = oneshot();
                    let other = Rc::clone(&self).persist(slot.clone());
                    self.world.spawn(Group::Client, async move {
                        other.await;
                        tell.send(());
                    });
                    self.clone().persist(slot).await;
                    told.wait().await;
                }
                _ => self.clone().persist(slot).await,
            }
        }
    }

    /// Asks a question; a question with a name is asked again when it failed, and sometimes when it did not.
    async fn persist(self: Rc<Self>, slot: Slot) {
        let chance = &self.world.chance;
        let named = chance.below(2) == 0;
        let question = self.history.question(&slot, named);
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

    /// Asks once, and sees the call to its end or to that of its node.
    pub async fn ask_on(self: Rc<Self>, place: usize, question: usize) -> usize {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let attempt = self.history.begin(question, life);
        self.world.tally.count("call");
        let request = {
            let question = &self.history.questions.borrow()[question];
            CallRequest {
                slot: question.slot.clone(),
                messages: vec![said(&question.text)],
                call_id: question.name.clone(),
                tag: attempt as u32,
                output: None,
                generate: None,
                overlap: Default::default(),
            }
        };
        let call = agent.call(request).unwrap();
        self.history.named(attempt, call.id());
        self.trouble_the_call(&call, life);
        let (tell, told) = oneshot::<()>();
        let this = Rc::clone(&self);
        self.world.spawn(Group::Node(life), async move {
            let _over = Over(Rc::clone(&this.history), attempt);
            this.drive(call, attempt).await;
            tell.send(());
        });
        told.wait().await;
        attempt
    }

    async fn drive(&self, mut call: Call, attempt: usize) {
        let calm = self.trouble.get() == 0;
        let impatient = !calm && self.world.chance.below(16) == 0;
        let patience = if impatient { self.world.chance.below(400) } else { u64::MAX / 2 };
        let seen = async {
            while let Some(stamped) = call.next().await {
                self.history.event(attempt, stamped);
            }
            if let Some(ended) = call.ended() {
                self.history.end(attempt, ended);
                let kind = ended.as_ref().err().map(|failed| failed.error.kind());
                if kind == Some(ErrorKind::Superseded) {
                    self.world.tally.count("superseded");
                }
            }
        };
        if let Either::Second(()) = race(seen, self.world.sleep(patience)).await {
            self.world.tally.count("call dropped");
        }
    }

    /// Stops or aborts some calls at some moment.
    fn trouble_the_call(&self, call: &Call, life: u64) {
        let chance = &self.world.chance;
        if self.trouble.get() == 0 || chance.below(6) > 0 {
            return;
        }
        let (cause, name) = match chance.below(3) {
            0 => (Cause::Stopped(Vec::new()), "stop"),
            1 => (Cause::Stopped(vec![said(&format!("stop {}", self.world.tick()))]), "stop"),
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
        let (tell, told) = oneshot();
        let target = slot.clone();
        self.world.spawn(Group::Node(life), async move {
            let deleted = agent.delete_session(&target).await.is_ok();
            drop(agent);
            tell.send(deleted);
        });
        let done = told.wait().await == Some(true);
        self.history.deletions.borrow_mut().push(Deletion { slot, begun, done });
    }

    /// Puts something into a session by hand.
    async fn note(&self, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        self.world.tally.count("note");
        let text = format!("note {}", self.world.tick());
        let appending = agent.append(&slot, vec![said(&text)]);
        let (tell, told) = oneshot();
        self.world.spawn(Group::Node(life), async move { tell.send(appending.await.is_ok()) });
        let done = told.wait().await == Some(true);
        self.history.notes.borrow_mut().push(Note { slot, text, done });
    }

    /// Reads a session in all ways there are.
    pub async fn read(self: Rc<Self>, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let (tell, told) = oneshot::<()>();
        let (history, world) = (Rc::clone(&self.history), Rc::clone(&self.world));
        world.clone().spawn(Group::Node(life), async move {
            let begun = world.tick();
            let read = agent.history(&slot, None, 10_000).await;
            let listed = agent.list_sessions(Some("alice"), Page::default()).await;
            let now = world.tick();
            let state = agent.state(&slot).await;
            let errors = read.as_ref().err().into_iter().chain(listed.as_ref().err());
            for error in errors.chain(state.as_ref().err()) {
                if !error.kind().is_retryable() {
                    history.problem(format!("reading {slot} fails with {error:?}"));
                }
            }
            let keep = |begun, ended, ids| {
                history.readings.borrow_mut().push(Reading {
                    slot: slot.clone(),
                    begun,
                    ended,
                    ids,
                });
            };
            read.into_iter().for_each(|it| keep(begun, now, ids(&it)));
            state.into_iter().for_each(|it| keep(now, world.tick(), ids(&it.context)));
            tell.send(());
        });
        told.wait().await;
    }
}

/// Notes the moment at which a call is over, by its end or by its node's.
struct Over(Rc<History>, usize);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over(self.1);
    }
}

fn said(text: &str) -> Message {
    Message::draft(Role::User, vec![Block::text(text)])
}
