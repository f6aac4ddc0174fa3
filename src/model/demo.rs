//! A small offline model that follows simple rules, so that demos and tests need no key. It says what it is.
//!
//! It is deterministic: the same conversation gets the same answer. Asked in plain words it calls the tools it is
//! given ("what time is it", "remember …", "list files", "use <tool> …"), thinks aloud, answers at length, or calls
//! a tool that fails.

use std::collections::VecDeque;
use std::future::ready;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::future::Local;
use crate::message::{Block, Delta, Finish, Message, Role, ToolResult};
use crate::port::{Deltas, Host, Model, Request, ToolSpec};

/// Plain words, and the names of tools that they ask for.
const WISHES: &[(&[&str], &[&str])] = &[
    (
        &["what time", "the time", "what date", "what day", "clock"],
        &["clock", "time", "date", "now"],
    ),
    (&["remember", "note that"], &["memory_save", "remember", "save_note", "save"]),
    (&["recall", "what do you know"], &["memory_search", "recall"]),
    (&["list files", "list the files", "which files"], &["list_files", "ls", "files"]),
    (&["read file", "read the file"], &["read_file"]),
    (&["search for", "look for"], &["session_search", "search"]),
    (
        &["add ", "sum of", "plus", "calculate", "how much is"],
        &["add", "sum", "calculator", "calculate"],
    ),
    (&["weather"], &["weather", "forecast"]),
];

const PARAGRAPHS: &[&str] = &[
    "A canal lock lifts boats one at a time. The gate behind a boat closes before the gate before it opens, so \
     two boats are never in the chamber together. Lockgate does that for conversations.",
    "Every call on a session waits for the one before it and then has the session to itself. Calls on other \
     sessions go on beside it, as other locks do along the same canal.",
    "What you say is stored before a model sees it. What is answered is stored before you are told that it is done. \
     In between, a crash costs you the answer, never the question.",
    "The log of a session is only ever appended to. A summary stands in front of old messages, it does not replace \
     them: you can open it and read what was said, word for word.",
    "Stop this answer whenever you like. The part that you have read stays, the rest is never asked for, and the \
     next question finds the conversation in order.",
];

/// The demo model.
pub struct DemoModel {
    host: Rc<dyn Host>,
    delay_ms: u64,
}

impl DemoModel {
    /// A demo model that waits so long before each word.
    pub fn new(host: Rc<dyn Host>, delay_ms: u64) -> DemoModel {
        DemoModel { host, delay_ms }
    }
}

impl Model for DemoModel {
    fn id(&self) -> &str {
        "demo"
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let answer =
            Speaking { model: self, deltas: answer(request.messages, request.tools).into() };
        Box::pin(ready(Ok(Box::new(answer) as Box<dyn Deltas>)))
    }
}

struct Speaking<'a> {
    model: &'a DemoModel,
    deltas: VecDeque<Delta>,
}

impl Deltas for Speaking<'_> {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        Box::pin(async {
            if self.model.delay_ms > 0 && !self.deltas.is_empty() {
                self.model.host.sleep(self.model.delay_ms).await;
            }
            Ok(self.deltas.pop_front().into_iter().collect())
        })
    }
}

/// The answer to a conversation.
pub fn answer(messages: &[Rc<Message>], tools: &[Rc<ToolSpec>]) -> Vec<Delta> {
    let results = results_at_the_end(messages);
    if !results.is_empty() {
        return say(&retell(&results));
    }
    let is_question = |message: &&Rc<Message>| message.role == Role::User && message.name.is_none();
    let question =
        messages.iter().rev().find(is_question).map(|message| message.text()).unwrap_or_default();
    let n_questions = messages.iter().filter(is_question).count();
    let asked = question.to_lowercase();
    if let Some((name, input)) = wished_tool(&question, &asked, tools) {
        return call(&name, &input);
    }
    if asked.contains("think") {
        return think(&question);
    }
    if asked.contains("long") {
        return say(&PARAGRAPHS.join("\n\n"));
    }
    say(&chat(&question, n_questions, tools))
}

fn chat(question: &str, n_questions: usize, tools: &[Rc<ToolSpec>]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let able = match names.as_slice() {
        [] => "I have no tools here".to_owned(),
        names => format!("My tools here are {}", names.join(", ")),
    };
    let greeting = if n_questions <= 1 {
        "Hello! I am **Lockgate's demo model**: a few rules, no network, no key.".to_owned()
    } else {
        format!(
            "This is still the demo model, and that was message {n_questions} of yours in this session."
        )
    };
    let quoted = question.lines().next().unwrap_or_default();
    format!(
        "{greeting} You said: “{quoted}”.\n\n{able}. Ask me *what time it is*, for a *long answer*, to *think* about \
         something, or for a *failing tool*, and you will see what the engine does with it."
    )
}

