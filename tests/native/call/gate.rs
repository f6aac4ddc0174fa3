//! One call at a time for each slot, first come first served.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::Gate;

fn is_admitted(ticket: &lockgate::engine::Ticket) -> bool {
    poll_once(&mut Box::pin(ticket.admitted())).is_ready()
}

#[test]
fn g_01_r2_tickets_of_a_slot_are_admitted_in_the_order_they_were_taken() {
    let gate = Rc::new(Gate::default());
    let tickets: Vec<_> = (0..3).map(|_| gate.enter(&slot("s1"))).collect();
    assert_eq!(tickets.iter().map(is_admitted).collect::<Vec<_>>(), [true, false, false]);
    let mut tickets = tickets.into_iter();
    drop(tickets.next());
    assert_eq!(tickets.map(|ticket| is_admitted(&ticket)).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn g_02_r4_a_waiter_that_leaves_neither_admits_its_successor_nor_blocks_it() {
    let gate = Rc::new(Gate::default());
    let [holder, waiter, successor] = [(); 3].map(|()| gate.enter(&slot("s1")));
    drop(waiter);
    assert!(!is_admitted(&successor));
    drop(holder);
    assert!(is_admitted(&successor));
}

#[test]
fn g_01_r1_slots_never_wait_for_each_other() {
    let gate = Rc::new(Gate::default());
    let tickets: Vec<_> = (0..9).map(|n| gate.enter(&slot(&n.to_string()))).collect();
    assert!(tickets.iter().all(is_admitted));
}

#[test]
fn r6_an_idle_slot_leaves_nothing_behind() {
    let gate = Rc::new(Gate::default());
    for n in 0..1_000 {
        drop(gate.enter(&slot(&n.to_string())));
    }
    assert_eq!(gate.n_slots(), 0);
}

#[test]
fn the_next_in_line_is_woken_when_its_turn_comes() {
    let gate = Rc::new(Gate::default());
    let [holder, waiter] = [(); 2].map(|()| gate.enter(&slot("s1")));
    let mut holder = Some(holder);
    let mut first = true;
    block_on(async {
        let admitted = std::pin::pin!(waiter.admitted());
        let leaves = std::future::poll_fn(|_| {
            if std::mem::take(&mut first) {
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(())
        });
        lockgate::future::race(admitted, async {
            holder.take();
            leaves.await;
        })
        .await;
    });
    assert!(is_admitted(&waiter));
}
