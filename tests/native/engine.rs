//! What a call does, from its place in the queue to its saved outcome.

use crate::support::*;
use lockgate::event::Reason;
use lockgate::model::scripted::{Line, ScriptedModel};

#[test]
fn an_answer_is_saved_and_told_again() {
    let agent = agent(ScriptedModel::new([Line::says("Hello Alice.")]));
    let reply = ask(&agent, "s1", "Hello?").unwrap();
    assert_eq!((reply.reason, reply.text.as_str()), (Reason::Stop, "Hello Alice."));
    assert_eq!(told(&agent, "s1"), ["user: hello?", "assistant: hello alice."]);
}
