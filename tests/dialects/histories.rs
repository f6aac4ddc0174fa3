//! Random histories, as aborts, denials, compactions and changes of provider leave them, and worse ones.

use std::rc::Rc;

use lockgate::json::Object;
use lockgate::message::{
    Block, CallState, MediaKind, Message, ResultState, Role, Source, ToolResult, ToolUse,
};
use lockgate::model::Dialect;
use lockgate::model::Flavour;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::render;
use lockgate::model::transcript::{WireTurn, check, repaired};
use lockgate::port::{Lineage, Request, ToolSpec};
use lockgate::slot::Slot;
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::wire;

const N_HISTORIES: usize = 100_000;

const IDS: &[&str] = &[
    "a",
    "b",
    "call_1",
    "call_2",
    "toolu_01AbC",
    "call.with|odd/letters",
    "",
    "é",
    "fc_",
    "a-very-long-id-of-another-provider-that-nobody-else-takes-0123456789012345678901234567890123456789",
];
const NAMES: &[&str] = &["weather", "search", "2fast", "-x", "odd name!", ""];
const MODELS: &[&str] = &["m-openai", "m-anthropic", "gemini-3-pro", "other"];

fn text(chance: &mut Chance) -> String {
    chance.pick(&["hello", "", " ", "\n\t", "a longer text", "日本", "😀"]).to_owned()
}

fn provider(chance: &mut Chance) -> Option<Value> {
    let model = chance.pick(MODELS);
    match chance.below(5) {
        0 => None,
        1 => Some(json!({ "model": model, "field": "reasoning_content" })),
        2 => Some(json!({ "model": model, "thoughtSignature": "sig" })),
        3 => Some(json!({ "model": model, "redacted": "data" })),
        _ => Some(json!({ "model": model })),
    }
}

fn file(chance: &mut Chance) -> Block {
    let kind =
        chance.pick(&[MediaKind::Image, MediaKind::Audio, MediaKind::Video, MediaKind::File]);
    let source = match chance.below(2) {
        0 => Source::Url { url: "https://example.com/x".into(), media_type: None },
        _ => Source::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    };
    Block::Media { kind, source, name: None, rest: Object::new() }
}

fn call(chance: &mut Chance) -> ToolUse {
    ToolUse {
        id: chance.pick(IDS).to_owned(),
        name: chance.pick(NAMES).to_owned(),
        input: if chance.one_in(8) { Value::Null } else { json!({ "x": 1 }) },
        state: chance.pick(&[
            CallState::Pending,
            CallState::Asking,
            CallState::Allowed,
            CallState::Finished,
        ]),
        awaits: None,
        asked: None,
        provider: if chance.one_in(3) { provider(chance) } else { None },
        rest: Object::new(),
    }
}

fn result(chance: &mut Chance, call: &ToolUse) -> ToolResult {
    let state = chance.pick(&[
        ResultState::Success,
        ResultState::Error,
        ResultState::Denied,
        ResultState::Interrupted,
        ResultState::Suspended,
    ]);
    let said = text(chance);
    let mut result = ToolResult::new(call, state, said);
    if chance.one_in(6) {
        result.output.push(file(chance));
    }
    if chance.one_in(9) {
        result.output.clear();
    }
    result
}

fn block(chance: &mut Chance) -> Block {
    match chance.below(12) {
        0..=5 => Block::text(text(chance)),
        6 => Block::Text { text: text(chance), provider: provider(chance), rest: Object::new() },
        7 | 8 => Block::Thinking {
            thinking: text(chance),
            signature: chance.one_in(2).then(|| "proof".to_owned()),
            provider: provider(chance),
            rest: Object::new(),
        },
        9 => file(chance),
        10 => Block::ToolUse(call(chance)),
        _ => {
            let call = call(chance);
            Block::ToolResult(result(chance, &call))
        }
    }
}

