//! Prints a replayed schedule: every call, and the final log of every session.

use lockgate::store::keys::EntryRef;
use lockgate::store::keys::SlotKeys;

use crate::history::AGENT;
use crate::records::read;
use crate::schedule::Schedule;

/// Prints the calls in the order in which they happened.
pub fn tell(schedule: &Schedule) {
    let questions = schedule.history.questions.borrow();
    for (n, it) in schedule.history.attempts.borrow().iter().enumerate() {
        let question = &questions[it.question];
        let ended = it.ended.as_ref().map(|(tick, ended)| match ended {
            Ok(reply) => format!("{tick} {:?} {:?}", reply.reason, reply.text),
            Err(kind) => format!("{tick} {kind:?}"),
        });
        let (joins, resends) = (it.joins, question.resends.is_some());
        println!(
            "call {n} ({}) of {} on node {}: {:?}{}{} begun {}, accepted {:?}, ended {}, over {:?}",
            it.call_id,
            question.slot,
            it.node,
            question.text,
            if joins { ", would join," } else { "" },
            if resends { ", again," } else { "" },
            it.begun,
            it.accepted,
            ended.unwrap_or_default(),
            it.over,
        );
    }
    let records = schedule.server.dump().unwrap_or_default();
    for slot in &schedule.slots {
        println!("{slot}:");
        let Ok(session) = read(&records, &SlotKeys::new(AGENT, slot).all()) else { continue };
        for (name, entry) in &session.entries {
            let parent = entry.parent.as_ref().map(EntryRef::to_string).unwrap_or_default();
            let is_on_path = if session.path.contains(name) { "*" } else { " " };
            println!("{is_on_path} {name} below {parent}: {:?} of {}", entry.kind, entry.call_id);
            for message in &entry.messages {
                println!("      {:?} {} {:?}", message.role, message.id, message.text());
            }
        }
    }
}
