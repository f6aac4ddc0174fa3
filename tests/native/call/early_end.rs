//! Calls that end before their time: interrupted, refused, shut down; and what waits behind a tool.

use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use lockgate::engine::{Agent, Call, CallRequest, Overlap};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::message::Block;
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Tool, ToolRun, ToolSpec};
use serde_json::json;

/// A tool that never ends.
struct Hangs(Rc<ToolSpec>);

impl Hangs {
    fn new() -> Rc<Hangs> {
        let input_schema = json!({ "type": "object" });
        let (name, description) = ("hangs".to_owned(), "hangs".to_owned());
        let spec = ToolSpec::new(name, description, input_schema);
        Rc::new(Hangs(Rc::new(spec)))
    }
}

impl Tool for Hangs {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::pending())
    }
}

/// Runs a call until it waits, and returns its events.
fn pull(call: &mut Call) -> Vec<Event> {
    let mut events = Vec::new();
    while let Poll::Ready(Some(event)) = poll_once(&mut Box::pin(call.next())) {
        events.push(event.event);
    }
    events
}

fn overlapping(agent: &Agent, overlap: Overlap) -> Result<Call> {
    agent.begin(CallRequest { overlap, ..request("s1", "second") })
}

fn talking() -> (Agent, Call) {
    let agent = agent(ScriptedModel::new([Line::Hangs(words("one ")), Line::says("two")]));
    let mut call = begin(&agent, "s1", "first");
    pull(&mut call);
    (agent, call)
}

#[test]
fn r21_an_interrupt_reaches_only_the_running_call_of_its_session() {
    let (agent, mut call) = talking();
    assert!(!agent.interrupt(&slot("s2"), Vec::new()));
    assert!(agent.interrupt(&slot("s1"), said("and this")));
    assert_eq!(block_on(call.finish()).unwrap().reason, Reason::Interrupted);
    assert!(!agent.interrupt(&slot("s1"), Vec::new()));
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one ", "user: and this"]);
}

#[test]
fn a_call_with_overlap_reject_is_refused_on_a_busy_session() {
    let (agent, _call) = talking();
    assert_eq!(overlapping(&agent, Overlap::Reject).err().unwrap().kind(), ErrorKind::Busy);
    assert!(agent.begin(CallRequest { overlap: Overlap::Reject, ..request("s2", "hi") }).is_ok());
}

#[test]
fn a_call_that_interrupts_still_waits_for_the_save() {
    let (agent, mut first) = talking();
    let mut second = overlapping(&agent, Overlap::Interrupt).unwrap();
    assert!(!pull(&mut second).iter().any(|event| matches!(event, Event::Accepted { .. })));
    assert_eq!(block_on(first.finish()).unwrap().reason, Reason::Interrupted);
    assert_eq!(block_on(second.finish()).unwrap().text, "two");
    assert_eq!(
        told(&agent, "s1"),
        ["user: first", "assistant: one ", "user: second", "assistant: two"]
    );
}

#[test]
fn r24_a_shutdown_refuses_new_calls_ends_waiting_calls_and_saves_running_calls() {
    let (agent, mut running) = talking();
    let mut waiting = begin(&agent, "s1", "waits");
    pull(&mut waiting);
    agent.shut_down();
    assert_eq!(agent.begin(request("s2", "new")).err().unwrap().kind(), ErrorKind::ShuttingDown);
    assert_eq!(block_on(waiting.finish()).unwrap_err().error.kind(), ErrorKind::ShuttingDown);
    assert!(pull(&mut running).is_empty(), "a running call continues to its next boundary");
    agent.shut_down_now();
    let failed = block_on(running.finish()).unwrap_err();
    assert_eq!(
        (failed.error.kind(), failed.partial.unwrap().text()),
        (ErrorKind::ShuttingDown, "one ".into())
    );
    assert!(block_on(agent.state(&slot("s1"))).unwrap().facts.shutdown_interrupted);
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one "]);
}

