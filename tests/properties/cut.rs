//! Every cut of a conversation keeps calls with their results, and the open turn whole.

use std::rc::Rc;

use crate::Chance;
use lockgate::message::{Block, Message, Role};
use lockgate::policy::compaction::{Keep, cut};
use serde_json::json;

/// A conversation of any length and order: turns with and without calls, several calls at once, repeated ids,
/// notes, calls that wait for an answer, and sometimes a result without a call.
fn history(chance: &mut Chance) -> Vec<Rc<Message>> {
    let mut messages = Vec::new();
    let mut say = |role, name: Option<&str>, content| {
        let id = messages.len().to_string();
        let draft = Message::draft(role, content);
        messages.push(Rc::new(Message { id, name: name.map(str::to_owned), ..draft }));
    };
    for _ in 0..chance.below(12) {
        for _ in 0..chance.below(3) {
            let name = (chance.below(6) == 0).then_some("system");
            say(Role::User, name, vec![Block::text("word ".repeat(chance.below(20)))]);
        }
        for _ in 0..chance.below(4) {
            let calls: Vec<String> =
                (0..chance.below(4)).map(|_| format!("c{}", chance.below(5))).collect();
            let block = |id: &String| json!({ "type": "tool_use", "id": id, "name": "t", "input": {}, "state": "finished" });
            let blocks = calls.iter().map(block).map(|it| Block::from_json(&it).unwrap());
            say(Role::Assistant, None, blocks.chain([Block::text("so")]).collect());
            let is_pending = chance.below(8) == 0;
            for id in calls.iter().filter(|_| !is_pending) {
                let result = json!({ "type": "tool_result", "id": id, "name": "t", "output": [], "state": "success" });
                say(Role::Tool, None, vec![Block::from_json(&result).unwrap()]);
            }
            if is_pending {
                break;
            }
        }
    }
    messages
}

#[test]
fn r50_c_03_h_10_no_cut_of_100_000_histories_separates_a_call_from_its_result() {
    let mut chance = Chance::new("cut");
    let mut n_cut = 0;
    for _ in 0..100_000 {
        let messages = history(&mut chance);
        let open = chance.below(messages.len() + 1);
        let n_fixed = chance.below(2).min(open);
        let tokens = if chance.below(2) == 0 { u64::MAX } else { chance.below(60) as u64 };
        let keep = Keep { messages: chance.below(20), tokens };
        let size = |message: &Message| 1 + message.text().len() as u64 / 5;
        let Some(at) = cut(&messages, n_fixed, open, keep, size) else { continue };
        n_cut += 1;
        assert!(n_fixed < at && at <= open && at < messages.len(), "{at} of {}", messages.len());
        let (before, behind) = messages.split_at(at);
        assert_ne!(behind[0].role, Role::Tool, "a result without its call");
        for (index, message) in behind.iter().enumerate() {
            for result in message.tool_results() {
                let asked = |it: &Rc<Message>| it.tool_uses().any(|call| call.id == result.id);
                let is_behind = behind[..index].iter().any(asked);
                assert!(is_behind || !before.iter().any(asked), "{} was parted", result.id);
            }
        }
        let asks = |it: &Rc<Message>| it.role == Role::User && it.name.as_deref() != Some("system");
        if let Some(last) = messages[n_fixed..].iter().rposition(asks) {
            assert!(at <= n_fixed + last, "the last question is kept");
        }
    }
    assert!(n_cut > 20_000, "{n_cut} were cut at all");
}
