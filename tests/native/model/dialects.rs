//! Requests as they are sent, word for word, and provider models in the engine.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::future::ready;
use std::rc::Rc;

use lockgate::engine::{Builder, Options as AgentOptions};
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::json::Object;
use lockgate::message::{
    Block, CallState, MediaKind, Message, ResultState, Role, Source, ToolResult, ToolUse,
};
use lockgate::model::Dialect;
use lockgate::model::Flavour;
use lockgate::model::options::ProviderOptions;
use lockgate::model::provider::{ProviderModel, render};
use lockgate::port::{Http, HttpAnswer, HttpRequest, Lineage, Request, ToolSpec};
use lockgate::slot::Slot;
use lockgate::store::id;
use serde_json::{Value, json};

use crate::support::{HostHandle, TestHost, ask, memory};

fn message(role: Role, content: Vec<Block>) -> Rc<Message> {
    Rc::new(Message::draft(role, content))
}

fn call(id: &str, city: &str, provider: Option<Value>) -> ToolUse {
    ToolUse {
        id: id.into(),
        name: "weather".into(),
        input: json!({ "city": city }),
        state: CallState::Finished,
        awaits: None,
        asked: None,
        provider,
        rest: Object::new(),
    }
}

/// A conversation with a file, a thought, parallel calls of which one failed, and a question at its end.
fn conversation() -> Vec<Rc<Message>> {
    let picture = Block::Media {
        kind: MediaKind::Image,
        source: Source::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
        name: None,
        rest: Object::new(),
    };
    let thought = Block::Thinking {
        thinking: "Two cities.".into(),
        signature: Some("proof".into()),
        provider: Some(json!({ "model": "m-1", "field": "reasoning_content" })),
        rest: Object::new(),
    };
    let signed = json!({ "model": "m-1", "thoughtSignature": "signed" });
    let (oslo, rome) = (call("call_1", "Oslo", Some(signed)), call("call_2", "Rome", None));
    let failed = ToolResult::new(&rome, ResultState::Error, "no such city");
    vec![
        message(Role::User, vec![Block::text("Weather?"), picture]),
        message(
            Role::Assistant,
            vec![
                thought,
                Block::text("Let me look."),
                Block::ToolUse(oslo.clone()),
                Block::ToolUse(rome),
            ],
        ),
        message(
            Role::Tool,
            vec![Block::ToolResult(ToolResult::new(&oslo, ResultState::Success, "rain"))],
        ),
        message(Role::Tool, vec![Block::ToolResult(failed)]),
    ]
}

fn body(options: &ProviderOptions, messages: &[Rc<Message>], generate: &Value) -> (String, Value) {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let tools = [Rc::new(ToolSpec::new("weather", "The weather of a city", schema))];
    let (slot, lineage) = (Slot::new(None, "s").unwrap(), Lineage::new());
    let request = Request {
        slot: &slot,
        tag: 0,
        system: "Be brief.",
        messages,
        lineage: &lineage,
        tools: &tools,
        generate,
        form: None,
    };
    let rendered = render(options, &request).unwrap();
    (rendered.path, serde_json::from_slice(&rendered.body).unwrap())
}

