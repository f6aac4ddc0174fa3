//! Two writers, stores that fail, and the format that is kept.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Format};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{
    Batch, Capabilities, Committed, Page, Record, Store, Tool, ToolRun, ToolSpec,
};
use lockgate::store::backend::memory_store::MemoryStore;
use serde_json::{Value, json};

/// How a commit of the faulty store ends.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Fine,
    Fails,
    AppliesAndFails,
}

/// A store that follows a plan of faults for its commits, and counts the bytes of each.
#[derive(Default)]
struct Faulty {
    inner: MemoryStore,
    plan: RefCell<VecDeque<Fault>>,
    bytes: RefCell<Vec<usize>>,
}

impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            self.bytes.borrow_mut().push(batch.put.iter().map(|(_, value)| value.len()).sum());
            let fault = self.plan.borrow_mut().pop_front().unwrap_or(Fault::Fine);
            if fault == Fault::Fails {
                return Err(Error::new(ErrorKind::StoreUnavailable, "the plan says so"));
            }
            let committed = self.inner.commit(batch).await?;
            if fault == Fault::AppliesAndFails {
                return Err(Error::new(ErrorKind::StoreUnavailable, "the plan says so"));
            }
            Ok(committed)
        })
    }
}

fn answers(n: usize) -> Rc<ScriptedModel> {
    ScriptedModel::new((0..n).map(|n| Line::says(&format!("answer {n}"))))
}

#[test]
fn a_commit_whose_outcome_is_unknown_is_neither_lost_nor_doubled() {
    for plan in [
        [Fault::AppliesAndFails, Fault::Fine],
        [Fault::Fine, Fault::AppliesAndFails],
        [Fault::Fails, Fault::Fine],
    ] {
        let store = Rc::new(Faulty::default());
        *store.plan.borrow_mut() = plan.into();
        let agent = agent_on(&(Rc::clone(&store) as _), answers(2));
        ask(&agent, "s1", "hello").unwrap();
        assert_eq!(told(&agent, "s1"), ["user: hello", "assistant: answer 0"]);
    }
}

#[test]
fn s_11_r9_a_save_that_fails_fails_the_call_and_hands_back_the_answer() {
    let store = Rc::new(Faulty::default());
    *store.plan.borrow_mut() = [Fault::Fine, Fault::Fails, Fault::Fails].into();
    let agent = agent_on(&(Rc::clone(&store) as _), answers(2));
    let failed = ask(&agent, "s1", "hello").unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::StoreUnavailable);
    assert_eq!(failed.partial.unwrap().text(), "answer 0");
    ask(&agent, "s1", "again").unwrap();
    assert_eq!(told(&agent, "s1")[0], "user: hello");
}

/// The reference drops a turn that cannot be saved. Here the turn stays in memory, and the caller's next try saves it.
#[test]
fn s_11_a_turn_that_could_not_be_saved_is_saved_by_the_next_try_and_runs_no_tool_twice() {
    // The save fails once, fails on every retry too, or is applied although it reports a failure.
    let plans: [&[Fault]; 3] = [
        &[Fault::Fine, Fault::Fails, Fault::Fails],
        &[Fault::Fine, Fault::Fails, Fault::Fails, Fault::Fails, Fault::Fails],
        &[Fault::Fine, Fault::Fails, Fault::AppliesAndFails],
    ];
    for plan in plans {
        let store = Rc::new(Faulty::default());
        *store.plan.borrow_mut() = plan.iter().copied().collect();
        let n_runs = Rc::new(Cell::new(0));
        let lines = [Line::calls("count", &json!({})), Line::says("counted"), Line::says("and?")];
        let model = ScriptedModel::new(lines);
        let agent = builder_on(&(Rc::clone(&store) as _), Rc::clone(&model) as _)
            .tool(Rc::new(Counts::new(&n_runs)))
            .build()
            .unwrap();
        let named = || CallRequest { call_id: Some("mine".into()), ..request("s1", "count") };
        let failed = block_on(agent.begin(named()).unwrap().finish()).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::StoreUnavailable);
        assert_eq!(failed.partial.unwrap().text(), "counted");
        let mut tries = (0..2).map(|_| block_on(agent.begin(named()).unwrap().finish()));
        let reply = tries.find_map(|ended| ended.ok()).unwrap();
        assert_eq!((reply.text.as_str(), reply.messages.len()), ("counted", 4));
        ask(&agent, "s1", "go on").unwrap();
        assert_eq!((n_runs.get(), model.requests().len()), (1, 3));
        let told = told(&agent, "s1");
        assert_eq!(
            (told.len(), told[0].as_str(), told[3].as_str()),
            (6, "user: count", "assistant: counted")
        );
        assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().branches, 0);
    }
}

