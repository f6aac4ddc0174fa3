//! Requests that a model refuses as too large: the window is learned, and the call goes on, with or without a summary.

use std::cell::Cell;
use std::rc::Rc;

use crate::compaction::window::*;
use crate::support::*;
use lockgate::engine::{Agent, Durability};
use lockgate::error::{Error, ErrorKind};
use lockgate::event::Reason;
use lockgate::message::{Block, Message};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::policy::compaction::{Compaction, When};
use lockgate::policy::summary::SummarySizes;
use lockgate::store::search::Query;
use serde_json::json;

/// A model that says nothing about its window, except in refusals.
fn secretive(takes: u64) -> Rc<Windowed> {
    let (takes, names) = (Cell::new(Some(takes)), Cell::new(true));
    Rc::new(Windowed { takes, names, ..Windowed::default() })
}

fn window_of(agent: &Agent) -> Option<u64> {
    block_on(agent.inspect(&slot("s"))).unwrap().window
}

#[test]
fn the_window_that_a_refusal_names_is_used_from_then_on() {
    let model = secretive(2_000);
    let by_trigger = |it: &mut lockgate::engine::Options| it.compaction.when = When::ByTrigger;
    let agent = set_up(&memory(), &model, by_trigger).build().unwrap();
    assert_eq!(window_of(&agent), None);
    for _ in 0..5 {
        ask(&agent, "s", &"words ".repeat(300)).unwrap();
    }
    assert_eq!((window_of(&agent), model.refused.get()), (Some(2_000), 1));
    for _ in 0..20 {
        ask(&agent, "s", &"words ".repeat(300)).unwrap();
    }
    assert_eq!(model.refused.get(), 1, "later requests fit at once");
}

#[test]
fn a_learned_window_is_forgotten_when_the_model_accepts_more() {
    let model = secretive(1_000);
    let agent = set_up(&memory(), &model, |_| {}).build().unwrap();
    (0..3).for_each(|_| drop(ask(&agent, "s", &"words ".repeat(300)).unwrap()));
    assert_eq!(window_of(&agent), Some(1_000));
    model.takes.set(None);
    ask(&agent, "s", &"words ".repeat(1_000)).unwrap();
    assert_eq!(window_of(&agent), None);
}

#[test]
fn a_learned_window_never_widens_the_window_of_the_options() {
    let takes = Cell::new(Some(2_000));
    let names = Cell::new(true);
    let model = Rc::new(Windowed { window: Some(1_500), takes, names, ..Windowed::default() });
    let agent = set_up(&memory(), &model, |_| {}).build().unwrap();
    (0..6).for_each(|_| drop(ask(&agent, "s", &"words ".repeat(300)).unwrap()));
    assert!(model.refused.get() > 0);
    assert_eq!(window_of(&agent), Some(1_500));
}

fn context(agent: &Agent) -> Vec<Rc<Message>> {
    block_on(agent.state(&slot("s"))).unwrap().context
}

fn history(agent: &Agent) -> Vec<Rc<Message>> {
    unmarked(block_on(agent.history(&slot("s"), None, 1_000)).unwrap())
}

/// An agent that compacts only when a request is refused, after six turns that fill a window of 2,048 tokens.
fn full(model: &Rc<Windowed>) -> Agent {
    let agent = set_up(&memory(), model, |_| {}).build().unwrap();
    for n in 0..6 {
        ask(&agent, "s", &format!("question {n}: {}", "words ".repeat(200))).unwrap();
    }
    assert_eq!(model.refused.get(), 0);
    agent
}

/// Each piece of the conversation gets this summary.
fn says(model: &Windowed, summary: &str) {
    model.summaries.borrow_mut().extend((0..4).map(|_| Ok(summary.to_owned())));
}

fn fails(model: &Windowed, kind: ErrorKind) {
    model.summaries.borrow_mut().push_back(Err(Error::new(kind, "the script says so")));
}

fn question() -> String {
    format!("and now? {}", "words ".repeat(400))
}

#[test]
fn a_summary_is_asked_for_with_a_limit_and_one_that_was_cut_off_there_is_used() {
    let model = Windowed::of(2_048);
    let agent = full(&model);
    model.cuts.set(true);
    says(&model, "## SUMMARY\nSix questions were");
    assert_eq!(ask(&agent, "s", &question()).unwrap().text, "all right");
    let condensed = model.condensed.borrow();
    for asked in condensed.iter() {
        let limit = asked.max_tokens.unwrap();
        assert!(limit >= 64 && count(asked) + limit <= 2_048, "{} and {limit}", count(asked));
    }
    assert_eq!(
        block_on(agent.state(&slot("s"))).unwrap().summary,
        "## SUMMARY\nSix questions were"
    );
}

