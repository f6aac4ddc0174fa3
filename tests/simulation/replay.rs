//! Prints a replayed schedule: every call, and the final log of every session.

use lockgate::json;
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
            "call {n} ({}) of {} on node {}: {:?}{}{}{} begun {}, accepted {:?}, ended {}, over {:?}",
            it.call_id,
            question.slot,
            it.node,
            question.text,
            if joins { ", would join," } else { "" },
            if resends { ", again," } else { "" },
            question.from.as_ref().map(|from| format!(" from {from},")).unwrap_or_default(),
            it.begun,
            it.accepted,
            ended.unwrap_or_default(),
            it.over,
        );
        for (n, shown) in it.requests.iter().enumerate() {
            println!("      request {n}: {}", shown.join(" "));
        }
    }
    for it in schedule.history.readings.borrow().iter() {
        println!("read {} at {} to {}: of_log {}", it.slot, it.begun, it.ended, it.of_log);
    }
    println!("moves: {:?}", schedule.history.moves.borrow());
    let records = schedule.server.dump().unwrap_or_default();
    for slot in &schedule.slots {
        println!("{slot}:");
        let Ok(session) = read(&records, &SlotKeys::new(AGENT, slot).all()) else { continue };
        if let Some(head) = &session.head {
            println!("  shows {}", json::to_value(&head.view));
        }
        for (name, entry) in &session.entries {
            let parent = entry.parent.as_ref().map(EntryRef::to_string).unwrap_or_default();
            let is_on_path = if session.path.contains(name) { "*" } else { " " };
            let code = entry.outcome.as_ref().and_then(|outcome| outcome.code.clone());
            let ended = code.map(|code| format!(", ended {code}")).unwrap_or_default();
            let call = &entry.call_id;
            println!("{is_on_path} {name} below {parent}: {:?} of {call}{ended}", entry.kind);
            for message in &entry.messages {
                println!("      {:?} {} {:?}", message.role, message.id, message.text());
            }
        }
    }
}
