//! A provider's model: a request in its dialect, sent over the network, and its answer read as it comes.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Misread, Read};
use crate::message::Delta;
use crate::model::frames::Frames;
use crate::model::heard::{Heard, refusal};
use crate::model::openai::Flavour;
use crate::model::transcript::{self, Reader, Turn};
use crate::model::wire::{object, tool_name};
use crate::model::{Dialect, anthropic, gemini, openai, window_of};
use crate::policy::failure::Failure;
use crate::port::{Deltas, Host, Http, HttpAnswer, HttpRequest, Model, Request, ToolSpec};

/// The longest body of a refusal that is read.
const LONGEST_REFUSAL: usize = 64 * 1_024;

/// Which model of which provider.
#[derive(Clone, Debug)]
pub struct Options {
    /// The language.
    pub dialect: Dialect,
    /// The provider's name for the model.
    pub model: String,
    /// How many tokens it takes, if the user says so.
    pub window: Option<u64>,
    /// Whether its answers come piece by piece.
    pub streams: bool,
    /// What is special about the provider, among those who speak OpenAI's language.
    pub flavour: Flavour,
}

impl Options {
    /// A model of a provider, with nothing out of the ordinary.
    pub fn new(dialect: Dialect, model: &str) -> Options {
        let model = model.to_owned();
        Options { dialect, model, window: None, streams: true, flavour: Flavour::Compatible }
    }

    /// Reads the options as TypeScript writes them.
    pub fn from_json(value: &Value) -> Read<Options> {
        let fields = Fields::of(value)?;
        let dialect = fields.required("dialect", |value| {
            let named = value.as_str().and_then(Dialect::named);
            named.ok_or_else(|| Misread::new("openai, anthropic or gemini"))
        })?;
        let flavour = fields.or_default("flavour", json::text)?;
        Ok(Options {
            window: fields.optional("contextWindow", json::count)?,
            streams: fields.optional("stream", json::boolean)?.unwrap_or(true),
            flavour: Flavour::named(&flavour),
            ..Options::new(dialect, &fields.required("model", json::text)?)
        })
    }

    /// For whom a conversation is written.
    pub fn reader(&self) -> Reader<'_> {
        let is_strict = self.flavour == Flavour::Mistral;
        Reader { dialect: self.dialect, model: Some(&self.model), is_strict }
    }

    /// How many tokens it takes, if that is known.
    pub fn window(&self) -> Option<u64> {
        self.window.or_else(|| window_of(&self.model))
    }

    /// The request as it goes out, or why it must not.
    pub fn render(&self, request: &Request<'_>) -> Result<HttpRequest> {
        let turns = transcript::repair(request.messages, self.reader());
        if let Some(violation) = transcript::check(&turns, self.dialect).first() {
            let message = format!("the request would be refused: {}", violation.message);
            return Err(Error::new(ErrorKind::Internal, message).hint("please report this"));
        }
        let asked = Asked { options: self, request, turns: &turns };
        Ok(match self.dialect {
            Dialect::OpenAi => openai::render(&asked),
            Dialect::Anthropic => anthropic::render(&asked),
            Dialect::Gemini => gemini::render(&asked),
        })
    }
}

/// What a dialect writes a request from.
pub(super) struct Asked<'a> {
    pub(super) options: &'a Options,
    pub(super) request: &'a Request<'a>,
    pub(super) turns: &'a [Turn<'a>],
}

impl Asked<'_> {
    /// What the model is told of tools, by their names on the wire. A history that has calls needs tools, also where
    /// none may be called any more: those are then told of by name.
    pub(super) fn tools(&self) -> Vec<(String, &str, Value)> {
        let tools = self.request.tools.iter();
        let mut told: Vec<_> = tools
            .map(|tool| {
                (tool_name(&tool.name), tool.description.as_str(), tool.input_schema.clone())
            })
            .collect();
        if told.is_empty() {
            for call in self.turns.iter().flat_map(Turn::calls) {
                let name = tool_name(&call.name);
                if !told.iter().any(|(known, ..)| *known == name) {
                    let schema = object(&mut [("type", "object".into())]);
                    told.push((name, "Not to be called any more.", schema));
                }
            }
        }
        told
    }

    /// Whether tools are told of that must not be called.
    pub(super) fn is_closing(&self) -> bool {
        self.request.tools.is_empty() && self.turns.iter().any(|turn| turn.calls().next().is_some())
    }

    /// The number of the first turn behind the last words of the user: what belongs to the question at hand.
    pub(super) fn current(&self) -> usize {
        let last = self
            .turns
            .iter()
            .rposition(|turn| turn.role == crate::message::Role::User && turn.message.is_some());
        last.map_or(0, |last| last + 1)
    }
}

/// A model of a provider.
pub struct ProviderModel {
    options: Options,
    http: Rc<dyn Http>,
    host: Rc<dyn Host>,
}

impl ProviderModel {
    /// The model that these options describe.
    pub fn new(options: Options, http: Rc<dyn Http>, host: Rc<dyn Host>) -> ProviderModel {
        ProviderModel { options, http, host }
    }

    /// Begins an answer; needs nothing of the model any more.
    pub fn begin(&self, request: Request<'_>) -> Local<'static, Result<Box<dyn Deltas>>> {
        let (http, host) = (Rc::clone(&self.http), Rc::clone(&self.host));
        let rendered = self.options.render(&request);
        let window = self.options.window();
        let tools = request.tools.to_vec();
        let reading = Reading::of(&self.options);
        Box::pin(async move {
            let rendered = rendered?;
            // Four bytes are a token, roughly.
            let n_tokens = rendered.body.len() as u64 / 4;
            let is_large = window.is_some_and(|window| n_tokens > window * 9 / 10);
            let answer = http.send(rendered).await?;
            if !(200..300).contains(&answer.status()) {
                return Err(refused(answer, is_large, host.now_ms()).await);
            }
            Ok(Box::new(Answer { answer, reading, tools }) as Box<dyn Deltas>)
        })
    }
}

impl Model for ProviderModel {
    fn id(&self, _: u32) -> String {
        self.options.model.clone()
    }

