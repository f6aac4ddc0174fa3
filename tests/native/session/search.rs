//! Search in messages: whose sessions it covers, and that a damaged index loses no hit.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Options};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::keys::BUCKETS;
use lockgate::store::search::terms::bucket;
use lockgate::store::search::{Query, SearchHit};
use serde_json::{Value, json};

/// A memory store that records the keys it reads, and can refuse to store the index.
struct Watched {
    inner: MemoryStore,
    shared: Shared,
    read: RefCell<Vec<String>>,
    refuses: Cell<bool>,
    /// A batch of another node, applied before the next segment is committed.
    race: RefCell<Option<Batch>>,
}

impl Watched {
    fn new(shared: Shared) -> Rc<Watched> {
        Rc::new(Watched {
            inner: MemoryStore::shared_by(shared),
            shared,
            read: RefCell::default(),
            refuses: Cell::new(false),
            race: RefCell::default(),
        })
    }

    fn keys(&self, part: &str) -> Vec<String> {
        let records = block_on(self.inner.list("", Page::default())).unwrap();
        records.into_iter().map(|(key, _)| key).filter(|key| key.contains(part)).collect()
    }

    fn change(&self, remove: Vec<String>, put: Vec<(String, Vec<u8>)>) {
        let batch = Batch { revision: "by hand".to_owned(), remove, put, ..Batch::default() };
        block_on(self.inner.commit(&batch)).unwrap();
    }

    /// The buckets that were read since the last time.
    fn buckets_read(&self) -> BTreeSet<String> {
        let read = self.read.take();
        let below = read.iter().filter_map(|key| key.split_once("/search/"));
        below.map(|(_, rest)| rest[..2].to_owned()).collect()
    }
}

impl Store for Watched {
    fn capabilities(&self) -> Capabilities {
        Capabilities::whole(self.shared)
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.read.borrow_mut().extend(keys.iter().cloned());
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.read.borrow_mut().push(prefix.to_owned());
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let is_index = batch.put.iter().any(|(key, _)| key.contains("/search/"));
        if is_index && self.refuses.get() {
            let error = Error::new(ErrorKind::StoreQuota, "there is no room");
            return Box::pin(std::future::ready(Err(error)));
        }
        if let Some(race) = self.race.borrow_mut().take_if(|_| is_index) {
            block_on(self.inner.commit(&race)).unwrap();
        }
        self.inner.commit(batch)
    }
}

fn on(store: &Rc<Watched>, lines: impl IntoIterator<Item = Line>) -> Agent {
    agent_on(&(Rc::clone(store) as Rc<dyn Store>), ScriptedModel::new(lines))
}

/// Appends each text as a turn of its own, without a model.
fn tell(agent: &Agent, slot: &Slot, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        block_on(agent.append(slot, said(&text))).unwrap();
    }
}

fn numbered(numbers: std::ops::Range<usize>) -> impl Iterator<Item = String> {
    numbers.map(|n| format!("note {n} about topic{} and nothing else", n % 17))
}

fn find(agent: &Agent, user: Option<&str>, text: &str) -> Vec<SearchHit> {
    let query = Query { text, user, session: None, limit: 10 };
    block_on(agent.search(query)).unwrap()
}

fn excerpts(hits: &[SearchHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.excerpt.as_str()).collect()
}

fn search_in<'a>(text: &'a str, slot: &'a Slot) -> Query<'a> {
    Query { text, user: slot.user(), session: Some(slot.session()), limit: 10 }
}

