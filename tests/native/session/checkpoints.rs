//! Checkpoints: what is stored of an answer while it is streamed, and what becomes of it after a crash.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::future::{poll_fn, ready};
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::support::*;
use lockgate::engine::{
    Agent, Builder, Call, CallRequest, Cause, CheckpointRate, Durability, Format, Options, Overlap,
    RuntimeContext,
};
use lockgate::error::{Error, ErrorKind, Result};
use lockgate::event::Event;
use lockgate::future::Local;
use lockgate::message::{Block, Delta, Finish, Message, ResultState, Role};
use lockgate::port::{
    Batch, Capabilities, Committed, Deltas, Model, Opinion, OwnDecision, Page, Record, Request,
    Shared, Store, Tool, ToolRun, ToolSpec,
};
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::search::Query;
use serde_json::{Value, json};

/// A model that sends what the test gives it, when the test gives it.
#[derive(Default)]
struct FedModel {
    fed: RefCell<VecDeque<Vec<Delta>>>,
    waker: RefCell<Option<Waker>>,
    requests: RefCell<Vec<Vec<Rc<Message>>>>,
}

struct FedDeltas<'a>(&'a FedModel);

impl FedModel {
    fn feed(&self, deltas: Vec<Delta>) {
        self.fed.borrow_mut().push_back(deltas);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Model for FedModel {
    fn id(&self, _: u32) -> String {
        "fed".to_owned()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        self.requests.borrow_mut().push(request.messages.to_vec());
        Box::pin(ready(Ok(Box::new(FedDeltas(self)) as Box<dyn Deltas>)))
    }
}

impl Deltas for FedDeltas<'_> {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        Box::pin(poll_fn(|context| match self.0.fed.borrow_mut().pop_front() {
            Some(deltas) => Poll::Ready(Ok(deltas)),
            None => {
                *self.0.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        }))
    }
}

/// A store that counts the bytes of pieces. Pieces can fail, or be held back until the test lets them arrive.
#[derive(Default)]
struct Watched {
    inner: MemoryStore,
    pieces: RefCell<Vec<usize>>,
    fails: Cell<bool>,
    holds: Cell<bool>,
    held: RefCell<Vec<Batch>>,
    shared: Cell<Option<Shared>>,
}

impl Watched {
    fn keys(&self) -> Vec<String> {
        let all = block_on(self.inner.list("", Page::default())).unwrap();
        all.into_iter().map(|(key, _)| key).collect()
    }

    fn stored_pieces(&self) -> Vec<String> {
        self.keys().into_iter().filter(|key| key.contains("/partial/")).collect()
    }

    /// The pieces that were held back arrive.
    fn deliver(&self) -> Vec<Committed> {
        let held = self.held.take();
        held.iter().map(|batch| block_on(self.inner.commit(batch)).unwrap()).collect()
    }

    fn remove_inputs(&self) {
        let inputs = self.keys().into_iter().filter(|key| key.contains("/input/")).collect();
        let head = self.keys().into_iter().find(|key| key.ends_with("/head")).unwrap();
        let record = block_on(self.inner.get(std::slice::from_ref(&head))).unwrap().remove(0);
        let put = vec![(head, unsealed(&record.unwrap().value))];
        let batch = Batch { remove: inputs, put, ..Batch::default() };
        block_on(self.inner.commit(&batch)).unwrap();
    }
}

