//! Only the exact answer to an open question runs its tool; every other answer runs nothing.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::Chance;
use lockgate::engine::{Agent, Builder, CallRequest, Ended, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, ResultState};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Host, Opinion, OwnDecision, Store, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use lockgate::state::PermissionContext;
use lockgate::store::backend::memory_store::MemoryStore;
use serde_json::{Value, json};

/// The open questions, all of one batch.
const ASKED: &[&str] = &["c1", "c2"];

/// A host whose clock stands still and whose random numbers continue.
pub(crate) struct Clock(pub(crate) Cell<u64>, pub(crate) f64);

impl Host for Clock {
    fn now_ms(&self) -> f64 {
        self.1
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0.set(self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99));
            *byte = (self.0.get() >> 56) as u8;
        }
    }

    fn sleep(&self, _: u64) -> Local<'static, ()> {
        Box::pin(std::future::pending())
    }
}

struct Send {
    spec: Rc<ToolSpec>,
    n_runs: Rc<Cell<u32>>,
}

impl Tool for Send {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own = OwnDecision::Ask("it costs money".into());
        Box::pin(std::future::ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        self.n_runs.set(self.n_runs.get() + 1);
        Box::pin(std::future::ready(Ok(vec![Block::text("sent")])))
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..1_000 {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
    panic!("the future waits, and nothing can wake it")
}

/// A process on the store, with its description of the tool and its time.
fn process(store: &Rc<dyn Store>, runs: &Rc<Cell<u32>>, does: &str, now_ms: f64) -> Agent {
    let call = |id: &'static str| (id, "send", json!({ "to": id }));
    let lines = [Line::calls_all(&[call("c1"), call("c2")]), Line::says("done"), Line::says("ok")];
    let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"] });
    let spec = Rc::new(ToolSpec::new("send", does, schema));
    Builder::new(Options::new("helper"))
        .model(ScriptedModel::new(lines))
        .store(Rc::clone(store))
        .host(Rc::new(Clock(Cell::new(now_ms as u64), now_ms)))
        .tool(Rc::new(Send { spec, n_runs: Rc::clone(runs) }))
        .build()
        .unwrap()
}

fn slot(user: &str, session: &str) -> Slot {
    Slot::new(Some(user), session).unwrap()
}

fn say(agent: &Agent, slot: &Slot, text: &str) -> Ended {
    block_on(agent.begin(CallRequest::new(slot.clone(), text))?.finish())
}

fn confirm(agent: &Agent, slot: &Slot, answers: Vec<Value>) -> Ended {
    let request =
        CallRequest { answers, messages: Vec::new(), ..CallRequest::new(slot.clone(), "") };
    block_on(agent.begin(request)?.finish())
}

/// Text with a few of its bytes changed, removed or doubled.
fn mutated(chance: &mut Chance, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=chance.below(3) {
        let place = chance.below(chars.len().max(1)).min(chars.len().saturating_sub(1));
        let letter = chance.pick(&[
            'c', '1', '2', '"', '{', '}', ':', ',', 't', 'f', 'n', ' ', 'é', '\u{200b}', '\u{430}',
        ]);
        match chance.below(4) {
            _ if chars.is_empty() => chars.push(letter),
            0 => drop(chars.remove(place)),
            1 => chars.insert(place, letter),
            2 => chars[place] = letter,
            _ => chars.insert(place, chars[place]),
        }
    }
    chars.into_iter().collect()
}

/// Whether these answers are valid here: yes or no to an open question, each once.
fn is_good(answers: &[Value]) -> bool {
    let id = |answer: &Value| answer.get("toolCallId").and_then(Value::as_str).map(str::to_owned);
    let good = |answer: &Value| {
        let asked = id(answer).is_some_and(|id| ASKED.contains(&&*id));
        let said = answer.get("approve").is_some_and(Value::is_boolean);
        asked && said && answer.get("output").is_none()
    };
    let once = answers.len() < 2 || id(&answers[0]) != id(&answers[1]);
    !answers.is_empty() && once && answers.iter().all(good)
}

/// Answers that are invalid in one of several ways.
fn wrong(chance: &mut Chance) -> Vec<Value> {
    let id = chance.pick(ASKED);
    let yes = json!({ "toolCallId": id, "approve": true, "reason": "fine" });
    match chance.below(8) {
        0 => {
            let other =
                chance.pick(&["c3", "C1", "c1 ", " c1", "c", "", "c1\u{200b}", "с1", "c1\0"]);
            vec![json!({ "toolCallId": other, "approve": true })]
        }
        1 => {
            let said = chance.pick(&["true", "yes", "1", "null", "[true]", "{\"a\":true}", "\"\""]);
            let said: Value = serde_json::from_str(said).unwrap_or_else(|_| said.into());
            let said = if said == true { "true".into() } else { said };
            vec![json!({ "toolCallId": id, "approve": said })]
        }
        2 => vec![yes.clone(), yes],
        3 => vec![json!({ "toolCallId": id, "output": "sent" })],
        4 => {
            let input = chance.pick(&["7", "[]", "\"x\"", "{\"to\":7}", "{}", "{\"To\":\"x\"}"]);
            let input: Value = serde_json::from_str(input).unwrap();
            vec![json!({ "toolCallId": id, "approve": true, "input": input })]
        }
        5 => {
            let rules = chance.pick(&[
                "[{\"tool_name\":\"rm\",\"behavior\":\"allow\"}]",
                "[{\"tool_name\":\"send\"}]",
                "[{\"tool_name\":\"send\",\"behavior\":\"always\"}]",
                "[7]",
                "\"send\"",
            ]);
            let rules: Value = serde_json::from_str(rules).unwrap();
            vec![json!({ "toolCallId": id, "approve": true, "remember": rules })]
        }
        6 => vec![yes, json!({ "toolCallId": "c9", "approve": true })],
        _ => {
            let text = json!([yes]).to_string();
            let read = serde_json::from_str(&mutated(chance, &text)).ok();
            let answers: Vec<Value> =
                read.and_then(|it: Value| it.as_array().cloned()).unwrap_or_default();
            if is_good(&answers) { Vec::new() } else { answers }
        }
    }
}

#[test]
fn a_01_a_02_a_03_a_04_a_10_a_13_none_of_100_000_mutated_or_replayed_answers_runs_a_tool() {
    const NOW: f64 = 1_790_000_000_000.0;
    let mut chance = Chance::new("answers");
    let (store, runs) = (Rc::new(MemoryStore::new()) as Rc<dyn Store>, Rc::new(Cell::new(0)));
    let here = process(&store, &runs, "sends", NOW);
    let (asking, spent) = (slot("alice", "asking"), slot("alice", "spent"));
    say(&process(&store, &runs, "sends", NOW), &asking, "go").unwrap();
    say(&here, &spent, "go").unwrap();
    let yes: Vec<Value> =
        ASKED.iter().map(|id| json!({ "toolCallId": id, "approve": true })).collect();
    confirm(&here, &spent, yes.clone()).unwrap();
    assert_eq!(runs.get(), 2, "each approval is good for one run");
    // These questions are closed by a plain message.
    let passed = slot("alice", "passed");
    let other = process(&store, &runs, "sends", NOW);
    say(&other, &passed, "go").unwrap();
    say(&other, &passed, "never mind").unwrap();

    let redefined = process(&store, &runs, "sends, and deletes the draft", NOW);
    let late = process(&store, &runs, "sends", NOW + 25.0 * 3_600_000.0);
    let elsewhere =
        [spent, passed, slot("mallory", "asking"), slot("alice", "Asking"), slot("alice", "new")];
    let kinds = RefCell::new([0_u32; 2]);
    for _ in 0..100_000 {
        let ended = match chance.below(6) {
            0 => confirm(&here, &elsewhere[chance.below(elsewhere.len())], yes.clone()),
            1 => confirm(&redefined, &asking, vec![chance.pick(&[&yes[0], &yes[1]]).clone()]),
            2 => confirm(&late, &asking, vec![chance.pick(&[&yes[0], &yes[1]]).clone()]),
            _ => confirm(&here, &asking, wrong(&mut chance)),
        };
        match ended.map(|reply| reply.reason) {
            Err(failed) if failed.error.kind() == ErrorKind::NotAsking => {
                kinds.borrow_mut()[0] += 1;
            }
            Err(failed) if failed.error.kind() == ErrorKind::InputInvalid => {
                kinds.borrow_mut()[1] += 1;
            }
            // Neither an answer nor a message: the call cannot continue while tools wait.
            Err(failed) if failed.error.kind() == ErrorKind::PendingTools => {}
            other => panic!("not refused: {other:?}"),
        }
        assert_eq!(runs.get(), 2, "a tool has run");
    }
    let [not_asking, invalid] = kinds.into_inner();
    assert!(not_asking > 40_000 && invalid > 10_000, "{not_asking} and {invalid}");
    // The questions are still open, and the valid answer still works.
    assert_eq!(block_on(here.asks(&asking)).unwrap().len(), 2);
    confirm(&process(&store, &runs, "sends", NOW), &asking, yes).unwrap();
    assert_eq!(runs.get(), 4);
}

#[test]
fn a_01_no_forged_state_in_the_store_runs_a_tool() {
    const NOW: f64 = 1_790_000_000_000.0;
    let mut chance = Chance::new("forged states");
    let runs = Rc::new(Cell::new(0));
    let words =
        ["asking", "allowed", "pending", "finished", "c1", "c2", "awaits", "asked", "digest"];
    for _ in 0..2_000 {
        let store = Rc::new(MemoryStore::new()) as Rc<dyn Store>;
        let asking = slot("alice", "asking");
        say(&process(&store, &runs, "sends", NOW), &asking, "go").unwrap();
        for (key, record) in block_on(store.list("", lockgate::port::Page::default())).unwrap() {
            let mut text = String::from_utf8(record.value).unwrap();
            for _ in 0..=chance.below(4) {
                let (from, to) = (chance.pick(&words), chance.pick(&words));
                text = text.replace(&format!("\"{from}\""), &format!("\"{to}\""));
            }
            let put = vec![(key, text.into_bytes())];
            let revision = record.revision;
            let batch = lockgate::port::Batch { revision, put, ..Default::default() };
            block_on(store.commit(&batch)).unwrap();
        }
        // Neither a denial nor a resume approves the forged state.
        let agent = process(&store, &runs, "sends", NOW);
        let no = json!({ "toolCallId": chance.pick(ASKED), "approve": false });
        let _ = confirm(&agent, &asking, vec![no]);
        let resumed = lockgate::engine::RuntimeContext::new("alice", "asking");
        let _ = block_on(agent.resume(resumed).unwrap().finish());
        assert_eq!(runs.get(), 0);
    }
}

#[test]
fn a_06_none_of_10_000_spellings_writes_a_file_into_a_denied_folder() {
    const PARTS: &[&str] = &[
        "secret",
        "Secret",
        "SECRET",
        "secret ",
        " secret",
        "s\u{435}cret",
        "secret.",
        "%73ecret",
        ".",
        "..",
        "...",
        "%2e",
        "%2e%2e",
        "%252e",
        "\u{2024}\u{2024}",
        "",
        "~",
        "notes",
        "a.md",
        "\\",
        "secret%2fa.md",
        "secret\\a.md",
        "secret\u{2044}a.md",
        "\u{ff0e}\u{ff0e}",
        "*",
        "{secret,x}",
    ];
    let mut chance = Chance::new("spellings");
    let store = Rc::new(MemoryStore::new()) as Rc<dyn Store>;
    let rule =
        json!({ "tool_name": "write_file", "rule_content": "secret/**", "behavior": "deny" });
    let permissions = json!({ "mode": "bypass", "deny_rules": [rule] });
    let mut n_written = 0;
    for _ in 0..10_000 {
        let n_parts = 1 + chance.below(4);
        let path: Vec<&str> = (0..n_parts).map(|_| chance.pick(PARTS)).collect();
        let path = path.join(chance.pick(&["/", "/", "//", "/./", "\\"]));
        let input = json!({ "path": path, "content": "x", "overwrite": true });
        let lines = [Line::calls_all(&[("c1", "write_file", input)]), Line::says("done")];
        let options = Options {
            workspace: Some(Default::default()),
            permissions: Some(PermissionContext::from_json(&permissions).unwrap()),
            ..Options::new("helper")
        };
        let agent = Builder::new(options)
            .model(ScriptedModel::new(lines))
            .store(Rc::clone(&store))
            .host(Rc::new(Clock(Cell::new(chance.next()), 0.0)))
            .build()
            .unwrap();
        let reply = say(&agent, &slot("alice", "s"), "write").unwrap();
        let results = reply.messages.iter().flat_map(|it| it.tool_results());
        n_written += results.filter(|it| it.state == ResultState::Success).count();
        block_on(agent.delete_session(&slot("alice", "s"))).unwrap();
    }
    let keys = block_on(store.list("", lockgate::port::Page::default())).unwrap();
    assert!(keys.iter().all(|(key, _)| !key.contains("/file/secret/")), "{keys:?}");
    assert!(n_written > 500, "too few files outside the folder were written: {n_written}");
}
