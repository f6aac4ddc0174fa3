//! Foreign or damaged records: each is refused, or read and then unchanged when written and read again.

use std::fmt::Debug;
use std::rc::Rc;

use lockgate::json::{self, Read};
use lockgate::message::Message;
use lockgate::state::{Facts, PermissionContext};
use lockgate::store::format::entry::Entry;
use lockgate::store::format::head::{Head, HeadRecord};
use lockgate::store::format::input::Input;
use lockgate::store::format::partial::PartialPiece;
use lockgate::store::format::session_info::SessionInfo;
use serde::Serialize;
use serde_json::{Value, json};

use crate::each;
use crate::make::Chance;

const NAMES: &[&str] = &[
    "id",
    "parent",
    "kind",
    "callId",
    "messages",
    "changes",
    "outcome",
    "role",
    "content",
    "type",
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "image",
    "input",
    "output",
    "name",
    "state",
    "user",
    "assistant",
    "tool",
    "turn",
    "step",
    "summary",
    "recovered",
    "format",
    "epoch",
    "view",
    "leaf",
    "next",
    "anchor",
    "open",
    "edits",
    "permission_context",
    "mode",
    "bypass",
    "allow_rules",
    "tool_name",
    "rule_content",
    "behavior",
    "usage",
    "from",
    "more",
    "metadata",
    "reason",
    "code",
    "000000000003.x",
    "replaced",
    "from",
    "to",
    "sessionId",
    "userId",
    "updatedAt",
    "source",
    "url",
    "base64",
    "data",
];

/// A valid record of every kind.
fn good() -> Value {
    let text = json!({ "type": "text", "text": "hello" });
    let call = json!({ "type": "tool_use", "id": "c1", "name": "t", "input": { "x": 1 }, "state": "asking" });
    let result = json!({ "type": "tool_result", "id": "c1", "name": "t", "output": [text], "state": "success" });
    let image =
        json!({ "type": "image", "source": { "type": "url", "url": "https://a.example/" } });
    let message = |role: &str, content: &[&Value]| {
        json!({ "id": "m1", "role": role, "content": content, "at": "2026-01-01T00:00:00.000Z",
                "usage": { "inputTokens": 3, "outputTokens": 4 }, "metadata": { "a": [1] } })
    };
    let messages = json!([
        message("user", &[&text, &image]),
        message("assistant", &[&text, &call]),
        message("tool", &[&result]),
    ]);
    let rule = json!({ "tool_name": "t", "rule_content": "a/**", "behavior": "allow" });
    let permissions =
        json!({ "mode": "explore", "allow_rules": [rule], "deny_rules": [rule], "ask_rules": [] });
    let facts =
        json!({ "permission_context": permissions, "shutdown_interrupted": true, "note": 7 });
    let span = json!({ "from": ["000000000000.a", 0], "to": ["000000000003.x", 2] });
    json!({
        "message": messages[1],
        "entry": { "id": "x", "parent": "000000000002.y", "kind": "turn", "callId": "c", "messages": messages,
                   "changes": [{ "message": "m1", "call": "c1", "state": "finished" }],
                   "outcome": { "reason": "stop" } },
        "input": { "callId": "c", "named": true, "messages": messages, "answers": [{ "toolCallId": "c1", "approve": true }] },
        "facts": facts,
        "permissions": permissions,
        "head": { "format": 1, "epoch": "e", "session_id": "s", "user_id": "u", "view": [span, { "summary": "000000000001.b" }],
                  "leaf": "000000000003.x", "next": 4, "index": "k", "facts": facts,
                  "card": { "title": "t", "messages": 3, "asking": true },
                  "anchor": { "leaf": "000000000002.y", "view": [span] },
                  "open": { "callId": "c", "node": "n", "until": 5, "waiting": ["m"] } },
        "piece": { "from": [0, 1, 2], "more": [text, call], "usage": { "outputTokens": 4 }, "messages": messages },
        "info": { "sessionId": "s", "userId": null, "title": "t", "summary": "l", "messages": 3, "updatedAt": "",
                  "createdAt": "", "branches": 1 },
    })
}