/// A tool that counts how often it ran.
struct Counts(Rc<ToolSpec>, Rc<Cell<u32>>);

impl Counts {
    fn new(n_runs: &Rc<Cell<u32>>) -> Counts {
        let spec = ToolSpec::new("count", "counts", json!({ "type": "object" }));
        Counts(Rc::new(spec), Rc::clone(n_runs))
    }
}

impl Tool for Counts {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        self.1.set(self.1.get() + 1);
        Box::pin(std::future::ready(Ok(vec![Block::text("one more")])))
    }
}

#[test]
fn r9_the_first_error_wins_and_carries_the_second() {
    let store = Rc::new(Faulty::default());
    *store.plan.borrow_mut() = [Fault::Fine, Fault::Fails, Fault::Fails].into();
    let agent = agent_on(
        &(Rc::clone(&store) as _),
        ScriptedModel::new([Line::fails(ErrorKind::ModelAuth)]),
    );
    let failed = ask(&agent, "s1", "hello").unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::ModelAuth);
    assert_eq!(failed.error.second().unwrap().kind(), ErrorKind::StoreUnavailable);
}

#[test]
fn r17_two_writers_without_a_lock_both_keep_their_turns() {
    let store = memory();
    let slow = agent_on(&store, ScriptedModel::new([Line::says("slow answer")]));
    let fast = agent_on(&store, answers(1));
    ask(&agent_on(&store, answers(1)), "s1", "first").unwrap();
    let mut call = begin(&slow, "s1", "slow question");
    while !matches!(block_on(call.next()).map(|it| json!(it)["type"].clone()), Some(Value::String(it)) if it == "accepted")
    {
    }
    // The other writer sees an input that is not in the log, and takes it for one that was cut off.
    ask(&fast, "s1", "fast question").unwrap();
    let error = block_on(call.finish()).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::Superseded);
    let told = told(&fast, "s1");
    assert!(
        told.contains(&"user: slow question".to_owned())
            && told.contains(&"user: fast question".to_owned())
    );
    let kept = block_on(store.list("", Page::default())).unwrap();
    assert!(
        kept.iter()
            .any(|(_, record)| String::from_utf8_lossy(&record.value).contains("slow answer"))
    );
}

#[test]
fn r7_the_next_call_sees_a_change_by_another_agent() {
    let store = memory();
    let model = answers(2);
    let (one, other) = (agent_on(&store, Rc::clone(&model) as _), agent_on(&store, answers(1)));
    ask(&one, "s1", "a").unwrap();
    ask(&other, "s1", "b").unwrap();
    ask(&one, "s1", "c").unwrap();
    assert_eq!(model.requests()[1].len(), 5);
}

