//! Builds a reply from deltas, and the events that show how it grows.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::event::Event;
use crate::json::{self, Object, halves};
use crate::message::{
    Block, CallState, Delta, Finish, MAX_TOOL_TEXT, Message, Role, ToolUse, Usage,
};

/// A complete reply of a model.
#[derive(Clone, Debug)]
pub struct ModelReply {
    /// The message. It has an id already, because its events contain the id.
    pub message: Message,
    /// Why the reply ended.
    pub finish: Finish,
    /// Tool calls whose arguments are not a JSON object, and a text that says what is wrong.
    pub unreadable: Vec<(String, String)>,
}

/// A reply that is being received.
///
/// Text ends the thinking block; a tool call ends text, thinking and earlier tool calls. Arguments are read only when
/// the stream has ended, because an incomplete text that happens to be JSON must never run.
#[derive(Debug)]
pub struct Assembly {
    message_id: String,
    parts: Vec<ReplyPart>,
    usage: Usage,
    finish: Option<Finish>,
    /// Whether half a character was replaced.
    replaced: bool,
}

#[derive(Debug)]
enum ReplyPart {
    Text {
        id: String,
        text: String,
        provider: Option<Value>,
        open: bool,
    },
    Thinking {
        id: String,
        text: String,
        signature: Option<String>,
        provider: Option<Value>,
        open: bool,
    },
    Call(CallPart),
}

/// A tool call that is being received. It is shown once it has a name.
#[derive(Debug)]
struct CallPart {
    index: u64,
    given: Option<String>,
    id: String,
    name: Option<String>,
    arguments: String,
    provider: Option<Value>,
    open: bool,
}

impl Assembly {
    /// A new reply, which becomes the message with this id.
    pub fn new(message_id: String) -> Assembly {
        Assembly {
            message_id,
            parts: Vec::new(),
            usage: Usage::default(),
            finish: None,
            replaced: false,
        }
    }

