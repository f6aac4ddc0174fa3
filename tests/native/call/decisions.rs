//! The decisions of a call, without anything that waits.

use crate::support::note_kind;
use lockgate::event::{Event, Reason};
use lockgate::message::*;
use lockgate::run::{Asking, Assembly, ModelReply, Run, Step};
use serde_json::json;

fn replies(deltas: Vec<Delta>) -> (ModelReply, Vec<Event>) {
    let (mut assembly, mut events) = (Assembly::new("m1".into()), Vec::new());
    deltas.into_iter().for_each(|delta| assembly.push(delta, &mut events));
    (assembly.finish(0.0, &mut events), events)
}

fn says(text: &str) -> ModelReply {
    replies(vec![Delta::Text(text.into())]).0
}

fn asks(names: &[&str]) -> ModelReply {
    let call = |(index, name): (usize, &&str)| {
        fragment(index as u64, Some(&index.to_string()), Some(name), "{}")
    };
    replies(names.iter().enumerate().map(call).collect()).0
}

fn fragment(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Delta::ToolCall {
        index,
        id: own(id),
        name: own(name),
        arguments: arguments.into(),
        provider: None,
    }
}

fn returned(run: &mut Run, id: &str) {
    let call = calls(run).into_iter().find(|call| call.id == id).unwrap();
    run.tool_returned(ToolResult::new(&call, ResultState::Success, format!("result {id}")));
}

fn calls(run: &Run) -> Vec<ToolUse> {
    match run.next() {
        Step::CallTools(calls) => calls,
        other => panic!("{other:?}"),
    }
}

/// The results of a run's messages: id and state.
fn results(run: &mut Run) -> Vec<(String, ResultState)> {
    let blocks = run.take_messages().into_iter().flat_map(|message| message.content);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult(result) => Some((result.id, result.state)),
        _ => None,
    });
    results.collect()
}

#[test]
fn a_run_begins_with_the_model() {
    assert_eq!(Run::new(8).next(), Step::CallModel(Asking::WithTools));
}

#[test]
fn an_answer_without_tool_calls_ends_the_run() {
    let mut run = Run::new(8);
    run.replied(says("hello"));
    assert_eq!(run.next(), Step::Done(Reason::Stop));
    assert_eq!(run.take_messages()[0].text(), "hello");
}

#[test]
fn tool_calls_beyond_the_limit_of_an_answer_get_a_result_that_says_so() {
    let mut run = Run::new(8).with_max_tool_calls(2);
    run.replied(asks(&["a", "b", "c", "d"]));
    assert_eq!(calls(&run).len(), 2);
    returned(&mut run, "1");
    returned(&mut run, "0");
    use ResultState::{Error, Success};
    let states: Vec<_> = results(&mut run).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, [Success, Success, Error, Error]);
    assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
    // The limit is one of each answer.
    run.replied(asks(&["a", "b", "c"]));
    assert_eq!(calls(&run).len(), 2);
}

#[test]
fn a_tool_result_goes_back_to_the_model() {
    let mut run = Run::new(8);
    run.replied(asks(&["forecast"]));
    returned(&mut run, "0");
    assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
}

#[test]
fn t_08_r32_results_are_in_the_order_of_the_calls_for_any_order_of_arrival() {
    let mut run = Run::new(8);
    run.replied(asks(&["a", "b", "c"]));
    for id in ["2", "0", "1"] {
        returned(&mut run, id);
    }
    let order: Vec<_> = results(&mut run).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, ["0", "1", "2"]);
}

#[test]
fn a_second_result_for_a_call_is_dropped() {
    let mut run = Run::new(8);
    run.replied(asks(&["a", "b"]));
    let call = calls(&run)[0].clone();
    run.tool_returned(ToolResult::new(&call, ResultState::Success, "first"));
    run.tool_returned(ToolResult::new(&call, ResultState::Error, "second"));
    returned(&mut run, "1");
    assert_eq!(
        results(&mut run),
        [("0".into(), ResultState::Success), ("1".into(), ResultState::Success)]
    );
}

