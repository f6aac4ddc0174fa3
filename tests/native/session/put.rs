//! A state that is put edits what the model is shown; the log gets only what is new.

use std::collections::HashSet;
use std::rc::Rc;

use crate::compaction::window::*;
use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Ended};
use lockgate::message::Message;
use serde_json::{Value, json};

/// An agent, its model, and a session "s" with this many questions.
fn talked(n: usize) -> (Agent, Rc<Windowed>) {
    let model = Rc::new(Windowed::default());
    let agent = set_up(&memory(), &model, |it| it.compaction.keep_messages = 4).build().unwrap();
    for turn in 0..n {
        ask(&agent, "s", &format!("question {turn}: {}", "words and words ".repeat(9))).unwrap();
    }
    (agent, model)
}

fn state(agent: &Agent) -> Value {
    json!(block_on(agent.state(&slot("s"))).unwrap())
}

fn put(agent: &Agent, state: &Value) {
    block_on(agent.put_state(&slot("s"), state).unwrap()).unwrap();
}

fn compact(agent: &Agent) {
    block_on(agent.compact(&slot("s"))).unwrap();
}

fn undo(agent: &Agent) {
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
}

fn resend(agent: &Agent) -> Ended {
    let request = CallRequest { messages: Vec::new(), resends: true, ..request("s", "") };
    block_on(agent.begin(request).unwrap().finish())
}

fn ids(messages: &[Rc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.id.clone()).collect()
}

/// The ids of the whole history, each of them once.
fn history(agent: &Agent) -> Vec<String> {
    let history = ids(&block_on(agent.history(&slot("s"), None, 1_000)).unwrap());
    assert_eq!(history.iter().collect::<HashSet<_>>().len(), history.len(), "an id is there twice");
    history
}

fn context(agent: &Agent) -> Vec<String> {
    let of = |it: &Value| it["id"].as_str().unwrap().to_owned();
    state(agent)["context"].as_array().unwrap().iter().map(of).collect()
}

fn text(state: &mut Value, index: usize, text: &str) {
    state["context"][index]["content"] = json!([{ "type": "text", "text": text }]);
}

#[test]
fn an_unchanged_state_that_is_put_back_changes_nothing() {
    let (agent, _) = talked(6);
    compact(&agent);
    let before = state(&agent);
    put(&agent, &before);
    assert_eq!(state(&agent), before, "not even the revision");
}

#[test]
fn messages_that_are_kept_are_not_logged_again() {
    let (agent, model) = talked(6);
    let before = history(&agent);
    let mut state = state(&agent);
    state["context"].as_array_mut().unwrap().drain(2..4);
    put(&agent, &state);
    assert_eq!(history(&agent), before);
    let kept = [&before[..2], &before[4..]].concat();
    assert_eq!(context(&agent), kept);
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!(
        ids(&model.last())[..10],
        kept,
        "the next question comes after them, and nothing else"
    );
    assert_eq!(model.last().len(), 11);
}

#[test]
fn messages_left_out_at_the_end_stay_left_out() {
    let (agent, model) = talked(3);
    let before = history(&agent);
    let mut state = state(&agent);
    state["context"].as_array_mut().unwrap().truncate(4);
    put(&agent, &state);
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!(ids(&model.last())[..4], before[..4]);
    assert_eq!(model.last().len(), 5);
    assert_eq!(history(&agent).len(), 8);
}

#[test]
fn a_changed_message_gets_a_new_id_and_stays_in_its_place() {
    let (agent, model) = talked(4);
    let before = history(&agent);
    let mut changed = state(&agent);
    text(&mut changed, 3, "another answer");
    put(&agent, &changed);
    let shown = context(&agent);
    assert_eq!((&shown[..3], &shown[4..]), (&before[..3], &before[4..]));
    assert!(!before.contains(&shown[3]));
    let after = history(&agent);
    assert_eq!((&after[..8], &after[8..]), (&before[..], &shown[3..4]));
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!(ids(&model.last())[..8], shown);
    assert_eq!(model.last()[3].text(), "another answer");
    // A summary is made of what is shown, and can be undone.
    let whole = context(&agent);
    compact(&agent);
    assert!(context(&agent).len() < whole.len());
    undo(&agent);
    assert_eq!(context(&agent), whole);
    put(&agent, &state(&agent));
    assert_eq!(context(&agent), whole);
}

