//! A session that is exported, imported and exported again is the same document, and works like the original.

use std::cell::Cell;
use std::future::{Future, ready};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::Chance;
use crate::answers::{Clock, block_on};
use lockgate::engine::{Agent, Builder, Call, CallRequest, Format, Options, RuntimeContext};
use lockgate::error::{ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::policy::eviction::Eviction;
use lockgate::port::{Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use serde_json::{Value, json};

const NOW: f64 = 1_790_000_000_000.0;

/// A tool that asks a person if that is its name, and answers with many letters.
struct Letters(Rc<ToolSpec>);

impl Tool for Letters {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own =
            if self.0.name == "asks" { OwnDecision::Ask("why".into()) } else { OwnDecision::Pass };
        Box::pin(ready(Ok(Opinion { own, ..Opinion::default() })))
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(ready(Ok(vec![Block::text("letters ".repeat(400))])))
    }
}

/// An agent on a store of its own, and the script of its model.
struct Place {
    agent: Agent,
    model: Rc<ScriptedModel>,
}

fn slot() -> Slot {
    Slot::new(Some("alice"), "s").unwrap()
}

impl Place {
    fn new(seed: u64) -> Place {
        let mut options = Options::new("helper");
        options.compaction.keep_messages = 3;
        options.eviction =
            Some(Eviction { max_chars: 2_000, preview_chars: 100, ..Eviction::default() });
        options.workspace = Some(Default::default());
        let model = ScriptedModel::new([]);
        let mut builder = Builder::new(options)
            .model(Rc::clone(&model) as _)
            .store(Rc::new(MemoryStore::new()))
            .host(Rc::new(Clock(Cell::new(seed), NOW)));
        for name in ["asks", "looks"] {
            let spec = ToolSpec::new(name, "does it", json!({ "type": "object" }));
            builder = builder.tool(Rc::new(Letters(spec.into())));
        }
        Place { agent: builder.build().unwrap(), model }
    }

    fn begin(&self, text: Option<&str>, resends: bool) -> Call {
        let content = |text: &str| Message::draft(Role::User, vec![Block::text(text)]);
        let messages = text.map(content).into_iter().collect();
        let request = CallRequest { messages, resends, ..CallRequest::new(slot(), "") };
        self.agent.begin(request).unwrap()
    }

    /// Makes a call with these lines of the model. Calls that are refused or fail are a part of the story.
    fn call(&self, text: Option<&str>, resends: bool, lines: Vec<Line>) -> Option<ErrorKind> {
        self.model.add(lines);
        let ended = block_on(self.begin(text, resends).finish());
        self.use_up();
        ended.err().map(|failed| failed.error.kind())
    }

    fn use_up(&self) {
        for _ in 0..self.model.n_left() {
            let mut call =
                self.agent.begin(CallRequest::new(Slot::new(None, "x").unwrap(), "x")).unwrap();
            block_on(call.finish()).ok();
        }
    }

    /// A call whose answer does not end.
    fn hanging(&self, text: &str) -> Call {
        self.model.add([Line::Hangs(words("half an answer"))]);
        let mut call = self.begin(Some(text), false);
        for _ in 0..100 {
            let mut next = Box::pin(call.next());
            if !matches!(
                next.as_mut().poll(&mut Context::from_waker(Waker::noop())),
                Poll::Ready(Some(_))
            ) {
                break;
            }
        }
        call
    }

    fn state(&self) -> Value {
        json!(block_on(self.agent.state(&slot())).unwrap())
    }

    fn put(&self, change: impl FnOnce(&mut Value)) -> Option<ErrorKind> {
        let mut state = self.state();
        change(&mut state);
        block_on(self.agent.put_state(&slot(), &state).unwrap()).err().map(|error| error.kind())
    }

    fn exported(&self, format: Format) -> String {
        block_on(self.agent.export_session(&slot(), format)).unwrap()
    }

    fn imported(seed: u64, document: &str) -> Place {
        let place = Place::new(seed);
        let importing = place.agent.import_session(&slot(), document);
        let importing = importing.unwrap_or_else(|error| panic!("{error}: {document}"));
        block_on(importing).unwrap();
        place
    }

    /// Changes a session at random, with the same change for the same numbers.
    fn change(&self, kind: usize, n: u64) -> Option<ErrorKind> {
        let text = format!("question {n} {}", "and so on ".repeat(20));
        let calls = |names: &[&str]| {
            let ids: Vec<String> = (0..names.len()).map(|at| format!("c{n}-{at}")).collect();
            let all: Vec<_> =
                ids.iter().zip(names).map(|(id, name)| (&**id, *name, json!({}))).collect();
            Line::calls_all(&all)
        };
        let says = || Line::says(&format!("answer {n}"));
        let agent = &self.agent;
        match kind {
            0..4 => self.call(Some(&text), false, vec![says()]),
            4 => self.call(Some(&text), false, vec![calls(&["looks"]), says()]),
            5 => self.call(Some(&text), false, vec![calls(&["asks", "asks"])]),
            6 => self.call(Some(&text), false, vec![calls(&["looks", "asks"])]),
            7 => self.confirm(n, vec![says()]),
            8 => self.call(None, true, vec![says()]),
            9 => self.call(Some(&text), true, vec![says()]),
            10 => {
                self.model.add([Line::says(&format!("summary {n}"))]);
                let compacted = block_on(agent.compact(&slot())).err();
                self.use_up();
                compacted.map(|error| error.kind())
            }
            11 => block_on(agent.undo_compaction(&slot())).err().map(|error| error.kind()),
            12 => {
                let branches = block_on(agent.branches(&slot())).unwrap();
                let other = branches.get(n as usize % branches.len().max(1))?;
                let switched = agent.switch_branch(&slot(), other.id.clone());
                block_on(switched).err().map(|error| error.kind())
            }
            13 => self.put(|state| {
                let context = state["context"].as_array_mut().unwrap();
                if !context.is_empty() {
                    context.remove(n as usize % context.len());
                }
            }),
            14 => self.put(|state| state["summary"] = json!(format!("put summary {n}"))),
            15 => self.put(|state| {
                state["tasks_context"]["tasks"] =
                    json!([{ "id": format!("t{n}"), "subject": "x", "state": "pending" }]);
            }),
            16 => self.call(Some(&text), false, vec![Line::fails(ErrorKind::ModelAuth)]),
            17 => {
                drop(self.hanging(&text));
                None
            }
            18 => block_on(agent.clear_context(&slot())).err().map(|error| error.kind()),
            _ => {
                let note = Message::draft(Role::User, vec![Block::text(text)]);
                block_on(agent.append(&slot(), vec![note])).err().map(|error| error.kind())
            }
        }
    }

    /// Answers some of the open questions.
    fn confirm(&self, n: u64, lines: Vec<Line>) -> Option<ErrorKind> {
        let mut asks = block_on(self.agent.asks(&slot())).unwrap();
        asks.truncate(1 + n as usize % 2);
        let answer = |id: &String| json!({ "toolCallId": id, "approve": n.is_multiple_of(3) });
        let answers: Vec<_> = asks.iter().map(|ask| answer(&ask.tool_call_id)).collect();
        if answers.is_empty() {
            return None;
        }
        self.model.add(lines);
        let confirmed = self.agent.confirm(answers, RuntimeContext::new("alice", "s"));
        let ended = block_on(confirmed.unwrap().finish());
        self.use_up();
        ended.err().map(|failed| failed.error.kind())
    }

    /// What readers see, without ids that are new in each place.
    fn seen(&self) -> Value {
        let told = |message: &Rc<Message>| {
            let results: Vec<_> =
                message.tool_results().map(|it| (it.id.clone(), it.state)).collect();
            json!([message.role, message.text(), results, message.turn()])
        };
        let all = |messages: &[Rc<Message>]| messages.iter().map(told).collect::<Vec<_>>();
        let state = block_on(self.agent.state(&slot())).unwrap();
        let history = block_on(self.agent.history(&slot(), None, 10_000)).unwrap();
        let branches = block_on(self.agent.branches(&slot())).unwrap();
        let branches: Vec<_> =
            branches.iter().map(|it| json!([it.text, it.current, it.message_id])).collect();
        let info = block_on(self.agent.session(&slot())).unwrap().unwrap();
        let info = json!([
            info.title,
            info.summary,
            info.messages,
            info.asking,
            info.interrupted,
            info.branches
        ]);
        json!([
            all(&state.context),
            state.summary,
            all(&history),
            branches.len(),
            info,
            state.facts
        ])
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Whether a tool call was allowed and waits: an import gives it a result.
fn has_waiting_call(document: &Value) -> bool {
    document.to_string().contains("\"allowed\"")
}

#[test]
fn a_random_session_is_moved_whole_and_works_like_the_original() {
    let mut chance = Chance::new("transfer");
    let mut n_same = 0;
    for _ in 0..1_500 {
        let seed = chance.next();
        let original = Place::new(seed);
        original.call(Some("hello"), false, vec![Line::says("hi")]);
        for _ in 0..chance.below(14) {
            original.change(chance.below(20), chance.next() >> 8);
        }
        // An open turn is exported as an interrupted one, and goes on.
        let running = (chance.below(4) == 0).then(|| original.hanging("running"));
        let first = original.exported(Format::Lockgate);
        let copy = Place::imported(seed ^ 1, &first);
        let second = copy.exported(Format::Lockgate);
        let again = Place::imported(seed ^ 2, &second);
        assert_eq!(parsed(&again.exported(Format::Lockgate)), parsed(&second), "{seed}");
        if has_waiting_call(&parsed(&first)) {
            continue;
        }
        assert_eq!(parsed(&second), parsed(&first), "{seed}");
        n_same += 1;
        drop(running);
        // What readers see is the same once the original has recovered.
        block_on(original.agent.append(&slot(), Vec::new())).ok();
        block_on(copy.agent.append(&slot(), Vec::new())).ok();
        assert_eq!(copy.seen(), original.seen(), "{seed}");
        for _ in 0..6 {
            let (kind, n) = (chance.below(20), chance.next() >> 8);
            let ended = [&original, &copy].map(|place| place.change(kind, n));
            assert_eq!(ended[1], ended[0], "{seed}: change {kind} of {n}");
            block_on(original.agent.append(&slot(), Vec::new())).ok();
            block_on(copy.agent.append(&slot(), Vec::new())).ok();
            assert_eq!(copy.seen(), original.seen(), "{seed}: change {kind} of {n}");
        }
    }
    assert!(n_same > 1_000, "{n_same}");
}

#[test]
fn a_random_session_keeps_its_context_and_its_summary_in_an_agentscope_document() {
    let mut chance = Chance::new("transfer to AgentScope");
    for _ in 0..1_000 {
        let seed = chance.next();
        let original = Place::new(seed);
        original.call(Some("hello"), false, vec![Line::says("hi")]);
        for _ in 0..chance.below(14) {
            original.change(chance.below(20), chance.next() >> 8);
        }
        let first = original.exported(Format::AgentScope);
        let copy = Place::imported(seed ^ 1, &first);
        let second = copy.exported(Format::AgentScope);
        if !first.contains("\"allowed\"") {
            assert_eq!(parsed(&second), parsed(&first), "{seed}");
        }
        let again = Place::imported(seed ^ 2, &second);
        assert_eq!(parsed(&again.exported(Format::AgentScope)), parsed(&second), "{seed}");
        assert_eq!(again.state()["summary"], copy.state()["summary"]);
        assert_eq!(again.state()["context"], copy.state()["context"]);
    }
}

#[test]
fn no_changed_document_makes_a_session_that_cannot_be_read() {
    let mut chance = Chance::new("changed documents");
    let (mut n_refused, mut n_taken) = (0, 0);
    for _ in 0..300 {
        let original = Place::new(chance.next());
        original.call(Some("hello"), false, vec![Line::says("hi")]);
        for _ in 0..6 {
            original.change(chance.below(20), chance.next() >> 8);
        }
        let document = parsed(&original.exported(Format::Lockgate));
        for _ in 0..20 {
            let mut changed = document.clone();
            for _ in 0..=chance.below(2) {
                spoil(&mut chance, &document, &mut changed);
            }
            let place = Place::new(7);
            let Ok(importing) = place.agent.import_session(&slot(), &changed.to_string()) else {
                n_refused += 1;
                assert!(block_on(place.agent.session(&slot())).unwrap().is_none());
                continue;
            };
            n_taken += 1;
            block_on(importing).unwrap();
            if let Err(error) = block_on(place.agent.state(&slot())) {
                panic!("{error}: {changed}");
            }
            place.seen();
            for branch in block_on(place.agent.branches(&slot())).unwrap() {
                block_on(place.agent.history_of(&slot(), Some(&branch.id), None, 10_000)).unwrap();
            }
            for kind in [11, 11, 8, 12, 0, 10] {
                let ended = place.change(kind, chance.next() >> 8);
                assert!(ended != Some(ErrorKind::StoreCorrupt), "change {kind} of {changed}");
                place.seen();
            }
        }
    }
    assert!(n_refused > 500 && n_taken > 500, "{n_refused} refused, {n_taken} taken");
}

/// Replaces a part of a document's structure by another part of it.
fn spoil(chance: &mut Chance, document: &Value, changed: &mut Value) {
    let mut places = Vec::new();
    for name in ["head", "branches", "entries"] {
        look(&document[name], &format!("/{name}"), &mut places);
    }
    let (to, from) = (chance.below(places.len()), chance.below(places.len()));
    let value = match chance.below(3) {
        0 => document.pointer(&places[from]).unwrap().clone(),
        1 => chance
            .pick(&["null", "0", "1", "99", "[]", "{}", "\"000000000000.a\""])
            .parse()
            .unwrap(),
        _ => {
            // A place of the same name, such as another parent or another leaf.
            let name = places[to].rsplit('/').next().unwrap();
            let alike: Vec<_> =
                places.iter().filter(|it| it.rsplit('/').next() == Some(name)).collect();
            document.pointer(alike[chance.below(alike.len())]).unwrap().clone()
        }
    };
    if let Some(place) = changed.pointer_mut(&places[to]) {
        *place = value;
    }
}

/// The places in a value, without the contents of messages and fields.
fn look(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Object(members) => {
            let structure = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "messages" | "facts" | "changes"));
            structure.for_each(|(name, value)| look(value, &format!("{at}/{name}"), places));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, value)| look(value, &format!("{at}/{n}"), places));
        }
        _ => {}
    }
}