#[test]
fn r10_an_unreadable_head_is_an_error_and_stays_unchanged() {
    let store = memory();
    let agent = agent_on(&store, answers(2));
    ask(&agent, "s1", "hello").unwrap();
    let key = head_key(&store);
    for bytes in [&b"{\"format\":1"[..], b"{\"format\":1,\"epoch\":5}", b"[]"] {
        overwrite(&store, &key, bytes);
        assert_eq!(ask(&agent, "s1", "again").unwrap_err().error.kind(), ErrorKind::StoreCorrupt);
        assert_eq!(
            block_on(store.get(std::slice::from_ref(&key))).unwrap()[0].as_ref().unwrap().value,
            bytes
        );
    }
    overwrite(&store, &key, br#"{"format":99,"anything":true}"#);
    assert_eq!(ask(&agent, "s1", "again").unwrap_err().error.kind(), ErrorKind::StateVersion);
}

#[test]
fn r10_a_missing_entry_is_an_error_and_not_a_shorter_conversation() {
    let store = memory();
    let agent = agent_on(&store, answers(3));
    ask(&agent, "s1", "one").unwrap();
    ask(&agent, "s1", "two").unwrap();
    let records = block_on(store.list("", Page::default())).unwrap();
    let entry =
        records.iter().map(|(key, _)| key).find(|key| key.contains("/log/")).unwrap().clone();
    block_on(store.commit(&Batch {
        revision: "x".into(),
        remove: vec![entry],
        ..Batch::default()
    }))
    .unwrap();
    let other = agent_on(&store, answers(1));
    assert_eq!(ask(&other, "s1", "three").unwrap_err().error.kind(), ErrorKind::StoreCorrupt);
}

#[test]
fn the_bytes_of_a_call_do_not_grow_with_the_history() {
    let store = Rc::new(Faulty::default());
    let agent = agent_on(&(Rc::clone(&store) as _), answers(600));
    for _ in 0..500 {
        ask(&agent, "s1", "a question of a usual length, as people ask").unwrap();
    }
    let bytes = store.bytes.borrow();
    let of_call = |n: usize| bytes[2 * n] + bytes[2 * n + 1];
    assert!(of_call(499) * 10 <= of_call(9) * 11, "{} then {}", of_call(9), of_call(499));
}

#[test]
fn history_pages_back_through_a_long_log() {
    let agent = agent(answers(60));
    for n in 0..60 {
        ask(&agent, "s1", &format!("question {n}")).unwrap();
    }
    let page = |before: Option<&str>| block_on(agent.history(&slot("s1"), before, 7)).unwrap();
    let (mut all, mut newest) = (Vec::new(), page(None));
    while let Some(first) = newest.first().map(|message| message.id.clone()) {
        all.splice(0..0, newest);
        newest = page(Some(&first));
    }
    assert_eq!(all.len(), 120);
    assert_eq!((all[0].text(), all[119].text()), ("question 0".into(), "answer 59".into()));
}

#[test]
fn sessions_are_listed_newest_first_with_a_cursor() {
    let host = TestHost::new();
    let builder = builder_on(&memory(), answers(5)).host(Rc::new(HostHandle(Rc::clone(&host))));
    let agent = builder.build().unwrap();
    for n in 0..5 {
        host.pass(10.0);
        ask(&agent, &format!("s{n}"), &format!("question {n}")).unwrap();
    }
    let page = |after: Option<String>| {
        let page = Page { after, limit: Some(2), keys_only: false };
        block_on(agent.list_sessions(Some("alice"), page)).unwrap()
    };
    let first = page(None);
    let then = page(Some(first[1].cursor.clone()));
    let ids: Vec<_> = first.iter().chain(&then).map(|info| info.session_id.as_str()).collect();
    assert_eq!(ids, ["s4", "s3", "s2", "s1"]);
    assert_eq!((first[0].title.as_str(), first[0].messages), ("question 4", 2));
    assert!(block_on(agent.list_sessions(None, Page::default())).unwrap().is_empty());
}

/// The fixture of the first format, and one whose records have seals: both must stay readable for ever.
const FIXTURES: [&str; 2] = ["format-1.json", "format-1-sealed.json"];

fn fixture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read_to_string(fixtures.join(name)).unwrap()
}

#[test]
fn a_session_in_the_first_format_is_read_and_continued() {
    FIXTURES.iter().for_each(|name| is_read_and_continued(name));
}