#[test]
fn whatever_is_put_the_ids_of_the_history_are_unique() {
    let (agent, _) = talked(4);
    let mut turned = state(&agent);
    turned["context"].as_array_mut().unwrap().reverse();
    let first = turned["context"][0].clone();
    turned["context"].as_array_mut().unwrap().push(first);
    put(&agent, &turned);
    let shown = context(&agent);
    assert_eq!(shown.len(), 9);
    assert_eq!(shown.iter().collect::<HashSet<_>>().len(), 9);
    assert_eq!(history(&agent).len(), 8 + 1, "only the message that is there twice is logged");
    assert_eq!(shown[..8].iter().rev().cloned().collect::<Vec<_>>(), history(&agent)[..8]);
}

#[test]
fn a_changed_summary_is_the_summary_of_the_session() {
    let (agent, model) = talked(6);
    let whole = context(&agent);
    let before = history(&agent);
    compact(&agent);
    let mut changed = state(&agent);
    assert_eq!(changed["summary"], "what was said");
    changed["summary"] = json!("what was said, and why");
    put(&agent, &changed);
    assert_eq!(state(&agent)["summary"], "what was said, and why");
    assert_eq!(history(&agent), before, "a summary is not a message of the user");
    ask(&agent, "s", "and now?").unwrap();
    assert!(model.last()[0].text().contains("what was said, and why"));
    assert_eq!(model.last().iter().filter(|it| it.text().contains("<summary>")).count(), 1);
    // It replaces what the old one has replaced.
    let n = history(&agent).len();
    undo(&agent);
    assert_eq!((state(&agent)["summary"].as_str(), &context(&agent)[..12]), (Some(""), &whole[..]));
    assert_eq!(history(&agent).len(), n);
}

