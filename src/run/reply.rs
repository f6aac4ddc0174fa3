//! Deltas become one answer, and the events that show it grow.

use serde_json::{Map, Value};

use crate::event::Event;
use crate::json::{self, Object};
use crate::message::{Block, CallState, Delta, Finish, Message, Role, ToolUse, Usage};

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What was said; with an id, since its events carry it.
    pub message: Message,
    /// Why it ended.
    pub finish: Finish,
    /// Tool calls whose arguments are no JSON object, and what is wrong with them.
    pub unreadable: Vec<(String, String)>,
}

/// An answer being received.
///
/// Words close a thought; a tool call closes words, thoughts and earlier calls. Arguments are read only when the
/// stream has ended: a prefix that happens to be JSON must never run.
#[derive(Debug)]
pub struct Assembly {
    message_id: String,
    parts: Vec<Part>,
    usage: Usage,
    finish: Option<Finish>,
}

#[derive(Debug)]
enum Part {
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
    Call(Call),
}

/// A tool call being received; it shows once it has a name.
#[derive(Debug)]
struct Call {
    index: u64,
    given: Option<String>,
    id: String,
    name: Option<String>,
    arguments: String,
    provider: Option<Value>,
    open: bool,
}

impl Assembly {
    /// An answer that will be the message of this id.
    pub fn new(message_id: String) -> Assembly {
        Assembly { message_id, parts: Vec::new(), usage: Usage::default(), finish: None }
    }

    /// Takes one delta and says what an observer sees of it.
    pub fn push(&mut self, delta: Delta, events: &mut Vec<Event>) {
        match delta {
            Delta::Text(delta) => self.text(delta, events),
            Delta::Thinking { text, signature } => self.thinking(text, signature, events),
            Delta::ToolCall { .. } => self.call(delta, events),
            Delta::Provider(data) => self.keep(data, events),
            Delta::End => self.close_all(events),
            Delta::Usage { input, output, cached } => {
                let usage = &mut self.usage;
                usage.input_tokens = input.unwrap_or(usage.input_tokens);
                usage.output_tokens = output.unwrap_or(usage.output_tokens);
                usage.cached_tokens = cached.unwrap_or(usage.cached_tokens);
            }
            Delta::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// Whether the model has said why it ended.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether an observer has seen something of it.
    pub fn is_visible(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Closes what is open and answers with the whole.
    pub fn finish(mut self, seconds: f64, events: &mut Vec<Event>) -> Reply {
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
        Reply { message, finish, unreadable }
    }

    fn text(&mut self, delta: String, events: &mut Vec<Event>) {
        if !matches!(self.parts.last(), Some(Part::Text { open: true, .. })) {
            self.close_all(events);
            let id = format!("{}.{}", self.message_id, self.parts.len());
            events.push(Event::TextStart { id: id.clone(), message_id: self.message_id.clone() });
            let (text, provider) = (String::new(), None);
            self.parts.push(Part::Text { id, text, provider, open: true });
        }
        if let Some(Part::Text { id, text, .. }) =
            self.parts.last_mut().filter(|_| !delta.is_empty())
        {
            text.push_str(&delta);
            events.push(Event::TextDelta { id: id.clone(), delta });
        }
    }

    fn thinking(&mut self, delta: String, proof: Option<String>, events: &mut Vec<Event>) {
        if !matches!(self.parts.last(), Some(Part::Thinking { open: true, .. })) {
            self.close_all(events);
            let id = format!("{}.{}", self.message_id, self.parts.len());
            events
                .push(Event::ThinkingStart { id: id.clone(), message_id: self.message_id.clone() });
            self.parts.push(Part::Thinking {
                id,
                text: String::new(),
                signature: None,
                provider: None,
                open: true,
            });
        }
        if let Some(Part::Thinking { id, text, signature, .. }) = self.parts.last_mut() {
            text.push_str(&delta);
            *signature = proof.or(signature.take());
            if !delta.is_empty() {
                events.push(Event::ThinkingDelta { id: id.clone(), delta });
            }
        }
    }

    /// Keeps what the provider wants back with the block at hand: members of an object stand beside the earlier ones,
    /// and lists grow.
    fn keep(&mut self, data: Value, events: &mut Vec<Event>) {
        if !matches!(
            self.parts.last(),
            Some(Part::Text { open: true, .. } | Part::Thinking { open: true, .. })
        ) {
            self.text(String::new(), events);
        }
        let Some(Part::Text { provider, .. } | Part::Thinking { provider, .. }) =
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

    /// Routes a fragment by the provider's id where it is new, then by index, then to the latest call.
    fn call(&mut self, delta: Delta, events: &mut Vec<Event>) {
        let Delta::ToolCall { index, id, name, arguments, provider } = delta else {
            return;
        };
        // Two calls with one id could not be told apart later: the second gets an id of ours.
        let has_it = |part: &Part| match part {
            Part::Call(call) => call.index != index && call.given == id,
            _ => false,
        };
        let is_twin = self.parts.iter().any(has_it);
        let id = id.filter(|_| !is_twin);
        let known = self.parts.iter().position(|part| match part {
            Part::Call(call) => {
                call.index == index && (id.is_none() || call.given.is_none() || call.given == id)
            }
            _ => false,
        });
        let place = known.unwrap_or_else(|| {
            self.close_all(events);
            let ours = format!("call-{}-{}", self.message_id, self.parts.len());
            self.parts.push(Part::Call(Call {
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
        if let Some(Part::Call(call)) = self.parts.get_mut(place) {
            call.take(id, name, arguments, provider, events);
        }
    }

    fn close_all(&mut self, events: &mut Vec<Event>) {
        for part in &mut self.parts {
            match part {
                Part::Text { id, open, .. } if *open => {
                    *open = false;
                    events.push(Event::TextEnd { id: id.clone() });
                }
                Part::Thinking { id, open, .. } if *open => {
                    *open = false;
                    events.push(Event::ThinkingEnd { id: id.clone() });
                }
                _ => {}
            }
        }
    }
}

impl Call {
    fn take(
        &mut self,
        id: Option<String>,
        name: Option<String>,
        arguments: String,
        provider: Option<Value>,
        events: &mut Vec<Event>,
    ) {
        // An observer already knows the call by its first id, so a later one cannot rename it.
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
        self.arguments.push_str(&arguments);
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

impl Part {
    /// The block it became; a call that never got a name is none.
    fn into_block(
        self,
        unreadable: &mut Vec<(String, String)>,
        events: &mut Vec<Event>,
    ) -> Option<Block> {
        match self {
            Part::Text { text, provider, .. } => (!text.is_empty() || provider.is_some())
                .then(|| Block::Text { text, provider, rest: Object::new() }),
            Part::Thinking { text: thinking, signature, provider, .. } => {
                Some(Block::Thinking { thinking, signature, provider, rest: Object::new() })
            }
            Part::Call(Call { id, name, arguments, provider, .. }) => {
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

/// The arguments of a call; none at all is the empty object.
fn read_arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match json::foreign(text.as_bytes(), json::DEEPEST) {
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