#[test]
fn without_a_summary_the_oldest_turns_are_left_out_with_a_note_and_nothing_is_lost() {
    let model = Windowed::of(2_048);
    let agent = full(&model);
    let said = history(&agent);
    fails(&model, ErrorKind::ModelFailed);
    let mut call = begin(&agent, "s", &question());
    let seen = names(&events(&mut call));
    let told: Vec<_> = seen.iter().filter(|it| it.starts_with("compaction")).collect();
    let expected = ["compaction-start", "compaction-failed", "compaction-start", "compaction-end"];
    assert_eq!(told, expected);
    assert!(seen.contains(&"overflow-recovered".to_owned()));
    assert_eq!(seen.last().unwrap(), "call-end");
    // The newest turns stay, each whole.
    let shown = context(&agent);
    assert_eq!(note_kind(&shown[0]), Some("left-out"));
    assert!(shown[0].text().contains("session_search"));
    assert!(shown[1].text().starts_with("question") && shown.len() >= 5, "{}", shown.len());
    assert_eq!(shown[1..shown.len() - 2], said[said.len() + 3 - shown.len()..]);
    assert_eq!(block_on(agent.state(&slot("s"))).unwrap().summary, "");
    // What is left out is in the log, is found, and can be shown again.
    assert_eq!(history(&agent)[..said.len()], said[..]);
    block_on(agent.index(&slot("s"))).unwrap();
    let query = Query { text: "question 0", user: Some("alice"), session: Some("s"), limit: 5 };
    let hits = block_on(agent.search(query)).unwrap();
    assert!(hits.iter().any(|hit| hit.message_id == said[0].id));
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
    assert_eq!(context(&agent), history(&agent));
}

#[test]
fn what_is_left_out_next_keeps_the_text_of_an_earlier_summary_and_is_undone_step_by_step() {
    let model = Windowed::of(2_048);
    let agent = full(&model);
    says(&model, "the gist");
    ask(&agent, "s", &question()).unwrap();
    model.summaries.borrow_mut().clear();
    for n in 0.. {
        fails(&model, ErrorKind::ModelFailed);
        ask(&agent, "s", &format!("more {n}: {}", "words ".repeat(200))).unwrap();
        if note_kind(&context(&agent)[0]).is_some() {
            break;
        }
    }
    let state = block_on(agent.state(&slot("s"))).unwrap();
    assert_eq!(state.summary, "the gist");
    let first = state.context[0].text();
    assert!(first.contains("the gist") && first.contains("are left out"), "{first}");
    let replaces = &state.context[0].metadata.as_ref().unwrap()["replaces"];
    let log = history(&agent);
    assert_eq!(replaces["messages"], log.len() - (state.context.len() - 1));
    assert_eq!(replaces["first"], log[0].id.as_str());
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
    assert_eq!(context(&agent)[0].name.as_deref(), Some("summary"));
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
    assert_eq!(context(&agent), log);
}

#[test]
fn a_summary_that_fails_for_a_moment_is_asked_for_again() {
    let model = Windowed::of(2_048);
    let host = TestHost::new();
    let agent = set_up(&memory(), &model, |_| {})
        .host(Rc::new(HostHandle(Rc::clone(&host))))
        .build()
        .unwrap();
    (0..6).for_each(|_| drop(ask(&agent, "s", &"words ".repeat(200)).unwrap()));
    fails(&model, ErrorKind::ModelOverloaded);
    says(&model, "the gist");
    let mut call = begin(&agent, "s", &question());
    let mut ending = Box::pin(call.finish());
    assert!(poll_once(&mut ending).is_pending());
    host.pass(2_000.0);
    block_on(ending).unwrap();
    assert_eq!(block_on(agent.state(&slot("s"))).unwrap().summary, "the gist");
}

#[test]
fn a_question_that_is_too_large_alone_fails_with_the_sizes_and_leaves_the_conversation_as_it_was() {
    let model = Windowed::of(2_048);
    let agent = full(&model);
    let before = context(&agent);
    let failed = ask(&agent, "s", &"words ".repeat(2_000)).unwrap_err().error;
    assert_eq!(failed.kind(), ErrorKind::ModelContextOverflow);
    assert!(failed.message().contains("the model takes 2048"), "{}", failed.message());
    assert!(failed.message().contains("for the system prompt and the tools"));
    assert_eq!(context(&agent)[..before.len()], before[..]);
}

