//! Schedules with the same sequence of calls for every seed: sequences that the random clients make too rarely.

use std::rc::Rc;

use lockgate::event::AskKind;

use crate::chance::Tally;
use crate::history::Resend;
use crate::schedule::{Schedule, run_with};
use crate::store::{Broken, Rates};

/// How often a question is asked until a tool waits for its result.
const TRIES: usize = 12;

#[test]
fn stopped_answers_and_stopped_resends_keep_the_order_on_every_branch() {
    let tally = Rc::new(Tally::default());
    for seed in 0..300 {
        let problems = run_with(seed, Broken::Nothing, &tally, |schedule| {
            schedule.world.finish(Rc::clone(schedule).stop_and_go_back())
        });
        assert_eq!(problems, Vec::<String>::new(), "directed schedule {seed}");
    }
    let n_switches = tally.all().get("switch").copied().unwrap_or_default();
    assert!(n_switches >= 100, "only {n_switches} schedules came to the switch");
}

impl Schedule {
    /// In a healthy store, a tool waits for its result. The call with the result is stopped, the resend of the question is stopped too, and then
    /// the session goes back to the branch with the result.
    async fn stop_and_go_back(self: Rc<Self>) {
        let slot = self.slots[0].clone();
        self.server.rates.set(Rates::default());
        // Tools wait for results only in schedules with troubles.
        self.trouble.set(50);
        for _ in 0..TRIES {
            let question = self.history.question(&slot, false);
            self.clone().ask_on(0, question).await;
            let open = self.history.asks(question, AskKind::Result);
            let needs_approval = !self.history.asks(question, AskKind::Approval).is_empty();
            if open.is_empty() || needs_approval {
                continue;
            }
            let last = self.nodes.borrow().len() - 1;
            let how = self.world.chance.pick(&[Resend::Same, Resend::Edited]);
            self.stops_at_once.set(true);
            let answers = self.history.answers(&slot, false, &open, false);
            self.clone().ask_on(last, answers).await;
            let resend = self.history.resend(&slot, true, how);
            self.clone().ask_on(0, resend).await;
            self.stops_at_once.set(false);
            self.switch(last, slot).await;
            return;
        }
    }
}