// R60
#[test]
fn r60_a_fact_of_turn_7_is_found_after_500_turns_and_only_the_buckets_of_its_terms_are_read() {
    let store = Watched::new(Shared::Process);
    let answers = (0..500).map(|n| Line::says(&format!("noted as number {n}")));
    let agent = on(&store, answers);
    for n in 0..500 {
        let fact = if n == 7 { "my boat is called Albatross" } else { "the weather is fine" };
        ask(&agent, "s1", &format!("{fact}, turn {n}")).unwrap();
        block_on(agent.afterwards());
    }
    let segments = store.keys("/search/00/");
    assert!((1..=8).contains(&segments.len()), "merged by size: {segments:?}");
    store.read.take();
    let hits = find(&agent, Some("alice"), "albatross");
    assert_eq!(excerpts(&hits), ["my boat is called Albatross, turn 7"]);
    assert_eq!((hits[0].slot.session(), hits[0].role), ("s1", Role::User));
    assert_eq!(store.buckets_read(), BTreeSet::from([format!("{:02}", bucket("albatross"))]));
    // Two reads of the log: the tail that no segment covers, and the entry of the hit.
    find(&agent, Some("alice"), "albatross");
    let of_log = store.read.take().into_iter().filter(|key| key.contains("/log/")).count();
    assert!(of_log <= 2, "{of_log} listings of the log");
}

// R60
#[test]
fn r60_the_log_is_one_chain_that_a_restart_does_not_double() {
    let store = Watched::new(Shared::Process);
    for n in 0..3 {
        // A new agent each time, as after a restart.
        ask(&on(&store, [Line::says("ok")]), "s1", &format!("turn {n}")).unwrap();
    }
    let log = block_on(store.inner.list("", Page::default())).unwrap();
    let entries = log.into_iter().filter(|(key, _)| key.contains("/log/"));
    let mut parent = Value::Null;
    let mut ids = BTreeSet::new();
    for (key, record) in entries {
        let entry: Value = serde_json::from_slice(&record.value).unwrap();
        assert_eq!(entry["parent"], parent, "the parent of each entry is the one before");
        parent = json!(key.rsplit('/').next().unwrap());
        for message in entry["messages"].as_array().unwrap() {
            assert!(ids.insert(message["id"].as_str().unwrap().to_owned()), "written once");
        }
    }
    assert_eq!(ids.len(), 6);
}

#[test]
fn the_index_finds_and_scores_the_same_as_a_scan_of_the_whole_log() {
    let [with, without] = [0, 1].map(|_| on(&Watched::new(Shared::Process), []));
    for (agent, indexes) in [(&with, true), (&without, false)] {
        for session in ["s1", "s2"] {
            tell(agent, &slot(session), numbered(0..100));
            if indexes {
                block_on(agent.index(&slot(session))).unwrap();
            }
        }
    }
    for question in ["topic3", "note 33", "nothing topic16 note 16", "else 99", "absent"] {
        let [one, other] = [&with, &without].map(|agent| {
            let hits = find(agent, Some("alice"), question);
            hits.into_iter().map(|hit| (hit.excerpt, (hit.score * 1e9).round())).collect::<Vec<_>>()
        });
        assert_eq!(one, other, "{question}");
    }
}

#[test]
fn texts_with_the_words_side_by_side_come_first() {
    let agent = on(&Watched::new(Shared::Process), []);
    let texts = ["a red house and a blue door", "a blue house and a red door"];
    tell(&agent, &slot("s1"), texts.map(str::to_owned));
    assert_eq!(excerpts(&find(&agent, Some("alice"), "blue house")), [texts[1], texts[0]]);
}

#[test]
fn chinese_and_japanese_are_found_without_spaces_and_by_one_character() {
    let store = Watched::new(Shared::Process);
    let agent = on(&store, []);
    tell(&agent, &slot("s1"), ["明天上海会下雨吗".to_owned(), "東京タワーの高さは？".to_owned()]);
    let check = || {
        for (question, found) in [
            ("上海", "明天上海会下雨吗"),
            ("雨", "明天上海会下雨吗"),
            ("タワー", "東京タワーの高さは？"),
        ] {
            assert_eq!(excerpts(&find(&agent, Some("alice"), question)), [found], "{question}");
        }
        assert!(find(&agent, Some("alice"), "北京").is_empty());
    };
    check();
    tell(&agent, &slot("s1"), numbered(0..64));
    block_on(agent.index(&slot("s1"))).unwrap();
    assert_eq!(store.keys("/search/").len(), BUCKETS, "one record a bucket");
    check();
}