impl Store for Watched {
    fn capabilities(&self) -> Capabilities {
        match self.shared.get() {
            Some(shared) => Capabilities::whole(shared),
            None => self.inner.capabilities(),
        }
    }

    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>> {
        self.inner.get(keys)
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>> {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>> {
        let of_pieces = batch.put.iter().filter(|(key, _)| key.contains("/partial/"));
        let bytes: usize = of_pieces.map(|(_, value)| value.len()).sum();
        if bytes == 0 {
            return self.inner.commit(batch);
        }
        if self.fails.get() {
            let why = Error::new(ErrorKind::StoreQuota, "the disk is full");
            return Box::pin(ready(Err(why)));
        }
        self.pieces.borrow_mut().push(bytes);
        if self.holds.get() {
            self.held.borrow_mut().push(batch.clone());
            return Box::pin(std::future::pending());
        }
        self.inner.commit(batch)
    }
}

/// A tool that asks a person if its name is "asks".
struct Working(Rc<ToolSpec>);

impl Tool for Working {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own =
            if self.0.name == "asks" { OwnDecision::Ask("why".into()) } else { OwnDecision::Pass };
        Box::pin(ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        match self.0.name.as_str() {
            "hangs" => Box::pin(std::future::pending()),
            _ => Box::pin(ready(Ok(vec![Block::text("done")]))),
        }
    }
}

/// An agent, its store, its model and its clock.
struct Stage {
    agent: Agent,
    store: Rc<Watched>,
    model: Rc<FedModel>,
    clock: Rc<TestHost>,
}

fn stage() -> Stage {
    Stage::over(&Rc::new(Watched::default()), |_| {})
}

impl Stage {
    fn over(store: &Rc<Watched>, set: impl FnOnce(&mut Options)) -> Stage {
        let (model, clock) = (Rc::<FedModel>::default(), TestHost::new());
        let mut options = Options::new("helper");
        set(&mut options);
        let mut builder = Builder::new(options)
            .model(Rc::clone(&model) as Rc<dyn Model>)
            .store(Rc::clone(store) as Rc<dyn Store>)
            .host(Rc::new(HostHandle(Rc::clone(&clock))));
        for name in ["asks", "works", "hangs"] {
            builder =
                builder.tool(Rc::new(Working(ToolSpec::new(name, "does it", json!({})).into())));
        }
        let agent = builder.build().unwrap();
        Stage { agent, store: Rc::clone(store), model, clock }
    }

    /// Another agent over the same store, as after a crash.
    fn reborn(&self) -> Stage {
        Stage::over(&self.store, |_| {})
    }

    fn asked(&self, text: &str) -> Call {
        let mut call = begin(&self.agent, "s1", text);
        moved(&mut call);
        call
    }

    /// The model sends deltas after this time.
    fn after(&self, ms: f64, deltas: Vec<Delta>, call: &mut Call) -> Vec<Event> {
        self.clock.pass(ms);
        self.model.feed(deltas);
        moved(call)
    }

    fn says(&self, ms: f64, text: &str, call: &mut Call) {
        self.after(ms, vec![Delta::Text(text.to_owned())], call);
    }

    fn shown(&self) -> Vec<String> {
        told(&self.agent, "s1")
    }

    fn history(&self) -> Vec<Rc<Message>> {
        block_on(self.agent.history(&slot("s1"), None, 100)).unwrap()
    }

    /// Answers the next question with this text.
    fn answers(&self, question: &str, answer: &str) {
        let mut call = begin(&self.agent, "s1", question);
        moved(&mut call);
        self.model.feed(vec![Delta::Text(answer.to_owned()), Delta::Finish(Finish::Stop)]);
        self.model.feed(Vec::new());
        block_on(call.finish()).unwrap();
    }
}

fn moved(call: &mut Call) -> Vec<Event> {
    let mut shown = Vec::new();
    loop {
        let mut next: Local<'_, _> = Box::pin(call.next());
        match poll_once(&mut next) {
            Poll::Ready(Some(event)) => shown.push(event.event),
            Poll::Ready(None) | Poll::Pending => return shown,
        }
    }
}

fn calls(name: &str) -> Vec<Delta> {
    let (id, arguments) = (Some("call-1".to_owned()), "{}".to_owned());
    let name = Some(name.to_owned());
    let call = Delta::ToolCall { index: 0, id, name, arguments, provider: None };
    vec![call, Delta::Finish(Finish::ToolCalls)]
}

fn thinks(text: &str) -> Delta {
    Delta::Thinking { text: text.to_owned(), signature: None }
}

/// The id under which the deltas of an answer were announced.
fn announced(events: &[Event]) -> String {
    let id = events.iter().find_map(|event| match event {
        Event::TextStart { message_id, .. } => Some(message_id.clone()),
        _ => None,
    });
    id.unwrap()
}

#[test]
fn after_a_crash_the_answer_is_there_up_to_the_last_checkpoint_with_the_announced_id() {
    let stage = stage();
    let mut call = stage.asked("tell me");
    let events = stage.after(10.0, vec![Delta::Text("Once upon ".into())], &mut call);
    stage.says(1_000.0, "a time ", &mut call);
    stage.says(500.0, "there was", &mut call);
    drop(call);
    let alive = stage.reborn();
    let seen = ["user: tell me", "assistant: once upon a time "];
    assert_eq!(alive.shown(), seen, "readers see it before anything is written");
    assert_eq!(alive.history()[1].id, announced(&events));
    alive.answers("go on", "there was a lock");
    let history = alive.history();
    assert_eq!(alive.shown()[..2], seen);
    assert_eq!((history[0].turn(), note_kind(&history[2])), (Some("interrupted"), Some("cut-off")));
    assert_eq!(history[1].id, announced(&events));
    assert_eq!(alive.shown()[3..], ["user: go on", "assistant: there was a lock"]);
    let texts: Vec<_> = alive.model.requests.borrow()[0].iter().map(|it| it.text()).collect();
    assert_eq!(texts[1], "Once upon a time ", "the model sees it too");
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

#[test]
fn a_call_that_ends_within_the_first_second_stores_no_piece() {
    let stage = stage();
    let mut call = stage.asked("hi");
    (0..9).for_each(|_| stage.says(100.0, "word ", &mut call));
    stage.after(90.0, vec![Delta::Finish(Finish::Stop)], &mut call);
    stage.model.feed(Vec::new());
    block_on(call.finish()).unwrap();
    assert_eq!(*stage.store.pieces.borrow(), Vec::<usize>::new());
}

#[test]
fn the_pieces_of_a_long_answer_have_at_most_twice_its_bytes_and_are_gone_after_it() {
    let stage = stage();
    let mut call = stage.asked("a long story");
    let text = "It was a dark and stormy night. ".repeat(5);
    (0..300).for_each(|_| stage.says(200.0, &text, &mut call));
    let pieces = stage.store.pieces.borrow().clone();
    assert!((55..=60).contains(&pieces.len()), "one piece a second: {}", pieces.len());
    let (written, answer) = (pieces.iter().sum::<usize>(), 300 * text.len());
    assert!(written >= answer * 9 / 10 && written <= 2 * answer, "{written} of {answer}");
    assert_eq!(stage.shown()[1].len(), "assistant: ".len() + answer);
    stage.after(0.0, vec![Delta::Finish(Finish::Stop)], &mut call);
    stage.model.feed(Vec::new());
    block_on(call.finish()).unwrap();
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
    assert_eq!(stage.shown()[1].len(), "assistant: ".len() + answer);
}

#[test]
fn a_store_that_machines_share_gets_a_piece_every_five_seconds() {
    for (shared, n_pieces) in [(Shared::Cluster, 2), (Shared::Host, 2), (Shared::Origin, 11)] {
        let stage = stage();
        stage.store.shared.set(Some(shared));
        let stage = stage.reborn();
        let mut call = stage.asked("count");
        (0..11).for_each(|_| stage.says(1_000.0, "one ", &mut call));
        assert_eq!(stage.store.pieces.borrow().len(), n_pieces, "{shared:?}");
    }
}

#[test]
fn the_option_sets_the_time_between_pieces_or_switches_them_off() {
    for (rate, n_pieces) in [(CheckpointRate::EveryMs(300), 10), (CheckpointRate::Never, 0)] {
        let stage = Stage::over(&Rc::default(), |options| options.checkpoints = rate);
        let mut call = stage.asked("count");
        (0..10).for_each(|_| stage.says(300.0, "one ", &mut call));
        stage.agent.checkpoint();
        moved(&mut call);
        assert_eq!(stage.store.pieces.borrow().len(), n_pieces, "{rate:?}");
    }
}

#[test]
fn a_checkpoint_can_be_forced_at_once() {
    let stage = stage();
    let mut call = stage.asked("quick");
    stage.says(10.0, "before the page went", &mut call);
    assert_eq!(stage.shown(), ["user: quick"]);
    stage.agent.checkpoint();
    moved(&mut call);
    assert_eq!(stage.shown(), ["user: quick", "assistant: before the page went"]);
}

#[test]
fn a_slow_store_gets_one_piece_at_a_time_and_the_call_does_not_wait_for_it() {
    let stage = stage();
    stage.store.holds.set(true);
    let mut call = stage.asked("go");
    (0..4).for_each(|_| stage.says(1_000.0, "word ", &mut call));
    assert_eq!(stage.store.pieces.borrow().len(), 1);
    stage.after(0.0, vec![Delta::Finish(Finish::Stop)], &mut call);
    stage.model.feed(Vec::new());
    assert_eq!(block_on(call.finish()).unwrap().text, "word word word word ");
    assert_eq!(stage.store.deliver(), [Committed::Conflict], "it arrives after the end");
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

#[test]
fn a_piece_that_arrives_before_the_end_is_removed_by_the_end() {
    let stage = stage();
    stage.store.holds.set(true);
    let mut call = stage.asked("go");
    stage.says(1_000.0, "word ", &mut call);
    assert_eq!(stage.store.deliver(), [Committed::Done]);
    call.cancel().ask(Cause::Stopped(Vec::new()));
    block_on(call.finish()).unwrap();
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
    assert_eq!(stage.shown(), ["user: go", "assistant: word "]);
}

#[test]
fn a_piece_that_arrives_after_a_recovery_or_a_deletion_leaves_nothing() {
    for is_deleted in [false, true] {
        let stage = stage();
        stage.store.holds.set(true);
        let mut call = stage.asked("go");
        stage.says(1_000.0, "word ", &mut call);
        let other = stage.reborn();
        match is_deleted {
            true => block_on(other.agent.delete_session(&slot("s1"))).unwrap(),
            false => drop(block_on(other.agent.append(&slot("s1"), Vec::new())).unwrap()),
        }
        assert_eq!(stage.store.deliver(), [Committed::Conflict]);
        assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
    }
}

#[test]
fn a_deletion_removes_the_pieces_of_a_running_call() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "word ", &mut call);
    assert_eq!(stage.store.stored_pieces().len(), 1);
    let other = stage.reborn();
    block_on(other.agent.delete_user(Some("alice"))).unwrap();
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

#[test]
fn a_piece_whose_write_failed_is_part_of_the_next_and_one_warning_says_so() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "one ", &mut call);
    stage.store.fails.set(true);
    let mut events = Vec::new();
    for _ in 0..3 {
        events.extend(stage.after(1_000.0, vec![Delta::Text("lost? ".into())], &mut call));
    }
    stage.store.fails.set(false);
    stage.says(1_000.0, "five", &mut call);
    let warnings = events
        .iter()
        .filter(|it| matches!(it, Event::Warning { code, .. } if code == "checkpoint"));
    assert_eq!(warnings.count(), 1);
    assert_eq!(stage.shown()[1], "assistant: one lost? lost? lost? five");
}

#[test]
fn a_piece_that_seemed_to_fail_and_arrives_late_doubles_nothing() {
    let stage = Stage::over(&Rc::default(), |options| options.timeouts.store = 2_000);
    stage.store.holds.set(true);
    let mut call = stage.asked("go");
    stage.says(1_000.0, "one ", &mut call);
    // The store does not answer in time. Then the same batch is sent again, and it does not answer either.
    stage.clock.pass(2_000.0);
    moved(&mut call);
    stage.clock.pass(2_000.0);
    moved(&mut call);
    let late = stage.store.held.take();
    stage.store.holds.set(false);
    stage.says(1_000.0, "two ", &mut call);
    assert_eq!(stage.shown()[1], "assistant: one two ");
    for batch in &late {
        block_on(stage.store.inner.commit(batch)).unwrap();
    }
    assert!(stage.store.stored_pieces().len() >= 2);
    assert_eq!(stage.shown()[1], "assistant: one two ");
}

#[test]
fn finished_steps_are_kept_and_a_tool_call_without_a_result_is_closed() {
    let stage = stage();
    let mut call = stage.asked("work");
    stage.after(10.0, vec![Delta::Text("First I work. ".into())], &mut call);
    stage.after(10.0, calls("works"), &mut call);
    stage.after(10.0, Vec::new(), &mut call);
    stage.after(10.0, vec![Delta::Text("Then I wait. ".into())], &mut call);
    stage.after(10.0, calls("hangs"), &mut call);
    // The end of a step is a moment for a checkpoint too.
    stage.after(1_000.0, Vec::new(), &mut call);
    drop(call);
    let alive = stage.reborn();
    block_on(alive.agent.append(&slot("s1"), Vec::new())).unwrap();
    let history = alive.history();
    let roles: Vec<Role> = history.iter().map(|it| it.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant, Tool, User]);
    let state = |index: usize| history[index].tool_results().next().unwrap().state;
    assert_eq!((state(2), state(4)), (ResultState::Success, ResultState::Interrupted));
    let calls = history.iter().flat_map(|it| it.tool_uses());
    assert!(calls.into_iter().all(|call| json!(call.state) == json!("finished")));
    assert_eq!(history[1].text(), "First I work. ");
}