fn is_read_and_continued(name: &str) {
    let store = memory();
    let records: Vec<Value> = serde_json::from_str(&fixture(name)).unwrap();
    for record in &records {
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        let put = vec![(text("key"), record["value"].to_string().into_bytes())];
        block_on(store.commit(&Batch { revision: text("revision"), put, ..Batch::default() }))
            .unwrap();
    }
    let agent = agent_on(&store, answers(1));
    assert_eq!(
        told(&agent, "s1"),
        [
            "user: hello",
            "assistant: answer 0",
            "user: and now?",
            "assistant: answer 1",
            "user: and then?"
        ],
        "the waiting input of the fixture is shown"
    );
    assert_eq!(block_on(agent.state(&slot("s1"))).unwrap().version, 5);
    ask(&agent, "s1", "go on").unwrap();
    assert_eq!(
        told(&agent, "s1").len(),
        6 + 2,
        "the waiting input of the fixture is recovered too"
    );
}

#[test]
fn a_new_session_has_the_shape_of_the_first_format() {
    let store = memory();
    let lines = [Line::says("answer 0"), Line::says("answer 1"), Line::Hangs(Vec::new())];
    write_fixture_session(&agent_on(&store, ScriptedModel::new(lines)));
    let shape =
        |records: &[Value]| records.iter().map(|it| keys_of(&it["value"])).collect::<Vec<_>>();
    let mut now: Vec<Value> = dump(&store);
    if std::env::var_os("LOCKGATE_WRITE_FIXTURE").is_some() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let text = format!("{:#}\n", Value::Array(now.clone()));
        fs::write(fixtures.join(FIXTURES[1]), text).unwrap();
    }
    let sealed: Vec<Value> = serde_json::from_str(&fixture(FIXTURES[1])).unwrap();
    assert_eq!(shape(&now), shape(&sealed));
    // Later members, which a reader may ignore: the call that was open when the line was written, the seals of records, and
    // what the head says about other records.
    for value in now.iter_mut().filter_map(|it| it["value"].as_object_mut()) {
        ["open", "key", "check", "log", "inputs"].iter().for_each(|it| drop(value.remove(*it)));
    }
    let then: Vec<Value> = serde_json::from_str(&fixture(FIXTURES[0])).unwrap();
    assert_eq!(shape(&now), shape(&then));
}

/// Two turns, and a call that was cut off.
fn write_fixture_session(agent: &Agent) {
    ask(agent, "s1", "hello").unwrap();
    let named =
        lockgate::engine::CallRequest { call_id: Some("mine".into()), ..request("s1", "and now?") };
    block_on(agent.begin(named).unwrap().finish()).unwrap();
    let mut cut_off = begin(agent, "s1", "and then?");
    while !matches!(block_on(cut_off.next()).map(|it| json!(it)["type"].clone()), Some(Value::String(it)) if it == "accepted")
    {
    }
}

fn dump(store: &Rc<dyn Store>) -> Vec<Value> {
    let records = block_on(store.list("", Page::default())).unwrap();
    let dumped = records.into_iter().map(|(key, record)| {
        let value: Value = serde_json::from_slice(&record.value).unwrap();
        json!({ "key": key, "revision": record.revision, "value": value })
    });
    dumped.collect()
}

/// The names of all members, however deep, without their values.
fn keys_of(value: &Value) -> Vec<String> {
    let inside = |name: &str, value: &Value| {
        keys_of(value).into_iter().map(move |key| format!("{name}.{key}")).collect::<Vec<_>>()
    };
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| [vec![name.clone()], inside(name, value)].concat())
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| inside("[]", item)).collect(),
        _ => Vec::new(),
    }
}

fn head_key(store: &Rc<dyn Store>) -> String {
    let records = block_on(store.list("", Page::default())).unwrap();
    records.into_iter().map(|(key, _)| key).find(|key| key.ends_with("/head")).unwrap()
}