/// A normal history, and then random damage to it.
fn history(chance: &mut Chance) -> Vec<Rc<Message>> {
    let mut messages = Vec::new();
    for _ in 0..chance.below(7) {
        messages.push(Message::draft(
            Role::User,
            (0..1 + chance.below(2)).map(|_| block(chance)).collect(),
        ));
        for _ in 0..chance.below(3) {
            let mut content: Vec<Block> = (0..chance.below(3)).map(|_| block(chance)).collect();
            let calls: Vec<ToolUse> = (0..chance.below(4)).map(|_| call(chance)).collect();
            content.extend(calls.iter().cloned().map(Block::ToolUse));
            messages.push(Message::draft(Role::Assistant, content));
            // After an abort or a denial a call may have no result; after a stolen lock it may have two.
            for call in &calls {
                for _ in 0..chance.pick(&[1, 1, 1, 1, 0, 2]) {
                    let result = result(chance, call);
                    let role = if chance.one_in(8) { Role::User } else { Role::Tool };
                    messages.push(Message::draft(role, vec![Block::ToolResult(result)]));
                }
            }
        }
        messages.push(Message::draft(
            chance.pick(&[Role::Assistant, Role::System, Role::Tool, Role::Assistant]),
            vec![block(chance)],
        ));
    }
    disturb(chance, &mut messages);
    messages
        .into_iter()
        .enumerate()
        .map(|(n, message)| Rc::new(Message { id: format!("m{n}"), ..message }))
        .collect()
}

/// Compactions cut, insertions come between, branches change the order.
fn disturb(chance: &mut Chance, messages: &mut Vec<Message>) {
    if chance.one_in(3) && !messages.is_empty() {
        let cut = chance.below(messages.len());
        messages.drain(..cut);
        messages.insert(0, Message::note("Summary of what came before."));
    }
    if chance.one_in(4) && !messages.is_empty() {
        let end = chance.below(messages.len());
        messages.truncate(end);
    }
    for _ in 0..chance.below(3) {
        if messages.len() < 2 {
            break;
        }
        let (one, other) = (chance.below(messages.len()), chance.below(messages.len()));
        match chance.below(3) {
            0 => messages.swap(one, other),
            1 => messages.insert(one, Message::note("A reminder.")),
            _ => drop(messages.remove(one)),
        }
    }
}

fn readers() -> Vec<(ProviderOptions, fn(&Value) -> Result<(), String>)> {
    let mistral = ProviderOptions {
        flavour: Flavour::Mistral,
        ..ProviderOptions::new(Dialect::OpenAi, "m-openai")
    };
    vec![
        (ProviderOptions::new(Dialect::OpenAi, "m-openai"), |body| wire::openai(body, false)),
        (mistral, |body| wire::openai(body, true)),
        (ProviderOptions::new(Dialect::Anthropic, "m-anthropic"), wire::anthropic),
        (ProviderOptions::new(Dialect::Gemini, "gemini-3-pro"), wire::gemini),
    ]
}

// H-01, H-02, H-03, H-04, H-05, H-06, H-08, H-09, H-10, H-11, H-12
#[test]
fn no_history_makes_a_request_that_a_provider_would_refuse() {
    let mut chance = Chance::new("no_history_makes_a_request_that_a_provider_would_refuse");
    let slot = Slot::new(None, "s").unwrap();
    let tools = [Rc::new(ToolSpec::new("weather", "The weather", json!({ "type": "object" })))];
    let readers = readers();
    for n in 0..N_HISTORIES {
        let messages = history(&mut chance);
        for (options, refuses) in &readers {
            let lineage = Lineage::new();
            let generate = json!({ "reasoningEffort": "low" });
            let request = Request {
                slot: &slot,
                tag: 0,
                system: if n % 2 == 0 { "Be brief." } else { "" },
                messages: &messages,
                lineage: &lineage,
                tools: if n % 3 == 0 { &[] } else { &tools },
                generate: &generate,
                form: None,
            };
            let rendered = render(&options, &request).unwrap();
            let body: Value = serde_json::from_slice(&rendered.body).unwrap();
            if let Err(why) = refuses(&body) {
                panic!("{:?}: {why}\n{}\nof {}", options.dialect, body, json!(messages));
            }
        }
    }
}

// H-12
#[test]
fn a_repaired_history_is_valid_and_a_second_repair_changes_nothing() {
    let mut chance = Chance::new("a_repaired_history_is_valid_and_a_second_repair_changes_nothing");
    for _ in 0..20_000 {
        let messages = history(&mut chance);
        for dialect in Dialect::ALL {
            let once: Vec<Rc<Message>> =
                repaired(&messages, *dialect).into_iter().map(Rc::new).collect();
            let turns: Vec<WireTurn<'_>> =
                once.iter().map(|message| WireTurn::of(message)).collect();
            assert_eq!(check(&turns, *dialect), Vec::new(), "{}", json!(messages));
            let twice: Vec<Rc<Message>> =
                repaired(&once, *dialect).into_iter().map(Rc::new).collect();
            assert_eq!(json!(once), json!(twice), "{}", json!(messages));
        }
    }
}
