//! The pieces of an answer make the answer again, also if some were not stored, or were stored late or without a confirmation.

use std::collections::BTreeMap;
use std::rc::Rc;

use lockgate::json;
use lockgate::message::{Block, Message, Role, ToolResult, ToolUse, Usage};
use lockgate::store::format::partial::PartialPiece;
use serde_json::json;

use crate::Chance;

type Answer = Vec<Rc<Message>>;

fn words(chance: &mut Chance) -> String {
    ["", "a", "né ", "日本", "word ", "\n"][chance.below(6)].repeat(chance.below(4))
}

fn block(chance: &mut Chance) -> Block {
    let text = words(chance) + "x";
    match chance.below(4) {
        0 => {
            let call = json!({ "type": "tool_use", "id": text, "name": "t", "input": {} });
            Block::from_json(&call).unwrap()
        }
        1 => Block::from_json(&json!({ "type": "thinking", "thinking": text })).unwrap(),
        _ => Block::text(text),
    }
}

/// Lets the answer grow, and sometimes replaces the end of it.
fn grow(answer: &mut Answer, n: &mut usize, chance: &mut Chance) {
    let fresh = |n: &mut usize, block: Block| {
        *n += 1;
        let message = Message::draft(Role::Assistant, vec![block]);
        Rc::new(Message { id: format!("m{n}"), ..message })
    };
    match (chance.below(8), answer.last_mut().map(Rc::make_mut)) {
        (0..4, Some(last)) if last.usage.is_none() => match last.content.last_mut() {
            Some(Block::Text { text, .. } | Block::Thinking { thinking: text, .. }) => {
                text.push_str(&words(chance));
            }
            _ => last.content.push(block(chance)),
        },
        (4, Some(last)) if last.usage.is_none() => last.content.push(block(chance)),
        (5, Some(last)) => {
            last.usage = Some(Usage { output_tokens: 7, ..Usage::default() });
            let calls: Vec<ToolUse> = last.tool_uses().cloned().collect();
            for call in calls {
                let result = ToolResult::new(&call, lockgate::message::ResultState::Success, "ok");
                answer.push(fresh(n, Block::ToolResult(result)));
            }
        }
        (6, Some(last)) if chance.below(4) == 0 => {
            *n += 1;
            last.content = vec![Block::text(format!("another answer {n}"))];
        }
        (6, Some(_)) if chance.below(4) == 0 => drop(answer.pop()),
        _ => answer.push(fresh(n, block(chance))),
    }
}

fn folded(pieces: &BTreeMap<usize, PartialPiece>) -> Answer {
    let mut answer = Answer::new();
    for piece in pieces.values() {
        assert!(piece.add_to(&mut answer), "an earlier piece is missing");
    }
    answer
}

#[test]
fn the_pieces_of_an_answer_make_the_answer_whatever_became_of_their_writes() {
    let mut chance = Chance::new("the_pieces_of_an_answer");
    for _ in 0..3_000 {
        let (mut now, mut before, mut n_messages) = (Answer::new(), Answer::new(), 0);
        let (mut stored, mut late) = (BTreeMap::new(), Vec::new());
        let mut answers = vec![Answer::new()];
        for _ in 0..30 {
            (0..1 + chance.below(4)).for_each(|_| grow(&mut now, &mut n_messages, &mut chance));
            let Some(piece) = PartialPiece::between(&before, &now) else { continue };
            let written = json::to_bytes(&piece);
            let read = PartialPiece::from_json(&serde_json::from_slice(&written).unwrap()).unwrap();
            answers.push(now.clone());
            let number = answers.len() - 1;
            match chance.below(6) {
                0 => _ = piece.cut(&mut before),
                1 => {
                    piece.cut(&mut before);
                    stored.insert(number, read);
                }
                2 => {
                    piece.cut(&mut before);
                    late.push((number, read));
                }
                _ => {
                    before.clone_from(&now);
                    stored.insert(number, read);
                }
            }
            if chance.below(4) == 0 {
                stored.extend(late.drain(..));
            }
            let newest = stored.keys().next_back().copied().unwrap_or(0);
            assert_eq!(json!(folded(&stored)), json!(answers[newest]));
        }
    }
}