// R69
#[test]
fn requests_equal_the_golden_files_word_for_word() {
    let flavoured =
        |flavour| ProviderOptions { flavour, ..ProviderOptions::new(Dialect::OpenAi, "m-1") };
    let cases = [
        ("openai", flavoured(Flavour::OpenAi)),
        ("compatible", flavoured(Flavour::Compatible)),
        ("dashscope", flavoured(Flavour::DashScope)),
        ("glm", flavoured(Flavour::Glm)),
        ("openrouter", flavoured(Flavour::OpenRouter)),
        ("mistral", flavoured(Flavour::Mistral)),
        ("ollama", flavoured(Flavour::Ollama)),
        ("anthropic", ProviderOptions::new(Dialect::Anthropic, "m-1")),
        ("gemini", ProviderOptions::new(Dialect::Gemini, "m-1")),
    ];
    let generate = json!({ "temperature": 0.5, "topP": 0.9, "maxTokens": 100, "toolChoice": "auto", "reasoningEffort": "low", "extra": { "seed": 7 } });
    for (name, options) in cases {
        let (path, body) = body(&options, &conversation(), &generate);
        let file = format!("{}/tests/fixtures/requests/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let found = json!({ "path": path, "body": body });
        // Set this variable to rewrite the golden files; review them before you commit.
        if std::env::var_os("LOCKGATE_GOLDEN").is_some() {
            fs::write(&file, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        }
        let golden: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(found, golden, "{name}");
    }
}

// H-07
#[test]
fn thoughts_and_signatures_of_another_model_are_not_sent() {
    for dialect in Dialect::ALL {
        let (_, own) = body(&ProviderOptions::new(*dialect, "m-1"), &conversation(), &json!({}));
        let (_, other) = body(&ProviderOptions::new(*dialect, "m-2"), &conversation(), &json!({}));
        let kept = match dialect {
            Dialect::OpenAi => "reasoning_content",
            Dialect::Anthropic => "proof",
            Dialect::Gemini => "signed",
        };
        assert!(own.to_string().contains(kept), "{dialect:?}");
        assert!(!other.to_string().contains(kept), "{dialect:?}");
    }
}

// H-07
#[test]
fn thinking_is_off_after_tool_calls_of_another_model() {
    let generate = json!({ "reasoningEffort": "low" });
    let (_, own) =
        body(&ProviderOptions::new(Dialect::Anthropic, "m-1"), &conversation(), &generate);
    let (_, other) =
        body(&ProviderOptions::new(Dialect::Anthropic, "m-2"), &conversation(), &generate);
    assert_eq!(own["thinking"]["type"], "enabled");
    assert_eq!(other.get("thinking"), None);
}

/// A network with one answer per request, sent in pieces.
struct Wire {
    answers: RefCell<Vec<(u16, Vec<&'static str>)>>,
    n_sent: Cell<usize>,
}

struct Answer(u16, Vec<&'static str>);

impl Http for Wire {
    fn send(&self, _: HttpRequest) -> Local<'static, Result<Box<dyn HttpAnswer>>> {
        self.n_sent.set(self.n_sent.get() + 1);
        let (status, pieces) = self.answers.borrow_mut().remove(0);
        Box::pin(ready(Ok(Box::new(Answer(status, pieces)) as Box<dyn HttpAnswer>)))
    }
}

impl HttpAnswer for Answer {
    fn status(&self) -> u16 {
        self.0
    }

    fn header(&self, name: &str) -> Option<String> {
        (name == "retry-after").then(|| "0".to_owned())
    }

    fn next(&mut self) -> Local<'_, Result<Vec<u8>>> {
        let piece = if self.1.is_empty() { "" } else { self.1.remove(0) };
        Box::pin(ready(Ok(piece.as_bytes().to_vec())))
    }
}

// R67, M-07
#[test]
fn a_rate_limit_is_waited_out_and_the_answer_comes_over_the_same_port() {
    let words = r#"data: {"choices":[{"delta":{"content":"Now."},"finish_reason":"stop"}]}"#;
    let answers = vec![(429, vec!["slow down"]), (529, vec![]), (200, vec![words, "\n\n"])];
    let wire = Rc::new(Wire { answers: RefCell::new(answers), n_sent: Cell::new(0) });
    let host = HostHandle(TestHost::new());
    let options = ProviderOptions::new(Dialect::OpenAi, "m-1");
    let model = ProviderModel::new(options, wire.clone(), Rc::new(host.clone()));
    let agent = Builder::new(AgentOptions::new("helper"))
        .model(Rc::new(model))
        .store(memory())
        .host(Rc::new(host))
        .build()
        .unwrap();
    let reply = ask(&agent, "s", "hello").unwrap();
    assert_eq!((reply.text.as_str(), wire.n_sent.get()), ("Now.", 3));
}

// M-22
#[test]
fn ids_are_128_bits_of_chance_and_of_nothing_else() {
    let host = HostHandle(TestHost::new());
    let ids: HashSet<String> = (0..100_000).map(|_| id::random_id(&host)).collect();
    assert_eq!(ids.len(), 100_000);
    // The clock of this host stands still, so only chance makes the ids differ.
    assert!(ids.iter().all(|id| id.len() == 26));
}
