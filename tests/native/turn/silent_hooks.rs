//! Hooks that never answer: a call does not wait for them when it is told to end, and at their deadline at the latest.

use std::cell::Cell;
use std::future::{pending, ready};
use std::rc::Rc;
use std::task::Poll;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Call, Cause, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::event::{Event, Reason};
use lockgate::future::Local;
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Hook, HookRun, Point, ToolSpec};
use serde_json::{Value, json};

/// A hook that does not answer the first time that it is asked at a point.
struct Silent {
    point: Point,
    is_silent: Cell<bool>,
}

impl Hook for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn is_at(&self, point: Point) -> bool {
        point == self.point
    }

    fn at<'a>(&'a self, point: Point, given: &str, _: HookRun<'a>) -> Local<'a, Result<Value>> {
        if self.is_silent.replace(false) {
            return Box::pin(pending());
        }
        let kept = match point {
            Point::SystemPrompt => serde_json::from_str(given).unwrap(),
            _ => Value::Null,
        };
        Box::pin(ready(Ok(kept)))
    }
}

/// A call that waits for the silent hook.
struct Waiting {
    agent: Agent,
    host: Rc<TestHost>,
    call: Call,
    events: Vec<Event>,
}

impl Waiting {
    fn at(point: Point) -> Waiting {
        Waiting::with(point, ScriptedModel::new(script()), |_| {})
    }

    fn with(point: Point, model: Rc<ScriptedModel>, set: impl FnOnce(&mut Options)) -> Waiting {
        let host = TestHost::new();
        let mut options = Options::new("helper");
        set(&mut options);
        let spec = ToolSpec::new("echo", "echoes", json!({ "type": "object" }));
        let agent = Builder::new(options)
            .model(model)
            .store(memory())
            .host(Rc::new(HostHandle(Rc::clone(&host))))
            .tool(Rc::new(Named(Rc::new(spec))))
            .hook(Rc::new(Silent { point, is_silent: Cell::new(true) }))
            .build()
            .unwrap();
        let call = begin(&agent, "s1", "go");
        let mut waiting = Waiting { agent, host, call, events: Vec::new() };
        waiting.pull();
        assert!(waiting.call.ended().is_none(), "{point:?}: the hook is waited for");
        waiting
    }

    /// Runs the call until it waits.
    fn pull(&mut self) {
        while let Poll::Ready(Some(event)) = poll_once(&mut Box::pin(self.call.next())) {
            self.events.push(event.event);
        }
    }

    /// The reason of the reply, or the kind of the error.
    fn end(&mut self) -> std::result::Result<Reason, ErrorKind> {
        self.pull();
        let ended = self.call.ended().expect("the call waits for the hook");
        ended.as_ref().map(|reply| reply.reason).map_err(|failed| failed.error.kind())
    }

    fn warnings(&self) -> Vec<&str> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning { code, message } if code == "middleware" => Some(message.as_str()),
            _ => None,
        });
        warnings.collect()
    }

    /// The question is stored, every tool call has its result, and the next call is answered.
    fn check_session(&self, point: Point) {
        assert_eq!(told(&self.agent, "s1")[0], "user: go", "{point:?}");
        let state = block_on(self.agent.state(&slot("s1"))).unwrap();
        let text = serde_json::to_string(&state.context).unwrap();
        let [calls, results] =
            ["tool_use", "tool_result"].map(|it| text.matches(&format!("\"{it}\"")).count());
        assert_eq!(calls, results, "{point:?}: {text}");
        let answered = poll_once(&mut Box::pin(begin(&self.agent, "s1", "next").finish()));
        assert!(matches!(answered, Poll::Ready(Ok(_))), "{point:?}: {answered:?}");
    }
}

/// A turn with a tool call, and the turns after it.
fn script() -> Vec<Line> {
    let call = Line::calls("echo", &json!({}));
    [call].into_iter().chain((0..3).map(|_| Line::says("done"))).collect()
}

#[test]
fn a_hook_that_never_answers_fails_the_call_at_its_deadline_with_the_names_of_middleware_and_hook()
{
    for point in Point::ALL.iter().copied() {
        let mut waiting = Waiting::at(point);
        waiting.host.pass(29_999.0);
        waiting.pull();
        assert!(waiting.call.ended().is_none(), "{point:?}");
        waiting.host.pass(1.0);
        let expected =
            if point == Point::OnEnd { Ok(Reason::Stop) } else { Err(ErrorKind::Middleware) };
        assert_eq!(waiting.end(), expected, "{point:?}");
        let says = match waiting.call.ended() {
            Some(Err(failed)) => failed.error.message().to_owned(),
            _ => waiting.warnings().concat(),
        };
        let expected =
            format!("{} of the middleware \"silent\" did not finish within 30000 ms", point.word());
        assert_eq!(says, expected);
        waiting.check_session(point);
    }
}

