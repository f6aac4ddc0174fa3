//! Characters whose halves (`\ud83d`, `\ude00`) a provider sends in different deltas.

use lockgate::message::{Block, Delta};
use lockgate::model::Dialect;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::ReplyReader;
use lockgate::run::Assembly;
use serde_json::{Value, json};

/// What a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Arguments,
}

/// A character of those that mark halves inside the engine.
const PRIVATE: &str = "\u{10f83d}";

const ALL: [Kind; 3] = [Kind::Text, Kind::Thinking, Kind::Arguments];

/// How a provider sends an answer.
#[derive(Clone, Copy, Debug)]
enum Way {
    OpenAi,
    /// Ollama's native API: lines of JSON.
    Ollama,
    Anthropic,
    Gemini,
}

impl Way {
    fn dialect(self) -> Dialect {
        match self {
            Way::OpenAi | Way::Ollama => Dialect::OpenAi,
            Way::Anthropic => Dialect::Anthropic,
            Way::Gemini => Dialect::Gemini,
        }
    }

    /// A frame with a piece of an answer. `piece` is the inside of a JSON string, as it is on the wire.
    fn frame(self, kind: Kind, index: u32, piece: &str) -> String {
        let call = |more: &str| {
            format!(
                r#""tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"t",{more}}}}}]"#
            )
        };
        let frame = match (self, kind) {
            (Way::OpenAi | Way::Ollama, Kind::Text) => format!(r#""content":"{piece}""#),
            (Way::OpenAi, Kind::Thinking) => format!(r#""reasoning_content":"{piece}""#),
            (Way::Ollama, Kind::Thinking) => format!(r#""thinking":"{piece}""#),
            (Way::OpenAi, Kind::Arguments) => call(&format!(r#""arguments":"{piece}""#)),
            (Way::Ollama, Kind::Arguments) => call(&format!(r#""arguments":{{"x":"{piece}"}}"#)),
            (Way::Anthropic, Kind::Text) => format!(r#"{{"type":"text_delta","text":"{piece}"}}"#),
            (Way::Anthropic, Kind::Thinking) => {
                format!(r#"{{"type":"thinking_delta","thinking":"{piece}"}}"#)
            }
            (Way::Anthropic, Kind::Arguments) => {
                format!(r#"{{"type":"input_json_delta","partial_json":"{piece}"}}"#)
            }
            (Way::Gemini, Kind::Text) => format!(r#"{{"text":"{piece}"}}"#),
            (Way::Gemini, Kind::Thinking) => format!(r#"{{"text":"{piece}","thought":true}}"#),
            (Way::Gemini, Kind::Arguments) => {
                format!(r#"{{"functionCall":{{"name":"t","args":{{"x":"{piece}"}}}}}}"#)
            }
        };
        match self {
            Way::OpenAi => sse(&format!(r#"{{"choices":[{{"delta":{{{frame}}}}}]}}"#)),
            Way::Ollama => format!("{{\"message\":{{{frame}}},\"done\":false}}\n"),
            Way::Anthropic => {
                sse(&format!(r#"{{"type":"content_block_delta","index":{index},"delta":{frame}}}"#))
            }
            Way::Gemini => {
                sse(&format!(r#"{{"candidates":[{{"content":{{"parts":[{frame}]}}}}]}}"#))
            }
        }
    }

    fn start(self, kind: Kind, index: u32) -> String {
        let block = match (self, kind) {
            (Way::Anthropic, Kind::Text) => json!({ "type": "text", "text": "" }),
            (Way::Anthropic, Kind::Thinking) => json!({ "type": "thinking", "thinking": "" }),
            (Way::Anthropic, Kind::Arguments) => {
                json!({ "type": "tool_use", "id": format!("c{index}"), "name": "t", "input": {} })
            }
            _ => return String::new(),
        };
        let frame =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        sse(&frame.to_string())
    }

    fn end(self) -> String {
        match self {
            Way::OpenAi => {
                sse(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#) + &sse("[DONE]")
            }
            Way::Ollama => "{\"message\":{},\"done\":true,\"done_reason\":\"stop\"}\n".to_owned(),
            Way::Anthropic => {
                sse(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#)
                    + &sse(r#"{"type":"message_stop"}"#)
            }
            Way::Gemini => {
                sse(r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#)
            }
        }
    }
}

fn sse(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// What an answer came to: its text, thinking and inputs of tools, and whether it reports a replaced half.
fn read(way: Way, stream: &str) -> (String, String, Vec<Value>, bool) {
    let mut reading = ReplyReader::of(&ProviderOptions::new(way.dialect(), "m"));
    let mut assembly = Assembly::new("m1".into());
    let mut deltas = reading.push(stream.as_bytes());
    if !reading.is_over() {
        deltas.extend(reading.finish());
    }
    let failure = reading.failure();
    assert!(failure.is_none(), "{way:?}: {failure:?}\n{stream}");
    let shown: String = deltas.iter().map(|delta| format!("{delta:?}")).collect();
    let has_own = stream.contains(PRIVATE) || stream.contains(r"\udbfe");
    assert!(has_own || !shown.contains("10f8"), "a mark is left: {shown}");
    deltas.into_iter().for_each(|delta| assembly.push(delta, &mut Vec::new()));
    let has_halves = assembly.has_halves();
    let reply = assembly.finish(0.0, &mut Vec::new());
    assert!(reply.unreadable.is_empty(), "{way:?}: {:?}", reply.unreadable);
    let thinking = reply.message.content.iter().filter_map(|block| match block {
        Block::Thinking { thinking, .. } => Some(thinking.as_str()),
        _ => None,
    });
    let thinking = thinking.collect();
    let inputs = reply.message.tool_uses().map(|call| call.input.clone()).collect();
    (reply.message.text(), thinking, inputs, has_halves)
}

fn of_kind(
    kind: Kind,
    (text, thinking, inputs, has_halves): (String, String, Vec<Value>, bool),
) -> (String, bool) {
    let found = match kind {
        Kind::Text => text,
        Kind::Thinking => thinking,
        Kind::Arguments => inputs[0]["x"].as_str().unwrap().to_owned(),
    };
    (found, has_halves)
}

/// The stream of an answer of one kind in these pieces.
fn stream(way: Way, kind: Kind, pieces: &[&str]) -> String {
    let frames: String = pieces.iter().map(|piece| way.frame(kind, 0, piece)).collect();
    way.start(kind, 0) + &frames + &way.end()
}

const WAYS: [Way; 4] = [Way::OpenAi, Way::Ollama, Way::Anthropic, Way::Gemini];

// V-09
#[test]
fn a_character_that_is_split_over_two_deltas_is_joined_in_every_dialect() {
    for way in WAYS {
        for kind in ALL {
            let is_whole = matches!((way, kind), (Way::Ollama | Way::Gemini, Kind::Arguments));
            let pieces: &[&str] = match kind {
                // These send arguments whole.
                _ if is_whole => continue,
                Kind::Arguments => {
                    &[r#"{\"x\":\"hi \ud83d"#, r"\ude00 and \ud83d", "", r#"\ude00\"}"#]
                }
                _ => &[r"hi \ud83d", r"\ude00 and \ud83d", "", r"\ude00"],
            };
            let found = of_kind(kind, read(way, &stream(way, kind, pieces)));
            assert_eq!(found, ("hi 😀 and 😀".to_owned(), false), "{way:?} {kind:?}");
        }
    }
}

// V-09
#[test]
fn a_half_that_stays_alone_is_replaced_and_reported_in_every_dialect() {
    for way in WAYS {
        for kind in ALL {
            for (pieces, expected) in [
                (vec![r"hi \ud83d"], "hi \u{fffd}"),
                (vec![r"hi \ud83d there"], "hi \u{fffd} there"),
                (vec![r"\ude00 hi"], "\u{fffd} hi"),
                (vec![r"hi \ud83d\ud83d\ude00"], "hi \u{fffd}😀"),
                (vec![r"\ude00\ud83d"], "\u{fffd}\u{fffd}"),
            ] {
                let is_text =
                    matches!((way, kind), (Way::OpenAi | Way::Anthropic, Kind::Arguments));
                let whole: Vec<String> = match is_text {
                    true => vec![format!(r#"{{\"x\":\"{}\"}}"#, pieces[0])],
                    false => pieces.iter().map(|it| (*it).to_owned()).collect(),
                };
                let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
                let found = of_kind(kind, read(way, &stream(way, kind, &whole)));
                assert_eq!(found, (expected.to_owned(), true), "{way:?} {kind:?} {pieces:?}");
            }
        }
    }
}

// V-09
#[test]
fn halves_of_different_blocks_and_tool_calls_are_not_joined() {
    for way in [Way::OpenAi, Way::Anthropic, Way::Gemini] {
        let frames = way.start(Kind::Thinking, 0)
            + &way.frame(Kind::Thinking, 0, r"a\ud83d")
            + &way.start(Kind::Text, 1)
            + &way.frame(Kind::Text, 1, r"\ude00b")
            + &way.end();
        let (text, thinking, _, has_halves) = read(way, &frames);
        assert_eq!((text.as_str(), thinking.as_str()), ("\u{fffd}b", "a\u{fffd}"), "{way:?}");
        assert!(has_halves);
    }
    // Two calls that are sent in turns: each half finds its own other half.
    let way = Way::OpenAi;
    let pieces = [
        (0, r#"{\"x\":\"\ud83d"#),
        (1, r#"{\"x\":\"\ud83c"#),
        (0, r#"\ude00\"}"#),
        (1, r#"\udf27\"}"#),
    ];
    let frames: String =
        pieces.iter().map(|(index, piece)| way.frame(Kind::Arguments, *index, piece)).collect();
    let (_, _, inputs, has_halves) = read(way, &(frames + &way.end()));
    assert_eq!(inputs, [json!({ "x": "😀" }), json!({ "x": "🌧" })]);
    assert!(!has_halves);
}

// V-09
#[test]
fn halves_inside_the_json_of_arguments_are_read_too() {
    let way = Way::OpenAi;
    let split = [r#"{\"x\":\"\\ud83d"#, r#"\\ude00\"}"#];
    assert_eq!(
        of_kind(Kind::Arguments, read(way, &stream(way, Kind::Arguments, &split))),
        ("😀".to_owned(), false)
    );
    let alone = [r#"{\"x\":\"\\ud83d\"}"#];
    assert_eq!(
        of_kind(Kind::Arguments, read(way, &stream(way, Kind::Arguments, &alone))),
        ("\u{fffd}".to_owned(), true)
    );
}

// V-09
#[test]
fn private_characters_of_the_model_are_no_halves() {
    for pieces in [
        vec![PRIVATE, r"\ude00"],
        vec![r"\ud83d", PRIVATE],
        vec!["\u{10f83d} \\ud83d", "x"],
        vec![r"\udbfe\udc3d \ud83d", "x"],
    ] {
        let (text, _, _, has_halves) = read(Way::OpenAi, &stream(Way::OpenAi, Kind::Text, &pieces));
        assert_eq!(text.matches(PRIVATE).count(), 1, "{pieces:?} became {text:?}");
        assert_eq!(text.matches('\u{fffd}').count(), 1, "{pieces:?} became {text:?}");
        assert!(has_halves);
    }
}

// V-09, M-15
#[test]
fn a_half_in_an_error_or_in_data_of_the_provider_is_replaced() {
    let mut reading = ReplyReader::of(&ProviderOptions::new(Dialect::OpenAi, "m"));
    reading.push(sse(r#"{"error":{"message":"the model is overloaded \ud83d"}}"#).as_bytes());
    let error = reading.failure().unwrap();
    assert_eq!(error.kind().code(), "MODEL_OVERLOADED");
    assert!(error.message().ends_with("overloaded \u{fffd}"), "{}", error.message());
    let mut reading = ReplyReader::of(&ProviderOptions::new(Dialect::OpenAi, "m"));
    let details = r#"{"choices":[{"delta":{"reasoning_details":[{"text":"\ud83d"}],"tool_calls":[{"id":"\ud83d","function":{"name":"a\ud83d","arguments":"{}"}}]}}]}"#;
    let deltas = reading.push(sse(details).as_bytes());
    let provider = deltas.iter().find_map(|delta| match delta {
        Delta::Provider(value) => Some(value["details"][0]["text"].clone()),
        _ => None,
    });
    assert_eq!(provider, Some("\u{fffd}".into()));
    let call = deltas.iter().find_map(|delta| match delta {
        Delta::ToolCall { id, name, .. } => Some((id.clone().unwrap(), name.clone().unwrap())),
        _ => None,
    });
    assert_eq!(call, Some(("\u{fffd}".to_owned(), "a\u{fffd}".to_owned())));
}