fn overwrite(store: &Rc<dyn Store>, key: &str, bytes: &[u8]) {
    let put = vec![(key.to_owned(), bytes.to_vec())];
    block_on(store.commit(&Batch { revision: "other".into(), put, ..Batch::default() })).unwrap();
}

#[test]
fn s_10_a_store_that_hangs_gives_a_timeout() {
    let host = TestHost::new();
    struct Hangs(Capabilities);
    impl Store for Hangs {
        fn capabilities(&self) -> Capabilities {
            self.0
        }
        fn get<'a>(&'a self, _: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
            Box::pin(std::future::pending())
        }
        fn list<'a>(&'a self, _: &'a str, _: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
            Box::pin(std::future::pending())
        }
        fn commit<'a>(&'a self, _: &'a Batch) -> Local<'a, Result<Committed>> {
            Box::pin(std::future::pending())
        }
    }
    let store: Rc<dyn Store> = Rc::new(Hangs(memory().capabilities()));
    let agent =
        builder_on(&store, answers(1)).host(Rc::new(HostHandle(Rc::clone(&host)))).build().unwrap();
    let mut call = begin(&agent, "s1", "hello");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
    host.pass(10_000.0);
    assert_eq!(block_on(call.finish()).unwrap_err().error.kind(), ErrorKind::StoreTimeout);
}

#[test]
fn r20_clearing_the_context_keeps_the_log_and_other_sessions() {
    let agent = agent(answers(4));
    for session in ["s1", "s2"] {
        ask(&agent, session, "hello").unwrap();
    }
    block_on(agent.clear_context(&slot("s1"))).unwrap();
    assert!(block_on(agent.state(&slot("s1"))).unwrap().context.is_empty());
    assert_eq!(block_on(agent.state(&slot("s2"))).unwrap().context.len(), 2);
    ask(&agent, "s1", "again").unwrap();
    assert_eq!(block_on(agent.state(&slot("s1"))).unwrap().context.len(), 2);
    assert_eq!(told(&agent, "s1").len(), 4);
    block_on(agent.clear_context(&slot("nobody"))).unwrap();
    assert!(block_on(agent.session(&slot("nobody"))).unwrap().is_none());
}

#[test]
fn r20_clearing_changes_nothing_but_the_messages() {
    let agent = agent(answers(2));
    ask(&agent, "s1", "hello").unwrap();
    let mut state = json!(block_on(agent.state(&slot("s1"))).unwrap());
    state["tool_context"] = json!({ "activated_groups": ["net"], "activated_skills": ["pdf"] });
    state["permission_context"]["mode"] = json!("explore");
    block_on(agent.put_state(&slot("s1"), &state).unwrap()).unwrap();
    block_on(agent.clear_context(&slot("s1"))).unwrap();
    let cleared = json!(block_on(agent.state(&slot("s1"))).unwrap());
    assert_eq!((&cleared["context"], &cleared["summary"]), (&json!([]), &json!("")));
    for part in ["tool_context", "permission_context", "session_id", "user_id"] {
        assert_eq!(cleared[part], state[part], "{part}");
    }
}

#[test]
fn a_state_is_put_only_on_the_revision_from_which_it_was_read() {
    let agent = agent(answers(2));
    ask(&agent, "s1", "hello").unwrap();
    let read = json!(block_on(agent.state(&slot("s1"))).unwrap());
    let mut changed = read.clone();
    changed["tasks_context"] =
        json!({ "tasks": [{ "id": "t", "subject": "do it", "state": "pending" }] });
    changed["context"].as_array_mut().unwrap().pop();
    block_on(agent.put_state(&slot("s1"), &changed).unwrap()).unwrap();
    let state = block_on(agent.state(&slot("s1"))).unwrap();
    assert_eq!((state.context.len(), state.facts.tasks_context.tasks.len()), (1, 1));
    assert_eq!(told(&agent, "s1").len(), 2, "the log keeps the message that was left out");
    let stale = block_on(agent.put_state(&slot("s1"), &read).unwrap()).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Superseded);
    assert_eq!(
        agent.put_state(&slot("s1"), &json!({ "context": 5 })).err().unwrap().kind(),
        ErrorKind::InputInvalid
    );
}