#[test]
fn the_deadline_of_hooks_is_an_option() {
    let model = ScriptedModel::new(script());
    let mut waiting = Waiting::with(Point::OnCall, model, |options| options.timeouts.hook = 50);
    waiting.host.pass(50.0);
    assert_eq!(waiting.end(), Err(ErrorKind::Middleware));
}

#[test]
fn a_stop_and_an_abort_end_a_call_at_once_in_every_hook() {
    for point in Point::ALL.iter().copied() {
        for (cause, expected) in [
            (Cause::Stopped(Vec::new()), Ok(Reason::Interrupted)),
            (Cause::Aborted, Err(ErrorKind::Aborted)),
        ] {
            let mut waiting = Waiting::at(point);
            waiting.call.cancel().ask(cause);
            // The outcome was stored before onEnd, so it stays.
            let expected = if point == Point::OnEnd { Ok(Reason::Stop) } else { expected };
            assert_eq!(waiting.end(), expected, "{point:?}");
            waiting.check_session(point);
        }
    }
}

#[test]
fn the_deadline_of_a_call_ends_it_at_once_in_every_hook() {
    for point in Point::ALL.iter().copied() {
        let model = ScriptedModel::new(script());
        let mut waiting =
            Waiting::with(point, model, |options| options.timeouts.call = Some(1_000));
        waiting.host.pass(1_000.0);
        // The deadline wakes the call.
        waiting.pull();
        let expected =
            if point == Point::OnEnd { Ok(Reason::Stop) } else { Err(ErrorKind::Timeout) };
        assert_eq!(waiting.end(), expected, "{point:?}");
        waiting.check_session(point);
    }
}

#[test]
fn a_deletion_ends_a_call_at_once_in_every_hook() {
    for point in Point::ALL.iter().copied() {
        let mut waiting = Waiting::at(point);
        let mut deleting = waiting.agent.delete_session(&slot("s1"));
        let expected =
            if point == Point::OnEnd { Ok(Reason::Stop) } else { Err(ErrorKind::NoSuchSession) };
        assert_eq!(waiting.end(), expected, "{point:?}");
        assert!(matches!(poll_once(&mut deleting), Poll::Ready(Ok(()))), "{point:?}");
        assert_eq!(told(&waiting.agent, "s1"), [""; 0], "{point:?}");
    }
}

#[test]
fn a_call_that_is_stopped_before_it_reaches_the_model_sends_nothing() {
    for point in [Point::OnCall, Point::SystemPrompt, Point::ReviseContext, Point::BeforeModel] {
        let model = ScriptedModel::new(script());
        let mut waiting = Waiting::with(point, Rc::clone(&model), |_| {});
        waiting.call.cancel().ask(Cause::Stopped(Vec::new()));
        assert_eq!(waiting.end(), Ok(Reason::Interrupted), "{point:?}");
        assert_eq!(model.requests().len(), 0, "{point:?}");
    }
}

#[test]
fn a_stop_during_after_model_keeps_the_text_of_the_answer() {
    let model = ScriptedModel::new([Line::says("all of it"), Line::says("done")]);
    let mut waiting = Waiting::with(Point::AfterModel, model, |_| {});
    waiting.call.cancel().ask(Cause::Stopped(Vec::new()));
    assert_eq!(waiting.end(), Ok(Reason::Interrupted));
    assert_eq!(told(&waiting.agent, "s1"), ["user: go", "assistant: all of it"]);
}

#[test]
fn a_stopped_call_waits_a_second_for_its_on_end_hooks_and_a_second_stop_ends_that_too() {
    let hangs = || ScriptedModel::new([Line::Hangs(Vec::new()), Line::says("done")]);
    let stopped = || {
        let mut waiting = Waiting::with(Point::OnEnd, hangs(), |_| {});
        waiting.call.cancel().ask(Cause::Stopped(Vec::new()));
        waiting.pull();
        assert!(waiting.call.ended().is_none(), "the hook may finish");
        waiting
    };
    let mut patient = stopped();
    patient.host.pass(1_000.0);
    assert_eq!(patient.end(), Ok(Reason::Interrupted));
    assert_eq!(
        patient.warnings(),
        ["the call did not wait for onEnd of the middleware \"silent\""]
    );
    let mut hurried = stopped();
    hurried.call.cancel().ask(Cause::Aborted);
    assert_eq!(hurried.end(), Ok(Reason::Interrupted));
    hurried.check_session(Point::OnEnd);
}