    /// Adds a delta, and appends the events that it causes.
    pub fn push(&mut self, delta: Delta, events: &mut Vec<Event>) {
        match delta {
            Delta::Text(delta) => self.text(delta, events),
            Delta::Thinking { text, signature } => self.thinking(text, signature, events),
            Delta::ToolCall { .. } => self.call(delta, events),
            Delta::Provider(data) => self.keep(data, events),
            Delta::End => self.close_all(events),
            Delta::Replaced => self.replaced = true,
            Delta::Usage { input, output, cached } => {
                let usage = &mut self.usage;
                usage.input_tokens = input.unwrap_or(usage.input_tokens);
                usage.output_tokens = output.unwrap_or(usage.output_tokens);
                usage.cached_tokens = cached.unwrap_or(usage.cached_tokens);
            }
            Delta::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// Whether the model has sent the reason for its end.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether half a character was replaced in the reply, or is replaced when its tool calls are read.
    pub fn has_halves(&self) -> bool {
        let is_call_with_half = |part: &ReplyPart| match part {
            ReplyPart::Call(call) => matches!(halves::replaced(&call.arguments), Cow::Owned(_)),
            _ => false,
        };
        self.replaced || self.parts.iter().any(is_call_with_half)
    }

    /// Whether a client has seen something of the reply.
    pub fn is_visible(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The text and thinking so far, without tool calls: a tool call that did not arrive whole must not run. `None`: nothing
    /// has arrived.
    pub fn said(&self) -> Option<Message> {
        let content: Vec<Block> = self.parts.iter().filter_map(ReplyPart::said).collect();
        let message = Message::draft(Role::Assistant, content);
        let has_any = !message.content.is_empty();
        has_any.then(|| Message { id: self.message_id.clone(), ..message })
    }

    /// Closes the open blocks and returns the complete reply.
    pub fn finish(mut self, seconds: f64, events: &mut Vec<Event>) -> ModelReply {
        self.close_all(events);
        self.usage.seconds = seconds;
        let mut unreadable = Vec::new();
        let mut content = Vec::new();
        for part in self.parts {
            content.extend(part.into_block(&mut unreadable, events));
        }
        let asked = content.iter().any(|block| matches!(block, Block::ToolUse(_)));
        let finish = self.finish.unwrap_or(if asked { Finish::ToolCalls } else { Finish::Stop });
        let message = Message {
            id: self.message_id,
            usage: Some(self.usage),
            ..Message::draft(Role::Assistant, content)
        };
        ModelReply { message, finish, unreadable }
    }

    fn text(&mut self, delta: String, events: &mut Vec<Event>) {
        if !matches!(self.parts.last(), Some(ReplyPart::Text { open: true, .. })) {
            self.close_all(events);
            let id = format!("{}.{}", self.message_id, self.parts.len());
            events.push(Event::TextStart { id: id.clone(), message_id: self.message_id.clone() });
            let (text, provider) = (String::new(), None);
            self.parts.push(ReplyPart::Text { id, text, provider, open: true });
        }
        if let Some(ReplyPart::Text { id, text, .. }) =
            self.parts.last_mut().filter(|_| !delta.is_empty())
        {
            text.push_str(&delta);
            events.push(Event::TextDelta { id: id.clone(), delta });
        }
    }

    fn thinking(&mut self, delta: String, proof: Option<String>, events: &mut Vec<Event>) {
        if !matches!(self.parts.last(), Some(ReplyPart::Thinking { open: true, .. })) {
            self.close_all(events);
            let id = format!("{}.{}", self.message_id, self.parts.len());
            events
                .push(Event::ThinkingStart { id: id.clone(), message_id: self.message_id.clone() });
            self.parts.push(ReplyPart::Thinking {
                id,
                text: String::new(),
                signature: None,
                provider: None,
                open: true,
            });
        }
        if let Some(ReplyPart::Thinking { id, text, signature, .. }) = self.parts.last_mut() {
            text.push_str(&delta);
            *signature = proof.or(signature.take());
            if !delta.is_empty() {
                events.push(Event::ThinkingDelta { id: id.clone(), delta });
            }
        }
    }

    /// Adds provider data to the current block: members of an object are added to earlier ones, and lists are joined.
    fn keep(&mut self, data: Value, events: &mut Vec<Event>) {
        if !matches!(
            self.parts.last(),
            Some(ReplyPart::Text { open: true, .. } | ReplyPart::Thinking { open: true, .. })
        ) {
            self.text(String::new(), events);
        }
        let Some(ReplyPart::Text { provider, .. } | ReplyPart::Thinking { provider, .. }) =
            self.parts.last_mut()
        else {
            return;
        };
        let Value::Object(data) = data else { return };
        let kept = provider.get_or_insert_with(|| Value::Object(Map::new()));
        for (name, value) in data {
            match (kept.get_mut(&name), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (_, value) => {
                    kept.as_object_mut().map(|kept| kept.insert(name, value));
                }
            }
        }
    }

    /// Finds the tool call of a delta: by a new provider id, then by index, then the latest call.
    fn call(&mut self, delta: Delta, events: &mut Vec<Event>) {
        let Delta::ToolCall { index, id, name, arguments, provider } = delta else {
            return;
        };
        // Two calls with the same id could not be told apart later, so the second one gets a new id from us.
        let has_same_id = |part: &ReplyPart| match part {
            ReplyPart::Call(call) => call.index != index && call.given == id,
            _ => false,
        };
        let is_duplicate = self.parts.iter().any(has_same_id);
        let id = id.filter(|_| !is_duplicate);
        let known = self.parts.iter().position(|part| match part {
            ReplyPart::Call(call) => {
                call.index == index && (id.is_none() || call.given.is_none() || call.given == id)
            }
            _ => false,
        });
        let place = known.unwrap_or_else(|| {
            self.close_all(events);
            let ours = format!("call-{}-{}", self.message_id, self.parts.len());
            self.parts.push(ReplyPart::Call(CallPart {
                index,
                given: None,
                id: ours,
                name: None,
                arguments: String::new(),
                provider: None,
                open: false,
            }));
            self.parts.len() - 1
        });
        if let Some(ReplyPart::Call(call)) = self.parts.get_mut(place) {
            call.take(id, name, arguments, provider, events);
        }
    }

    fn close_all(&mut self, events: &mut Vec<Event>) {
        for part in &mut self.parts {
            match part {
                ReplyPart::Text { id, open, .. } if *open => {
                    *open = false;
                    events.push(Event::TextEnd { id: id.clone() });
                }
                ReplyPart::Thinking { id, open, .. } if *open => {
                    *open = false;
                    events.push(Event::ThinkingEnd { id: id.clone() });
                }
                _ => {}
            }
        }
    }
}

impl CallPart {
    fn take(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        arguments: String,
        provider: Option<Value>,
        events: &mut Vec<Event>,
    ) {
        // A client already knows the call by its first id, so a later id does not replace it.
        if !self.open
            && let Some(id) = id.filter(|id| !id.is_empty())
        {
            self.given = Some(id.clone());
            self.id = id;
        }
        if self.name.is_none() {
            self.name = name.filter(|name| !name.is_empty());
        }
        self.provider = provider.or(self.provider.take());
        // Arguments that are too long are not read in the end, so the rest of them is not kept.
        if self.arguments.len() <= MAX_TOOL_TEXT {
            self.arguments.push_str(&arguments);
        }
        let Some(name) = &self.name else { return };
        let tool_call_id = self.id.clone();
        if !self.open {
            self.open = true;
            events.push(Event::ToolCallStart {
                tool_call_id: tool_call_id.clone(),
                name: name.clone(),
            });
            if !self.arguments.is_empty() {
                events.push(Event::ToolCallDelta { tool_call_id, delta: self.arguments.clone() });
            }
        } else if !arguments.is_empty() {
            events.push(Event::ToolCallDelta { tool_call_id, delta: arguments });
        }
    }
}

impl ReplyPart {
    /// The block so far; `None` for a tool call, and for a block without text.
    fn said(&self) -> Option<Block> {
        match self {
            ReplyPart::Text { text, provider, .. } if !text.is_empty() => Some(Block::Text {
                text: text.clone(),
                provider: provider.clone(),
                rest: Object::new(),
            }),
            ReplyPart::Thinking { text, signature, provider, .. } if !text.is_empty() => {
                Some(Block::Thinking {
                    thinking: text.clone(),
                    signature: signature.clone(),
                    provider: provider.clone(),
                    rest: Object::new(),
                })
            }
            _ => None,
        }
    }

    /// The finished block; `None` for a tool call that never got a name.
    fn into_block(
        self,
        unreadable: &mut Vec<(String, String)>,
        events: &mut Vec<Event>,
    ) -> Option<Block> {
        match self {
            ReplyPart::Text { text, provider, .. } => (!text.is_empty() || provider.is_some())
                .then(|| Block::Text { text, provider, rest: Object::new() }),
            ReplyPart::Thinking { text: thinking, signature, provider, .. } => {
                Some(Block::Thinking { thinking, signature, provider, rest: Object::new() })
            }
            ReplyPart::Call(CallPart { id, name, arguments, provider, .. }) => {
                let name = name?;
                let input = read_arguments(&arguments).unwrap_or_else(|complaint| {
                    unreadable.push((id.clone(), complaint));
                    Value::Object(Map::new())
                });
                events.push(Event::ToolCallEnd {
                    tool_call_id: id.clone(),
                    name: name.clone(),
                    input: input.clone(),
                });
                let state = CallState::Pending;
                Some(Block::ToolUse(ToolUse {
                    id,
                    name,
                    input,
                    state,
                    awaits: None,
                    asked: None,
                    provider,
                    rest: Object::new(),
                }))
            }
        }
    }
}

/// Reads the arguments of a tool call. No arguments at all mean the empty object.
fn read_arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    if text.len() > MAX_TOOL_TEXT {
        return Err(format!(
            "The arguments have more than {MAX_TOOL_TEXT} bytes, and were not kept. Send shorter ones."
        ));
    }
    match json::foreign(halves::replaced(text).as_bytes(), json::DEEPEST) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => {
            Err("The arguments are not a JSON object. Send one object with the tool's parameters."
                .into())
        }
        Err(error) => {
            Err(format!("The arguments are not valid JSON ({error}). Send them again, corrected."))
        }
    }
}