#[test]
fn the_result_of_an_approved_tool_call_is_not_lost() {
    let stage = stage();
    let mut call = stage.asked("send it");
    stage.model.feed(calls("asks"));
    stage.model.feed(Vec::new());
    block_on(call.finish()).unwrap();
    let answers = vec![json!({ "toolCallId": "call-1", "approve": true })];
    let mut call = stage.agent.confirm(answers, RuntimeContext::new("alice", "s1")).unwrap();
    moved(&mut call);
    stage.says(1_000.0, "It is sent.", &mut call);
    drop(call);
    let alive = stage.reborn();
    alive.answers("well?", "yes");
    let history = alive.history();
    let results: Vec<_> = history.iter().flat_map(|it| it.tool_results()).collect();
    assert_eq!(results.len(), 1);
    assert_eq!(
        (results[0].state, Block::text_of(&results[0].output)),
        (ResultState::Success, "done".into())
    );
    assert_eq!(alive.shown()[3], "assistant: it is sent.");
}

#[test]
fn a_later_tool_call_with_the_id_of_an_approved_one_keeps_its_own_result() {
    let stage = stage();
    let mut call = stage.asked("send it");
    stage.model.feed(calls("asks"));
    stage.model.feed(Vec::new());
    block_on(call.finish()).unwrap();
    let answers = vec![json!({ "toolCallId": "call-1", "approve": true })];
    let mut call = stage.agent.confirm(answers, RuntimeContext::new("alice", "s1")).unwrap();
    moved(&mut call);
    stage.after(10.0, calls("works"), &mut call);
    stage.after(1_000.0, Vec::new(), &mut call);
    stage.says(1_000.0, "Both are done.", &mut call);
    drop(call);
    let alive = stage.reborn();
    block_on(alive.agent.append(&slot("s1"), Vec::new())).unwrap();
    let roles: Vec<Role> = alive.history().iter().map(|it| it.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant, Tool, Assistant, User]);
}

