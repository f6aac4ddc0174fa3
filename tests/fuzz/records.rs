//! Records that somebody else wrote: they are read or refused, and what is read is the same once it is written again.

use std::fmt::Debug;

use lockgate::json::{self, Read};
use lockgate::message::Message;
use lockgate::state::{Facts, PermissionContext};
use lockgate::store::entry::Entry;
use lockgate::store::head::{Head, HeadRecord};
use lockgate::store::info::SessionInfo;
use lockgate::store::input::Input;
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

/// Good records of every kind.
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
        "info": { "sessionId": "s", "userId": null, "title": "t", "summary": "l", "messages": 3, "updatedAt": "",
                  "createdAt": "", "branches": 1 },
    })
}

/// What is read, and written, is read again as it was.
fn stays<T: Serialize + PartialEq + Debug>(value: &Value, read: fn(&Value) -> Read<T>) -> bool {
    let Ok(first) = read(value) else { return false };
    let written = json::to_bytes(&first);
    let again = read(&json::parse(&written, "what we wrote").unwrap());
    let again = again.unwrap_or_else(|_| panic!("{value} became unreadable"));
    assert_eq!(first, again, "{value}");
    assert_eq!(written, json::to_bytes(&again));
    true
}

/// A spoilt record of this kind; also one whose bytes are bent, if those still are JSON.
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
    assert!(stays(&good, read), "a good {kind} is read");
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
fn a_state_is_read_or_refused_and_stays_as_it_was_read() {
    story("a_state_is_read", "facts", Facts::from_json);
}

#[test]
fn permissions_are_read_or_refused_and_stay_as_they_were_read() {
    story("permissions_are_read", "permissions", PermissionContext::from_json);
}

#[test]
fn a_log_entry_is_read_or_refused_and_stays_as_it_was_read() {
    story("a_log_entry_is_read", "entry", Entry::from_json);
}

#[test]
fn a_message_is_read_or_refused_and_stays_as_it_was_read() {
    story("a_message_is_read", "message", Message::from_json);
}

#[test]
fn an_input_is_read_or_refused_and_stays_as_it_was_read() {
    story("an_input_is_read", "input", Input::from_json);
}

#[test]
fn a_head_is_read_or_refused_and_stays_as_it_was_read() {
    let good = good()["head"].clone();
    assert!(live(&good).is_ok_and(|it| it.is_object()), "a good head is read");
    each("a_head_is_read", |chance| {
        let value = spoilt(chance, &good);
        if let Ok(head) = live(&value)
            && head.is_object()
        {
            assert_eq!(live(&head).ok(), Some(head.clone()), "{value}");
        }
    });
}

#[test]
fn a_line_of_the_list_is_read_or_refused() {
    let good = good()["info"].clone();
    assert!(SessionInfo::from_json(&good).is_ok(), "a good line is read");
    each("a_line_of_the_list", |chance| drop(SessionInfo::from_json(&spoilt(chance, &good))));
}