#[test]
fn the_text_of_a_summary_can_be_changed_in_its_message_too() {
    let (agent, _) = talked(6);
    let before = history(&agent);
    compact(&agent);
    let mut changed = state(&agent);
    let framed = changed["context"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    text(&mut changed, 0, &framed.replace("\nwhat was said\n", "\nwhat was really said\n"));
    put(&agent, &changed);
    assert_eq!(state(&agent)["summary"], "what was really said");
    assert_eq!(history(&agent), before);
}

#[test]
fn a_summary_that_is_put_for_the_first_messages_replaces_them() {
    let (agent, model) = talked(6);
    let whole = context(&agent);
    let mut own = state(&agent);
    own["summary"] = json!("the first three questions");
    own["context"].as_array_mut().unwrap().drain(..6);
    put(&agent, &own);
    assert_eq!(context(&agent)[1..], whole[6..]);
    let replaces = &state(&agent)["context"][0]["metadata"]["replaces"];
    assert_eq!(*replaces, json!({ "first": whole[0], "last": whole[5], "messages": 6 }));
    // Another one over it covers more, and takes its place.
    let mut more = state(&agent);
    more["summary"] = json!("the first four questions");
    more["context"].as_array_mut().unwrap().drain(1..3);
    put(&agent, &more);
    assert_eq!(context(&agent)[1..], whole[8..]);
    let replaces = &state(&agent)["context"][0]["metadata"]["replaces"];
    assert_eq!(*replaces, json!({ "first": whole[0], "last": whole[7], "messages": 8 }));
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!(model.last().len(), 1 + 4 + 1);
    undo(&agent);
    assert_eq!((state(&agent)["summary"].as_str(), &context(&agent)[..12]), (Some(""), &whole[..]));
}

#[test]
fn a_summary_is_taken_away_with_an_empty_one() {
    let (agent, _) = talked(6);
    compact(&agent);
    let kept = context(&agent)[1..].to_vec();
    let mut changed = state(&agent);
    changed["summary"] = json!("");
    put(&agent, &changed);
    assert_eq!((state(&agent)["summary"].as_str(), context(&agent)), (Some(""), kept));
    assert_eq!(history(&agent).len(), 12);
}

#[test]
fn messages_of_the_log_can_be_shown_again() {
    let (agent, _) = talked(3);
    let log = block_on(agent.history(&slot("s"), None, 100)).unwrap();
    block_on(agent.clear_context(&slot("s"))).unwrap();
    let mut restored = state(&agent);
    restored["context"] = json!(&log[2..]);
    put(&agent, &restored);
    assert_eq!(context(&agent), ids(&log[2..]));
    assert_eq!(history(&agent), ids(&log), "nothing is logged again");
}

#[test]
fn the_last_question_is_resent_if_it_was_kept_and_what_was_put_before_it_stays() {
    let (agent, model) = talked(4);
    let before = history(&agent);
    let mut changed = state(&agent);
    changed["context"].as_array_mut().unwrap().drain(..2);
    text(&mut changed, 1, "another answer");
    put(&agent, &changed);
    let shown = context(&agent);
    resend(&agent).unwrap();
    assert_eq!(
        ids(&model.last()),
        shown[..5],
        "all that was put before the question, and the question"
    );
    assert_eq!(model.last()[1].text(), "another answer");
    let after = history(&agent);
    assert_eq!(
        (after.len(), &after[..7]),
        (8, &before[..7]),
        "the old answer is on another branch"
    );
    assert_eq!(block_on(agent.branches(&slot("s"))).unwrap().len(), 2);
    // The new path goes on, is compacted and forked.
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!(ids(&model.last())[..5], shown[..5]);
    let whole = context(&agent);
    let fork = block_on(agent.fork(&slot("s"), &slot("fork"), None)).unwrap().unwrap();
    assert_eq!(fork.messages, 10);
    assert_eq!(ids(&block_on(agent.state(&slot("fork"))).unwrap().context), whole);
    compact(&agent);
    undo(&agent);
    assert_eq!(context(&agent), whole);
}

#[test]
fn the_first_question_is_resent_after_a_message_that_was_put_before_it() {
    let (agent, model) = talked(1);
    let mut changed = state(&agent);
    let before =
        json!({ "id": "", "role": "user", "content": [{ "type": "text", "text": "by the way" }] });
    changed["context"].as_array_mut().unwrap().insert(0, before);
    put(&agent, &changed);
    resend(&agent).unwrap();
    let texts: Vec<_> = model.last().iter().map(|it| it.text()).collect();
    assert_eq!((texts.len(), texts[0].as_str(), &texts[1][..10]), (2, "by the way", "question 0"));
    ask(&agent, "s", "and now?").unwrap();
    assert_eq!((model.last().len(), model.last()[0].text().as_str()), (4, "by the way"));
}

#[test]
fn a_resend_after_a_put_keeps_the_summary_that_was_put() {
    let (agent, model) = talked(6);
    let mut own = state(&agent);
    own["summary"] = json!("the first three questions");
    own["context"].as_array_mut().unwrap().drain(..6);
    put(&agent, &own);
    resend(&agent).unwrap();
    assert_eq!(
        (model.last().len(), state(&agent)["summary"].as_str()),
        (6, Some("the first three questions"))
    );
    undo(&agent);
    assert_eq!((context(&agent).len(), history(&agent).len()), (12, 12));
}

#[test]
fn a_question_that_was_left_out_cannot_be_resent() {
    let (agent, _) = talked(2);
    let mut changed = state(&agent);
    changed["context"].as_array_mut().unwrap().truncate(2);
    put(&agent, &changed);
    assert_eq!(resend(&agent).unwrap_err().error.kind().code(), "NO_ANCHOR");
}

#[test]
fn an_evicted_result_stays_evicted_if_it_is_put_back_as_it_was_shown() {
    let model = Rc::new(Windowed::default());
    let set = |options: &mut lockgate::engine::Options| {
        options.workspace = Some(Default::default());
        options.eviction = Some(Default::default());
    };
    let agent = set_up(&memory(), &model, set).build().unwrap();
    ask(&agent, "s", "hello").unwrap();
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    ask(&agent, "s", "many letters").unwrap();
    let log = block_on(agent.history(&slot("s"), None, 100)).unwrap();
    let mut changed = state(&agent);
    changed["context"].as_array_mut().unwrap().drain(..2);
    assert!(changed.to_string().len() < 20_000, "the result is evicted");
    put(&agent, &changed);
    assert_eq!(state(&agent)["context"], changed["context"]);
    assert_eq!(history(&agent), ids(&log));
    // The whole result is put in its place.
    let mut whole = state(&agent);
    whole["context"][2] = json!(log[4]);
    put(&agent, &whole);
    assert_eq!(state(&agent)["context"][2], json!(log[4]));
    assert_eq!(history(&agent), ids(&log));
}

#[test]
fn numbers_that_javascript_writes_in_another_form_are_not_a_change() {
    let (agent, model) = talked(1);
    model.then_calls(
        "c1",
        "letters",
        &json!({ "n": 3, "size": 1.0, "big": 9_007_199_254_740_993_u64 }),
    );
    ask(&agent, "s", "letters").unwrap();
    let before = history(&agent);
    let mut read = state(&agent);
    read["context"][3]["content"][0]["input"] =
        json!({ "n": 3, "size": 1, "big": 9_007_199_254_740_992_u64 });
    put(&agent, &read);
    assert_eq!(history(&agent), before);
}
