//! Runs the hooks of a call, outermost first: what each hook gets, and what its answer changes.

use std::rc::Rc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::call::outcome::Ended;
use crate::engine::call::scope::CallScope;
use crate::engine::stamp::{now, stamped};
use crate::engine::turn::hook_wait::{answer, answer_unless_stopped, no_patience};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Reply, SerializedError};
use crate::future::{Either, race, rarely};
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, Message, Role, ToolResult};
use crate::policy::revision;
use crate::port::{Hook, HookRun, Lineage, Point, ToolSpec};
use crate::run::STOPPED_CALL;
use crate::store::session::Session;

/// The parts of a model request that hooks have changed.
#[derive(Default)]
pub(in crate::engine) struct RequestChanges {
    pub(in crate::engine) system: Option<String>,
    pub(in crate::engine) messages: Option<Vec<Rc<Message>>>,
    pub(in crate::engine) tools: Option<Vec<Rc<ToolSpec>>>,
    pub(in crate::engine) generate: Option<Value>,
}

/// The decision of the hooks.
pub(in crate::engine) enum Verdict<T> {
    /// Continue with this value.
    GoOn(T),
    /// Stop. The text replaces the answer or the result.
    Stop(String),
}

/// The end of a call, in the form for hooks.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum EndedForHook<'a> {
    Reply(&'a Reply),
    Error(SerializedError),
}

/// A model request without its messages, in the form for hooks.
#[derive(Serialize)]
struct RequestForHook<'a> {
    system: &'a str,
    tools: &'a [Rc<ToolSpec>],
    generate: &'a Value,
}

/// The hooks of one call.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Hooks<'a> {
    scope: &'a CallScope<'a>,
    hooks: &'a [Rc<dyn Hook>],
}

