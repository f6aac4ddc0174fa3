//! Hooks around a call, outermost first: what they are given, and what their answers mean.

use std::rc::Rc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::drive::Driver;
use crate::engine::outcome::Ended;
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reply, SerializedError};
use crate::future::rarely;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, Message, Role, ToolResult};
use crate::port::{Hook, HookRun, Lineage, Point, ToolSpec};
use crate::store::session::Session;

/// A request as hooks have left it: what is absent is as it was.
#[derive(Default)]
pub(super) struct Reshaped {
    pub(super) system: Option<String>,
    pub(super) messages: Option<Vec<Rc<Message>>>,
    pub(super) tools: Option<Vec<Rc<ToolSpec>>>,
    pub(super) generate: Option<Value>,
}

/// What hooks have decided.
pub(super) enum Verdict<T> {
    /// To go on, with this.
    GoOn(T),
    /// To stop, and to say this instead of an answer.
    Stop(String),
}

/// What a hook is told of how a call ended.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Told<'a> {
    /// Well.
    Reply(&'a Reply),
    /// Badly.
    Error(SerializedError),
}

/// What a hook is told of a request, but for its messages.
#[derive(Serialize)]
struct Given<'a> {
    system: &'a str,
    tools: &'a [Rc<ToolSpec>],
    generate: &'a Value,
}

impl Driver {
    /// Hooks hear how it ended, once it is saved; what they fail with then is only a warning.
    pub(super) async fn tell_hooks(&self, ended: &Ended) {
        let lineage = Lineage::new();
        for hook in self.agent.hooks.iter().filter(|hook| hook.is_at(Point::OnEnd)) {
            let told = match ended {
                Ok(reply) => Told::Reply(reply),
                Err(failed) => {
                    Told::Error(SerializedError::new(&failed.error, failed.partial.clone()))
                }
            };
            let given = json::to_text(&told);
            let (tag, attributes, desk) = (self.tag, &self.attributes, &*self.live);
            let (messages, lineage) = (&[], &lineage);
            let run = HookRun { tag, attributes, tool_call_id: "", desk, messages, lineage };
            if let Err(error) = hook.at(Point::OnEnd, &given, run).await {
                let message = failed(&**hook, &error).message().to_owned();
                self.outbox.push(Event::Warning { code: "middleware".to_owned(), message });
            }
        }
    }
}