#[test]
fn an_interrupted_run_closes_every_open_call_and_keeps_finished_results() {
    let mut run = Run::new(8);
    run.replied(asks(&["a", "b"]));
    returned(&mut run, "1");
    run.interrupted(None);
    assert_eq!(run.next(), Step::Done(Reason::Interrupted));
    assert_eq!(
        results(&mut run),
        [("0".into(), ResultState::Interrupted), ("1".into(), ResultState::Success)]
    );
}

#[test]
fn an_interrupted_answer_keeps_its_text_and_drops_its_incomplete_calls() {
    let (partial, _) =
        replies(vec![Delta::Text("so far".into()), fragment(0, None, Some("a"), "{\"x\":")]);
    let mut run = Run::new(8);
    run.interrupted(Some(partial.message));
    let messages = run.take_messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].content, [Block::text("so far")]);
}

#[test]
fn t_12_r27_at_the_limit_the_model_is_asked_once_more_without_tools() {
    let mut run = Run::new(1);
    run.replied(asks(&["a"]));
    returned(&mut run, "0");
    assert_eq!(run.next(), Step::CallModel(Asking::ToClose));
    run.replied(says("that is all"));
    assert_eq!(run.next(), Step::Done(Reason::MaxIterations));
}

#[test]
fn r27_calls_in_a_closing_answer_are_not_run_and_still_get_results() {
    let mut run = Run::new(1);
    run.replied(asks(&["a"]));
    returned(&mut run, "0");
    run.take_messages();
    run.replied(asks(&["b"]));
    assert_eq!(run.next(), Step::Done(Reason::MaxIterations));
    assert_eq!(results(&mut run), [("0".into(), ResultState::Error)]);
}

#[test]
fn a_call_cut_off_at_the_token_limit_is_not_run() {
    let (reply, _) =
        replies(vec![fragment(0, Some("0"), Some("a"), "{}"), Delta::Finish(Finish::Length)]);
    let mut run = Run::new(8);
    run.replied(reply);
    assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
    assert_eq!(results(&mut run), [("0".into(), ResultState::Error)]);
}

#[test]
fn t_01_arguments_that_are_not_json_become_an_error_that_the_model_can_read() {
    let (reply, _) = replies(vec![fragment(0, Some("0"), Some("a"), "{\"x\": oops}")]);
    let mut run = Run::new(8);
    run.replied(reply);
    assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
    let text = Message::draft(
        Role::Tool,
        match &run.take_messages()[1].content[0] {
            Block::ToolResult(result) => result.output.clone(),
            other => panic!("{other:?}"),
        },
    );
    assert!(text.text().contains("not valid JSON"), "{}", text.text());
    assert!(text.text().contains("line 1 column 7"), "{}", text.text());
}

#[test]
fn t_02_arguments_are_read_only_after_the_end_of_the_stream() {
    let first = fragment(0, Some("0"), Some("a"), "{\"x\":1}");
    let (reply, events) = replies(vec![first.clone(), fragment(0, None, None, ",{}")]);
    assert_eq!(reply.unreadable.len(), 1, "what parsed by itself was only the beginning");
    let ends = events.iter().filter(|event| matches!(event, Event::ToolCallEnd { .. }));
    assert_eq!(ends.count(), 1);
    let (reply, _) = replies(vec![first]);
    assert_eq!(reply.message.tool_uses().next().unwrap().input, json!({ "x": 1 }));
}

