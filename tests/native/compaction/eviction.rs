//! Tool results that are too large to be shown whole.

use std::rc::Rc;

use crate::compaction::window::*;
use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Options, RuntimeContext};
use lockgate::event::Event;
use lockgate::message::{Block, Message};
use lockgate::policy::eviction::Eviction;
use lockgate::port::{Page, Store};
use lockgate::slot::Slot;
use lockgate::store::workspace::files::Workspace;
use serde_json::{Value, json};

fn evicting(model: &Rc<Windowed>) -> Agent {
    evicting_in(&memory(), model)
}

/// An agent with a workspace that evicts large results.
fn evicting_in(store: &Rc<dyn Store>, model: &Rc<Windowed>) -> Agent {
    let on = |options: &mut Options| {
        options.eviction = Some(Eviction::default());
        options.workspace = Some(Workspace::default());
    };
    set_up(store, model, on).build().unwrap()
}

/// Lets a session call "letters" for a result that is evicted. Returns the path that the model is shown.
fn evicted(agent: &Agent, model: &Windowed, session: &str) -> String {
    model.then_calls(&format!("{session}-c"), "letters", &json!({ "n": 90_000 }));
    ask(agent, session, "many").unwrap();
    path_in(&model.last())
}

fn path_in(messages: &[Rc<Message>]) -> String {
    let shown = result(messages);
    let start = shown.find("tool-results/").unwrap();
    shown[start..].split(".txt").next().unwrap().to_owned() + ".txt"
}

/// The result of a tool that the model calls.
fn tool_says(agent: &Agent, model: &Windowed, session: &str, call: (&str, &Value)) -> String {
    model.then_calls("again", call.0, call.1);
    ask(agent, session, "use the tool").unwrap();
    result(&model.last())
}

fn files(agent: &Agent) -> Vec<String> {
    block_on(agent.files(Some("alice")).unwrap().list("")).unwrap()
}

fn result(messages: &[Rc<Message>]) -> String {
    let result = messages.iter().rev().find_map(|it| it.tool_results().next()).unwrap();
    Block::text_of(&result.output)
}

fn history(agent: &Agent) -> Vec<Rc<Message>> {
    unmarked(block_on(agent.history(&slot("s"), None, 1_000)).unwrap())
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
    // Reading the state again shows the same, and so does the next request.
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
    let path = evicted(&agent, &model, "s");
    let part = json!({ "path": path, "column": 89_997 });
    assert_eq!(tool_says(&agent, &model, "s", ("read_file", &part)).matches('é').count(), 3);
    let nothing = json!({ "path": "tool-results/s/nothing.txt" });
    assert!(tool_says(&agent, &model, "s", ("read_file", &nothing)).contains("There is no file"));
}

#[test]
fn an_evicted_result_is_a_file_for_all_tools_the_application_and_other_sessions_of_the_user() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    model.then_calls("c2", "list_files", &json!({ "path": "tool-results/s" }));
    ask(&agent, "s", "many, and list them in the same call").unwrap();
    let path = path_in(&model.last()[..3]);
    assert_eq!(format!("tool-results/s/{}", result(&model.last())), path);
    assert_eq!(files(&agent), [&*path]);
    let file = block_on(agent.files(Some("alice")).unwrap().read(&path)).unwrap().unwrap();
    assert_eq!(file.text.chars().count(), 90_000);
    let glob = json!({ "pattern": "**/*.txt" });
    assert_eq!(tool_says(&agent, &model, "other", ("glob_files", &glob)), path);
    let grep = json!({ "pattern": "éé", "path": "tool-results" });
    let found = tool_says(&agent, &model, "other", ("grep_files", &grep));
    assert!(found.starts_with(&format!("{path}:1:é")));
    let read = json!({ "path": path, "column": 89_998 });
    assert_eq!(tool_says(&agent, &model, "other", ("read_file", &read)).matches('é').count(), 2);
    assert_eq!(block_on(agent.files(Some("bob")).unwrap().list("")).unwrap(), Vec::<String>::new());
}

#[test]
fn evicted_files_are_deleted_with_their_session_and_with_their_user() {
    let store = memory();
    let model = Rc::new(Windowed::default());
    let agent = evicting_in(&store, &model);
    // One name begins with the other, and the third needs an encoding.
    let paths: Vec<String> =
        ["s", "s1", "Zoë/7"].iter().map(|it| evicted(&agent, &model, it)).collect();
    assert_eq!(files(&agent).len(), 3);
    block_on(agent.delete_session(&slot("s"))).unwrap();
    assert!(!files(&agent).contains(&paths[0]) && files(&agent).contains(&paths[1]));
    block_on(agent.delete_session(&slot("Zoë/7"))).unwrap();
    assert_eq!(files(&agent), [&*paths[1]]);
    block_on(agent.delete_user(Some("alice"))).unwrap();
    assert_eq!(files(&agent), Vec::<String>::new());
}