#[test]
fn steps_that_are_stored_are_not_stored_again_in_pieces() {
    let stage = Stage::over(&Rc::default(), |options| options.durability = Durability::Step);
    let mut call = stage.asked("work");
    stage.says(1_000.0, "First I work. ", &mut call);
    assert_eq!(stage.store.stored_pieces().len(), 1);
    stage.after(10.0, calls("works"), &mut call);
    stage.after(10.0, Vec::new(), &mut call);
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new(), "the step has removed it");
    stage.says(1_000.0, "Then I talk.", &mut call);
    assert_eq!(stage.store.stored_pieces().len(), 1);
    let expected = ["user: work", "assistant: first i work. ", "tool: ", "assistant: then i talk."];
    assert_eq!(stage.shown(), expected);
    drop(call);
    let alive = stage.reborn();
    assert_eq!(alive.shown(), expected);
    block_on(alive.agent.append(&slot("s1"), Vec::new())).unwrap();
    assert_eq!(alive.shown()[..4], expected);
}

#[test]
fn thinking_without_its_signature_is_shown_and_never_sent_back() {
    let stage = stage();
    let mut call = stage.asked("think");
    let provider = Delta::Provider(json!({ "model": "fed" }));
    stage.after(1_000.0, vec![thinks("hm, let me see"), provider], &mut call);
    drop(call);
    let alive = stage.reborn();
    block_on(alive.agent.append(&slot("s1"), Vec::new())).unwrap();
    let history = alive.history();
    let Block::Thinking { thinking, provider, .. } = &history[1].content[0] else {
        panic!("{history:?}");
    };
    assert_eq!((thinking.as_str(), provider), ("hm, let me see", &None));
    use lockgate::model::Dialect;
    use lockgate::model::transcript::{Recipient, repair};
    for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini] {
        let reader = Recipient { dialect, model: Some("fed"), is_strict: false };
        let turns = repair(&history, reader);
        let mut blocks = turns.iter().flat_map(|turn| &turn.blocks);
        assert!(!blocks.any(|it| matches!(**it, Block::Thinking { .. })), "{dialect:?}");
    }
}

