//! A conversation goes on as long as prompt, tools and newest turn fit the window, also if every summary fails.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, pending, ready};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::Chance;
use crate::providers::refused;
use lockgate::engine::{Agent, Builder, CallRequest, Durability, Options};
use lockgate::error::{Advice, Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::json::to_text;
use lockgate::message::{Block, Delta, Finish, Message, Note, Role};
use lockgate::policy::compaction::When;
use lockgate::policy::summary;
use lockgate::port::{Deltas, Host, Model, Request, Store, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use serde_json::json;

/// The tokens that every request of the model has besides its texts.
const OVERHEAD: f64 = 20.0;

/// The tokens that the note about messages that are left out may have, and an answer.
const MARGIN: f64 = 90.0;

/// What becomes of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Summary {
    Good,
    Fails,
    FailsForAMoment,
    Refused,
    TooLarge,
    Empty,
    Long,
    Cut,
    BreaksOff,
    NeverBegins,
    NeverGoesOn,
    NeverEnds,
    NeverEndsAtOnce,
}

use Summary::*;

const SUMMARIES: &[Summary] = &[
    Good,
    Fails,
    FailsForAMoment,
    Refused,
    TooLarge,
    Empty,
    Long,
    Cut,
    BreaksOff,
    NeverBegins,
    NeverGoesOn,
    NeverEnds,
    NeverEndsAtOnce,
];

/// A model that counts tokens in its own way, and refuses what does not fit into its window.
struct Small {
    window: u64,
    /// The bytes of a token.
    per_token: f64,
    /// Whether the agent knows the window.
    is_told: bool,
    /// Whether refusals name the window.
    names: bool,
    summaries: RefCell<VecDeque<Summary>>,
    lines: RefCell<VecDeque<Vec<Delta>>>,
    n_refused: Cell<u32>,
    n_answered: Cell<u32>,
}

impl Small {
    fn tokens(&self, text: &str) -> f64 {
        text.len() as f64 / self.per_token
    }

    fn count(&self, request: &Request<'_>) -> f64 {
        let messages: f64 =
            request.messages.iter().map(|it| self.tokens(&to_text(&it.content))).sum();
        OVERHEAD + self.tokens(request.system) + self.tokens(&to_text(&request.tools)) + messages
    }

    /// What is said in place of a summary.
    fn condense(&self, limit: Option<u64>) -> Result<Said> {
        let next = self.summaries.borrow_mut().pop_front().unwrap_or(Good);
        let text = |text: &str| Delta::Text(text.to_owned());
        let ends = |deltas: Vec<Delta>, after| Ok(Said { deltas: deltas.into(), after });
        let fails = |kind| Err(Error::new(kind, "the script says so"));
        match next {
            Good => ends(vec![text("the gist of it"), Delta::Finish(Finish::Stop)], After::End),
            Fails => fails(ErrorKind::ModelFailed),
            FailsForAMoment => fails(ErrorKind::ModelOverloaded),
            TooLarge => fails(ErrorKind::ModelContextOverflow),
            Refused => ends(vec![text("I"), Delta::Finish(Finish::Filter)], After::End),
            Empty => ends(vec![Delta::Finish(Finish::Length)], After::End),
            Long => ends(vec![text(&"on and on ".repeat(4_000))], After::End),
            Cut => {
                let n = limit.unwrap_or(9_000) as f64 * self.per_token / 10.0;
                let said = text(&"and so on ".repeat(n as usize));
                ends(vec![said, Delta::Finish(Finish::Length)], After::End)
            }
            BreaksOff => ends(vec![text("the gi")], After::Error),
            NeverBegins => ends(vec![], After::Silence),
            NeverGoesOn => ends(vec![text("the gist is")], After::Silence),
            NeverEnds => ends(vec![], After::Slowly),
            NeverEndsAtOnce if limit.is_some() => ends(vec![], After::AtOnce),
            NeverEndsAtOnce => ends(vec![], After::Slowly),
        }
    }
}

impl Model for Small {
    fn id(&self, _: u32) -> String {
        "small".to_owned()
    }

    fn window(&self, _: u32) -> Option<u64> {
        Some(self.window).filter(|_| self.is_told)
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let limit = request.generate.get("maxTokens").and_then(|it| it.as_u64());
        let asked = self.count(&request) + limit.map_or(16.0, |limit| limit as f64);
        if asked > self.window as f64 {
            self.n_refused.set(self.n_refused.get() + 1);
            let window = Some(self.window).filter(|_| self.names);
            let error = Error::new(ErrorKind::ModelContextOverflow, "the prompt is too long")
                .advise(Advice { window, ..Advice::default() });
            return Box::pin(ready(Err(error)));
        }
        refused(request).unwrap();
        let said = if request.system == summary::SYSTEM {
            self.condense(limit)
        } else {
            self.n_answered.set(self.n_answered.get() + 1);
            let line = self.lines.borrow_mut().pop_front();
            let line = line.unwrap_or_else(|| vec![Delta::Text("all right ".repeat(20))]);
            Ok(Said { deltas: line.into(), after: After::End })
        };
        Box::pin(ready(said.map(|said| Box::new(said) as Box<dyn Deltas>)))
    }
}

/// What follows the last delta.
enum After {
    End,
    Error,
    Silence,
    Slowly,
    AtOnce,
}

struct Said {
    deltas: VecDeque<Delta>,
    after: After,
}

impl Deltas for Said {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        let next = self.deltas.pop_front();
        Box::pin(async move {
            match (next, &self.after) {
                (Some(delta), _) => Ok(vec![delta]),
                (None, After::End) => Ok(Vec::new()),
                (None, After::Error) => Err(Error::new(ErrorKind::ModelTruncated, "it broke off")),
                (None, After::Silence) => pending().await,
                (None, After::Slowly) => {
                    yield_once().await;
                    Ok(vec![Delta::Text("x".to_owned())])
                }
                (None, After::AtOnce) => Ok(vec![Delta::Text("and so on ".to_owned())]),
            }
        })
    }
}