#[test]
fn inputs_and_results_of_tools_are_found_and_thoughts_are_not() {
    let agent = on(&Watched::new(Shared::Process), []);
    let thought = Block::Thinking {
        thinking: "perhaps marmalade".to_owned(),
        signature: None,
        provider: None,
        rest: Default::default(),
    };
    let call = json!({ "type": "tool_use", "id": "c1", "name": "weigh", "input": { "what": "a\nparcel", "grams": [512] } });
    let blocks = vec![thought, Block::from_json(&call).unwrap()];
    let message = Message::draft(Role::Assistant, blocks);
    block_on(agent.append(&slot("s1"), vec![message])).unwrap();
    for (question, n_hits) in [("weigh", 1), ("parcel", 1), ("512", 1), ("marmalade", 0)] {
        assert_eq!(find(&agent, Some("alice"), question).len(), n_hits, "{question}");
    }
}

// R61
#[test]
fn r61_a_search_covers_one_user_or_one_session_of_that_user() {
    let agent = on(&Watched::new(Shared::Process), []);
    for (user, session) in [("alice", "s1"), ("alice", "s2"), ("bob", "s1")] {
        let slot = Slot::new(Some(user), session).unwrap();
        tell(&agent, &slot, [format!("a secret of {user} in {session}")]);
        tell(&agent, &slot, numbered(0..64));
        block_on(agent.index(&slot)).unwrap();
    }
    let mut hits = find(&agent, Some("alice"), "secret");
    hits.sort_by(|one, other| one.excerpt.cmp(&other.excerpt));
    assert_eq!(excerpts(&hits), ["a secret of alice in s1", "a secret of alice in s2"]);
    let slot = slot("s2");
    let hits = block_on(agent.search(search_in("secret", &slot))).unwrap();
    assert_eq!(excerpts(&hits), ["a secret of alice in s2"]);
    assert!(find(&agent, Some("carol"), "secret").is_empty());
}

// R61
#[test]
fn r61_without_a_user_a_search_covers_one_session_unless_the_store_is_a_browser() {
    for (shared, sees_both) in [
        (Shared::Process, false),
        (Shared::Host, false),
        (Shared::Cluster, false),
        (Shared::Origin, true),
    ] {
        let agent = on(&Watched::new(shared), []);
        let [one, two] = ["s1", "s2"].map(|session| Slot::new(None, session).unwrap());
        for slot in [&one, &two] {
            tell(&agent, slot, [format!("the word of {}", slot.session())]);
        }
        let own = block_on(agent.search(search_in("word", &one))).unwrap();
        assert_eq!(excerpts(&own), ["the word of s1"]);
        let everywhere = Query { text: "word", user: None, session: None, limit: 10 };
        match block_on(agent.search(everywhere)) {
            Ok(hits) => assert!(sees_both && hits.len() == 2, "{shared:?}"),
            Err(error) => {
                assert!(!sees_both && error.kind() == ErrorKind::InputInvalid, "{shared:?}")
            }
        }
    }
}

/// The result of a tool call in session `s1`.
fn asked_tool(shared: Shared, user: Option<&str>, name: &str, input: &Value) -> (String, Agent) {
    let store: Rc<dyn Store> = Watched::new(shared);
    let model = ScriptedModel::new([Line::calls(name, input), Line::says("done")]);
    let agent = agent_on(&store, model);
    for (of, session) in [(user, "s1"), (user, "s2"), (Some("bob"), "s3")] {
        let slot = Slot::new(of, session).unwrap();
        tell(&agent, &slot, [format!("the word of {session}"), "x".repeat(600)]);
    }
    let request = lockgate::engine::CallRequest::new(Slot::new(user, "s1").unwrap(), "look it up");
    block_on(agent.begin(request).unwrap().finish()).unwrap();
    let history = block_on(agent.history(&Slot::new(user, "s1").unwrap(), None, 10)).unwrap();
    let result = history.iter().flat_map(|message| message.tool_results()).next().unwrap();
    (Block::text_of(&result.output), agent)
}

