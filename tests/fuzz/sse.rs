//! Streams of providers: any stream gives the same result for every cut into pieces.

use std::fs;

use lockgate::message::Delta;
use lockgate::model::Dialect;
use lockgate::model::frames::Frames;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::ReplyReader;
use lockgate::run::Assembly;
use serde_json::{Value, json};

use crate::each;
use crate::make::Chance;

const LINES: &[&str] = &[
    "data: {}",
    "data:{\"a\":1}",
    "data",
    "data:",
    ": comment",
    "event: error",
    "error: \"x\"",
    "id: 1",
    "retry: 5",
    "",
    "",
    "{\"a\":1}",
    "[",
    "]",
    "{",
    "}",
    "data: [DONE]",
    "\u{feff}data: 1",
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}",
];

fn streams() -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    for name in ["openai", "anthropic", "gemini"] {
        let root = env!("CARGO_MANIFEST_DIR");
        let text = fs::read(format!("{root}/tests/fixtures/streams/{name}.json")).unwrap();
        let list: Vec<Value> = serde_json::from_slice(&text).unwrap();
        streams.extend(list.iter().map(|it| it["stream"].as_str().unwrap().as_bytes().to_vec()));
    }
    streams
}

fn stream(chance: &mut Chance, known: &[Vec<u8>]) -> Vec<u8> {
    if chance.one_in(2) {
        let known = chance.pick(known);
        return chance.bent(&known);
    }
    let n = chance.below(12);
    let lines = (0..n).map(|_| {
        let line = if chance.one_in(5) { chance.text() } else { chance.pick(LINES).to_owned() };
        line + chance.pick(&["\n", "\r\n", "\r", "\n\n"])
    });
    let text: String = lines.collect();
    chance.bent(text.as_bytes())
}

fn frames(pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let (mut frames, mut out) = (Frames::default(), Vec::new());
    let failed = pieces.iter().any(|piece| frames.push(piece, &mut out).is_err());
    if !failed {
        frames.finish(&mut out);
    }
    (out, failed)
}

/// The assembled answer, and the error that ended it.
fn answer(dialect: Dialect, pieces: &[&[u8]]) -> Value {
    let mut reading = ReplyReader::of(&ProviderOptions::new(dialect, "m"));
    let mut deltas: Vec<Delta> = Vec::new();
    for piece in pieces {
        deltas.extend(reading.push(piece));
        if reading.is_over() {
            break;
        }
    }
    if !reading.is_over() {
        deltas.extend(reading.finish());
    }
    let (mut assembly, mut events) = (Assembly::new("m1".into()), Vec::new());
    deltas.into_iter().for_each(|delta| assembly.push(delta, &mut events));
    let reply = assembly.finish(0.0, &mut events);
    let failure = reading.failure().map(|error| (error.kind().code(), error.message().to_owned()));
    json!({ "message": reply.message, "unreadable": reply.unreadable, "failure": failure })
}

#[test]
fn a_stream_gives_the_same_frames_for_every_cut() {
    let known = streams();
    each("a_stream_gives_the_same", |chance| {
        let bytes = stream(chance, &known);
        let pieces = chance.cut(&bytes);
        assert_eq!(frames(&[&bytes]), frames(&pieces), "{:?}", String::from_utf8_lossy(&bytes));
    });
}

#[test]
fn an_answer_is_the_same_for_every_cut_of_its_stream() {
    let known = streams();
    each("an_answer_is_the_same", |chance| {
        let bytes = stream(chance, &known);
        let (pieces, dialect) = (chance.cut(&bytes), chance.pick(Dialect::ALL));
        let (whole, cut) = (answer(dialect, &[&bytes]), answer(dialect, &pieces));
        assert_eq!(whole, cut, "{dialect:?}: {:?}", String::from_utf8_lossy(&bytes));
    });
}