#[test]
fn r66_tool_calls_end_with_the_answer_and_empty_pieces_give_no_event() {
    // The reference ends a call when the next begins; ours reads arguments only when all of the answer is there.
    let deltas = vec![
        Delta::Text(String::new()),
        fragment(0, Some("0"), Some("a"), "{}"),
        fragment(1, Some("1"), Some("b"), ""),
        fragment(1, None, None, "{}"),
    ];
    let (_, events) = replies(deltas);
    let named = |event: &Event| json!(event)["type"].as_str().unwrap().to_owned();
    let names: Vec<_> = events.iter().map(named).collect();
    let expected = "text-start text-end tool-call-start tool-call-delta tool-call-start \
                    tool-call-delta tool-call-end tool-call-end";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn r28_r29_a_blank_answer_is_asked_for_again_twice_and_then_is_empty() {
    let mut run = Run::new(8);
    for _ in 0..2 {
        run.replied(says("  "));
        assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
        assert_eq!(note_kind(run.take_messages().last().unwrap()), Some("blank-answer"));
    }
    run.replied(says(""));
    assert_eq!(run.next(), Step::Done(Reason::Empty));
}

#[test]
fn fragments_of_parallel_calls_find_their_call_by_index() {
    let (reply, _) = replies(vec![
        fragment(0, Some("x"), Some("a"), "{\"n\":"),
        fragment(1, Some("y"), Some("b"), "{\"n\":"),
        fragment(0, None, None, "1}"),
        fragment(1, None, None, "2}"),
    ]);
    let inputs: Vec<_> =
        reply.message.tool_uses().map(|call| (call.id.as_str(), call.input.clone())).collect();
    assert_eq!(inputs, [("x", json!({ "n": 1 })), ("y", json!({ "n": 2 }))]);
}

#[test]
fn two_calls_of_an_answer_with_the_same_id_get_different_ids() {
    let twin = |index, arguments| fragment(index, Some("x"), Some("t"), arguments);
    let (reply, events) = replies(vec![twin(0, "{"), twin(1, "{"), twin(1, "}"), twin(0, "}")]);
    let ids: Vec<_> = reply.message.tool_uses().map(|call| call.id.as_str()).collect();
    assert_eq!((ids.len(), ids[0]), (2, "x"));
    assert_ne!(ids[0], ids[1]);
    let starts = events.iter().filter(|it| matches!(it, Event::ToolCallStart { .. }));
    assert_eq!((starts.count(), reply.unreadable.len()), (2, 0));
}

#[test]
fn a_tool_call_without_a_name_is_dropped() {
    let (reply, events) =
        replies(vec![fragment(0, Some("x"), None, "{}"), Delta::Text("hi".into())]);
    assert_eq!(reply.message.content, [Block::text("hi")]);
    assert!(!events.iter().any(|event| matches!(event, Event::ToolCallStart { .. })));
}

#[test]
fn r66_every_start_has_its_end_and_text_ends_a_thought() {
    let think = |text: &str| Delta::Thinking { text: text.into(), signature: None };
    let (_, events) =
        replies(vec![think("hm"), Delta::Text("a".into()), fragment(0, None, Some("t"), "{}")]);
    let names: Vec<_> =
        events.iter().map(|event| json!(event)["type"].as_str().unwrap().to_owned()).collect();
    let expected = "thinking-start thinking-delta thinking-end text-start text-delta text-end \
                    tool-call-start tool-call-delta tool-call-end";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn a_signature_stays_with_its_thought() {
    let deltas = vec![
        Delta::Thinking { text: "hm".into(), signature: None },
        Delta::Thinking { text: String::new(), signature: Some("sig".into()) },
    ];
    let (reply, _) = replies(deltas);
    assert!(
        matches!(&reply.message.content[0], Block::Thinking { signature: Some(it), .. } if it == "sig")
    );
}

#[test]
fn r28_an_answer_of_thoughts_alone_is_asked_for_again() {
    let (reply, _) = replies(vec![Delta::Thinking { text: "hm".into(), signature: None }]);
    let mut run = Run::new(8);
    run.replied(reply);
    assert_eq!(run.next(), Step::CallModel(Asking::WithTools));
    let messages = run.take_messages();
    assert!(matches!(messages[0].content[0], Block::Thinking { .. }));
    assert_eq!(note_kind(&messages[1]), Some("blank-answer"));
}
