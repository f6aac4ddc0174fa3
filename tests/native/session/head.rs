//! The head stays small after any history of its session.

use std::rc::Rc;

use crate::support::*;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Page, Record, Store};
use serde_json::{Value, json};

fn head(store: &Rc<dyn Store>) -> (String, Record, Value) {
    let records = block_on(store.list("", Page::default())).unwrap();
    let (key, record) = records.into_iter().find(|(key, _)| key.ends_with("/head")).unwrap();
    let value = serde_json::from_slice(&record.value).unwrap();
    (key, record, value)
}

/// Replaces the whole view by a summary and adds a few evicted results, as a compaction does.
fn compact(store: &Rc<dyn Store>, round: u64) {
    let (key, record, mut head) = head(store);
    let name = format!("{:012}.summary{round}", head["next"].as_u64().unwrap());
    let entry = json!({
        "id": format!("summary{round}"),
        "parent": head["leaf"],
        "kind": "summary",
        "callId": "",
        "messages": [{ "id": format!("m{round}"), "role": "user", "content": [{ "type": "text", "text": "what was said" }], "at": "" }],
        "replaced": head["view"],
    });
    head["view"] = json!([{ "summary": name }]);
    head["leaf"] = json!(name);
    head["next"] = json!(head["next"].as_u64().unwrap() + 1);
    // The edits of replaced messages are gone with them.
    head["edits"] = (0..3)
        .map(|n| (format!("message-{round}-{n}"), json!({ "evicted": { "path": format!("results/{round}-{n}.txt"), "head": 2000, "tail": 2000 } })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    if round.is_multiple_of(4) {
        head["card"]["branches"] = json!(head["card"]["branches"].as_u64().unwrap() + 1);
    }
    let log = key.replace("/head", &format!("/log/{name}"));
    let put = [(log, entry), (key.clone(), head)]
        .map(|(key, value)| (key, value.to_string().into_bytes()));
    let revision = format!("{}x", record.revision);
    let batch = Batch {
        expect: Some((key, Some(record.revision))),
        revision,
        put: put.into(),
        ..Batch::default()
    };
    block_on(store.commit(&batch)).unwrap();
}

#[test]
fn the_head_is_small_after_ten_thousand_messages_with_summaries_and_edits() {
    let store = memory();
    let model = ScriptedModel::new([Line::says("still here")]);
    let agent = agent_on(&store, Rc::clone(&model) as _);
    for round in 0..200 {
        let messages =
            (0..50).flat_map(|n| said(&format!("message {n} of round {round}"))).collect();
        block_on(agent.append(&slot("s1"), messages)).unwrap();
        compact(&store, round);
    }
    ask(&agent, "s1", "are you there?").unwrap();
    let (_, record, value) = head(&store);
    assert!(record.value.len() <= 4_096, "{} bytes: {value}", record.value.len());
    assert_eq!(value["edits"].as_object().unwrap().len(), 3, "unknown edits are kept");
    assert_eq!(model.requests()[0].len(), 2, "the summary and the question");
    assert_eq!(block_on(agent.history(&slot("s1"), None, 20_000)).unwrap().len(), 10_002);
    assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().branches, 50);
}
