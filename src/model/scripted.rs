//! A model for tests: it replies with the lines of a script, fails after the last one, and counts unused lines.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{pending, ready};
use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::{Delta, Finish, Message};
use crate::port::{Deltas, Model, Request};

/// One reply of the script.
pub enum Line {
    /// These deltas, one at a time.
    Sends(Vec<Delta>),
    /// These deltas, then an error.
    Breaks(Vec<Delta>, ErrorKind),
    /// These deltas, then the reply never ends.
    Hangs(Vec<Delta>),
}

impl Line {
    /// A reply with text.
    pub fn says(text: &str) -> Line {
        let mut deltas = words(text);
        deltas.push(Delta::Finish(Finish::Stop));
        Line::Sends(deltas)
    }

    /// A reply that calls one tool.
    pub fn calls(name: &str, input: &Value) -> Line {
        Line::calls_all(&[("call-1", name, input.clone())])
    }

    /// A reply that calls tools: id, name and input of each.
    pub fn calls_all(calls: &[(&str, &str, Value)]) -> Line {
        let fragments =
            calls.iter().enumerate().map(|(index, (id, name, input))| Delta::ToolCall {
                index: index as u64,
                id: Some((*id).to_owned()),
                name: Some((*name).to_owned()),
                arguments: input.to_string(),
                provider: None,
            });
        Line::Sends(fragments.chain([Delta::Finish(Finish::ToolCalls)]).collect())
    }

    /// An error instead of a reply.
    pub fn fails(kind: ErrorKind) -> Line {
        Line::Breaks(Vec::new(), kind)
    }
}

/// A text as the deltas of a stream.
pub fn words(text: &str) -> Vec<Delta> {
    text.split_inclusive(' ').map(|word| Delta::Text(word.to_owned())).collect()
}

/// A model that follows a script.
pub struct ScriptedModel {
    lines: RefCell<VecDeque<Line>>,
    requests: RefCell<Vec<Vec<Rc<Message>>>>,
}

impl ScriptedModel {
    /// A model that answers with these lines, one per request.
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Rc<ScriptedModel> {
        Rc::new(ScriptedModel {
            lines: RefCell::new(lines.into_iter().collect()),
            requests: RefCell::default(),
        })
    }

    /// Appends to the script.
    pub fn add(&self, lines: impl IntoIterator<Item = Line>) {
        self.lines.borrow_mut().extend(lines);
    }

    /// The messages of every request so far.
    pub fn requests(&self) -> Vec<Vec<Rc<Message>>> {
        self.requests.borrow().clone()
    }

    /// Number of lines that were not used.
    pub fn n_left(&self) -> usize {
        self.lines.borrow().len()
    }
}

impl Model for ScriptedModel {
    fn id(&self, _: u32) -> String {
        "scripted".to_owned()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        self.requests.borrow_mut().push(request.messages.to_vec());
        let line = self.lines.borrow_mut().pop_front();
        let answer = line.map(|line| Box::new(ScriptedDeltas(line)) as Box<dyn Deltas>);
        Box::pin(ready(
            answer
                .ok_or_else(|| Error::new(ErrorKind::ModelFailed, "the script has no more lines")),
        ))
    }
}

struct ScriptedDeltas(Line);

impl Deltas for ScriptedDeltas {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        let (Line::Sends(deltas) | Line::Breaks(deltas, _) | Line::Hangs(deltas)) = &mut self.0;
        if !deltas.is_empty() {
            return Box::pin(ready(Ok(vec![deltas.remove(0)])));
        }
        match self.0 {
            Line::Sends(_) => Box::pin(ready(Ok(Vec::new()))),
            Line::Breaks(_, kind) => Box::pin(ready(Err(Error::new(kind, "the script says so")))),
            Line::Hangs(_) => Box::pin(pending()),
        }
    }
}
