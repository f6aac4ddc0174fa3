//! Summaries during a crash, a conflicting save or a failing model: the view stays valid.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use crate::compaction::window::*;
use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Durability, Options};
use lockgate::error::{Advice, Error, ErrorKind, Result};
use lockgate::event::Event;
use lockgate::future::Local;
use lockgate::message::{Block, Edit, Edits, Message, Role};
use lockgate::policy::compaction::When;
use lockgate::policy::eviction::Eviction;
use lockgate::port::{Batch, Capabilities, Committed, Deltas, Model, Page, Record, Request, Store};
use lockgate::state::Facts;
use lockgate::store::Sessions;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::format::entry::{EntryKind, Outcome};
use lockgate::store::format::input::Input;
use lockgate::store::session::{Session, Summary, TurnCommit, ViewChange};
use serde_json::{Value, json};

fn history(agent: &Agent) -> Vec<Rc<Message>> {
    unmarked(block_on(agent.history(&slot("s"), None, 1_000)).unwrap())
}

fn context(agent: &Agent) -> Vec<Rc<Message>> {
    block_on(agent.state(&slot("s"))).unwrap().context
}

fn talk(agent: &Agent, n: usize) {
    for turn in 0..n {
        ask(agent, "s", &format!("question {turn}: {}", "words and words ".repeat(10))).unwrap();
    }
}

fn by_trigger(options: &mut Options) {
    options.compaction.when = When::ByTrigger;
    (options.compaction.trigger_messages, options.compaction.keep_messages) = (6, 2);
}

/// A store that answers `left` operations and then none: the node is dead.
struct Dies {
    inner: Rc<dyn Store>,
    left: Cell<usize>,
    /// Whether commits after that are still applied, without an answer.
    applies: bool,
}