#[test]
fn r24_r25_a_question_repeated_after_a_shutdown_is_stored_once_and_a_different_one_is_added() {
    for (question, expected) in [("first", 3), ("something else", 4)] {
        let store = memory();
        let dying = agent_on(&store, ScriptedModel::new([Line::Hangs(words("one "))]));
        let mut call = begin(&dying, "s1", "first");
        pull(&mut call);
        dying.shut_down_now();
        block_on(call.finish()).unwrap_err();
        let next = agent_on(&store, ScriptedModel::new([Line::says("two")]));
        assert_eq!(ask(&next, "s1", question).unwrap().text, "two");
        assert_eq!(told(&next, "s1").len(), expected, "{question}");
        assert!(!block_on(next.state(&slot("s1"))).unwrap().facts.shutdown_interrupted);
    }
}

#[test]
fn a_call_past_its_time_limit_is_saved_and_fails_with_timeout() {
    let host = TestHost::new();
    let mut options = lockgate::engine::Options::new("helper");
    options.timeouts.call = Some(3_000);
    let agent = lockgate::engine::Builder::new(options)
        .model(ScriptedModel::new([Line::Hangs(words("one ")), Line::says("two")]))
        .store(memory())
        .host(Rc::new(HostHandle(Rc::clone(&host))))
        .build()
        .unwrap();
    let mut call = begin(&agent, "s1", "count");
    pull(&mut call);
    host.pass(3_000.0);
    let failed = block_on(call.finish()).unwrap_err();
    assert_eq!(
        (failed.error.kind(), failed.partial.unwrap().text()),
        (ErrorKind::Timeout, "one ".into())
    );
    assert_eq!(told(&agent, "s1"), ["user: count", "assistant: one "]);
    assert_eq!(ask(&agent, "s1", "again").unwrap().text, "two");
}

#[test]
fn g_05_a_call_that_waits_long_for_a_tool_gets_a_warning_with_the_tool_s_name() {
    let host = TestHost::new();
    let model = ScriptedModel::new([Line::calls("hangs", &json!({})), Line::says("two")]);
    let builder = builder_on(&memory(), model).host(Rc::new(HostHandle(Rc::clone(&host))));
    let agent = builder.tool(Hangs::new()).build().unwrap();
    let (mut holder, mut waiter) = (begin(&agent, "s1", "first"), begin(&agent, "s1", "second"));
    pull(&mut holder);
    pull(&mut waiter);
    host.pass(5_000.0);
    let events = pull(&mut waiter);
    assert!(
        matches!(&events[..], [Event::Warning { code, message }] if code == "waiting" && message.contains("hangs"))
    );
}

#[test]
fn g_03_r5_r22_a_call_stopped_at_any_point_ends_once_and_leaves_the_session_in_order() {
    use lockgate::engine::Cause;
    let causes = [
        Cause::Stopped(Vec::new()),
        Cause::Aborted,
        Cause::TimedOut,
        Cause::Shutdown,
        Cause::TakenOver,
    ];
    for cause in causes {
        let mut n_points = 0;
        while is_in_order_after(&cause, n_points) {
            n_points += 1;
        }
        assert!(n_points > 10, "{cause:?}: only {n_points} points");
    }
}

/// Ends a call with three tools after this many polls, and checks the session. `false`: the call had ended before.
fn is_in_order_after(cause: &lockgate::engine::Cause, n_polls: usize) -> bool {
    let calls = [("a", "echo", json!({})), ("b", "echo", json!({})), ("c", "echo", json!({}))];
    let lines =
        [Line::calls_all(&calls), Line::says("all done"), Line::says("next"), Line::says("more")];
    let store: Rc<dyn lockgate::port::Store> =
        Rc::new(Yielding(lockgate::store::backend::memory_store::MemoryStore::new()));
    let builder = builder_on(&store, ScriptedModel::new(lines));
    let agent = builder.tool(Rc::new(Echo::new())).build().unwrap();
    let mut call = begin(&agent, "s1", "go");
    let mut n_last = 0;
    for _ in 0..n_polls {
        match call.poll_batch(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(events) if events.is_empty() => return false,
            Poll::Ready(events) => n_last += events.iter().filter(|it| is_terminal(it)).count(),
            Poll::Pending => {}
        }
    }
    call.cancel().ask(cause.clone());
    while let Some(event) = block_on(call.next()) {
        n_last += usize::from(is_terminal(&event.event));
    }
    assert_eq!(n_last, 1, "{cause:?} at point {n_polls}");
    let text = serde_json::to_string(&block_on(agent.state(&slot("s1"))).unwrap().context).unwrap();
    assert_eq!(text.matches("\"tool_use\"").count(), text.matches("\"tool_result\"").count());
    assert!(!text.contains("\"pending\""));
    assert!(ask(&agent, "s1", "again").is_ok() && agent.n_busy() == 0);
    true
}

