//! A provider's model: writes a request in its dialect, sends it, and reads the reply as it arrives.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, halves};
use crate::message::Delta;
use crate::model::calls::CallNumbers;
use crate::model::dialect::{Dialect, Flavour};
use crate::model::frames::Frames;
use crate::model::gemini::GeminiCalls;
use crate::model::halves::OpenHalves;
use crate::model::options::ProviderOptions;
use crate::model::reply::{ReplyDeltas, refusal};
use crate::model::request::RenderInput;
use crate::model::transcript;
use crate::model::wire::tool_name;
use crate::model::{anthropic, gemini, openai};
use crate::policy::failure::Failure;
use crate::port::{Deltas, Host, Http, HttpAnswer, HttpRequest, Model, Request, ToolSpec};

/// Most bytes that are read of an error response.
const LONGEST_REFUSAL: usize = 64 * 1_024;

/// Writes the request. Fails if the conversation is not valid for the provider.
pub fn render(options: &ProviderOptions, request: &Request<'_>) -> Result<HttpRequest> {
    let turns = transcript::repair(request.messages, options.reader());
    if let Some(violation) = transcript::check(&turns, options.dialect).first() {
        let message = format!("the request would be refused: {}", violation.message);
        return Err(Error::new(ErrorKind::Internal, message).hint("please report this"));
    }
    let asked = RenderInput { options, request, turns: &turns };
    Ok(match options.dialect {
        Dialect::OpenAi => openai::render(&asked),
        Dialect::Anthropic => anthropic::render(&asked),
        Dialect::Gemini => gemini::render(&asked),
    })
}

/// A model of a provider.
pub struct ProviderModel {
    options: ProviderOptions,
    http: Rc<dyn Http>,
    host: Rc<dyn Host>,
}

impl ProviderModel {
    /// The model that these options describe.
    pub fn new(options: ProviderOptions, http: Rc<dyn Http>, host: Rc<dyn Host>) -> ProviderModel {
        ProviderModel { options, http, host }
    }

    /// Starts a reply. The returned future does not borrow the model.
    pub fn begin(&self, request: Request<'_>) -> Local<'static, Result<Box<dyn Deltas>>> {
        let (http, host) = (Rc::clone(&self.http), Rc::clone(&self.host));
        let rendered = render(&self.options, &request);
        let window = self.options.window();
        let tools = request.tools.to_vec();
        let reading = ReplyReader::of(&self.options);
        Box::pin(async move {
            let rendered = rendered?;
            // A token has about four bytes.
            let n_tokens = rendered.body.len() as u64 / 4;
            let is_large = window.is_some_and(|window| n_tokens > window * 9 / 10);
            let answer = http.send(rendered).await?;
            if !(200..300).contains(&answer.status()) {
                return Err(refused(answer, is_large, host.now_ms()).await);
            }
            Ok(Box::new(ProviderDeltas { answer, reading, tools }) as Box<dyn Deltas>)
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
        // An error response whose body breaks off is still that error.
        let Ok(more) = answer.next().await else { break };
        if more.is_empty() {
            break;
        }
        body.extend(more);
    }
    answer.done();
    refusal(Failure {
        status: answer.status(),
        body: &halves::replaced(&String::from_utf8_lossy(&body)),
        retry_after: answer.header("retry-after").as_deref(),
        retry_after_ms: answer.header("retry-after-ms").as_deref(),
        at_ms,
        is_large,
    })
}

/// Reads a reply: bytes in, deltas out.
#[derive(Debug)]
pub struct ReplyReader {
    dialect: Dialect,
    frames: Frames,
    reply: ReplyDeltas,
    calls: CallNumbers,
    gemini_calls: GeminiCalls,
    /// Halves of characters that wait for the next delta.
    halves: OpenHalves,
    /// The error that ends the reply, once earlier deltas are taken.
    failed: Option<Error>,
}

impl ReplyReader {
    /// A reader for a reply of this model.
    pub fn of(options: &ProviderOptions) -> ReplyReader {
        ReplyReader {
            dialect: options.dialect,
            frames: Frames::default(),
            reply: ReplyDeltas::of(&options.model),
            calls: CallNumbers::default(),
            gemini_calls: GeminiCalls::default(),
            halves: OpenHalves::default(),
            failed: None,
        }
    }

    /// Takes the next bytes and returns their deltas.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Delta> {
        let mut frames = Vec::new();
        let framed = self.frames.push(bytes, &mut frames);
        let read = self.read(frames).and(framed);
        self.settle(read)
    }

    /// Takes the end of the bytes. A reply without a finish reason was cut off.
    pub fn finish(&mut self) -> Vec<Delta> {
        let mut frames = Vec::new();
        self.frames.finish(&mut frames);
        let read = self.read(frames).and_then(|()| match self.reply.finish {
            Some(_) => Ok(()),
            None => {
                let message = "the model's reply ended before it was complete";
                let hint = "the received part is kept; ask again";
                Err(Error::new(ErrorKind::ModelTruncated, message).hint(hint))
            }
        });
        self.reply.is_over = true;
        self.settle(read)
    }

    /// The error that ended the reply early, once earlier deltas are taken.
    pub fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    fn settle(&mut self, read: Result<()>) -> Vec<Delta> {
        if let Err(error) = read {
            self.failed = Some(error);
            self.reply.is_over = true;
        }
        if self.reply.is_over {
            self.halves.end(&mut self.reply.deltas);
        }
        std::mem::take(&mut self.reply.deltas)
    }

    /// Whether nothing more can come.
    pub fn is_over(&self) -> bool {
        self.reply.is_over
    }

    fn read(&mut self, frames: Vec<String>) -> Result<()> {
        for frame in frames {
            let frame = frame.trim();
            if frame == "[DONE]" {
                self.reply.is_over = self.reply.finish.is_some();
            }
            if frame.is_empty() || frame == "[DONE]" {
                continue;
            }
            let marked = halves::marked(frame);
            let text = marked.as_ref().map_or(frame, |it| &it.text);
            let value = json::foreign(text.as_bytes(), json::DEEPEST).map_err(|error| {
                let message = format!("the model sent something that is not JSON: {error}");
                Error::new(ErrorKind::ModelFailed, message).hint("check what baseUrl really serves")
            })?;
            let before = std::mem::take(&mut self.reply.deltas);
            let read = match value {
                Value::Array(items) => items.iter().try_for_each(|item| self.frame(item)),
                value => self.frame(&value),
            };
            let mut deltas = std::mem::replace(&mut self.reply.deltas, before);
            let is_marked = marked.as_ref().is_some_and(|it| it.is_marked);
            if is_marked || !self.halves.is_empty() {
                deltas = self.halves.join(deltas, is_marked);
            }
            self.reply.deltas.append(&mut deltas);
            if marked.is_some() && !is_marked {
                self.reply.deltas.push(Delta::Replaced);
            }
            read?;
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Value) -> Result<()> {
        match self.dialect {
            Dialect::OpenAi => openai::read(frame, &mut self.calls, &mut self.reply),
            Dialect::Anthropic => anthropic::read(frame, &mut self.reply),
            Dialect::Gemini => gemini::read(frame, &mut self.gemini_calls, &mut self.reply),
        }
    }
}

struct ProviderDeltas {
    answer: Box<dyn HttpAnswer>,
    reading: ReplyReader,
    tools: Vec<Rc<ToolSpec>>,
}

impl ProviderDeltas {
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
        if let Some(error) = self.reading.failure() {
            return Err(error);
        }
        self.answer.done();
        Ok(Vec::new())
    }
}

impl Deltas for ProviderDeltas {
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