impl Dies {
    fn is_alive(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

impl Store for Dies {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        if self.is_alive() { self.inner.get(keys) } else { Box::pin(pending()) }
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        if self.is_alive() { self.inner.list(prefix, page) } else { Box::pin(pending()) }
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        if self.is_alive() {
            return self.inner.commit(batch);
        }
        Box::pin(async move {
            if self.applies {
                self.inner.commit(batch).await?;
            }
            pending().await
        })
    }
}

// C-02
#[test]
fn c_02_a_crash_at_any_operation_of_a_summary_leaves_a_valid_view() {
    for (applies, by_hand) in [(false, false), (true, false), (false, true), (true, true)] {
        for n in 0.. {
            let (store, model) = (memory(), Rc::new(Windowed::default()));
            let first = set_up(&store, &model, |_| {}).build().unwrap();
            talk(&first, 3);
            let said = history(&first);
            let dies: Rc<dyn Store> =
                Rc::new(Dies { inner: Rc::clone(&store), left: Cell::new(n), applies });
            let doomed = set_up(&dies, &model, by_trigger).build().unwrap();
            let is_over = if by_hand {
                poll_once(&mut doomed.compact(&slot("s"))).is_ready()
            } else {
                let mut call = begin(&doomed, "s", "and now?");
                poll_once(&mut Box::pin(call.finish())).is_ready()
            };
            drop(doomed);
            // The next agent finds every message and the old or the new view, and can continue.
            let next = set_up(&store, &model, |_| {}).build().unwrap();
            assert_eq!(history(&next)[..said.len()], said[..], "{n}");
            let shown = context(&next);
            let is_short = shown[0].name.as_deref() == Some("summary");
            let from = if is_short { shown[1].id.clone() } else { said[0].id.clone() };
            let log = history(&next);
            let kept = log.iter().position(|it| it.id == from).unwrap();
            let logged = log.iter().filter(|it| it.text() != "and now?").cloned();
            let shown: Vec<_> =
                shown.iter().filter(|it| it.text() != "and now?").cloned().collect();
            let logged: Vec<_> = logged.skip(kept).collect();
            assert_eq!(shown[usize::from(is_short)..], logged, "{n}");
            ask(&next, "s", "are you there?").unwrap();
            block_on(next.undo_compaction(&slot("s"))).unwrap();
            assert_eq!(context(&next), history(&next), "{n}");
            if is_over {
                assert!(
                    n > 3 && !model.condensed.borrow().is_empty(),
                    "only {n} crashes, and no summary"
                );
                break;
            }
        }
    }
}

// C-07, C-01
#[test]
fn c_07_a_summary_that_does_not_shrink_or_was_cut_is_said_once_and_not_asked_for_again_in_the_call()
{
    for cuts in [false, true] {
        let model = Rc::new(Windowed::default());
        let agent = set_up(&memory(), &model, by_trigger).build().unwrap();
        talk(&agent, 3);
        model.cuts.set(cuts);
        let long = "longer than what it replaces ".repeat(200);
        let text = if cuts { "short".to_owned() } else { long };
        (0..9).for_each(|_| model.summaries.borrow_mut().push_back(Ok(text.clone())));
        // Three requests, each over the trigger.
        model.then_calls("1", "letters", &json!({ "n": 1 }));
        model.then_calls("2", "letters", &json!({ "n": 1 }));
        let mut call = begin(&agent, "s", "and now?");
        let seen = events(&mut call);
        let failures: Vec<_> = seen
            .iter()
            .filter_map(|event| match event {
                Event::CompactionFailed { code, message } => Some((*code, message.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].0, ErrorKind::CompactionFailed.code());
        assert!(failures[0].1.contains(if cuts { "was cut" } else { "and the messages only" }));
        assert_eq!(model.condensed.borrow().len(), 1, "no loop");
        assert_eq!(names(&seen).last().unwrap(), "call-end");
        assert_eq!(context(&agent), history(&agent), "nothing was changed");
        let error = block_on(agent.compact(&slot("s"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompactionFailed);
        assert_eq!(context(&agent), history(&agent));
    }
}

// C-01
#[test]
fn c_01_a_summary_that_hangs_fails_at_its_timeout_and_the_call_continues() {
    struct Hangs;
    impl Model for Hangs {
        fn id(&self, _: u32) -> String {
            "hangs".to_owned()
        }
        fn ask<'a>(&'a self, _: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
            Box::pin(pending())
        }
    }
    let model = Rc::new(Windowed::default());
    let host = TestHost::new();
    let agent = set_up(&memory(), &model, by_trigger)
        .host(Rc::new(HostHandle(Rc::clone(&host))))
        .compaction_model(Rc::new(Hangs))
        .build()
        .unwrap();
    talk(&agent, 3);
    let mut call = begin(&agent, "s", "and now?");
    let mut ending = Box::pin(call.finish());
    assert!(poll_once(&mut ending).is_pending());
    host.pass(121_000.0);
    assert_eq!(block_on(ending).unwrap().text, "all right");
    assert_eq!(context(&agent), history(&agent));
}

// C-06
#[test]
fn c_06_only_the_latest_of_many_summaries_is_shown_and_none_is_in_the_log() {
    let model = Rc::new(Windowed::default());
    let agent = set_up(&memory(), &model, |it| it.compaction.keep_messages = 3).build().unwrap();
    let mut seed: u64 = 7;
    let mut made = 0;
    for round in 0..120 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match (seed >> 60) % 4 {
            0 if round > 3 => block_on(agent.undo_compaction(&slot("s"))).unwrap(),
            1 if round > 3 => {
                made += 1;
                let text = format!("summary number {made}");
                model.summaries.borrow_mut().clear();
                model.summaries.borrow_mut().push_back(Ok(text));
                block_on(agent.compact(&slot("s"))).unwrap();
            }
            _ => talk(&agent, 1),
        }
        let (shown, log) = (context(&agent), history(&agent));
        assert!(log.iter().all(|it| it.name.as_deref() != Some("summary")), "none in the log");
        let summaries: Vec<_> =
            shown.iter().filter(|it| it.name.as_deref() == Some("summary")).collect();
        assert!(summaries.len() <= 1);
        let n_fixed = summaries.len();
        assert_eq!(shown[n_fixed..], log[log.len() + n_fixed - shown.len()..], "{round}");
        // The summary stands for exactly the messages that are not shown.
        if let Some(summary) = summaries.first() {
            let replaces = &summary.metadata.as_ref().unwrap()["replaces"];
            assert_eq!(replaces["messages"], log.len() - (shown.len() - 1));
            assert_eq!(replaces["first"], log[0].id.as_str());
        }
    }
    assert!(made > 10);
}

// C-04
#[test]
fn c_04_a_turn_that_conflicts_with_another_keeps_only_the_edits_of_its_own_messages() {
    let store: Rc<dyn Store> = Rc::new(MemoryStore::new());
    let host = Rc::new(HostHandle(TestHost::new()));
    let sessions = Sessions::new("helper", Rc::clone(&store), host, 1_000);
    let loaded = || block_on(sessions.load(&slot("s"), None)).unwrap();
    let accepted = |call: &str| {
        let mut session = loaded();
        let input = input(call);
        assert!(block_on(sessions.accept(&mut session, &input)).unwrap());
        (session, input)
    };
    let (mut session, one) = accepted("c1");
    block_on(sessions.save_turn(&mut session, &turn("e1", one, &["m1", "m2"]))).unwrap();
    let (mut ours, two) = accepted("c2");
    let before = ours.context.clone();
    // Another node saves a turn that our session has not read, without compaction.
    let mut theirs = loaded();
    let three = input("c3");
    assert!(block_on(sessions.accept(&mut theirs, &three)).unwrap());
    block_on(sessions.save_turn(&mut theirs, &turn("e3", three, &["m5"]))).unwrap();

    let evicted = |id: &str| Edit::Evicted { path: id.to_owned(), head: 1, tail: 1, by: None };
    let mut edits = Edits::default();
    edits.put("m1", evicted("m1"));
    edits.put("m4", evicted("m4"));
    let message = Rc::new(Message { id: "sum".to_owned(), ..said("short").remove(0) });
    let replaced = before.iter().map(|it| it.id.clone()).collect();
    let summary = Summary { id: "e-sum".to_owned(), message, cut: None, replaced };
    let view_change = ViewChange { summary: Some(summary), edits, revision: None };
    let mine = TurnCommit { view_change, ..turn("e2", two, &["m3", "m4"]) };
    block_on(sessions.save_turn(&mut ours, &mine)).unwrap();

    let stored: Session = loaded();
    let ids: Vec<_> = stored.context.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["m1", "m2", "m5", "m3", "m4"], "both turns, and no summary");
    let edits = &stored.head.as_ref().unwrap().edits;
    assert_eq!(edits.of("m4"), Some(&evicted("m4")), "the edit of our own message stays");
    assert_eq!(edits.of("m1"), None, "for shared messages the stored edits count");
    assert!(!stored.has_summary());
}

fn input(call_id: &str) -> Input {
    let mut messages = said(&format!("asked in {call_id}"));
    messages.iter_mut().for_each(|it| it.id = format!("q-{call_id}"));
    Input::from_json(&json!({ "callId": call_id, "messages": messages })).unwrap()
}

fn turn(id: &str, input: Input, messages: &[&str]) -> TurnCommit {
    let message = |id: &&str| {
        let draft = Message::draft(Role::Assistant, vec![Block::text(*id)]);
        Rc::new(Message { id: (*id).to_owned(), ..draft })
    };
    TurnCommit {
        told_tasks: Vec::new(),
        id: id.to_owned(),
        kind: EntryKind::Turn,
        input,
        joined: Vec::new(),
        messages: messages.iter().map(message).collect(),
        changes: Vec::new(),
        outcome: Some(Outcome::ended(lockgate::event::Reason::Stop)),
        facts: Facts::default(),
        view_change: ViewChange::default(),
        is_forgotten: false,
        left_out: None,
        pieces: Vec::new(),
    }
}

#[test]
fn the_usage_of_a_summary_is_part_of_the_usage_of_its_call() {
    let model = Rc::new(Windowed::default());
    let agent = set_up(&memory(), &model, by_trigger).build().unwrap();
    talk(&agent, 3);
    let reply = ask(&agent, "s", "and now?").unwrap();
    let tokens = |asked: &[Asked]| asked.iter().map(count).sum::<u64>();
    let (asked, condensed) = (model.asked.borrow(), model.condensed.borrow());
    let expected = tokens(&asked[asked.len() - 1..]) + tokens(&condensed);
    assert_eq!((condensed.len(), reply.usage.input_tokens), (1, expected));
    assert_eq!(reply.usage.output_tokens, 2);
}

#[test]
fn a_summary_names_a_way_to_the_replaced_messages_only_if_one_exists() {
    let told = |offload: bool, tools: bool| {
        let model = Rc::new(Windowed::default());
        let set = |options: &mut Options| {
            by_trigger(options);
            (options.compaction.offload, options.session_tools) = (offload, tools);
        };
        let agent = set_up(&memory(), &model, set).build().unwrap();
        talk(&agent, 4);
        assert_eq!(block_on(agent.state(&slot("s"))).unwrap().summary, "what was said");
        model.last()[0].text().contains("session_search")
    };
    assert!(told(true, true));
    assert!(!told(false, true) && !told(true, false));
}

#[test]
fn an_evicted_result_names_only_a_tool_of_the_agent() {
    let told = |session_tools: bool| {
        let model = Rc::new(Windowed::default());
        let options = Options {
            eviction: Some(Eviction::default()),
            session_tools,
            ..Options::new("helper")
        };
        let spec = lockgate::port::ToolSpec::new("letters", "letters", json!({ "type": "object" }));
        let agent = lockgate::engine::Builder::new(options)
            .model(Rc::clone(&model) as _)
            .store(memory())
            .host(Rc::new(HostHandle(TestHost::new())))
            .tool(Rc::new(Letters(Rc::new(spec))))
            .build()
            .unwrap();
        model.then_calls("1", "letters", &json!({ "n": 90_000 }));
        ask(&agent, "s", "go").unwrap();
        let shown = model.last();
        let result = shown.iter().find_map(|it| it.tool_results().next()).unwrap();
        let text = Block::text_of(&result.output);
        // Reading the state again shows the same.
        let stored = lockgate::json::to_text(&context(&agent));
        assert!(stored.contains(&Value::from(text.as_str()).to_string()));
        text
    };
    let (with, without) = (told(true), told(false));
    assert!(with.contains("session_search finds") && !with.contains("read_file"));
    assert!(!without.contains("session_search") && !without.contains("read_file"));
    assert!(without.contains("90000 characters"));
}

/// A model that loads files by their URL, and refuses a request whose file is gone.
struct Loads {
    inner: Rc<Windowed>,
    gone: Cell<bool>,
}

impl Model for Loads {
    fn id(&self, _: u32) -> String {
        "loads".to_owned()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let shows = lockgate::json::to_text(&request.messages).contains("https://x.test");
        if self.gone.get() && shows {
            let advice = Advice { without_files: true, ..Advice::default() };
            let refused = Error::new(ErrorKind::ModelBadRequest, "cannot download").advise(advice);
            return Box::pin(std::future::ready(Err(refused)));
        }
        self.inner.ask(request)
    }
}

// D-70 of the reference.
#[test]
fn files_that_no_longer_load_break_no_later_call_and_the_model_is_told() {
    let store = memory();
    let inner = Rc::new(Windowed::default());
    let model = Rc::new(Loads { inner: Rc::clone(&inner), gone: Cell::new(false) });
    let agent = set_up(&store, &inner, |_| {}).model(Rc::clone(&model) as _).build().unwrap();
    let picture = json!({ "type": "image", "name": "cat.png", "source": { "type": "url", "url": "https://x.test/cat.png" } });
    let shown = || {
        let blocks = vec![Block::text("what is this?"), Block::from_json(&picture).unwrap()];
        CallRequest { messages: vec![Message::draft(Role::User, blocks)], ..request("s", "") }
    };
    block_on(agent.begin(shown()).unwrap().finish()).unwrap();
    model.gone.set(true);
    let mut call = begin(&agent, "s", "and what colour had it?");
    let seen = events(&mut call);
    assert_eq!(names(&seen).last().unwrap(), "call-end");
    assert!(seen.iter().any(|it| matches!(it, Event::Warning { code, .. } if code == "media")));
    assert!(inner.last()[0].text().contains("cat.png. It can no longer be loaded"));
    // The log keeps the file, and the next request leaves it out from the start.
    assert!(lockgate::json::to_text(&history(&agent)).contains("https://x.test/cat.png"));
    let mut call = begin(&agent, "s", "thanks");
    assert!(!names(&events(&mut call)).contains(&"warning".to_owned()));
    // A file in the input of a call fails that call only: its caller must correct it.
    let failed = block_on(agent.begin(shown()).unwrap().finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::ModelBadRequest);
    ask(&agent, "s", "never mind").unwrap();
}

#[test]
fn a_call_stored_by_steps_around_a_summary_is_answered_whole_from_the_log() {
    let model = Rc::new(Windowed::default());
    let set = |options: &mut Options| {
        by_trigger(options);
        options.durability = Durability::Step;
    };
    let agent = set_up(&memory(), &model, set).build().unwrap();
    talk(&agent, 2);
    model.then_calls("1", "letters", &json!({ "n": 1 }));
    model.then_calls("2", "letters", &json!({ "n": 1 }));
    let named = || CallRequest { call_id: Some("mine".into()), ..request("s", "go on") };
    let first = block_on(agent.begin(named()).unwrap().finish()).unwrap();
    assert_eq!(model.condensed.borrow().len(), 1, "after the first step");
    let again = block_on(agent.begin(named()).unwrap().finish()).unwrap();
    assert_eq!((first.messages.len(), &first.messages), (6, &again.messages));
}