#[test]
fn a_large_result_of_the_newest_turn_is_shortened_even_if_its_tool_is_usually_spared() {
    let model = Windowed::of(2_048);
    let agent = full(&model);
    model.then_calls("1", "read_file", &json!({ "n": 9_000, "why": "w".repeat(5_000) }));
    fails(&model, ErrorKind::ModelFailed);
    fails(&model, ErrorKind::ModelFailed);
    assert_eq!(ask(&agent, "s", "read it").unwrap().text, "all right");
    let last = model.last();
    let result = last.iter().find_map(|it| it.tool_results().next()).unwrap();
    assert!(Block::text_of(&result.output).contains("has 9000 characters"));
    let log = history(&agent);
    let whole = log.iter().find_map(|it| it.tool_results().next()).unwrap();
    assert_eq!(Block::text_of(&whole.output).chars().count(), 9_000);
}

#[test]
fn results_that_are_stored_in_a_short_form_are_shortened_more_when_the_turn_grows() {
    for durability in [Durability::Exit, Durability::Step] {
        let model = Windowed::of(8_000);
        let set = |it: &mut lockgate::engine::Options| {
            (it.durability, it.max_iterations) = (durability, 20);
        };
        let agent = set_up(&memory(), &model, set).build().unwrap();
        for n in 0..15 {
            model.then_calls(&n.to_string(), "read_file", &json!({ "n": 9_000 }));
        }
        assert_eq!(ask(&agent, "s", "read them all").unwrap().text, "all right");
        assert!(model.refused.get() > 1);
        let log = history(&agent);
        let results = log.iter().flat_map(|it| it.tool_results());
        let whole = results.filter(|it| Block::text_of(&it.output).chars().count() == 9_000);
        assert_eq!(whole.count(), 15);
    }
}

#[test]
fn an_answer_that_fills_the_window_is_an_answer_that_was_cut_off() {
    let broken = Line::Breaks(words("so far"), ErrorKind::ModelContextOverflow);
    let agent = agent(ScriptedModel::new([broken]));
    let reply = ask(&agent, "s", "tell me everything").unwrap();
    assert_eq!((&*reply.text, reply.reason), ("so far", Reason::Length));
}

#[test]
fn no_request_leaves_anything_out_if_compaction_is_off() {
    let model = Windowed::of(2_048);
    let never = |it: &mut lockgate::engine::Options| it.compaction.when = When::Never;
    let agent = set_up(&memory(), &model, never).build().unwrap();
    (0..6).for_each(|_| drop(ask(&agent, "s", &"words ".repeat(200)).unwrap()));
    let failed = ask(&agent, "s", &question()).unwrap_err().error;
    assert_eq!(failed.kind(), ErrorKind::ModelContextOverflow);
    assert_eq!((model.refused.get(), model.condensed.borrow().len()), (1, 0));
}

#[test]
fn the_sizes_of_a_summary_scale_with_the_window() {
    for window in [1_024, 1_500, 2_048, 4_095, 4_096, 8_192, 32_768, 65_535, 65_536, 1_000_000] {
        for scale in [0.7, 1.0, 2.0] {
            let sizes = SummarySizes::within(window, scale, None, None);
            let answer = sizes.answer.unwrap_or(8_192);
            let request = sizes.template.len() as f64 * 0.3 * scale + 60.0 * scale;
            let whole = request + sizes.piece as f64 * scale + 2.0 * answer as f64;
            assert!(whole <= window as f64, "{whole} in {window} at {scale}: {sizes:?}");
            assert_eq!(sizes.answer.is_some(), window < 65_536);
        }
        assert!(SummarySizes::within(window, 1.0, None, None).piece * 4 >= window.min(80_000));
    }
    assert_eq!(SummarySizes::within(8_192, 1.0, Some(300), None).answer, Some(300));
}

#[test]
fn the_trigger_never_lies_below_half_of_the_window() {
    let limit = |window| Compaction::default().limit(Some(window));
    assert_eq!(limit(1_024), Some(512));
    assert_eq!(limit(21_000), Some(10_500));
    assert_eq!(limit(100_000), Some(80_000));
}