// R61
#[test]
fn r61_the_session_tools_see_only_the_sessions_of_the_calls_user() {
    let (listed, _) = asked_tool(Shared::Process, Some("alice"), "session_list", &json!({}));
    assert!(listed.contains("s1") && listed.contains("s2") && !listed.contains("s3"), "{listed}");
    let query = json!({ "query": "word" });
    let (found, agent) = asked_tool(Shared::Process, Some("alice"), "session_search", &query);
    assert!(found.contains("word of s1") && found.contains("word of s2"), "{found}");
    assert!(!found.contains("word of s3"), "{found}");
    assert_eq!(
        find(&agent, Some("alice"), "word").len(),
        2,
        "results of session tools are not indexed"
    );
    let of_other = json!({ "sessionId": "s2", "lastN": 2 });
    let (shown, _) = asked_tool(Shared::Process, Some("alice"), "session_history", &of_other);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[0]["text"], "the word of s2");
    assert_eq!((shown[1]["text"].as_str().unwrap().len(), &shown[1]["cut"]), (500, &json!(true)));
    let of_bob = json!({ "sessionId": "s3" });
    let (refused, _) = asked_tool(Shared::Process, Some("alice"), "session_history", &of_bob);
    assert_eq!(refused, "There is no session \"s3\". See session_list.");
}

// R61
#[test]
fn r61_without_a_user_the_session_tools_see_their_own_session_unless_the_store_is_a_browser() {
    for (shared, n_seen) in [(Shared::Cluster, 1), (Shared::Origin, 2)] {
        let (listed, _) = asked_tool(shared, None, "session_list", &json!({}));
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), n_seen, "{listed}");
        let (found, _) = asked_tool(shared, None, "session_search", &json!({ "query": "word" }));
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found.as_array().unwrap().len(), n_seen, "{found}");
        let (shown, _) = asked_tool(shared, None, "session_history", &json!({ "sessionId": "s2" }));
        assert_eq!(shown.starts_with("There is no session"), n_seen == 1, "{shown}");
    }
}

/// The result of a session tool of the agent `helper`, which may read the sessions of `writer`. `writer` has a session
/// of alice and one of bob.
fn asked_about_others(user: Option<&str>, name: &str, input: &Value) -> (String, Vec<String>) {
    let store: Rc<dyn Store> = Watched::new(Shared::Cluster);
    let host = Rc::new(HostHandle(TestHost::new()));
    let build = |options, model: Rc<ScriptedModel>| {
        let (store, host) = (Rc::clone(&store), Rc::clone(&host));
        Builder::new(options).model(model).store(store).host(host).build().unwrap()
    };
    for (writes, whose) in [("writer", "alice"), ("writer", "bob"), ("spy", "alice")] {
        let of_other = build(Options::new(writes), ScriptedModel::new([Line::says("noted")]));
        let slot = Slot::new(Some(whose), "letters").unwrap();
        tell(&of_other, &slot, [format!("{writes} hears the word of {whose}")]);
    }
    let model = ScriptedModel::new([Line::calls(name, input), Line::says("done")]);
    let session_agents = vec!["writer".to_owned()];
    let options = Options { session_agents, ..Options::new("helper") };
    let agent = build(options, model);
    let slot = Slot::new(user, "letters").unwrap();
    let request = lockgate::engine::CallRequest::new(slot.clone(), "look it up");
    block_on(agent.begin(request).unwrap().finish()).unwrap();
    let history = block_on(agent.history(&slot, None, 10)).unwrap();
    let result = history.iter().flat_map(|message| message.tool_results()).next().unwrap();
    let tools = block_on(agent.tools(None)).unwrap();
    let schemas = tools.iter().map(|tool| tool.input_schema.to_string()).collect();
    (Block::text_of(&result.output), schemas)
}