async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut yielded, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// A clock that moves by a second whenever everything waits.
struct Clock {
    seconds: Rc<Cell<u64>>,
    seed: Cell<u64>,
}

impl Host for Clock {
    fn now_ms(&self) -> f64 {
        1_790_000_000_000.0 + self.seconds.get() as f64 * 1_000.0
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            self.seed.set(self.seed.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99));
            *byte = (self.seed.get() >> 56) as u8;
        }
    }

    fn sleep(&self, ms: u64) -> Local<'static, ()> {
        let seconds = Rc::clone(&self.seconds);
        let until = seconds.get() + ms.div_ceil(1_000);
        Box::pin(std::future::poll_fn(move |_| match seconds.get() >= until {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }))
    }
}

/// A tool that answers with `n` letters.
struct Letters(Rc<ToolSpec>);

impl Tool for Letters {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        let n = run.input["n"].as_u64().unwrap() as usize;
        Box::pin(ready(Ok(vec![Block::text("letters ".repeat(n / 8))])))
    }
}

/// One conversation: an agent, its model and its clock.
struct Talk {
    agent: Agent,
    model: Rc<Small>,
    seconds: Rc<Cell<u64>>,
    slot: Slot,
}

impl Talk {
    fn new(chance: &mut Chance) -> Talk {
        let model = Rc::new(Small {
            window: 1_024 << chance.below(3),
            per_token: chance.pick(&[2.5, 3.0, 4.0, 5.0]),
            is_told: chance.below(2) == 0,
            names: chance.below(2) == 0,
            summaries: RefCell::default(),
            lines: RefCell::default(),
            n_refused: Cell::new(0),
            n_answered: Cell::new(0),
        });
        let mut options = Options::new("helper");
        options.system_prompt = "You help.".to_owned();
        options.session_tools = chance.below(4) == 0;
        options.durability = chance.pick(&[Durability::Exit, Durability::Step]);
        options.compaction.when =
            chance.pick(&[When::OnOverflow, When::OnOverflow, When::ByTrigger]);
        let seconds = Rc::new(Cell::new(0));
        let host = Clock { seconds: Rc::clone(&seconds), seed: Cell::new(chance.next()) };
        let tool = |name: &str| {
            Rc::new(Letters(Rc::new(ToolSpec::new(name, "letters", json!({ "type": "object" })))))
        };
        let agent = Builder::new(options)
            .model(Rc::clone(&model) as _)
            .store(Rc::new(MemoryStore::new()) as Rc<dyn Store>)
            .host(Rc::new(host))
            .tool(tool("letters"))
            .tool(tool("read_file"))
            .build()
            .unwrap();
        Talk { agent, model, seconds, slot: Slot::new(Some("alice"), "s").unwrap() }
    }