#[test]
fn appended_messages_are_in_the_next_request() {
    let model = answers(1);
    let agent = agent(Rc::clone(&model) as _);
    let appended = block_on(agent.append(&slot("s1"), said("by the way"))).unwrap();
    assert!(!appended[0].id.is_empty());
    ask(&agent, "s1", "hello").unwrap();
    assert_eq!(model.requests()[0].len(), 2);
    assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().title, "by the way");
}

#[test]
fn a_session_can_be_renamed() {
    let agent = agent(answers(1));
    ask(&agent, "s1", "hello").unwrap();
    block_on(agent.rename_session(&slot("s1"), "Greetings".into())).unwrap();
    assert_eq!(block_on(agent.session(&slot("s1"))).unwrap().unwrap().title, "Greetings");
    let missing = block_on(agent.rename_session(&slot("nobody"), "x".into())).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchSession);
}

#[test]
fn a_change_enters_the_queue_when_it_is_requested() {
    let agent = agent(answers(1));
    let cleared = agent.append(&slot("s1"), said("first"));
    let mut call = begin(&agent, "s1", "second");
    assert!(poll_once(&mut Box::pin(call.finish())).is_pending());
    block_on(cleared).unwrap();
    block_on(call.finish()).unwrap();
    assert_eq!(told(&agent, "s1"), ["user: first", "user: second", "assistant: answer 0"]);
}

#[test]
fn a_session_moves_to_another_store_with_its_log_and_its_state() {
    let agent = agent(answers(3));
    ask(&agent, "s1", "before the clearing").unwrap();
    block_on(agent.clear_context(&slot("s1"))).unwrap();
    ask(&agent, "s1", "after it").unwrap();
    let document = block_on(agent.export_session(&slot("s1"), Format::Lockgate)).unwrap();
    let other = agent_on(&memory(), answers(1));
    let info = block_on(other.import_session(&slot("copy"), &document).unwrap()).unwrap().unwrap();
    assert_eq!((info.title.as_str(), info.messages), ("before the clearing", 4));
    assert_eq!(told(&other, "copy"), told(&agent, "s1"));
    let contexts =
        |agent: &Agent, session: &str| block_on(agent.state(&slot(session))).unwrap().context;
    assert_eq!(contexts(&other, "copy"), contexts(&agent, "s1"));
    ask(&other, "copy", "and on").unwrap();
    assert_eq!(contexts(&other, "copy").len(), 4);
}

#[test]
fn a_session_with_messages_is_not_replaced_by_an_import() {
    let agent = agent(answers(2));
    ask(&agent, "s1", "hello").unwrap();
    let document = block_on(agent.export_session(&slot("s1"), Format::Lockgate)).unwrap();
    let refused = block_on(agent.import_session(&slot("s1"), &document).unwrap()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InputInvalid);
    assert_eq!(told(&agent, "s1").len(), 2);
    let missing = block_on(agent.export_session(&slot("nobody"), Format::Lockgate)).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchSession);
}