#[test]
fn the_session_tools_read_named_other_agents_sessions_of_the_same_user() {
    let alice = Some("alice");
    let input = json!({ "agentId": "writer" });
    let (listed, schemas) = asked_about_others(alice, "session_list", &input);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["sessionId"], listed.get(1)), (&json!("letters"), None));
    assert_eq!(listed[0]["isThisOne"], false, "the same sessionId, but another agent");
    assert_eq!(schemas.iter().filter(|it| it.contains("another agent: writer")).count(), 3);
    let input = json!({ "agentId": "writer", "sessionId": "letters" });
    let (shown, _) = asked_about_others(alice, "session_history", &input);
    assert!(shown.contains("writer hears the word of alice"), "{shown}");
    let input = json!({ "agentId": "writer", "query": "word" });
    let (found, _) = asked_about_others(alice, "session_search", &input);
    assert!(found.contains("word of alice") && !found.contains("bob"), "{found}");
    let own = json!({ "agentId": "helper", "query": "word" });
    assert_eq!(asked_about_others(alice, "session_search", &own).0, "[]");
}

#[test]
fn the_session_tools_refuse_agents_that_are_not_named_and_sessions_without_a_user() {
    for (name, input) in [
        ("session_list", json!({ "agentId": "spy" })),
        ("session_history", json!({ "agentId": "spy", "sessionId": "letters" })),
        ("session_search", json!({ "agentId": "spy", "query": "word" })),
    ] {
        let (refused, _) = asked_about_others(Some("alice"), name, &input);
        let wanted =
            "The sessions of agent \"spy\" cannot be read. Other agents that can be read: writer.";
        assert_eq!(refused, wanted, "{name}");
    }
    let (refused, _) = asked_about_others(None, "session_list", &json!({ "agentId": "writer" }));
    assert_eq!(refused, "Without a user, the sessions of other agents cannot be read.");
    let session_agents = vec![String::new()];
    let options = Options { session_agents, ..Options::new("helper") };
    let host = Rc::new(HostHandle(TestHost::new()));
    let model = ScriptedModel::new([]);
    let built = Builder::new(options).model(model).store(memory()).host(host).build();
    assert_eq!(built.err().unwrap().kind(), ErrorKind::Options);
}

#[test]
fn session_tools_can_be_left_out() {
    let model = ScriptedModel::new([Line::calls("session_list", &json!({})), Line::says("done")]);
    let options = Options { session_tools: false, ..Options::new("helper") };
    let host = Rc::new(HostHandle(TestHost::new()));
    let agent = Builder::new(options).model(model).store(memory()).host(host).build().unwrap();
    ask(&agent, "s1", "list").unwrap();
    let history = block_on(agent.history(&slot("s1"), None, 10)).unwrap();
    let result = history.iter().flat_map(|message| message.tool_results()).next().unwrap();
    assert!(Block::text_of(&result.output).contains("does not exist"));
}

#[test]
fn missing_damaged_or_foreign_segments_lose_no_hit_and_are_rebuilt() {
    let key_of = |store: &Watched, question: &str| {
        let bucket = format!("/search/{:02}/", bucket(question));
        store.keys(&bucket)[0].clone()
    };
    type Spoil = fn(&Watched, String);
    let spoilers: [(&str, Spoil); 3] = [
        ("missing", |store, key| store.change(vec![key], Vec::new())),
        ("damaged", |store, key| store.change(Vec::new(), vec![(key, vec![1, 99, 3])])),
        ("foreign", |store, key| {
            let (name, _) = key.rsplit_once('.').unwrap();
            let record =
                block_on(store.inner.get(std::slice::from_ref(&key))).unwrap().remove(0).unwrap();
            store.change(vec![key.clone()], vec![(format!("{name}.elsewhere"), record.value)]);
        }),
    ];
    for (how, spoil) in spoilers {
        let store = Watched::new(Shared::Process);
        let agent = on(&store, []);
        tell(&agent, &slot("s1"), numbered(0..130));
        block_on(agent.index(&slot("s1"))).unwrap();
        let whole = store.keys("/search/");
        assert_eq!(whole.len() % BUCKETS, 0);
        spoil(&store, key_of(&store, "topic3"));
        let found = find(&agent, Some("alice"), "topic3");
        assert_eq!(found.len(), 8, "{how}: the log has it all");
        assert!(agent.has_work(), "{how}: the gap is seen");
        block_on(agent.afterwards());
        assert_eq!(store.keys("/search/"), whole, "{how}: made anew, and nothing is left over");
        store.read.take();
        find(&agent, Some("alice"), "topic3");
        assert!(!agent.has_work(), "{how}: it is whole again");
    }
}