impl Turn<'_> {
    /// The input as hooks have left it.
    pub(super) async fn hook_call(&self, input: Vec<Rc<Message>>) -> Result<Vec<Rc<Message>>> {
        let mut input = input;
        for hook in self.hooks_at(Point::OnCall) {
            let answer = self.ask_hook(hook, Point::OnCall, &json::to_text(&input), "").await?;
            if !answer.is_null() {
                let read = json::list(&answer, |item| Message::from_json(item).map(Rc::new));
                input = read.map_err(|misread| wrong(hook, misread))?;
            }
        }
        Ok(input)
    }

    /// The instructions as hooks have left them.
    pub(super) async fn hook_prompt(&self) -> Result<String> {
        let prompt = self.agent.instructions(&self.options().system_prompt, &self.brief.borrow());
        match self.is_hooked() {
            true => rarely(self.reshape_prompt(prompt)).await,
            false => Ok(prompt),
        }
    }

    async fn reshape_prompt(&self, mut prompt: String) -> Result<String> {
        for hook in self.hooks_at(Point::SystemPrompt) {
            let answer =
                self.ask_hook(hook, Point::SystemPrompt, &json::to_text(&prompt), "").await?;
            prompt = json::text(&answer).map_err(|misread| wrong(hook, misread))?;
        }
        Ok(prompt)
    }

    /// A request as hooks have left it.
    pub(super) async fn hook_request(
        &self,
        session: &Session,
        tools: &[Rc<ToolSpec>],
    ) -> Result<Verdict<Reshaped>> {
        let mut reshaped = Reshaped::default();
        for hook in self.hooks_at(Point::BeforeModel) {
            let prompt = self.prompt.borrow().clone();
            let given = Given {
                system: reshaped.system.as_deref().unwrap_or(&prompt),
                tools: reshaped.tools.as_deref().unwrap_or(tools),
                generate: reshaped.generate.as_ref().unwrap_or(self.generate),
            };
            let fresh = Lineage::new();
            let (messages, lineage) = match &reshaped.messages {
                Some(messages) => (messages.as_slice(), &fresh),
                None => (session.context.as_slice(), &*session.lineage),
            };
            let (tag, attributes, desk) = (self.tag, self.attributes, self.live);
            let run = HookRun { tag, attributes, tool_call_id: "", desk, messages, lineage };
            let answer = hook.at(Point::BeforeModel, &json::to_text(&given), run).await;
            let answer = answer.map_err(|error| failed(hook, &error))?;
            match request(&answer).map_err(|misread| wrong(hook, misread))? {
                Verdict::Stop(says) => return Ok(Verdict::Stop(says)),
                Verdict::GoOn(new) => {
                    reshaped.system = new.system.or(reshaped.system);
                    reshaped.messages = new.messages.or(reshaped.messages);
                    reshaped.tools = new.tools.or(reshaped.tools);
                    reshaped.generate = new.generate.or(reshaped.generate);
                }
            }
        }
        Ok(Verdict::GoOn(reshaped))
    }

    /// An answer as hooks have left it.
    pub(super) async fn hook_answer(&self, message: Message) -> Result<Verdict<Message>> {
        let mut message = message;
        for hook in self.hooks_at(Point::AfterModel) {
            let answer =
                self.ask_hook(hook, Point::AfterModel, &json::to_text(&message), "").await?;
            if let Some(says) = word(&answer, "stop") {
                return Ok(Verdict::Stop(says));
            }
            if !answer.is_null() {
                let changed =
                    Message::from_json(&answer).map_err(|misread| wrong(hook, misread))?;
                let changed = unrounded(&message, changed);
                // Events have told of the answer by this id already.
                message = Message { id: message.id, role: Role::Assistant, ..changed };
            }
        }
        Ok(Verdict::GoOn(message))
    }

    /// A tool's input as hooks have left it, or why the tool is not to run.
    pub(super) async fn hook_tool(
        &self,
        name: &str,
        id: &str,
        input: Value,
    ) -> Result<Verdict<Value>> {
        let mut input = input;
        for hook in self.hooks_at(Point::BeforeTool) {
            let given = json!({ "name": name, "input": input }).to_string();
            let mut answer = self.ask_hook(hook, Point::BeforeTool, &given, id).await?;
            if let Some(why) = word(&answer, "deny") {
                return Ok(Verdict::Stop(why));
            }
            if let Some(changed) = answer.get_mut("input") {
                json::unrounded(&input, changed);
                input = changed.take();
            }
        }
        Ok(Verdict::GoOn(input))
    }

    /// A tool's result as hooks have left it.
    pub(super) async fn hook_result(&self, result: ToolResult) -> Result<ToolResult> {
        let mut result = result;
        for hook in self.hooks_at(Point::AfterTool) {
            let given = json::to_text(&Block::ToolResult(result.clone()));
            let answer = self.ask_hook(hook, Point::AfterTool, &given, &result.id).await?;
            if answer.is_null() {
                continue;
            }
            match Block::from_json(&answer).map_err(|misread| wrong(hook, misread))? {
                // It stays the result of its call, whatever the hook says.
                Block::ToolResult(changed) => {
                    result = ToolResult { id: result.id, name: result.name, ..changed }
                }
                _ => return Err(wrong(hook, Misread::new("a tool_result"))),
            }
        }
        Ok(result)
    }

    async fn ask_hook(
        &self,
        hook: &dyn Hook,
        point: Point,
        given: &str,
        id: &str,
    ) -> Result<Value> {
        let lineage = Lineage::new();
        let (tag, attributes, desk) = (self.tag, self.attributes, self.live);
        let (messages, lineage) = (&[], &lineage);
        let run = HookRun { tag, attributes, tool_call_id: id, desk, messages, lineage };
        hook.at(point, given, run).await.map_err(|error| failed(hook, &error))
    }

    /// Whether there are hooks at all.
    pub(super) fn is_hooked(&self) -> bool {
        !self.agent.hooks.is_empty()
    }

    fn hooks_at(&self, point: Point) -> impl Iterator<Item = &dyn Hook> {
        self.agent.hooks.iter().filter(move |hook| hook.is_at(point)).map(|hook| &**hook)
    }
}

/// What a hook makes of a request.
fn request(answer: &Value) -> Read<Verdict<Reshaped>> {
    if answer.is_null() {
        return Ok(Verdict::GoOn(Reshaped::default()));
    }
    let fields = Fields::of(answer)?;
    if let Some(says) = fields.optional("stop", json::text)? {
        return Ok(Verdict::Stop(says));
    }
    Ok(Verdict::GoOn(Reshaped {
        system: fields.optional("system", json::text)?,
        messages: fields.optional("messages", |it| {
            json::list(it, |item| Message::from_json(item).map(Rc::new))
        })?,
        tools: fields.optional("tools", |it| {
            json::list(it, |item| ToolSpec::from_json(item).map(Rc::new))
        })?,
        generate: fields.optional("generate", json::object)?.map(|it: Object| Value::Object(it)),
    }))
}

/// An answer in which a hook that counts in doubles has changed only what it meant to.
fn unrounded(original: &Message, mut changed: Message) -> Message {
    for block in &mut changed.content {
        if let Block::ToolUse(call) = block
            && let Some(known) = original.tool_uses().find(|known| known.id == call.id)
        {
            json::unrounded(&known.input, &mut call.input);
        }
    }
    changed
}

fn word(answer: &Value, name: &str) -> Option<String> {
    answer.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A hook that throws stops the call.
fn failed(hook: &dyn Hook, error: &Error) -> Error {
    let message = format!("the middleware \"{}\" failed: {}", hook.name(), error.message());
    let failed = Error::new(ErrorKind::Middleware, message).hint("what was said so far is stored");
    match error.cause() {
        Some(cause) => failed.because(Rc::clone(cause)),
        None => failed,
    }
}

fn wrong(hook: &dyn Hook, misread: Misread) -> Error {
    let what = format!("the answer of the middleware \"{}\"", hook.name());
    misread.into_error(ErrorKind::Middleware, &what).hint("see Middleware in the package's types")
}
