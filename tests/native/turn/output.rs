//! Structured output: answers that match the caller's schema.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Ended};
use lockgate::error::ErrorKind;
use lockgate::message::{Block, Delta};
use lockgate::model::scripted::{Line, ScriptedModel};
use serde_json::{Value, json};

fn form() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] })
}

fn ask_for(agent: &Agent, schema: Value) -> Ended {
    let request = CallRequest { output: Some(schema), ..request("s1", "how many?") };
    block_on(agent.begin(request)?.finish())
}

fn given(input: &Value) -> Line {
    Line::calls("generate_response", input)
}

#[test]
fn r31_an_answer_through_the_hidden_tool_is_the_output_and_leaves_only_text() {
    let agent = agent(ScriptedModel::new([given(&json!({ "n": 3 }))]));
    let reply = ask_for(&agent, form()).unwrap();
    assert_eq!(reply.output, Some(json!({ "n": 3 })));
    assert_eq!(told(&agent, "s1"), ["user: how many?", "assistant: {\"n\":3}"]);
    let state = serde_json::to_string(&block_on(agent.state(&slot("s1"))).unwrap()).unwrap();
    assert!(!state.contains("generate_response"));
}

#[test]
fn an_answer_in_plain_json_is_accepted_too() {
    for text in ["{\"n\": 4}", "```json\n{\"n\": 4}\n```"] {
        let reply = ask_for(&agent(ScriptedModel::new([Line::says(text)])), form()).unwrap();
        assert_eq!(reply.output, Some(json!({ "n": 4 })));
    }
}

#[test]
fn r31_an_answer_that_does_not_match_the_schema_is_asked_for_again_and_not_stored() {
    let model = ScriptedModel::new([given(&json!({ "n": "many" })), given(&json!({ "n": 5 }))]);
    let agent = agent(Rc::clone(&model) as _);
    assert_eq!(ask_for(&agent, form()).unwrap().output, Some(json!({ "n": 5 })));
    let complaint = model.requests()[1].last().unwrap().text();
    assert!(complaint.contains("n: "), "{complaint}");
    assert_eq!(told(&agent, "s1"), ["user: how many?", "assistant: {\"n\":5}"]);
}

#[test]
fn a_second_answer_that_does_not_match_the_schema_fails_the_call_and_keeps_the_question() {
    let agent = agent(ScriptedModel::new([Line::says("many"), Line::says("very many")]));
    assert_eq!(ask_for(&agent, form()).unwrap_err().error.kind(), ErrorKind::OutputInvalid);
    assert_eq!(told(&agent, "s1"), ["user: how many?"]);
}

#[test]
fn an_output_schema_that_is_not_an_object_is_wrapped_and_unwrapped() {
    let agent = agent(ScriptedModel::new([given(&json!({ "value": [1, 2] }))]));
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    assert_eq!(ask_for(&agent, list).unwrap().output, Some(json!([1, 2])));
}

#[test]
fn the_hidden_tool_is_not_shown() {
    let agent = agent(ScriptedModel::new([given(&json!({ "n": 3 }))]));
    let mut call =
        agent.begin(CallRequest { output: Some(form()), ..request("s1", "how many?") }).unwrap();
    while let Some(event) = block_on(call.next()) {
        assert!(!json!(event.event)["type"].as_str().unwrap().starts_with("tool"));
    }
}

#[test]
fn a_repeated_call_id_returns_the_same_output() {
    let agent = agent(ScriptedModel::new([given(&json!({ "n": 3 }))]));
    for _ in 0..2 {
        let named = CallRequest {
            output: Some(form()),
            call_id: Some("c1".into()),
            ..request("s1", "how many?")
        };
        let reply = block_on(agent.begin(named).unwrap().finish()).unwrap();
        assert_eq!(reply.output, Some(json!({ "n": 3 })));
    }
}

#[test]
fn an_invalid_output_schema_is_refused() {
    let agent = agent(ScriptedModel::new([]));
    let request = CallRequest { output: Some(json!({ "type": 5 })), ..request("s1", "how many?") };
    assert_eq!(agent.begin(request).err().unwrap().kind(), ErrorKind::InputInvalid);
}

#[test]
fn r31_the_usage_of_both_tries_is_added_up_and_thoughts_stay() {
    let usage = |output| Delta::Usage { input: Some(10), output: Some(output), cached: None };
    let thinks = Delta::Thinking { text: "let me count".into(), signature: None };
    let call = |input: &Value| Delta::ToolCall {
        index: 0,
        id: Some("c1".into()),
        name: Some("generate_response".into()),
        arguments: input.to_string(),
        provider: None,
    };
    let wrong = Line::Sends(vec![usage(3), call(&json!({ "n": "many" }))]);
    let right = Line::Sends(vec![thinks, usage(4), call(&json!({ "n": 5 }))]);
    let agent = agent(ScriptedModel::new([wrong, right]));
    let reply = ask_for(&agent, form()).unwrap();
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (20, 7));
    assert!(matches!(reply.message.content[..], [Block::Thinking { .. }, Block::Text { .. }]));
}