    fn window(&self, _: u32) -> Option<u64> {
        self.options.window()
    }

    fn keeps_form(&self, _: u32, beside_tools: bool) -> bool {
        match self.options.dialect {
            Dialect::OpenAi => self.options.flavour == Flavour::OpenAi,
            Dialect::Anthropic => false,
            Dialect::Gemini => !beside_tools,
        }
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let begun = self.begin(request);
        Box::pin(async move { begun.await.map(|deltas| deltas as Box<dyn Deltas + 'a>) })
    }
}

async fn refused(answer: Box<dyn HttpAnswer>, is_large: bool, at_ms: f64) -> Error {
    let mut answer = answer;
    let mut body = Vec::new();
    while body.len() < LONGEST_REFUSAL {
        // A refusal whose body breaks off is still that refusal.
        let Ok(more) = answer.next().await else { break };
        if more.is_empty() {
            break;
        }
        body.extend(more);
    }
    refusal(Failure {
        status: answer.status(),
        body: &String::from_utf8_lossy(&body),
        retry_after: answer.header("retry-after").as_deref(),
        retry_after_ms: answer.header("retry-after-ms").as_deref(),
        at_ms,
        is_large,
    })
}

/// An answer being read: bytes in, deltas out.
#[derive(Debug)]
pub struct Reading {
    dialect: Dialect,
    frames: Frames,
    heard: Heard,
    openai: openai::Calls,
    /// What ends it, once everything that came before it is taken.
    failed: Option<Error>,
}

impl Reading {
    /// An answer of this model.
    pub fn of(options: &Options) -> Reading {
        Reading {
            dialect: options.dialect,
            frames: Frames::default(),
            heard: Heard::of(&options.model),
            openai: openai::Calls::default(),
            failed: None,
        }
    }

    /// Takes bytes, however they are cut.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        let mut frames = Vec::new();
        let framed = self.frames.push(bytes, &mut frames);
        let read = self.read(frames).and(framed);
        self.settle(read)
    }

    /// The bytes have ended: an answer that did not say why it ended was cut off.
    pub fn finish(&mut self) -> Vec<Delta> {
        let mut frames = Vec::new();
        self.frames.finish(&mut frames);
        let read = self.read(frames).and_then(|()| match self.heard.finish {
            Some(_) => Ok(()),
            None => {
                let message = "the model's answer broke off before its end";
                let hint = "what came is kept; ask again";
                Err(Error::new(ErrorKind::ModelTruncated, message).hint(hint))
            }
        });
        self.heard.is_over = true;
        self.settle(read)
    }

    /// What has ended it too early, once everything that came before is taken.
    pub fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    fn settle(&mut self, read: Result<()>) -> Vec<Delta> {
        if let Err(error) = read {
            self.failed = Some(error);
            self.heard.is_over = true;
        }
        std::mem::take(&mut self.heard.deltas)
    }

    /// Whether nothing more can come.
    pub fn is_over(&self) -> bool {
        self.heard.is_over
    }

    fn read(&mut self, frames: Vec<String>) -> Result<()> {
        for frame in frames {
            let frame = frame.trim();
            if frame == "[DONE]" {
                self.heard.is_over = self.heard.finish.is_some();
            }
            if frame.is_empty() || frame == "[DONE]" {
                continue;
            }
            let value = json::foreign(frame.as_bytes(), json::DEEPEST).map_err(|error| {
                let message = format!("the model sent something that is not JSON: {error}");
                Error::new(ErrorKind::ModelFailed, message)
                    .hint("look at what the base address really serves")
            })?;
            match value {
                Value::Array(items) => items.iter().try_for_each(|item| self.frame(item))?,
                value => self.frame(&value)?,
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Value) -> Result<()> {
        match self.dialect {
            Dialect::OpenAi => openai::read(frame, &mut self.openai, &mut self.heard),
            Dialect::Anthropic => anthropic::read(frame, &mut self.heard),
            Dialect::Gemini => gemini::read(frame, &mut self.openai, &mut self.heard),
        }
    }
}

struct Answer {
    answer: Box<dyn HttpAnswer>,
    reading: Reading,
    tools: Vec<Rc<ToolSpec>>,
}

impl Answer {
    async fn more(&mut self) -> Result<Vec<Delta>> {
        while !self.reading.is_over() {
            let bytes = self.answer.next().await?;
            let deltas = match bytes.is_empty() {
                true => self.reading.finish(),
                false => self.reading.push(&bytes),
            };
            if !deltas.is_empty() {
                return Ok(deltas);
            }
        }
        self.reading.failure().map_or(Ok(Vec::new()), Err)
    }
}

impl Deltas for Answer {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        Box::pin(async move {
            let mut deltas = self.more().await?;
            for delta in &mut deltas {
                if let Delta::ToolCall { name: Some(name), .. } = delta
                    && !self.tools.iter().any(|tool| tool.name == *name)
                    && let Some(tool) =
                        self.tools.iter().find(|tool| tool_name(&tool.name) == *name)
                {
                    name.clone_from(&tool.name);
                }
            }
            Ok(deltas)
        })
    }
}