#[test]
fn no_segment_is_written_for_a_deleted_session() {
    let store = Watched::new(Shared::Process);
    let agent = on(&store, []);
    tell(&agent, &slot("s1"), numbered(0..64));
    let head = store.keys("/slot/t.s1/head").remove(0);
    let tombstone = json!({ "format": 1, "epoch": "x", "deleted": "now" });
    let put = vec![(head, serde_json::to_vec(&tombstone).unwrap())];
    let deletion = Batch { revision: "deleted".to_owned(), put, ..Batch::default() };
    store.race.replace(Some(deletion));
    block_on(agent.index(&slot("s1"))).unwrap_err();
    assert!(store.race.borrow().is_none(), "the session was not deleted in between");
    assert_eq!(store.keys("/search/"), Vec::<String>::new());
}

#[test]
fn an_index_that_cannot_be_written_fails_no_call_and_loses_no_hit() {
    let store = Watched::new(Shared::Process);
    let agent = on(&store, (0..70).map(|_| Line::says("ok")));
    store.refuses.set(true);
    for n in 0..70 {
        ask(&agent, "s1", &format!("turn {n}")).unwrap();
        block_on(agent.afterwards());
    }
    assert_eq!(store.keys("/search/"), Vec::<String>::new());
    assert_eq!(excerpts(&find(&agent, Some("alice"), "66")), ["turn 66"]);
    store.refuses.set(false);
    find(&agent, Some("alice"), "turn");
    block_on(agent.afterwards());
    assert_eq!(store.keys("/search/").len(), BUCKETS);
}

#[test]
fn a_long_answer_is_indexed_at_once_and_a_short_one_with_others() {
    let store = Watched::new(Shared::Process);
    let long = "word ".repeat(14_000);
    let agent = on(&store, [Line::says("short"), Line::says(&long)]);
    ask(&agent, "s1", "one").unwrap();
    assert!(!agent.has_work());
    ask(&agent, "s1", "two").unwrap();
    assert!(agent.has_work());
    block_on(agent.afterwards());
    assert_eq!(store.keys("/search/").len(), BUCKETS);
}

#[test]
fn a_message_that_was_put_a_second_time_is_found_once() {
    let agent = on(&Watched::new(Shared::Process), []);
    tell(&agent, &slot("s1"), ["a marmot".to_owned()]);
    let mut state = serde_json::to_value(block_on(agent.state(&slot("s1"))).unwrap()).unwrap();
    let other =
        json!({ "id": "m2", "role": "user", "content": [{ "type": "text", "text": "and more" }] });
    state["context"].as_array_mut().unwrap().push(other);
    block_on(agent.put_state(&slot("s1"), &state).unwrap()).unwrap();
    assert_eq!(excerpts(&find(&agent, Some("alice"), "marmot")), ["a marmot"]);
}

#[test]
fn a_query_without_words_finds_nothing() {
    let agent = on(&Watched::new(Shared::Process), []);
    tell(&agent, &slot("s1"), ["hello".to_owned()]);
    for question in ["", " ?! "] {
        assert!(find(&agent, Some("alice"), question).is_empty());
    }
}
