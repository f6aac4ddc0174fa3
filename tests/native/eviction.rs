//! Results of tools that are too large to be shown whole.

use std::rc::Rc;

use crate::support::*;
use crate::window::*;
use lockgate::engine::Agent;
use lockgate::event::Event;
use lockgate::message::{Block, Message};
use lockgate::policy::eviction::Eviction;
use serde_json::json;

fn evicting(model: &Rc<Windowed>) -> Agent {
    let on = |options: &mut lockgate::engine::Options| options.eviction = Some(Eviction::default());
    set_up(&memory(), model, on).build().unwrap()
}

fn result(messages: &[Rc<Message>]) -> String {
    let result = messages.iter().rev().find_map(|it| it.tool_results().next()).unwrap();
    Block::text_of(&result.output)
}

fn history(agent: &Agent) -> Vec<Rc<Message>> {
    block_on(agent.history(&slot("s"), None, 1_000)).unwrap()
}

// R56
#[test]
fn r56_a_result_is_evicted_from_one_over_the_limit_on_before_it_is_first_sent() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    model.then_calls("c1", "letters", &json!({ "n": 80_000 }));
    ask(&agent, "s", "at the limit").unwrap();
    assert_eq!(result(&model.last()).chars().count(), 80_000);
    model.then_calls("c2", "letters", &json!({ "n": 80_001 }));
    let mut call = begin(&agent, "s", "one more");
    let evicted = events(&mut call).into_iter().find_map(|event| match event {
        Event::Evicted { tool_call_id, path, chars } => Some((tool_call_id, path, chars)),
        _ => None,
    });
    let (id, path, chars) = evicted.unwrap();
    assert_eq!((id.as_str(), chars), ("c2", 80_001));
    let shown = result(&model.last());
    assert!(shown.contains(&path) && shown.contains("read_file"));
    assert_eq!(shown.matches('é').count(), 4_000, "both ends");
    assert_eq!(result(&history(&agent)).chars().count(), 80_001, "the log has all of it");
    // A fresh look shows the same, and so does the next request.
    let stored = block_on(agent.state(&slot("s"))).unwrap().context;
    assert_eq!(result(&stored), shown);
    ask(&agent, "s", "again").unwrap();
    assert_eq!(result(&model.last()), shown, "idempotent");
    let report = block_on(agent.inspect(&slot("s"))).unwrap();
    assert_eq!(
        report.parts.iter().filter_map(|part| part.evicted_to.clone()).collect::<Vec<_>>(),
        [path]
    );
}

#[test]
fn r56_the_whole_result_is_read_by_its_path_in_the_same_call_and_later() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    let path_in = |messages: &[Rc<Message>]| {
        let shown = result(messages);
        let start = shown.find("tool-results/").unwrap();
        shown[start..].split(".txt").next().unwrap().to_owned() + ".txt"
    };
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    ask(&agent, "s", "many").unwrap();
    let path = path_in(&model.last());
    model.then_calls("c2", "read_file", &json!({ "path": path }));
    ask(&agent, "s", "read it").unwrap();
    assert_eq!(result(&model.last()), "90000 letters");
    model.then_calls("c3", "read_file", &json!({ "path": "tool-results/nothing.txt" }));
    ask(&agent, "s", "read nothing").unwrap();
    assert_eq!(result(&model.last()), "0 letters");
}

#[test]
fn r56_results_of_tools_that_read_are_never_evicted() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    model.then_calls("c1", "read_file", &json!({ "n": 100_000 }));
    ask(&agent, "s", "read").unwrap();
    assert_eq!(result(&model.last()).chars().count(), 100_000);
}

#[test]
fn a_result_takes_at_most_a_quarter_of_a_small_window() {
    let model = Windowed::of(16_000);
    let agent = evicting(&model);
    model.then_calls("c1", "letters", &json!({ "n": 12_001 }));
    ask(&agent, "s", "many").unwrap();
    assert!(result(&model.last()).contains("tool-results/"));
    model.then_calls("c2", "letters", &json!({ "n": 12_000 }));
    ask(&agent, "s", "fewer").unwrap();
    assert_eq!(result(&model.last()).chars().count(), 12_000);
}

#[test]
fn edits_of_messages_go_with_a_summary_and_come_back_with_them() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    ask(&agent, "s", "many").unwrap();
    ask(&agent, "s", "thanks").unwrap();
    let before = block_on(agent.state(&slot("s"))).unwrap().context;
    block_on(agent.compact(&slot("s"))).unwrap();
    let report = block_on(agent.inspect(&slot("s"))).unwrap();
    assert!(report.parts.iter().all(|part| part.evicted_to.is_none()));
    block_on(agent.undo_compaction(&slot("s"))).unwrap();
    assert_eq!(block_on(agent.state(&slot("s"))).unwrap().context, before);
}

#[test]
fn a_state_that_is_put_back_is_shown_as_it_was_and_an_imported_log_is_whole() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    ask(&agent, "s", "many").unwrap();
    let document =
        block_on(agent.export_session(&slot("s"), lockgate::engine::Format::Lockgate)).unwrap();
    block_on(agent.import_session(&slot("t"), &document).unwrap()).unwrap();
    let imported = block_on(agent.history(&slot("t"), None, 1_000)).unwrap();
    assert_eq!(result(&imported).chars().count(), 90_000);
    let mut state = lockgate::json::to_value(&block_on(agent.state(&slot("s"))).unwrap());
    state["context"].as_array_mut().unwrap().pop();
    block_on(agent.put_state(&slot("s"), &state).unwrap()).unwrap();
    let put = lockgate::json::to_value(&block_on(agent.state(&slot("s"))).unwrap());
    assert_eq!(put["context"], state["context"], "it is not cut a second time");
}