#[test]
fn without_a_user_an_evicted_file_belongs_to_the_session_alone() {
    let store = memory();
    let model = Rc::new(Windowed::default());
    let agent = evicting_in(&store, &model);
    let say = |session: &str| {
        let slot = Slot::new(None, session).unwrap();
        let request = CallRequest::new(slot, "many");
        block_on(agent.begin(request).unwrap().finish()).unwrap();
        result(&model.last())
    };
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    let shown = say("s");
    let start = shown.find("tool-results/").unwrap();
    let path = shown[start..].split(';').next().unwrap().to_owned();
    model.then_calls("c2", "list_files", &json!({ "path": "tool-results/s" }));
    assert!(path.ends_with(&say("s")));
    model.then_calls("c3", "read_file", &json!({ "path": path }));
    assert!(say("t").contains("There is no file"));
    block_on(agent.delete_session(&Slot::new(None, "s").unwrap())).unwrap();
    let records = block_on(store.list("", Page::default())).unwrap();
    assert!(records.iter().all(|(key, _)| !key.contains("tool-2dresults")));
}

#[test]
fn a_result_that_is_evicted_after_a_deletion_leaves_no_file() {
    let store = memory();
    let model = Rc::new(Windowed::default());
    let agent = evicting_in(&store, &model);
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    let mut call = begin(&agent, "s", "many");
    // Runs the call until the tool has ended.
    while !matches!(block_on(call.next()).unwrap().event, Event::ToolEnd { .. }) {}
    let elsewhere = evicting_in(&store, &Rc::new(Windowed::default()));
    block_on(elsewhere.delete_session(&slot("s"))).unwrap();
    block_on(call.finish()).unwrap_err();
    assert_eq!(files(&agent), Vec::<String>::new());
}

#[test]
fn a_fork_gets_its_own_file_when_it_goes_on_and_keeps_it_without_its_source() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    let path = evicted(&agent, &model, "s");
    block_on(agent.fork(&slot("s"), &slot("f"), None)).unwrap();
    block_on(agent.delete_session(&slot("s"))).unwrap();
    let read = json!({ "path": path, "column": 89_999 });
    assert_eq!(tool_says(&agent, &model, "f", ("read_file", &read)).matches('é').count(), 1);
    let own = path.replace("/s/", "/f/");
    assert_eq!(files(&agent), [&*own]);
    assert!(lockgate::json::to_text(&model.last()).contains(&own));
    assert!(!lockgate::json::to_text(&model.last()[..4].to_vec()).contains(&path));
    let report = block_on(agent.inspect(&slot("f"))).unwrap();
    assert_eq!(report.parts.iter().find_map(|it| it.evicted_to.clone()), Some(own));
}

#[test]
fn a_resend_and_the_answer_that_it_replaces_both_keep_their_files() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    let old = evicted(&agent, &model, "s");
    model.then_calls("c9", "letters", &json!({ "n": 80_009 }));
    block_on(agent.resend(None, RuntimeContext::new("alice", "s")).unwrap().finish()).unwrap();
    let new = path_in(&model.last());
    assert_ne!(old, new);
    let mut both = [old, new];
    both.sort();
    assert_eq!(files(&agent), both);
}

#[test]
fn tools_cannot_write_files_of_evicted_results() {
    let model = Rc::new(Windowed::default());
    let agent = evicting(&model);
    let path = evicted(&agent, &model, "s");
    let input = json!({ "path": path, "content": "other", "overwrite": true });
    let says = tool_says(&agent, &model, "other", ("write_file", &input));
    assert!(says.contains("read-only"), "{says}");
}

#[test]
fn without_a_workspace_no_path_is_announced() {
    let model = Rc::new(Windowed::default());
    let on = |options: &mut Options| options.eviction = Some(Eviction::default());
    // The application's own tool "read_file" cannot read evicted results.
    let agent = set_up(&memory(), &model, on).build().unwrap();
    model.then_calls("c1", "letters", &json!({ "n": 90_000 }));
    let mut call = begin(&agent, "s", "many");
    let announced = events(&mut call).into_iter().find_map(|event| match event {
        Event::Evicted { path, .. } => Some(path),
        _ => None,
    });
    assert_eq!(announced.as_deref(), Some(""));
    let shown = result(&model.last());
    assert!(shown.contains("too many") && !shown.contains("tool-results"));
    let report = block_on(agent.inspect(&slot("s"))).unwrap();
    assert!(report.parts.iter().all(|part| part.evicted_to.is_none()));
}

#[test]
fn r56_results_of_tools_that_read_are_never_evicted() {
    let model = Rc::new(Windowed::default());
    let on = |options: &mut Options| options.eviction = Some(Eviction::default());
    let agent = set_up(&memory(), &model, on).build().unwrap();
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
fn edits_of_messages_disappear_with_a_summary_and_return_with_undo() {
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
fn a_restored_state_is_shown_unchanged_and_an_imported_log_is_whole() {
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