#[test]
fn a_call_that_joins_divides_the_answer() {
    let stage = stage();
    let mut call = stage.asked("first");
    stage.says(10.0, "To the first. ", &mut call);
    let request = CallRequest { overlap: Overlap::Steer, ..request("s1", "second") };
    let mut joining = stage.agent.begin(request).unwrap();
    moved(&mut joining);
    stage.after(10.0, calls("works"), &mut call);
    stage.after(10.0, Vec::new(), &mut call);
    stage.says(1_000.0, "To both.", &mut call);
    let expected = [
        "user: first",
        "assistant: to the first. ",
        "tool: ",
        "user: second",
        "assistant: to both.",
    ];
    assert_eq!(stage.shown(), expected);
    drop((call, joining));
    let alive = stage.reborn();
    alive.answers("third", "fine");
    let shown: Vec<_> = alive.shown().into_iter().filter(|it| !it.contains("cut off")).collect();
    assert_eq!(shown[..5], expected);
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

#[test]
fn a_resend_that_was_cut_off_is_a_branch_with_its_partial_answer() {
    let stage = stage();
    stage.answers("question", "first answer");
    let request = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    let mut call = stage.agent.begin(request).unwrap();
    moved(&mut call);
    stage.says(1_000.0, "second ans", &mut call);
    assert_eq!(stage.shown(), ["user: question", "assistant: second ans"]);
    drop(call);
    let alive = stage.reborn();
    assert_eq!(alive.shown(), ["user: question", "assistant: first answer"]);
    block_on(alive.agent.append(&slot("s1"), Vec::new())).unwrap();
    assert_eq!(alive.shown(), ["user: question", "assistant: first answer"]);
    let branches = block_on(alive.agent.branches(&slot("s1"))).unwrap();
    let other = branches.iter().find(|branch| !branch.current).unwrap();
    let tried = block_on(alive.agent.history_of(&slot("s1"), Some(&other.id), None, 9)).unwrap();
    assert_eq!(tried[1].text(), "second ans");
}

#[test]
fn a_whole_answer_that_comes_after_the_recovery_of_its_part_hides_nothing() {
    let stage = stage();
    let mut call = stage.asked("question");
    stage.says(1_000.0, "half an ", &mut call);
    // A browser without locks: another tab takes the call for dead.
    let other = stage.reborn();
    block_on(other.agent.append(&slot("s1"), Vec::new())).unwrap();
    stage.after(0.0, vec![Delta::Text("answer".into()), Delta::Finish(Finish::Stop)], &mut call);
    stage.model.feed(Vec::new());
    let failed = block_on(call.finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Superseded);
    assert_eq!(other.shown()[..2], ["user: question", "assistant: half an "]);
    let branches = block_on(other.agent.branches(&slot("s1"))).unwrap();
    let side = branches.iter().find(|branch| !branch.current).unwrap();
    let side = block_on(other.agent.history_of(&slot("s1"), Some(&side.id), None, 9)).unwrap();
    assert_eq!(side[1].text(), "half an ");
    assert_eq!(side.last().unwrap().text(), "half an answer");
    assert_ne!(side[1].id, side.last().unwrap().id);
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

/// The messages of each branch.
fn of_all_branches(agent: &Agent) -> Vec<Vec<Rc<Message>>> {
    let branches = block_on(agent.branches(&slot("s1"))).unwrap();
    let history = |id: &str| block_on(agent.history_of(&slot("s1"), Some(id), None, 99)).unwrap();
    branches.iter().map(|branch| history(&branch.id)).collect()
}

#[test]
fn an_answer_to_a_call_that_joined_a_resend_hides_nothing_when_it_comes_after_its_recovery() {
    for is_whole in [false, true] {
        let stage = stage();
        stage.answers("question", "first answer");
        let again = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
        let mut call = stage.agent.begin(again).unwrap();
        moved(&mut call);
        let joins = CallRequest { overlap: Overlap::Steer, ..request("s1", "joined") };
        let mut joining = stage.agent.begin(joins).unwrap();
        moved(&mut joining);
        stage.after(10.0, calls("works"), &mut call);
        stage.after(10.0, Vec::new(), &mut call);
        stage.says(1_000.0, "half an ", &mut call);
        if is_whole {
            // The piece has the whole message with the tool call and its result, and nothing else comes before the recovery.
            let more = vec![Delta::Text("answer".into())];
            stage.after(0.0, [more, calls("works")].concat(), &mut call);
            stage.after(1_000.0, Vec::new(), &mut call);
        }
        // A browser without locks: another tab takes both calls for dead.
        let other = stage.reborn();
        block_on(other.agent.append(&slot("s1"), Vec::new())).unwrap();
        let rest = vec![Delta::Text("answer".into()), Delta::Finish(Finish::Stop)];
        stage.after(0.0, rest, &mut call);
        stage.model.feed(Vec::new());
        let failed = block_on(call.finish()).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::Superseded);
        let branches = of_all_branches(&other.agent);
        let all: Vec<_> = branches.iter().flatten().filter(|it| it.role != Role::User).collect();
        let halves = all.iter().filter(|it| it.text().starts_with("half an ")).collect::<Vec<_>>();
        assert_eq!(halves.len(), 2, "one that was recovered, and one on the side branch");
        assert_ne!(halves[0].id, halves[1].id);
        assert_eq!(halves.iter().any(|it| it.text() == "half an "), !is_whole);
        let contents = |id: &str| {
            let found = all.iter().filter(|it| it.id == id).map(|it| &it.content);
            found.map(|it| format!("{it:?}")).collect::<BTreeSet<_>>()
        };
        for message in &all {
            assert_eq!(contents(&message.id).len(), 1, "{} is one message", message.id);
        }
    }
}

#[test]
fn the_result_of_a_later_tool_call_with_the_same_id_stays_on_the_side_branch() {
    let stage = stage();
    let mut call = stage.asked("work twice");
    stage.after(10.0, calls("works"), &mut call);
    stage.after(10.0, Vec::new(), &mut call);
    stage.says(1_000.0, "once more ", &mut call);
    let other = stage.reborn();
    block_on(other.agent.append(&slot("s1"), Vec::new())).unwrap();
    stage.after(0.0, calls("works"), &mut call);
    stage.after(0.0, Vec::new(), &mut call);
    stage.after(0.0, vec![Delta::Text("done".into()), Delta::Finish(Finish::Stop)], &mut call);
    stage.model.feed(Vec::new());
    let failed = block_on(call.finish()).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Superseded);
    let branches = block_on(other.agent.branches(&slot("s1"))).unwrap();
    let side = branches.iter().find(|branch| !branch.current).unwrap();
    let side = block_on(other.agent.history_of(&slot("s1"), Some(&side.id), None, 99)).unwrap();
    let last: Vec<_> = side.iter().rev().take(3).map(|it| (it.role, it.text())).collect();
    let expected = [
        (Role::Assistant, "done".to_owned()),
        (Role::Tool, String::new()),
        (Role::Assistant, "once more ".to_owned()),
    ];
    assert_eq!(last, expected);
}

