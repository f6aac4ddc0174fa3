//! Properties of any input, tested with random inputs for a long time. The seed is printed; `LOCKGATE_SEED` replays it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod answers;
mod chunks;
mod cut;
mod overflow;
mod pieces;
#[path = "../simulation/providers.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod providers;
mod transfer;

use std::collections::HashMap;

use lockgate::message::{Block, Delta, Message, Role};
use lockgate::run::{Assembly, Run, Step};
use lockgate::slot::Slot;
use lockgate::store::keys::{SlotKeys, part};

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn new(story: &str) -> Chance {
        let given = std::env::var("LOCKGATE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let time = std::time::UNIX_EPOCH.elapsed().unwrap();
            time.as_nanos() as u64
        });
        println!("{story}: LOCKGATE_SEED={seed}");
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Characters that cause trouble in separators, encodings and file systems.
const LETTERS: &[char] = &[
    'a', 'b', 'A', 'B', '0', '2', '9', 'f', '-', '.', '/', '\\', '_', '%', '*', '?', ':', ' ', 't',
    'h', 'é', '日', '😀', '\u{301}', 'ａ', '~', '{', '}',
];

fn id(chance: &mut Chance) -> String {
    let n = if chance.below(9) == 0 { 60 + chance.below(40) } else { 1 + chance.below(5) };
    (0..n).map(|_| chance.pick(LETTERS)).collect()
}

#[test]
fn r12_no_two_ids_share_a_key() {
    let mut chance = Chance::new("no_two_ids_share_a_key");
    let mut seen: HashMap<String, String> = HashMap::new();
    for _ in 0..1_000_000 {
        let id = id(&mut chance);
        let part = part(&id);
        assert!(
            part.len() <= 77
                && part.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        );
        let other = seen.entry(part).or_insert_with(|| id.clone());
        assert_eq!(*other, id);
    }
}

#[test]
fn no_two_slots_share_a_record() {
    let mut chance = Chance::new("no_two_slots_share_a_record");
    let mut seen: HashMap<String, Slot> = HashMap::new();
    for _ in 0..300_000 {
        let (user, session) = (id(&mut chance), id(&mut chance));
        let user = if chance.below(4) == 0 { None } else { Some(user.as_str()) };
        let Ok(slot) = Slot::new(user, &session) else { continue };
        let keys = SlotKeys::new("agent", &slot);
        assert!(keys.head().len() <= 512 && keys.index(0.0).len() <= 512);
        assert_eq!(*seen.entry(keys.all()).or_insert_with(|| slot.clone()), slot);
    }
}

fn delta(chance: &mut Chance) -> Delta {
    let text = chance.pick(&["", "a ", "{\"x\":", "1}", "{}", "[", "nul"]).to_owned();
    let maybe = |chance: &mut Chance, of: &[&str]| {
        (chance.below(2) == 0).then(|| chance.pick(of).to_owned())
    };
    match chance.below(4) {
        0 => Delta::Text(text),
        1 => Delta::Thinking { text, signature: maybe(chance, &["sig"]) },
        _ => Delta::ToolCall {
            index: chance.below(3) as u64,
            id: maybe(chance, &["x", "y", ""]),
            name: maybe(chance, &["tool", "other", ""]),
            arguments: text,
            provider: None,
        },
    }
}

/// Every tool call has exactly one result, in the messages right after it.
fn check_pairs(messages: &[Message]) {
    for (index, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.tool_uses().map(|call| call.id.clone()).collect();
        let after = messages[index + 1..].iter().take_while(|message| message.role == Role::Tool);
        let results: Vec<_> = after
            .flat_map(|message| &message.content)
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.id.clone()),
                _ => None,
            })
            .collect();
        if message.role == Role::Assistant {
            assert_eq!(calls, results, "message {index} has other results than calls");
        }
    }
}

#[test]
fn every_tool_call_has_one_result_for_any_answer_of_the_model() {
    let mut chance = Chance::new("every_tool_call_has_one_result_for_any_answer_of_the_model");
    for _ in 0..100_000 {
        let mut run = Run::new(1 + chance.below(4) as u32);
        let mut messages = Vec::new();
        loop {
            match run.next() {
                Step::Done(_) => break,
                _ if chance.below(12) == 0 => run.interrupted(None),
                Step::CallModel(_) => {
                    let mut assembly = Assembly::new(format!("m{}", messages.len()));
                    let mut events = Vec::new();
                    (0..chance.below(8))
                        .for_each(|_| assembly.push(delta(&mut chance), &mut events));
                    let reply = assembly.finish(0.0, &mut events);
                    if chance.below(12) == 0 {
                        run.failed(Some(reply.message))
                    } else {
                        run.replied(reply)
                    }
                }
                Step::CallTools(calls) => {
                    let call = &calls[chance.below(calls.len())];
                    let state = lockgate::message::ResultState::Success;
                    run.tool_returned(lockgate::message::ToolResult::new(call, state, "ok"));
                }
            }
            messages.extend(run.take_messages());
        }
        messages.extend(run.take_messages());
        check_pairs(&messages);
    }
}
