//! A model with a window, for stories about conversations that outgrow it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::ready;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, Call, Options};
use lockgate::error::{Advice, Error, ErrorKind, Result};
use lockgate::event::Event;
use lockgate::future::Local;
use lockgate::message::{Block, Delta, Finish, Message};
use lockgate::model::scripted::words;
use lockgate::policy::compaction::{Compaction, When};
use lockgate::policy::summary;
use lockgate::port::{Deltas, Model, Request, Store, Tool, ToolRun, ToolSpec};
use serde_json::{Value, json};

/// The content of a request.
#[derive(Clone)]
pub struct Asked {
    pub system: String,
    pub messages: Vec<Rc<Message>>,
    /// The limit for the answer.
    pub max_tokens: Option<u64>,
}

/// A model that counts tokens and refuses requests larger than its window. It answers from `lines`, else with a word.
#[derive(Default)]
pub struct Windowed {
    /// The window that it reports.
    pub window: Option<u64>,
    /// The most tokens that it accepts, at four letters per token.
    pub takes: Cell<Option<u64>>,
    pub lines: RefCell<VecDeque<Vec<Delta>>>,
    /// Its answers to requests for a summary; after those, a short one.
    pub summaries: RefCell<VecDeque<Result<String>>>,
    pub asked: RefCell<Vec<Asked>>,
    pub condensed: RefCell<Vec<Asked>>,
    pub refused: Cell<usize>,
    /// Whether its summaries run into its limit of tokens.
    pub cuts: Cell<bool>,
    /// Whether its refusals name the window.
    pub names: Cell<bool>,
    /// Factor on the tokens that it reports, if not 0.
    pub reports: u64,
}

impl Windowed {
    pub fn of(window: u64) -> Rc<Windowed> {
        let takes = Cell::new(Some(window));
        Rc::new(Windowed { window: Some(window), takes, ..Windowed::default() })
    }

    pub fn then(&self, deltas: Vec<Delta>) {
        self.lines.borrow_mut().push_back(deltas);
    }

    /// Calls a tool with an input, and then answers with a word.
    pub fn then_calls(&self, id: &str, name: &str, input: &Value) {
        let call = Delta::ToolCall {
            index: 0,
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: input.to_string(),
            provider: Some(json!({ "signed": id })),
        };
        self.then(vec![call, Delta::Finish(Finish::ToolCalls)]);
    }

    pub fn last(&self) -> Vec<Rc<Message>> {
        self.asked.borrow().last().unwrap().messages.clone()
    }
}

/// The token count of a provider.
pub fn count(request: &Asked) -> u64 {
    let blocks = |it: &Rc<Message>| lockgate::json::to_text(&it.content).len() as u64;
    (request.system.len() as u64 + request.messages.iter().map(blocks).sum::<u64>()) / 4
}

impl Model for Windowed {
    fn id(&self, _: u32) -> String {
        "windowed".to_owned()
    }

    fn window(&self, _: u32) -> Option<u64> {
        self.window
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let asked = Asked {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            max_tokens: request.generate["maxTokens"].as_u64(),
        };
        let tokens = count(&asked);
        if self.takes.get().is_some_and(|takes| tokens > takes) {
            self.refused.set(self.refused.get() + 1);
            let window = self.takes.get().filter(|_| self.names.get());
            let refusal = Error::new(ErrorKind::ModelContextOverflow, "prompt is too long")
                .advise(Advice { window, ..Advice::default() });
            return Box::pin(ready(Err(refusal)));
        }
        let answer = if asked.system == summary::SYSTEM {
            self.condensed.borrow_mut().push(asked);
            let said = self.summaries.borrow_mut().pop_front();
            let finish = if self.cuts.get() { Finish::Length } else { Finish::Stop };
            let said = said.unwrap_or_else(|| Ok("what was said".to_owned()));
            said.map(|text| [words(&text), vec![Delta::Finish(finish)]].concat())
        } else {
            self.asked.borrow_mut().push(asked);
            Ok(self.lines.borrow_mut().pop_front().unwrap_or_else(|| words("all right")))
        };
        Box::pin(ready(answer.map(|deltas| {
            let usage = Delta::Usage {
                input: Some(tokens * self.reports.max(1)),
                output: Some(1),
                cached: None,
            };
            Box::new(Saying(Some([deltas, vec![usage]].concat()))) as Box<dyn Deltas>
        })))
    }
}

struct Saying(Option<Vec<Delta>>);

impl Deltas for Saying {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        Box::pin(ready(Ok(self.0.take().unwrap_or_default())))
    }
}

/// A tool that answers with `n` letters.
pub struct Letters(pub Rc<ToolSpec>);

impl Tool for Letters {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move {
            let n = run.input["n"].as_u64().unwrap() as usize;
            Ok(vec![Block::text("é".repeat(n))])
        })
    }
}

pub fn set_up(
    store: &Rc<dyn Store>,
    model: &Rc<Windowed>,
    set: impl FnOnce(&mut Options),
) -> Builder {
    let mut options = Options::new("helper");
    set(&mut options);
    let tool = |name: &str| {
        Rc::new(Letters(Rc::new(ToolSpec::new(name, "letters", json!({ "type": "object" })))))
    };
    let has_workspace = options.workspace.is_some();
    let builder = Builder::new(options)
        .model(Rc::clone(model) as _)
        .store(Rc::clone(store))
        .host(Rc::new(HostHandle(TestHost::new())))
        .tool(tool("letters"));
    // With a workspace there is a built-in tool of this name.
    if has_workspace { builder } else { builder.tool(tool("read_file")) }
}

/// An agent that compacts by trigger.
pub fn compacting(model: &Rc<Windowed>, set: impl FnOnce(&mut Compaction)) -> Agent {
    let by_trigger = |options: &mut Options| {
        options.compaction.when = When::ByTrigger;
        set(&mut options.compaction);
    };
    set_up(&memory(), model, by_trigger).build().unwrap()
}

/// All events of a call.
pub fn events(call: &mut Call) -> Vec<Event> {
    let mut seen = Vec::new();
    while let Some(event) = block_on(call.next()) {
        seen.push(event.event);
    }
    seen
}

pub fn names(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| lockgate::json::to_value(event)["type"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}