    /// Runs a future to its end. When it waits, time passes.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..1_000_000 {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            self.seconds.set(self.seconds.get() + 1);
        }
        panic!("the future waits, and no time ends it")
    }

    fn shown(&self) -> Vec<Rc<Message>> {
        self.block_on(self.agent.state(&self.slot)).unwrap().context
    }

    fn log(&self) -> Vec<Rc<Message>> {
        self.block_on(self.agent.history(&self.slot, None, 10_000)).unwrap()
    }

    /// How many tokens a request has that contains nothing but this question.
    fn alone(&self, question: &str) -> f64 {
        let tools = self.block_on(self.agent.tools(None)).unwrap();
        let tools: f64 = tools.iter().map(|it| self.model.tokens(&to_text(it))).sum();
        OVERHEAD + tools + self.model.tokens(question) + MARGIN
    }

    /// A turn, perhaps with tools. Returns the question, if it is to be answered.
    fn turn(&self, chance: &mut Chance, n: usize) -> Option<String> {
        let n_tools = [0, 0, 1, 3][chance.below(4)];
        for call in 0..n_tools {
            let name = chance.pick(&["letters", "read_file"]);
            let letters = 1 << (4 + chance.below(11));
            let call = Delta::ToolCall {
                index: 0,
                id: Some(format!("c{n}-{call}")),
                name: Some(name.to_owned()),
                arguments: json!({ "n": letters, "why": "w".repeat(chance.below(3_000)) })
                    .to_string(),
                provider: None,
            };
            let line = vec![call, Delta::Finish(Finish::ToolCalls)];
            self.model.lines.borrow_mut().push_back(line);
        }
        let n_words = chance.below(self.model.window as usize / 3);
        let question = format!("question {n}: {}", "words ".repeat(n_words));
        // A shortened call with its result has at most about 700 bytes.
        let results = self.model.tokens(&" ".repeat(700)) * f64::from(n_tools);
        let fits = self.alone(&question) + results + 16.0 <= self.model.window as f64;
        (fits || n_tools == 0).then_some(question).filter(|_| fits)
    }
}

#[test]
fn a_conversation_goes_on_while_its_newest_turn_fits_whatever_becomes_of_summaries() {
    let mut chance = Chance::new("overflow");
    let (mut n_answered, mut n_refused, mut n_left_out, mut n_summaries) = (0, 0, 0, 0);
    for round in 0..400 {
        let talk = Talk::new(&mut chance);
        let trouble = SUMMARIES[round % SUMMARIES.len()];
        let mut asked = Vec::new();
        for n in 0..10 {
            let some = (0..9).map(|_| if chance.below(8) == 0 { Good } else { trouble });
            talk.model.summaries.replace(some.collect());
            let Some(question) = talk.turn(&mut chance, n) else {
                talk.model.lines.borrow_mut().clear();
                continue;
            };
            let before = talk.log();
            let call = talk.agent.begin(CallRequest::new(talk.slot.clone(), &*question));
            let ended = talk.block_on(call.unwrap().finish());
            let reply = match ended {
                Ok(reply) => reply,
                Err(failed) => panic!(
                    "{trouble:?}, window {}, {} bytes per token, told {}, names {}, question of {}: {}",
                    talk.model.window,
                    talk.model.per_token,
                    talk.model.is_told,
                    talk.model.names,
                    talk.model.tokens(&question),
                    failed.error
                ),
            };
            assert!(reply.text.starts_with("all right"));
            asked.push(question);
            let log = talk.log();
            assert_eq!(log[..before.len()], before[..], "what was said stays");
            let shown = talk.shown();
            assert!(log.ends_with(&unmarked(&shown, &log)), "the view is the end of the log");
            n_answered += 1;
            n_left_out += u32::from(shown[0].is_note(Note::LeftOut));
            n_summaries += u32::from(shown[0].name.as_deref() == Some("summary"));
        }
        let log = talk.log();
        let questions = log.iter().filter(|it| it.role == Role::User).map(|it| it.text());
        assert_eq!(questions.collect::<Vec<_>>(), asked, "each question once, in order");
        // Each step back shows more, until everything is shown again.
        for _ in 0..log.len() {
            talk.block_on(talk.agent.undo_compaction(&talk.slot)).unwrap();
        }
        let ids =
            |messages: &[Rc<Message>]| messages.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&talk.shown()), ids(&log));
        n_refused += talk.model.n_refused.get();
    }
    println!(
        "{n_answered} answers, {n_refused} refusals, {n_left_out} left out, {n_summaries} summaries"
    );
    assert!(n_answered > 1_000 && n_refused > 1_000 && n_left_out > 100 && n_summaries > 100);
}

/// The messages of the log that a context shows, in the form of the log.
fn unmarked(shown: &[Rc<Message>], log: &[Rc<Message>]) -> Vec<Rc<Message>> {
    let logged = |it: &Rc<Message>| log.iter().find(|other| other.id == it.id).cloned();
    let n_view =
        usize::from(shown[0].metadata.as_ref().is_some_and(|it| it.contains_key("replaces")));
    shown[n_view..].iter().map(|it| logged(it).expect("it is in the log")).collect()
}
