//! Clients that copy a session: through a document, or as a fork. A copy is a session of its own, which is checked like the others.

use std::rc::Rc;

use lockgate::engine::Format;
use lockgate::error::ErrorKind;
use lockgate::slot::Slot;

use crate::history::{Clear, Reading, ids};
use crate::schedule::Schedule;
use crate::world::Group;

impl Schedule {
    /// Copies a session into a new one, and asks a question there.
    pub async fn copy(self: Rc<Self>, place: usize, slot: Slot) {
        let (life, agent) = self.nodes.borrow()[place].clone();
        let number = self.history.copies.borrow().len();
        let copy = Slot::new(slot.user(), &format!("copy-{number}")).unwrap();
        self.history.copies.borrow_mut().push((copy.clone(), slot.clone(), false));
        let is_fork = self.world.chance.below(3) == 0;
        self.world.tally.count(if is_fork { "fork" } else { "import" });
        let (history, world, to) = (Rc::clone(&self.history), Rc::clone(&self.world), copy.clone());
        let copying = async move {
            let begun = world.tick();
            let copied = if is_fork {
                agent.fork(&slot, &to, None).await.map(|_| ())
            } else {
                let document = agent.export_session(&slot, Format::Lockgate).await;
                match document.and_then(|document| agent.import_session(&to, &document)) {
                    Ok(importing) => importing.await.map(|_| ()),
                    Err(error) => Err(error),
                }
            };
            if let Err(error) = copied {
                let is_usual =
                    [ErrorKind::NoSuchSession, ErrorKind::PendingTools, ErrorKind::StoreQuota];
                if !error.kind().is_retryable() && !is_usual.contains(&error.kind()) {
                    history.problem(format!("copying {slot} fails with {error:?}"));
                }
                return false;
            }
            // The copy has all that a reader of the session could see.
            let read = agent.history(&to, None, 10_000).await;
            // Its log has the branches too, and its context what is left of it.
            let is_moved = history.moves.borrow().iter().any(|(moved, _)| *moved == slot);
            if is_moved {
                history.moves.borrow_mut().push((to.clone(), 0));
            }
            if history.clears.borrow().iter().any(|it| it.slot == slot) {
                let clear = Clear { slot: to.clone(), begun: 0, text: String::new(), done: false };
                history.clears.borrow_mut().push(clear);
            }
            if let Ok(messages) = read {
                history.check_words(&to, &messages, "a copy has");
                let (ended, ids) = (world.tick(), ids(&messages));
                let (slot, of_log, texts) = (slot.clone(), true, None);
                let reading = Reading { slot, begun, ended, ids, of_log, texts };
                history.readings.borrow_mut().push(reading);
            }
            true
        };
        let told = self.world.work(Group::Node(life), (), copying);
        if told.wait().await == Some(true) {
            self.history.copies.borrow_mut()[number].2 = true;
            self.persist(copy).await;
        }
    }

    /// The copies that are complete.
    pub fn copies(&self) -> Vec<Slot> {
        let copies = self.history.copies.borrow();
        copies.iter().filter(|it| it.2).map(|it| it.0.clone()).collect()
    }
}