#[test]
fn pieces_without_their_input_are_ignored_and_removed_by_the_next_call() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "word ", &mut call);
    drop(call);
    // An older version has removed the input, and does not know the pieces.
    stage.store.remove_inputs();
    let alive = stage.reborn();
    assert_eq!(alive.shown(), Vec::<String>::new());
    alive.answers("hi", "hello");
    assert_eq!(alive.shown(), ["user: hi", "assistant: hello"]);
    assert_eq!(stage.store.stored_pieces(), Vec::<String>::new());
}

#[test]
fn a_piece_that_cannot_be_read_is_an_error_until_the_session_is_repaired() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "word ", &mut call);
    drop(call);
    let key = stage.store.stored_pieces().remove(0);
    let batch = Batch { put: vec![(key, b"{".to_vec())], ..Batch::default() };
    block_on(stage.store.inner.commit(&batch)).unwrap();
    let alive = stage.reborn();
    let error = block_on(alive.agent.history(&slot("s1"), None, 9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    block_on(alive.agent.repair_session(&slot("s1"))).unwrap();
    assert_eq!(alive.shown()[0], "user: go");
    assert!(stage.store.keys().iter().any(|key| key.contains("/quarantine/")));
}

#[test]
fn the_counts_and_the_line_of_the_list_know_the_stored_part_of_an_answer() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "half an answer", &mut call);
    for stage in [stage.reborn(), stage] {
        let info = block_on(stage.agent.session(&slot("s1"))).unwrap().unwrap();
        let list = block_on(stage.agent.list_sessions(Some("alice"), Page::default())).unwrap();
        for info in [&info, &list[0]] {
            assert_eq!((info.messages, info.summary.as_str()), (2, "half an answer"));
        }
    }
    drop(call);
}

#[test]
fn a_search_and_a_fork_find_the_stored_part_of_an_answer() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "half a walrus", &mut call);
    for stage in [&stage.reborn(), &stage] {
        let query = Query { text: "walrus", user: Some("alice"), session: None, limit: 9 };
        let hits = block_on(stage.agent.search(query)).unwrap();
        assert_eq!((hits.len(), hits[0].role), (1, Role::Assistant));
    }
    drop(call);
    let alive = stage.reborn();
    block_on(alive.agent.fork(&slot("s1"), &slot("other"), None)).unwrap();
    assert_eq!(told(&alive.agent, "other")[..2], ["user: go", "assistant: half a walrus"]);
}

#[test]
fn the_document_of_an_export_has_the_stored_part_of_an_answer() {
    let stage = stage();
    let mut call = stage.asked("go");
    stage.says(1_000.0, "half an answer", &mut call);
    drop(call);
    let alive = stage.reborn();
    let slot = slot("s1");
    let exporting = alive.agent.export_session(&slot, Format::Lockgate);
    let document: Value = serde_json::from_str(&block_on(exporting).unwrap()).unwrap();
    assert!(document.to_string().contains("half an answer"), "{document}");
}