impl<'a> Hooks<'a> {
    pub(in crate::engine) fn new(scope: &'a CallScope<'a>, hooks: &'a [Rc<dyn Hook>]) -> Hooks<'a> {
        Hooks { scope, hooks }
    }

    /// Whether there are no hooks.
    pub(in crate::engine) fn is_empty(self) -> bool {
        self.hooks.is_empty()
    }

    /// Tells the hooks how the call ended, after it is saved. If a hook fails, the caller gets only a warning: the outcome
    /// is stored already. If the call is told to end now, the hooks that still run or wait are begun but not waited for.
    pub(in crate::engine) async fn on_end(self, ended: &Ended) {
        if self.at(Point::OnEnd).next().is_some() {
            rarely(self.tell_end(ended)).await;
        }
    }

    async fn tell_end(self, ended: &Ended) {
        let (mut impatient, lineage) = (no_patience(self.scope), Lineage::new());
        for hook in self.at(Point::OnEnd) {
            let told = match ended {
                Ok(reply) => EndedForHook::Reply(reply),
                Err(failed) => {
                    EndedForHook::Error(SerializedError::new(&failed.error, failed.partial.clone()))
                }
            };
            let told = json::to_text(&told);
            let run = self.run("", (&[], &lineage));
            let telling = answer(self.scope, hook, (Point::OnEnd, &told), run);
            match race(telling, impatient.as_mut()).await {
                Either::First(Ok(_)) => {}
                Either::First(Err(error)) => self.scope.warn("middleware", error.message()),
                Either::Second(()) => {
                    let message = format!(
                        "the call did not wait for onEnd of the middleware \"{}\"",
                        hook.name()
                    );
                    self.scope.warn("middleware", message);
                    impatient = Box::pin(std::future::ready(()));
                }
            }
        }
    }

    /// The input after the changes of the hooks.
    pub(in crate::engine) async fn on_call(
        self,
        input: Vec<Rc<Message>>,
    ) -> Result<Vec<Rc<Message>>> {
        let mut input = input;
        for hook in self.at(Point::OnCall) {
            let given = json::to_text(&input);
            let Some(answer) = self.ask(hook, Point::OnCall, &given, "").await? else { break };
            if !answer.is_null() {
                let read = json::list(&answer, |item| Message::from_json(item).map(Rc::new));
                input = read.map_err(|misread| wrong(hook, misread))?;
            }
        }
        Ok(input)
    }

    /// The system prompt after the changes of the hooks.
    pub(in crate::engine) async fn system_prompt(self, prompt: String) -> Result<String> {
        if self.is_empty() { Ok(prompt) } else { rarely(self.change_prompt(prompt)).await }
    }

    async fn change_prompt(self, mut prompt: String) -> Result<String> {
        for hook in self.at(Point::SystemPrompt) {
            let given = json::to_text(&prompt);
            let Some(answer) = self.ask(hook, Point::SystemPrompt, &given, "").await? else {
                break;
            };
            prompt = json::text(&answer).map_err(|misread| wrong(hook, misread))?;
        }
        Ok(prompt)
    }

    /// What a hook makes of the context: the messages and the text of the summary, if they change.
    pub(in crate::engine) async fn revised_context(
        self,
        hook: &dyn Hook,
        session: &Session,
    ) -> Result<(Option<Vec<Rc<Message>>>, Option<String>)> {
        let host = self.scope.host;
        let run = self.run("", (session.context.as_slice(), &*session.lineage));
        let asking = answer_unless_stopped(self.scope, hook, (Point::ReviseContext, "null"), run);
        let Some(answer) = asking.await?.filter(|answer| !answer.is_null()) else {
            return Ok((None, None));
        };
        let read = |value: &Value| {
            let fields = Fields::of(value)?;
            let context =
                fields.optional("context", |value| json::list(value, Message::from_json))?;
            Ok((context, fields.optional("summary", json::text)?))
        };
        let (context, summary) = read(&answer).map_err(|misread| wrong(hook, misread))?;
        let exact = |message: Message| {
            let known = session.context.iter().find(|known| known.id == message.id);
            match known {
                Some(known) => Rc::new(unrounded(known, message)),
                None if message.id.is_empty() => stamped(message, host, &now(host)),
                None => Rc::new(message),
            }
        };
        Ok((context.map(|said| said.into_iter().map(exact).collect()), summary))
    }

    /// Refuses a context that no provider would accept.
    pub(in crate::engine) fn check_context(
        self,
        hook: &dyn Hook,
        context: &[Rc<Message>],
    ) -> Result<()> {
        revision::check(context).map_err(|expected| wrong(hook, Misread::new(&expected)))
    }

    /// The changes of the hooks to a model request.
    pub(in crate::engine) async fn before_model(
        self,
        session: &Session,
        (prompt, tools, generate): (&str, &[Rc<ToolSpec>], &Value),
    ) -> Result<Verdict<RequestChanges>> {
        let mut changes = RequestChanges::default();
        for hook in self.at(Point::BeforeModel) {
            let given = RequestForHook {
                system: changes.system.as_deref().unwrap_or(prompt),
                tools: changes.tools.as_deref().unwrap_or(tools),
                generate: changes.generate.as_ref().unwrap_or(generate),
            };
            let fresh = Lineage::new();
            let messages = match &changes.messages {
                Some(messages) => (messages.as_slice(), &fresh),
                None => (session.context.as_slice(), &*session.lineage),
            };
            let (given, run) = (json::to_text(&given), self.run("", messages));
            let asking = answer_unless_stopped(self.scope, hook, (Point::BeforeModel, &given), run);
            let Some(answer) = asking.await? else { break };
            match request_changes(&answer).map_err(|misread| wrong(hook, misread))? {
                Verdict::Stop(says) => return Ok(Verdict::Stop(says)),
                Verdict::GoOn(new) => {
                    changes.system = new.system.or(changes.system);
                    changes.messages = new.messages.or(changes.messages);
                    changes.tools = new.tools.or(changes.tools);
                    changes.generate = new.generate.or(changes.generate);
                }
            }
        }
        Ok(Verdict::GoOn(changes))
    }

    /// The answer after the changes of the hooks.
    pub(in crate::engine) async fn after_model(self, message: Message) -> Result<Verdict<Message>> {
        let mut message = message;
        for hook in self.at(Point::AfterModel) {
            let given = json::to_text(&message);
            let Some(answer) = self.ask(hook, Point::AfterModel, &given, "").await? else { break };
            if let Some(says) = word(&answer, "stop") {
                return Ok(Verdict::Stop(says));
            }
            if !answer.is_null() {
                let changed =
                    Message::from_json(&answer).map_err(|misread| wrong(hook, misread))?;
                let changed = unrounded(&message, changed);
                // The id stays, because events have shown it already.
                message = Message { id: message.id, role: Role::Assistant, ..changed };
            }
        }
        Ok(Verdict::GoOn(message))
    }

    /// A tool's input after the changes of the hooks, or the reason why the tool must not run.
    pub(in crate::engine) async fn before_tool(
        self,
        name: &str,
        id: &str,
        input: Value,
    ) -> Result<Verdict<Value>> {
        let mut input = input;
        for hook in self.at(Point::BeforeTool) {
            let given = json!({ "name": name, "input": input }).to_string();
            let Some(mut answer) = self.ask(hook, Point::BeforeTool, &given, id).await? else {
                return Ok(Verdict::Stop(STOPPED_CALL.to_owned()));
            };
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

    /// A tool's result after the changes of the hooks.
    pub(in crate::engine) async fn after_tool(self, result: ToolResult) -> Result<ToolResult> {
        let mut result = result;
        for hook in self.at(Point::AfterTool) {
            let given = json::to_text(&Block::ToolResult(result.clone()));
            let Some(answer) = self.ask(hook, Point::AfterTool, &given, &result.id).await? else {
                break;
            };
            if answer.is_null() {
                continue;
            }
            match Block::from_json(&answer).map_err(|misread| wrong(hook, misread))? {
                // A hook cannot change to which tool call the result belongs.
                Block::ToolResult(changed) => {
                    let changed = ToolResult { id: result.id, name: result.name, ..changed };
                    result = changed.shortened();
                }
                _ => return Err(wrong(hook, Misread::new("a tool_result"))),
            }
        }
        Ok(result)
    }

    /// Asks a hook that gets no messages. `None`: the call was told to end.
    async fn ask(
        self,
        hook: &dyn Hook,
        point: Point,
        given: &str,
        id: &str,
    ) -> Result<Option<Value>> {
        let lineage = Lineage::new();
        answer_unless_stopped(self.scope, hook, (point, given), self.run(id, (&[], &lineage))).await
    }

    /// What a hook is given besides its value.
    fn run<'b>(
        self,
        tool_call_id: &'b str,
        (messages, lineage): (&'b [Rc<Message>], &'b Lineage),
    ) -> HookRun<'b>
    where
        'a: 'b,
    {
        let CallScope { tag, attributes, live: desk, .. } = *self.scope;
        HookRun { tag, attributes, tool_call_id, desk, messages, lineage }
    }

    /// The hooks that handle this point, outermost first.
    pub(in crate::engine) fn at(self, point: Point) -> impl Iterator<Item = &'a dyn Hook> {
        self.hooks.iter().filter(move |hook| hook.is_at(point)).map(|hook| &**hook)
    }
}

/// The changes of one hook to a model request.
fn request_changes(answer: &Value) -> Read<Verdict<RequestChanges>> {
    if answer.is_null() {
        return Ok(Verdict::GoOn(RequestChanges::default()));
    }
    let fields = Fields::of(answer)?;
    if let Some(says) = fields.optional("stop", json::text)? {
        return Ok(Verdict::Stop(says));
    }
    Ok(Verdict::GoOn(RequestChanges {
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

/// Restores the exact numbers of the original answer: JavaScript rounds numbers that a double cannot hold.
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

fn wrong(hook: &dyn Hook, misread: Misread) -> Error {
    let what = format!("the answer of the middleware \"{}\"", hook.name());
    misread.into_error(ErrorKind::Middleware, &what).hint("see Middleware in the package's types")
}
