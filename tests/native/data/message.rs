//! Reading and writing messages.

use lockgate::error::ErrorKind;
use lockgate::json;
use lockgate::message::{Block, Message, Role, rfc3339};
use serde_json::{Value, json};

fn round(value: &Value) -> Value {
    json::to_value(&Message::from_json(value).unwrap())
}

#[test]
fn unknown_fields_and_blocks_survive() {
    let stored = json!({
        "id": "m1", "role": "user", "at": "2026-01-01T00:00:00.000Z", "later": { "x": 1 },
        "content": [
            { "type": "text", "text": "hi", "cache": true },
            { "type": "hologram", "depth": 3 },
            { "type": "tool_use", "id": "c", "name": "t", "input": {}, "state": "allowed", "extra": [1] },
            { "type": "tool_result", "id": "c", "name": "t", "output": [], "state": "denied", "note": "n" },
            { "type": "image", "source": { "type": "url", "url": "u" }, "minPixels": 4 },
        ],
    });
    assert_eq!(round(&stored), stored);
}

#[test]
fn a_number_is_the_same_after_it_was_stored() {
    for text in ["2.2526847614039158e17", "52.520006599999995", "0.30000000000000004", "1e-7"] {
        let stored = format!(r#"{{"id":"m","role":"user","content":[],"at":"","place":{text}}}"#);
        let read = round(&json::parse(stored.as_bytes(), "a message").unwrap());
        assert_eq!(read["place"].as_f64(), text.parse().ok(), "{text}");
    }
}

#[test]
fn roles_are_read_in_any_case() {
    for role in ["USER", "User", "user"] {
        let message = json!({ "id": "m", "role": role, "content": [] });
        assert_eq!(Message::from_json(&message).unwrap().role, Role::User);
    }
}

#[test]
fn an_error_names_the_path() {
    let bad = json!({ "id": "m", "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": 5 }] });
    let error =
        Message::from_json(&bad).unwrap_err().into_error(ErrorKind::StoreCorrupt, "a message");
    assert_eq!(error.message(), "a message at content[1].text: expected a string");
}

#[test]
fn a_caller_may_not_send_blocks_or_roles_of_the_engine() {
    for bad in [
        json!({ "content": [{ "type": "tool_use", "id": "a", "name": "b", "input": {} }] }),
        json!({ "content": [{ "type": "thinking", "thinking": "a" }] }),
        json!({ "role": "assistant", "content": "a" }),
        json!({ "content": 5 }),
        json!({}),
        json!(5),
        json!(null),
    ] {
        assert!(Message::from_input(&bad).is_err(), "{bad}");
    }
}

#[test]
fn a_caller_may_send_text_or_blocks() {
    assert_eq!(Message::from_input(&json!("hi")).unwrap().content, [Block::text("hi")]);
    let picture = json!({ "content": [{ "type": "image", "source": { "type": "url", "url": "u" } }], "id": "mine" });
    assert_eq!(Message::from_input(&picture).unwrap().id, "mine");
}

#[test]
fn v_10_integers_beyond_doubles_stay_exact() {
    let text = r#"{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c","name":"t","input":{"n":9007199254740993},"state":"pending"}],"at":""}"#;
    let message = Message::from_json(&serde_json::from_str(text).unwrap()).unwrap();
    assert_eq!(serde_json::to_string(&message).unwrap().matches("9007199254740993").count(), 1);
}

#[test]
fn times_are_written_as_rfc_3339() {
    assert_eq!(rfc3339(0.0), "1970-01-01T00:00:00.000Z");
    assert_eq!(rfc3339(951_782_400_000.0), "2000-02-29T00:00:00.000Z");
    assert_eq!(rfc3339(1_794_798_611_999.0), "2026-11-16T03:10:11.999Z");
    assert_eq!(rfc3339(4_102_444_799_123.0), "2099-12-31T23:59:59.123Z");
}