fn say(text: &str) -> Vec<Delta> {
    let words = text.split_inclusive([' ', '\n']).map(|word| Delta::Text(word.to_owned()));
    words.chain([usage(text), Delta::Finish(Finish::Stop)]).collect()
}

fn think(question: &str) -> Vec<Delta> {
    let thought = format!(
        "The user says “{question}”. I am a demo: I cannot know more than my rules. I can show how a thought \
         is kept apart from an answer."
    );
    let words = thought.split_inclusive(' ');
    let thoughts = words.map(|word| Delta::Thinking { text: word.to_owned(), signature: None });
    thoughts.chain(say("I have thought about it. As a demo model I have no opinion, but you can open my thoughts above.")).collect()
}

fn call(name: &str, input: &Value) -> Vec<Delta> {
    let fragment = Delta::ToolCall {
        index: 0,
        id: None,
        name: Some(name.to_owned()),
        arguments: input.to_string(),
        provider: None,
    };
    vec![fragment, usage(name), Delta::Finish(Finish::ToolCalls)]
}

fn usage(text: &str) -> Delta {
    Delta::Usage { input: None, output: Some(text.split_whitespace().count() as u64), cached: None }
}

/// The results that the model has not spoken about yet.
fn results_at_the_end(messages: &[Rc<Message>]) -> Vec<&ToolResult> {
    let at_the_end = messages.iter().rev().take_while(|message| message.role == Role::Tool);
    let blocks = at_the_end.flat_map(|message| message.content.iter().rev());
    let mut results: Vec<_> = blocks
        .filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

fn retell(results: &[&ToolResult]) -> String {
    let sentences = results.iter().map(|result| {
        let text = Message::draft(Role::Tool, result.output.clone()).text();
        match result.state {
            crate::message::ResultState::Success => {
                format!("The tool `{}` answered: {text}", result.name)
            }
            _ => format!("The tool `{}` failed, and I can read why: {text}", result.name),
        }
    });
    sentences.collect::<Vec<_>>().join("\n\n")
}

/// The tool that a question asks for, and what to give it.
fn wished_tool(question: &str, asked: &str, tools: &[Rc<ToolSpec>]) -> Option<(String, Value)> {
    if asked.contains("failing tool") {
        let name = tools
            .iter()
            .find(|tool| tool.name.contains("fail"))
            .map_or("no_such_tool", |tool| &tool.name);
        return Some((name.to_owned(), Value::Object(Map::new())));
    }
    let by_wish =
        WISHES.iter().filter(|(wishes, _)| wishes.iter().any(|wish| asked.contains(wish)));
    let mut names = by_wish.flat_map(|(_, names)| names.iter());
    let wished = names.find_map(|name| tools.iter().find(|tool| tool.name == *name));
    let named = || {
        let rest = asked.strip_prefix("use ").or_else(|| asked.strip_prefix("call "))?;
        tools.iter().find(|tool| rest.starts_with(&tool.name.to_lowercase()))
    };
    let tool = wished.or_else(named)?;
    Some((tool.name.clone(), arguments(question, tool)))
}

/// Fills in what the tool requires: numbers from the question's numbers, texts with the rest of the question.
fn arguments(question: &str, tool: &ToolSpec) -> Value {
    if let Some(object) = question.find('{').and_then(|start| question.get(start..))
        && let Ok(given @ Value::Object(_)) = serde_json::from_str(object)
    {
        return given;
    }
    let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-';
    let pieces = question.split(|letter| !is_digit(letter));
    let mut numbers = pieces.filter_map(|piece| piece.trim_matches('.').parse::<f64>().ok());
    let topic = question.split_once(' ').map_or(question, |(_, rest)| rest);
    let required =
        tool.input_schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut input = Map::new();
    for name in required.iter().filter_map(Value::as_str) {
        let kind =
            tool.input_schema.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
        let value = match kind {
            Some("number" | "integer") => numbers.next().map_or(Value::from(1), whole_or_not),
            Some("boolean") => Value::Bool(true),
            Some("array") => Value::Array(vec![Value::String(topic.to_owned())]),
            Some("object") => Value::Object(Map::new()),
            _ => Value::String(topic.to_owned()),
        };
        input.insert(name.to_owned(), value);
    }
    Value::Object(input)
}

fn whole_or_not(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}