/// Checks that a value that can be read is the same after it is written and read again; false if it cannot be read.
fn stays<T: Serialize + PartialEq + Debug>(value: &Value, read: fn(&Value) -> Read<T>) -> bool {
    let Ok(first) = read(value) else { return false };
    let written = json::to_bytes(&first);
    let again = read(&json::parse(&written, "what we wrote").unwrap());
    let again = again.unwrap_or_else(|_| panic!("{value} became unreadable"));
    assert_eq!(first, again, "{value}");
    assert_eq!(written, json::to_bytes(&again));
    true
}

/// A damaged record of this kind, sometimes with damaged bytes that are still JSON.
fn spoilt(chance: &mut Chance, good: &Value) -> Value {
    if chance.one_in(8) {
        return chance.json(NAMES, 4);
    }
    if chance.one_in(4) {
        let bytes = chance.bent(&json::to_bytes(good));
        return json::parse(&bytes, "bent").unwrap_or_else(|_| good.clone());
    }
    chance.spoilt(good, NAMES)
}

fn story<T: Serialize + PartialEq + Debug>(name: &str, kind: &str, read: fn(&Value) -> Read<T>) {
    let good = good()[kind].clone();
    assert!(stays(&good, read), "a valid {kind} must be readable");
    each(name, |chance| {
        stays(&spoilt(chance, &good), read);
    });
}

fn live(value: &Value) -> Read<Value> {
    Ok(match Head::from_json(value)? {
        HeadRecord::Live(head) => json::to_value(&head),
        HeadRecord::Tombstone => Value::Null,
    })
}

#[test]
fn a_state_is_refused_or_read_and_stays_the_same() {
    story("a_state_is_refused", "facts", Facts::from_json);
}

#[test]
fn permissions_are_refused_or_read_and_stay_the_same() {
    story("permissions_are_refused", "permissions", PermissionContext::from_json);
}

#[test]
fn a_log_entry_is_refused_or_read_and_stays_the_same() {
    story("a_log_entry_is_refused", "entry", Entry::from_json);
}

#[test]
fn a_piece_of_an_answer_is_refused_or_read_and_stays_the_same_and_fits_any_answer_or_none() {
    story("a_piece_is_refused", "piece", PartialPiece::from_json);
    let good = good();
    each("a_piece_fits", |chance| {
        let Ok(piece) = PartialPiece::from_json(&spoilt(chance, &good["piece"])) else { return };
        let messages = json::list(&good["entry"]["messages"], Message::from_json).unwrap();
        let mut answer: Vec<_> = messages.into_iter().map(Rc::new).collect();
        piece.add_to(&mut answer);
        piece.cut(&mut answer);
    });
}

#[test]
fn a_message_is_refused_or_read_and_stays_the_same() {
    story("a_message_is_refused", "message", Message::from_json);
}

#[test]
fn an_input_is_refused_or_read_and_stays_the_same() {
    story("an_input_is_refused", "input", Input::from_json);
}

#[test]
fn a_head_is_refused_or_read_and_stays_the_same() {
    let good = good()["head"].clone();
    assert!(live(&good).is_ok_and(|it| it.is_object()), "a valid head must be readable");
    each("a_head_is_refused", |chance| {
        let value = spoilt(chance, &good);
        if let Ok(head) = live(&value)
            && head.is_object()
        {
            assert_eq!(live(&head).ok(), Some(head.clone()), "{value}");
        }
    });
}

#[test]
fn a_list_line_is_refused_or_read() {
    let good = good()["info"].clone();
    assert!(SessionInfo::from_json(&good).is_ok(), "a valid list line must be readable");
    each("a_list_line", |chance| drop(SessionInfo::from_json(&spoilt(chance, &good))));
}