#[test]
fn invalid_documents_are_refused() {
    let agent = agent(answers(1));
    for (text, kind) in [
        ("{", ErrorKind::InputInvalid),
        ("[]", ErrorKind::InputInvalid),
        (r#"{"lockgate":1}"#, ErrorKind::InputInvalid),
        (r#"{"lockgate":1,"state":{"context":[{"role":"user"}]}}"#, ErrorKind::InputInvalid),
        (r#"{"lockgate":99,"state":{"context":[]}}"#, ErrorKind::StateVersion),
        (r#"{"format":99,"context":[]}"#, ErrorKind::StateVersion),
        (r#"{"lockgate":"two","state":{"context":[]}}"#, ErrorKind::InputInvalid),
        (r#"{"lockgate":0,"state":{"context":[]}}"#, ErrorKind::InputInvalid),
        (r#"{"lockgate":1e99,"state":{"context":[]}}"#, ErrorKind::InputInvalid),
        (r#"{"format":1e99}"#, ErrorKind::InputInvalid),
        (r#"{"format":1e99,"context":[]}"#, ErrorKind::InputInvalid),
        (r#"{"format":1}"#, ErrorKind::InputInvalid),
        ("null", ErrorKind::InputInvalid),
        ("{}", ErrorKind::InputInvalid),
        (r#"{"foo":1}"#, ErrorKind::InputInvalid),
        (r#"{"messages":[{"role":"user","content":"hi"}]}"#, ErrorKind::InputInvalid),
        (r#"{"agent_state":{}}"#, ErrorKind::InputInvalid),
        (r#"{"version":1,"value":{"foo":1}}"#, ErrorKind::InputInvalid),
        (r#"{"context":"hello"}"#, ErrorKind::InputInvalid),
    ] {
        let error = agent.import_session(&slot("s1"), text).err().unwrap();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.hint_text().is_some(), "{text}");
        let says_why = ["expected", "not JSON", "newer version"];
        assert!(says_why.iter().any(|why| error.message().contains(why)), "{error}");
    }
    assert!(block_on(agent.session(&slot("s1"))).unwrap().is_none());
}

#[test]
fn a_state_is_imported_from_the_envelopes_of_a_state_store_too() {
    let state = json!({ "context": [{ "role": "USER", "content": [{ "type": "text", "text": "hello" }] }] });
    let envelope = json!({ "version": 7, "value": state });
    let both = json!({ "agent_state": envelope });
    let agent = agent(answers(1));
    ask(&agent, "own", "hello").unwrap();
    let own = json!(block_on(agent.state(&slot("own"))).unwrap());
    let documents = [json!({ "agent_state": state }), envelope, both, own.clone()];
    for (n, document) in documents.iter().chain([&json!({ "agent_state": own })]).enumerate() {
        let slot = slot(&format!("s{n}"));
        block_on(agent.import_session(&slot, &document.to_string()).unwrap()).unwrap();
        assert_eq!(told(&agent, &format!("s{n}"))[0], "user: hello", "{document}");
    }
}

#[test]
fn a_session_of_the_reference_continues_here_and_can_be_exported_back() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agentscope/example.json");
    let document = fs::read_to_string(path).unwrap();
    let agent = agent(answers(1));
    block_on(agent.import_session(&slot("s1"), &document).unwrap()).unwrap();
    let exported = block_on(agent.export_session(&slot("s1"), Format::AgentScope)).unwrap();
    let (theirs, ours): (Value, Value) =
        (serde_json::from_str(&document).unwrap(), serde_json::from_str(&exported).unwrap());
    assert_eq!(ours, theirs);
    ask(&agent, "s1", "go on").unwrap();
}

/// A store whose reads come from a replica some commits behind; each read brings it one commit further.
struct Lagging {
    primary: MemoryStore,
    replica: MemoryStore,
    backlog: RefCell<VecDeque<Batch>>,
}

impl Lagging {
    async fn catch_up(&self) {
        let next = self.backlog.borrow_mut().pop_front();
        if let Some(mut batch) = next {
            batch.expect = None;
            self.replica.commit(&batch).await.unwrap();
        }
    }
}

impl Store for Lagging {
    fn capabilities(&self) -> Capabilities {
        self.primary.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        Box::pin(async move {
            self.catch_up().await;
            self.replica.get(keys).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        Box::pin(async move {
            self.catch_up().await;
            self.replica.list(prefix, page).await
        })
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        Box::pin(async move {
            let committed = self.primary.commit(batch).await?;
            if committed == Committed::Done {
                self.backlog.borrow_mut().push_back(batch.clone());
            }
            Ok(committed)
        })
    }
}

#[test]
fn r_14_a_turn_read_from_a_lagging_replica_never_overwrites_another() {
    let (primary, replica) = (MemoryStore::new(), MemoryStore::new());
    let store = Rc::new(Lagging { primary, replica, backlog: RefCell::default() });
    let nodes = [(); 2].map(|()| agent_on(&(Rc::clone(&store) as _), answers(30)));
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        let text = format!("question {n}");
        if ask(&nodes[n % 2], "s1", &text).is_ok() {
            acknowledged.push(format!("user: {text}"));
        }
    }
    assert!(acknowledged.len() > 10, "{} of 20 were answered", acknowledged.len());
    block_on(async {
        while !store.backlog.borrow().is_empty() {
            store.catch_up().await
        }
    });
    let told = told(&nodes[0], "s1");
    for text in acknowledged {
        assert_eq!(told.iter().filter(|line| **line == text).count(), 1, "{text}");
    }
}

#[test]
fn r_04_a_turn_on_a_head_older_than_its_log_overwrites_no_entry() {
    let store = memory();
    let agent = agent_on(&store, answers(4));
    for text in ["one", "two"] {
        ask(&agent, "s1", text).unwrap();
    }
    let head = "1.t.helper/t.alice/slot/t.s1/head".to_owned();
    let older = block_on(store.get(std::slice::from_ref(&head))).unwrap().pop().flatten().unwrap();
    ask(&agent, "s1", "three").unwrap();
    let logged = |store: &Rc<dyn Store>| {
        block_on(store.list("1.t.helper/t.alice/slot/t.s1/log/", Page::default())).unwrap()
    };
    let before = logged(&store);
    // A failover restores an older head with the current log.
    let put = vec![(head, older.value)];
    block_on(store.commit(&Batch { revision: older.revision, put, ..Batch::default() })).unwrap();
    ask(&agent, "s1", "four").unwrap();
    assert_eq!(told(&agent, "s1").len(), 6, "the turn continues from the older head");
    let after = logged(&store);
    assert!(before.iter().all(|entry| after.contains(entry)), "the third turn is still in the log");
}

#[test]
fn i_08_a_record_under_a_hashed_key_is_read_only_for_its_own_id() {
    let store = memory();
    let agent = agent_on(&store, answers(1));
    let (mine, theirs) = ("m".repeat(200), "t".repeat(200));
    ask(&agent, &mine, "hello").unwrap();
    let records = block_on(store.list("", Page::default())).unwrap();
    let head = records.into_iter().find(|(key, _)| key.ends_with("/head")).unwrap();
    assert!(head.0.contains("/h."), "the id is hashed: {}", head.0);
    // As if the two ids had the same hash.
    let elsewhere = lockgate::store::keys::SlotKeys::new("helper", &slot(&theirs)).head();
    let put = vec![(elsewhere, head.1.value)];
    block_on(store.commit(&Batch { revision: head.1.revision, put, ..Batch::default() })).unwrap();
    let error = block_on(agent.state(&slot(&theirs))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    assert!(!error.message().contains(&mine), "the error does not contain the other id");
}

#[test]
fn i_10_a_session_of_another_user_looks_the_same_as_one_that_never_existed() {
    let agent = agent(answers(1));
    ask(&agent, "secret-plan", "hello").unwrap();
    let bob = |session: &str| lockgate::slot::Slot::new(Some("bob"), session).unwrap();
    let said = |session: &str| {
        let exported = block_on(agent.export_session(&bob(session), Format::Lockgate));
        let renamed = block_on(agent.rename_session(&bob(session), "x".to_owned()));
        let errors = [exported.unwrap_err(), renamed.unwrap_err()];
        errors.map(|error| format!("{error:?}").replace(session, "it"))
    };
    assert_eq!(said("secret-plan"), said("never-was"));
    assert!(block_on(agent.session(&bob("secret-plan"))).unwrap().is_none());
    let listed = block_on(agent.list_sessions(Some("bob"), Page::default())).unwrap();
    assert!(listed.is_empty());
}
