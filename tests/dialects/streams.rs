//! Answers in the documented formats of providers: read the same whole, cut at every byte, and cut at random.

use std::fs;

use lockgate::message::{Block, Delta};
use lockgate::model::Dialect;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::ReplyReader;
use lockgate::run::Assembly;
use serde_json::{Value, json};

use crate::chance::Chance;

/// A recorded stream of one dialect.
struct Fixture {
    dialect: Dialect,
    name: String,
    bytes: Vec<u8>,
    expect: Value,
}

fn fixtures() -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    for name in ["openai", "anthropic", "gemini"] {
        let root = env!("CARGO_MANIFEST_DIR");
        let text = fs::read(format!("{root}/tests/fixtures/streams/{name}.json")).unwrap();
        let list: Vec<Value> = serde_json::from_slice(&text).unwrap();
        fixtures.extend(list.into_iter().map(|each| Fixture {
            dialect: Dialect::named(name).unwrap(),
            name: each["name"].as_str().unwrap().to_owned(),
            bytes: each["stream"].as_str().unwrap().as_bytes().to_vec(),
            expect: each["expect"].clone(),
        }));
    }
    fixtures
}

/// The deltas of an answer that arrives in these pieces, and the error that ended it.
fn read(dialect: Dialect, pieces: &[&[u8]]) -> (Vec<Delta>, Option<&'static str>) {
    let mut reading = ReplyReader::of(&ProviderOptions::new(dialect, "m"));
    let mut deltas = Vec::new();
    for piece in pieces {
        deltas.extend(reading.push(piece));
        if reading.is_over() {
            break;
        }
    }
    if !reading.is_over() {
        deltas.extend(reading.finish());
    }
    (deltas, reading.failure().map(|error| error.kind().code()))
}

fn summary(deltas: &[Delta], error: Option<&str>) -> Value {
    let mut assembly = Assembly::new("m1".into());
    deltas.iter().for_each(|delta| assembly.push(delta.clone(), &mut Vec::new()));
    let is_finished = assembly.is_finished();
    let reply = assembly.finish(0.0, &mut Vec::new());
    let mut out = json!({});
    let thoughts: Vec<_> = reply
        .message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Thinking { thinking, signature, .. } => {
                Some((thinking.clone(), signature.clone()))
            }
            _ => None,
        })
        .collect();
    if !thoughts.is_empty() {
        out["thinking"] = thoughts.iter().map(|it| it.0.as_str()).collect::<String>().into();
    }
    if thoughts.len() > 1 {
        out["n_thoughts"] = thoughts.len().into();
    }
    if let Some(signature) =
        thoughts.iter().filter(|_| thoughts.len() == 1).find_map(|it| it.1.clone())
    {
        out["signature"] = signature.into();
    }
    if !reply.message.text().is_empty() {
        out["text"] = reply.message.text().into();
    }
    let calls: Vec<Value> = reply
        .message
        .tool_uses()
        .map(|call| {
            let id = Some(&call.id).filter(|id| !id.starts_with("call-m1"));
            if let Some(signature) =
                call.provider.as_ref().and_then(|it| it.get("thoughtSignature"))
            {
                out["call_signature"] = signature.clone();
            }
            json!([id, call.name, call.input])
        })
        .collect();
    if !calls.is_empty() {
        out["calls"] = calls.into();
    }
    for block in &reply.message.content {
        if let Block::Text { provider: Some(provider), .. } = block {
            out["text_signature"] = provider["thoughtSignature"].clone();
        }
    }
    if !reply.unreadable.is_empty() {
        out["unreadable"] = reply.unreadable.len().into();
    }
    if is_finished {
        out["finish"] = reply.finish.word().into();
    }
    let usage = reply.message.usage.unwrap();
    if usage.input_tokens + usage.output_tokens > 0 {
        out["usage"] = json!([usage.input_tokens, usage.output_tokens, usage.cached_tokens]);
    }
    if let Some(error) = error {
        out["error"] = error.into();
    }
    out
}

fn check(fixture: &Fixture, pieces: &[&[u8]], how: &str) {
    let (deltas, error) = read(fixture.dialect, pieces);
    let mut expect = fixture.expect.clone();
    let mut found = summary(&deltas, error);
    // Only some fixtures name the signature of a call.
    if expect.get("call_signature").is_none() {
        found.as_object_mut().unwrap().remove("call_signature");
    }
    expect.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(found, expect, "{} ({how})", fixture.name);
}

// M-02, M-03, M-04, M-05, M-13, M-14, M-15, M-17, R68
#[test]
fn every_recorded_stream_gives_the_expected_answer() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 60, "{}", fixtures.len());
    for fixture in &fixtures {
        check(fixture, &[&fixture.bytes], "whole");
    }
}

// M-01
#[test]
fn a_stream_gives_the_same_deltas_whole_and_cut_at_every_byte() {
    for fixture in &fixtures() {
        let bytes: Vec<&[u8]> = fixture.bytes.chunks(1).collect();
        check(fixture, &bytes, "byte by byte");
        let whole = read(fixture.dialect, &[&fixture.bytes]);
        for at in 0..=fixture.bytes.len() {
            let (one, other) = fixture.bytes.split_at(at);
            let pieces: Vec<&[u8]> = [one, other].into_iter().filter(|it| !it.is_empty()).collect();
            assert_eq!(read(fixture.dialect, &pieces), whole, "{} cut at {at}", fixture.name);
        }
    }
}

// M-01
#[test]
fn ten_thousand_random_cuts_change_nothing() {
    let mut chance = Chance::new("ten_thousand_random_cuts_change_nothing");
    let fixtures = fixtures();
    for _ in 0..10_000 {
        let fixture = &fixtures[chance.below(fixtures.len())];
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut rest = fixture.bytes.as_slice();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + chance.below(rest.len().min(40)));
            pieces.push(piece);
            rest = behind;
        }
        check(fixture, &pieces, "cut at random");
    }
}

// M-03
#[test]
fn a_stream_that_breaks_off_anywhere_before_its_reason_is_never_a_success() {
    for fixture in fixtures().iter().filter(|it| it.expect.get("finish").is_some()) {
        let text = String::from_utf8_lossy(&fixture.bytes).into_owned();
        let reason = [
            "finish_reason\":\"",
            "stop_reason\":\"",
            "finishReason\"",
            "done_reason",
            "blockReason",
        ]
        .iter()
        .filter_map(|word| text.find(word))
        .min();
        let Some(reason) = reason else { continue };
        for at in 0..reason {
            let (deltas, error) = read(fixture.dialect, &[&fixture.bytes[..at]]);
            assert!(error.is_some(), "{} broken off at {at}", fixture.name);
            assert!(
                !deltas.iter().any(|it| matches!(it, Delta::Finish(_))),
                "{} at {at}",
                fixture.name
            );
        }
    }
}

// M-12
#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let mut reading = ReplyReader::of(&ProviderOptions::new(Dialect::OpenAi, "m"));
    let megabyte = vec![b'x'; 1_024 * 1_024];
    reading.push(b"data: ");
    let refused = (0..20).find_map(|n| {
        reading.push(&megabyte);
        reading.failure().map(|error| (n, error))
    });
    let (n, error) = refused.unwrap();
    assert!(n <= 8, "{n} MB were taken");
    assert_eq!(error.kind().code(), "MODEL_BAD_REQUEST");
}