fn is_terminal(event: &Event) -> bool {
    matches!(event, Event::CallEnd { .. } | Event::Error { .. })
}

/// A tool that waits once before it answers.
struct Echo(Rc<ToolSpec>);

impl Echo {
    fn new() -> Echo {
        Echo(Rc::new(ToolSpec { name: "echo".into(), ..(*Hangs::new().0).clone() }))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move {
            yield_once().await;
            Ok(vec![Block::text(run.tool_call_id)])
        })
    }
}

/// A memory store that waits once in every operation.
struct Yielding(lockgate::store::backend::memory_store::MemoryStore);

impl lockgate::port::Store for Yielding {
    fn capabilities(&self) -> lockgate::port::Capabilities {
        self.0.capabilities()
    }

    fn get<'a>(
        &'a self,
        keys: &'a [String],
    ) -> Local<'a, Result<Vec<Option<lockgate::port::Record>>>> {
        Box::pin(async move {
            yield_once().await;
            self.0.get(keys).await
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        page: lockgate::port::Page,
    ) -> Local<'a, Result<Vec<(String, lockgate::port::Record)>>> {
        Box::pin(async move {
            yield_once().await;
            self.0.list(prefix, page).await
        })
    }

    fn commit<'a>(
        &'a self,
        batch: &'a lockgate::port::Batch,
    ) -> Local<'a, Result<lockgate::port::Committed>> {
        Box::pin(async move {
            yield_once().await;
            self.0.commit(batch).await
        })
    }
}

#[test]
fn r24_at_a_shutdown_a_running_call_continues_to_its_next_boundary_and_reports_the_shutdown() {
    let model = ScriptedModel::new([Line::calls("echo", &json!({})), Line::says("never asked")]);
    let agent = builder_on(&memory(), Rc::clone(&model) as _).tool(Rc::new(Echo::new())).build();
    let agent = agent.unwrap();
    let mut call = begin(&agent, "s1", "go");
    while let Some(event) = block_on(call.next()) {
        if matches!(event.event, Event::ToolCallEnd { .. }) {
            agent.shut_down();
        }
    }
    let failed = call.ended().unwrap().clone().unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::ShuttingDown);
    let state = block_on(agent.state(&slot("s1"))).unwrap();
    assert!(state.facts.shutdown_interrupted);
    assert_eq!(model.requests().len(), 1, "the model is not asked again");
    let told = told(&agent, "s1");
    assert!(told[0] == "user: go" && told.len() > 1, "{told:?}");
}

#[test]
fn r15_an_interrupt_leaves_nothing_in_the_stored_state() {
    let (agent, mut call) = talking();
    agent.interrupt(&slot("s1"), Vec::new());
    block_on(call.finish()).unwrap();
    let state = json!(block_on(agent.state(&slot("s1"))).unwrap());
    assert_eq!(state["shutdown_interrupted"], json!(false));
    assert!(!state.to_string().to_lowercase().contains("cancel"));
    let keys: Vec<_> =
        state.as_object().unwrap().keys().filter(|key| key.contains("interrupt")).collect();
    assert_eq!(keys, ["shutdown_interrupted"]);
    assert_eq!(ask(&agent, "s1", "go on").unwrap().reason, Reason::Stop);
}

#[test]
fn r27_a_call_whose_closing_answer_fails_fails_and_is_saved() {
    // The reference answers with the error as text. Our call fails, and the turn is kept.
    let lines = [Line::calls("echo", &json!({})), Line::fails(ErrorKind::ModelAuth)];
    let mut options = lockgate::engine::Options::new("helper");
    options.max_iterations = 1;
    let agent = lockgate::engine::Builder::new(options)
        .model(ScriptedModel::new(lines))
        .store(memory())
        .host(Rc::new(HostHandle(TestHost::new())))
        .tool(Rc::new(Echo::new()))
        .build()
        .unwrap();
    assert_eq!(ask(&agent, "s1", "go").unwrap_err().error.kind(), ErrorKind::ModelAuth);
    assert_eq!(told(&agent, "s1").len(), 3, "the question, the call and its result");
}
