//! Import and export of AgentScope documents: both directions keep every value.

use std::rc::Rc;

use lockgate::agentscope::{Imported, export, import};
use lockgate::error::ErrorKind;
use lockgate::json;
use lockgate::message::*;
use lockgate::slot::Slot;
use lockgate::state::*;
use serde_json::{Map, Value, json};

const EXAMPLE: &str = include_str!("../../fixtures/agentscope/example.json");
const BLOCKS: &str = include_str!("../../fixtures/agentscope/blocks.json");
const PERMISSIONS: &str = include_str!("../../fixtures/agentscope/permissions.json");
const SPARSE: &str = include_str!("../../fixtures/agentscope/sparse.json");
const LEGACY: &str = include_str!("../../fixtures/agentscope/legacy.json");
const OURS: &str = include_str!("../../fixtures/agentscope/ours.json");

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn imported(text: &str) -> Imported {
    import(&fixture(text)).unwrap()
}

/// The session after our store: written as bytes and read again.
fn stored(imported: &Imported) -> Imported {
    let parse = |bytes: &[u8]| json::parse(bytes, "it").unwrap();
    let context = imported.context.iter().map(|message| parse(&json::to_bytes(message)));
    Imported {
        context: context.map(|message| Message::from_json(&message).unwrap()).collect(),
        facts: Facts::from_json(&parse(&json::to_bytes(&imported.facts))).unwrap(),
        ..imported.clone()
    }
}

fn exported(imported: &Imported) -> Value {
    let session = imported.session_id.as_deref().unwrap_or("default");
    let slot = Slot::new(imported.user_id.as_deref(), session).unwrap();
    let context: Vec<_> = imported.context.iter().cloned().map(Rc::new).collect();
    export(&slot, &context, &imported.summary, &imported.facts)
}

/// Imports, stores and exports a document; returns the export and the imported session.
fn round(document: &Value) -> (Value, Imported) {
    let imported = import(document).unwrap_or_else(|error| panic!("{error}: {document:#}"));
    let kept = stored(&imported);
    assert_eq!(kept, imported, "our store changed {document:#}");
    (exported(&kept), imported)
}

fn complaint(document: &Value) -> String {
    let error = import(document).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputInvalid);
    assert!(error.hint_text().unwrap().contains("agent_state"));
    error.message().to_owned()
}

#[test]
fn r14_the_keys_of_the_reference_are_read_and_written() {
    for text in [EXAMPLE, BLOCKS, PERMISSIONS, SPARSE, OURS] {
        let document = fixture(text);
        assert_eq!(round(&document).0, document);
    }
}

#[test]
fn r14_missing_keys_have_their_defaults() {
    let empty = import(&json!({})).unwrap();
    assert_eq!((empty.session_id.clone(), empty.user_id.clone()), (None, None));
    assert!(empty.context.is_empty() && empty.summary.is_empty());
    let facts = Facts { rest: Map::new(), ..empty.facts.clone() };
    assert_eq!(facts, Facts::default());
    assert_eq!(exported(&empty), json!({ "session_id": "default" }));
}

#[test]
fn r14_unknown_keys_survive_even_under_names_of_our_own_keys() {
    let document = json!({
        "session_id": "s", "format": 9, "version": "x", "revision": null, "agentscope": { "theirs": 1 },
        "context": [{ "id": "m", "role": "USER", "at": 1, "agentscope": 2, "content": [
            { "type": "text", "text": "t", "provider": null, "agentscope": 3 },
            { "type": "thinking", "thinking": "t", "signature": "s", "agentscope": null },
            { "type": "tool_result", "id": "c", "provider": 4 },
        ] }],
        "tasks_context": { "tasks": [{ "subject": "s", "priority": "low", "agentscope": {} }], "agentscope": 5 },
    });
    let (back, session) = round(&document);
    assert_eq!(back, document);
    let slot = Slot::new(None, "s").unwrap();
    let state = AgentState { facts: session.facts, ..AgentState::fresh(&slot) };
    assert_eq!(json::to_value(&state)["format"], 1, "their `format` is not taken for ours");
    assert_eq!(json::to_value(&state)["revision"], "");
}

#[test]
fn r14_our_session_is_written_in_the_shape_of_the_reference() {
    let ours = ours();
    assert_eq!(exported(&ours), fixture(OURS));
    assert_eq!(imported(OURS), ours);
}

#[test]
fn r14_missing_extra_and_null_keys_of_a_document_come_back() {
    for seed in 0..400 {
        let mut document = documents::document(&mut documents::Chance(seed));
        let (back, before) = round(&document);
        if before.session_id.is_none() {
            document["session_id"] = json!("default");
        } else {
            assert_eq!(import(&back).unwrap(), before, "seed {seed}");
        }
        assert_eq!(back, document, "seed {seed}");
    }
}

#[test]
fn r14_every_session_of_ours_comes_back_from_an_export() {
    for seed in 0..400 {
        let ours = sessions::session(&mut documents::Chance(seed));
        assert_eq!(import(&exported(&ours)).unwrap(), ours, "seed {seed}");
    }
}

#[test]
fn r19_the_keys_of_a_1x_session_load_with_its_identity_and_permissions() {
    let session = imported(LEGACY);
    assert_eq!(session.session_id.as_deref(), Some("first"));
    assert_eq!(session.user_id.as_deref(), Some("dora"));
    assert_eq!(session.facts.permission_context.mode, PermissionMode::DontAsk);
    assert_eq!(session.facts.permission_context.deny_rules[0].tool_name, "execute");
    let texts: Vec<_> = session.context.iter().map(|message| message.at.as_str()).collect();
    assert_eq!(texts[0], "2025-11-02T09:00:00.000Z");
    assert_eq!(session.context[1].usage.as_ref().unwrap().input_tokens, 9);
    let Block::ToolResult(result) = &session.context[2].content[0] else { panic!() };
    assert_eq!(result.state, ResultState::Success);
}

#[test]
fn r19_a_1x_session_is_written_as_2x_and_its_empty_groups_are_respected() {
    let document = exported(&imported(LEGACY));
    assert_eq!(document["context"], fixture(LEGACY)["memory_messages"]);
    assert_eq!(document["tool_context"]["activated_groups"], json!([]));
    assert!(document.get("memory_messages").is_none());
    assert!(document.get("toolkit_activeGroups").is_none());
    assert_eq!(round(&document).0, document);
}

#[test]
fn r19_a_1x_session_next_to_a_2x_one_is_left_alone() {
    let document = json!({ "session_id": "s", "context": [], "memory_messages": [{ "role": 5 }] });
    let (back, session) = round(&document);
    assert!(session.context.is_empty());
    assert_eq!(back, document);
}

#[test]
fn values_with_the_same_meaning_are_imported_under_our_names() {
    let session = imported(BLOCKS);
    let roles: Vec<_> = session.context.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(session.context[1].name.as_deref(), Some("__compaction_summary__"));
    let ats: Vec<_> = session.context.iter().map(|message| message.at.as_str()).collect();
    assert_eq!((ats[0], ats[4]), ("2026-02-28T23:59:59.999Z", "yesterday"));
    let answer = &session.context[3];
    assert_eq!((answer.id.as_str(), answer.name.as_deref()), ("", Some("Helper")));
    let usage = Usage { input_tokens: 120, output_tokens: 30, cached_tokens: 64, seconds: 1.25 };
    assert_eq!(answer.usage, Some(usage));
    let metadata = answer.metadata.as_ref().unwrap();
    assert_eq!(metadata["agentscope_generate_reason"], "PERMISSION_ASKING");
    assert!(!metadata.contains_key("_chat_usage"), "the usage is kept once, under our name");
    let states: Vec<_> = answer.tool_uses().map(|call| call.state).collect();
    use CallState::*;
    assert_eq!(states, [Allowed, Allowed, Asking, Pending, Finished]);
}

#[test]
fn a_running_result_is_imported_as_suspended() {
    let states: Vec<_> = imported(BLOCKS).context[4].content.iter().map(state_of).collect();
    use ResultState::*;
    assert_eq!(states, [Success, Error, Denied, Suspended, Interrupted]);
}

#[test]
fn a_result_without_a_state_gets_it_from_its_text_and_metadata() {
    let states: Vec<_> = imported(SPARSE).context[3].content.iter().map(state_of).collect();
    assert_eq!(states, [ResultState::Success, ResultState::Error, ResultState::Suspended]);
}

fn state_of(block: &Block) -> ResultState {
    let Block::ToolResult(result) = block else { panic!("{block:?}") };
    result.state
}

#[test]
fn a_thought_has_its_signature_and_a_file_its_kind() {
    let session = imported(BLOCKS);
    let Block::Thinking { signature, rest, .. } = &session.context[3].content[1] else { panic!() };
    assert_eq!(signature.as_deref(), Some("c2ln"));
    assert!(rest["metadata"].get("reasoningDetails").is_some());
    let media = session.context[2].content.iter().filter_map(|block| match block {
        Block::Media { kind, source, .. } => Some((*kind, source.clone())),
        _ => None,
    });
    let (kinds, sources): (Vec<_>, Vec<_>) = media.unzip();
    use MediaKind::*;
    assert_eq!(kinds, [Image, Image, Audio, Video, File, Image]);
    let url = "https://example.test/a.png".to_owned();
    assert_eq!(sources[0], Source::Url { url, media_type: Some("image/png".into()) });
}

#[test]
fn a_table_maps_a_rule_to_its_tool_and_effect() {
    let context = imported(PERMISSIONS).facts.permission_context;
    assert_eq!(context.mode, PermissionMode::AcceptEdits);
    let rules: Vec<_> = context.allow_rules.iter().map(|rule| rule.tool_name.as_str()).collect();
    assert_eq!(rules, ["execute", "execute", "read_file", "task_submit"]);
    assert!(context.allow_rules.iter().all(|rule| rule.behavior == Behavior::Allow));
    assert_eq!(context.ask_rules[0].rule_content.as_deref(), Some("*.toml"));
    assert_eq!(context.working_directories, ["/tmp", "/home/bob/boat"]);
}

#[test]
fn a_task_keeps_fields_that_only_the_reference_has() {
    let tasks = imported(PERMISSIONS).facts.tasks_context.tasks;
    assert_eq!(tasks[0].priority.as_deref(), Some("high"));
    assert_eq!(tasks[0].state, TaskState::Completed);
    assert_eq!(tasks[0].rest["created_at"], "2026-08-22T10:00:00+02:00");
    assert_eq!(tasks[0].rest["description"], "with oakum");
    assert_eq!(tasks[2].priority, None, "a priority that is not a string stays in `rest`");
}

#[test]
fn values_changed_after_the_import_are_exported_as_changed() {
    let mut session = imported(BLOCKS);
    let answer = &mut session.context[3];
    answer.id = "minted".into();
    for block in &mut answer.content {
        let Block::ToolUse(call) = block else { continue };
        call.state = CallState::Finished;
        call.input = json!({ "edited": true });
    }
    let Block::ToolResult(waited) = &mut session.context[4].content[3] else { panic!() };
    waited.state = ResultState::Success;
    let document = exported(&stored(&session));
    assert_eq!(document["context"][3]["id"], "minted");
    for block in document["context"][3]["content"].as_array().unwrap().iter().skip(4) {
        assert_eq!(block["state"], "finished");
        assert_eq!(
            block["content"], "{\"edited\":true}",
            "the export must not have the old arguments"
        );
    }
    assert_eq!(document["context"][4]["content"][3]["state"], "success");
    assert_eq!(document["context"][4]["content"][3]["metadata"], json!({}));
}

#[test]
fn values_removed_after_the_import_are_not_exported() {
    let mut session = imported(PERMISSIONS);
    let context = &mut session.facts.permission_context;
    context.working_directories = vec!["/tmp".into(), "/new".into()];
    context.allow_rules.retain(|rule| rule.tool_name == "read_file");
    session.facts.tasks_context.tasks.remove(0);
    let document = exported(&stored(&session));
    let context = &document["permission_context"];
    let directories = json!({
        "/tmp": { "path": "/tmp", "source": "session" }, "/new": { "path": "/new", "source": "session" },
    });
    assert_eq!(context["working_directories"], directories);
    let tools: Vec<_> = context["allow_rules"].as_object().unwrap().keys().collect();
    assert_eq!(tools, ["nothing", "read_file"]);
    assert_eq!(document["tasks_context"]["tasks"][0]["blocked_by"][0], "1".repeat(32));
}

#[test]
fn arguments_that_are_not_an_object_are_written_where_the_reference_can_read_them() {
    let mut session = ours();
    let Block::ToolUse(call) = &mut session.context[1].content[1] else { panic!() };
    call.input = json!([1, null]);
    let document = exported(&session);
    assert_eq!(document["context"][1]["content"][1]["input"], json!({}));
    assert_eq!(document["context"][1]["content"][1]["content"], "[1,null]");
    assert_eq!(import(&document).unwrap(), session);
}

#[test]
fn an_impossible_time_is_kept_unchanged() {
    for text in [
        "2026-02-29 00:00:00.000",
        "2026-13-01 00:00:00.000",
        "2026-01-01 24:00:00.000",
        "2026-01-01 00:00:00",
    ] {
        let document = json!({ "session_id": "s", "context": [{ "timestamp": text }] });
        let (back, session) = round(&document);
        assert_eq!((session.context[0].at.as_str(), &back), (text, &document));
    }
    let leap = json!({ "context": [{ "timestamp": "2028-02-29 12:00:00.001" }] });
    assert_eq!(import(&leap).unwrap().context[0].at, "2028-02-29T12:00:00.001Z");
}

#[test]
fn an_error_names_the_place_in_the_document() {
    let block =
        |block: Value| json!({ "context": [{}, { "content": [{ "type": "text" }, block] }] });
    let at = |place: &str, expected: &str| {
        format!("the AgentScope document at {place}: expected {expected}")
    };
    let cases = [
        (json!({ "context": {} }), at("context", "a list")),
        (
            json!({ "context": [{ "role": "robot" }] }),
            at("context[0].role", "user, assistant, system or tool"),
        ),
        (
            json!({ "context": [{ "usage": { "time": "1s" } }] }),
            at("context[0].usage.time", "a number"),
        ),
        (block(json!({})), at("context[1].content[1].type", "a string")),
        (block(json!({ "type": "image" })), at("context[1].content[1].source", "an object")),
        (
            block(json!({ "type": "tool_use", "input": [] })),
            at("context[1].content[1].input", "an object"),
        ),
        (
            block(json!({ "type": "tool_use", "state": "lost" })),
            at("context[1].content[1].state", "one of pending asking allowed finished"),
        ),
        (
            json!({ "permission_context": { "mode": "yolo" } }),
            at("permission_context.mode", "default, accept_edits, explore, bypass or dont_ask"),
        ),
        (
            json!({ "permission_context": { "ask_rules": { "run": [{ "behavior": "maybe" }] } } }),
            at("permission_context.ask_rules.run[0].behavior", "allow, ask, deny or passthrough"),
        ),
        (
            json!({ "permission_context": { "working_directories": { "a": 1 } } }),
            at("permission_context.working_directories.a", "an object"),
        ),
        (
            json!({ "tasks_context": { "tasks": [{}] } }),
            at("tasks_context.tasks[0].subject", "a string"),
        ),
        (
            json!({ "memory_messages": [{ "role": "robot" }] }),
            at("memory_messages[0].role", "user, assistant, system or tool"),
        ),
    ];
    for (document, said) in cases {
        assert_eq!(complaint(&document), said);
    }
    assert_eq!(complaint(&json!([])), "the AgentScope document: expected an object");
}

#[test]
fn a_value_of_another_type_anywhere_is_an_error_or_survives() {
    let document = fixture(BLOCKS);
    for (place, other) in documents::places(&document).iter().flat_map(|place| {
        [json!(null), json!(7.5), json!("x"), json!([0]), json!({ "k": [] })].map(|it| (place, it))
    }) {
        let mut changed = document.clone();
        *changed.pointer_mut(place).unwrap() = other;
        match import(&changed) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::InputInvalid),
            Ok(session) if session.session_id.as_deref() == Some("s/2") => {
                assert_eq!(exported(&session), changed, "{place}");
            }
            Ok(_) => assert_eq!(*place, "/session_id"),
        }
    }
}

/// The session whose document is `ours.json`.
fn ours() -> Imported {
    let mut question = Message::draft(
        Role::User,
        vec![
            Block::text("a boat?"),
            Block::Media {
                kind: MediaKind::Image,
                source: Source::Url {
                    url: "https://example.test/a.png".into(),
                    media_type: Some("image/png".into()),
                },
                name: None,
                rest: Map::new(),
            },
            Block::Media {
                kind: MediaKind::File,
                source: Source::Base64 {
                    media_type: "application/pdf".into(),
                    data: "JVBERg==".into(),
                },
                name: Some("boat.pdf".into()),
                rest: Map::new(),
            },
        ],
    );
    question.metadata = json!({ "free": 1 }).as_object().cloned();
    let call = |id: &str, name: &str, input, state, provider| ToolUse {
        id: id.into(),
        name: name.into(),
        input,
        state,
        awaits: None,
        asked: None,
        provider,
        rest: Map::new(),
    };
    let look = call(
        "c1",
        "look",
        json!({ "a": 1, "b": [true] }),
        CallState::Finished,
        Some(json!({ "kept": 1 })),
    );
    let ring = call("c2", "ring", json!({}), CallState::Asking, None);
    let results = vec![
        Block::ToolResult(ToolResult::new(&look, ResultState::Success, "a boat")),
        Block::ToolResult(ToolResult::new(&ring, ResultState::Suspended, "later")),
    ];
    let thought = Block::Thinking {
        thinking: "hm".into(),
        signature: Some("c2ln".into()),
        provider: None,
        rest: Map::new(),
    };
    let mut answer =
        Message::draft(Role::Assistant, vec![thought, Block::ToolUse(look), Block::ToolUse(ring)]);
    answer.name = Some("Helper".into());
    answer.usage =
        Some(Usage { input_tokens: 10, output_tokens: 4, cached_tokens: 2, seconds: 0.5 });
    let mut context = vec![question, answer, Message::draft(Role::Tool, results)];
    for (index, message) in context.iter_mut().enumerate() {
        message.id = format!("m{}", index + 1);
        message.at = format!("2026-08-22T10:00:0{index}.000Z");
    }
    Imported {
        session_id: Some("s1".into()),
        user_id: None,
        context,
        summary: "so far so good".into(),
        facts: our_facts(),
    }
}

fn our_facts() -> Facts {
    let rule = |tool: &str, content: Option<&str>, behavior| Rule {
        tool_name: tool.into(),
        rule_content: content.map(str::to_owned),
        behavior,
        source: "user".into(),
        rest: Map::new(),
    };
    let mut facts = Facts::default();
    facts.permission_context.mode = PermissionMode::DontAsk;
    facts.permission_context.allow_rules = vec![rule("look", None, Behavior::Allow)];
    facts.permission_context.deny_rules =
        vec![rule("sink", None, Behavior::Deny), rule("sink", Some("own"), Behavior::Deny)];
    facts.permission_context.working_directories = vec!["/boat".into()];
    facts.tool_context.activated_groups = vec!["web".into()];
    facts.tool_context.activated_skills = vec!["knots".into()];
    facts.plan_mode_context.plan_active = true;
    facts.plan_mode_context.current_plan_file = Some("plans/PLAN.md".into());
    facts.tasks_context.tasks = vec![Task {
        id: "t1".into(),
        subject: "launch".into(),
        state: TaskState::InProgress,
        priority: Some("high".into()),
        rest: Map::new(),
    }];
    facts
}

/// Random documents: every key may be present, null or missing, and extra keys may be added.
mod documents {
    use serde_json::{Map, Value, json};

    /// Random numbers from a seed.
    pub struct Chance(pub u64);

    impl Chance {
        pub fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % n as u64) as usize
        }

        pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
            of[self.below(of.len())].clone()
        }

        pub fn word(&mut self) -> String {
            self.pick(&["", "a", "look", "{}", "[1]", "日", "2026-01-01 00:00:00.000", "null"])
                .to_owned()
        }

        pub fn some<T>(&mut self, most: usize, make: fn(&mut Chance) -> T) -> Vec<T> {
            (0..self.below(most + 1)).map(|_| make(self)).collect()
        }
    }

    /// Names that the reference does not use; some are names of ours.
    const UNKNOWN: &[&str] = &[
        "later",
        "agentscope",
        "at",
        "title",
        "format",
        "revision",
        "minPixels",
        "min_pixels",
        "note",
        "lockgate",
        "suspended",
    ];

    /// The same members, some missing or null, some extra ones added.
    fn loosely(chance: &mut Chance, members: Value) -> Value {
        let Value::Object(members) = members else { panic!() };
        let mut loose = Map::new();
        for (name, value) in members {
            let is_needed = ["type", "source", "url", "data", "subject"].contains(&name.as_str());
            match chance.below(10) {
                0 if !is_needed => {}
                1 if !is_needed => drop(loose.insert(name, Value::Null)),
                _ => drop(loose.insert(name, value)),
            }
        }
        if chance.below(4) == 0 {
            let value = chance.pick(&[json!(null), json!(1.5), json!({ "ours": 1 }), json!("x")]);
            loose.entry(chance.pick(UNKNOWN)).or_insert(value);
        }
        Value::Object(loose)
    }

    fn metadata(chance: &mut Chance) -> Value {
        let all = [
            json!({}),
            json!({ "thoughtSignature": "s" }),
            json!({ "agentscope_suspended": true, "x": null }),
            json!({ "_chat_usage": { "inputTokens": 1 }, "priority": "low" }),
            json!({ "_chat_usage": "?", "priority": 2 }),
        ];
        chance.pick(&all)
    }

    fn usage(chance: &mut Chance) -> Value {
        let time = chance.pick(&[json!(0.5), json!(2), json!(0.0)]);
        let usage = json!({
            "inputTokens": chance.below(9), "outputTokens": chance.pick(&[json!(3), json!(4.0)]),
            "cachedTokens": 0, "time": time, "totalTokens": chance.below(20),
        });
        loosely(chance, usage)
    }

    fn source(chance: &mut Chance) -> Value {
        let kind = chance.pick(&["image/png", "audio/wav", "video/mp4", "text/plain", "?"]);
        let name = chance.pick(&["mime_type", "media_type", "mediaType"]);
        let mut source = match chance.below(2) {
            0 => json!({ "type": "url", "url": chance.word() }),
            _ => json!({ "type": "base64", "data": "AA==" }),
        };
        source[name] = kind.into();
        loosely(chance, source)
    }

    fn block(chance: &mut Chance) -> Value {
        let block = match chance.below(10) {
            0 | 1 => json!({ "type": "text", "text": chance.word() }),
            2 => {
                json!({ "type": "thinking", "thinking": "t", "metadata": metadata(chance), "signature": chance.word() })
            }
            3 | 4 => json!({
                "type": "tool_use", "id": chance.word(), "name": "look", "metadata": metadata(chance),
                "input": chance.pick(&[json!({}), json!({ "b": 1, "a": [null] })]),
                "content": chance.pick(&["{}", "{\"b\":1,\"a\":[null]}", "{\"a\": [null], \"b\": 1}", "[]", "nul", ""]),
                "state": chance.pick(&["pending", "asking", "ALLOWED", "submitted", "finished"]),
            }),
            5 | 6 => json!({
                "type": "tool_result", "id": "c", "name": chance.word(), "metadata": metadata(chance),
                "output": if chance.below(3) == 0 { vec![block(chance)] } else { Vec::new() },
                "state": chance.pick(&["success", "error", "interrupted", "denied", "running", "Running"]),
            }),
            7 => {
                return loosely(
                    chance,
                    json!({ "type": "hint", "id": "h", "hint": "h", "source": null }),
                );
            }
            _ => {
                json!({ "type": chance.pick(&["image", "audio", "video", "data", "file"]), "source": source(chance), "name": chance.word() })
            }
        };
        loosely(chance, block)
    }

    fn message(chance: &mut Chance) -> Value {
        let message = json!({
            "id": chance.word(), "name": chance.word(), "content": chance.some(4, block),
            "role": chance.pick(&["USER", "assistant", "System", "TOOL"]), "metadata": metadata(chance),
            "timestamp": chance.pick(&["2026-08-22 10:00:00.000", "2026-08-22T10:00:00.000Z", "", "then"]),
            "usage": usage(chance),
        });
        loosely(chance, message)
    }

    fn rule(chance: &mut Chance) -> Value {
        let behavior = chance.pick(&["allow", "deny", "ASK", "passthrough"]);
        let rule = json!({ "tool_name": chance.word(), "rule_content": chance.word(), "behavior": behavior, "source": "s" });
        loosely(chance, rule)
    }

    fn rules(chance: &mut Chance) -> Value {
        let tables = chance.some(3, |chance| (chance.word(), Value::Array(chance.some(2, rule))));
        Value::Object(tables.into_iter().collect())
    }

    fn directories(chance: &mut Chance) -> Value {
        let entry = |chance: &mut Chance| {
            let path = chance.pick(&["/a", "/b", "look"]);
            let source = chance.pick(&["session", "userSettings"]);
            let key = chance.pick(&["/a", "/b", "look", "main"]);
            (key.to_owned(), loosely(chance, json!({ "path": path, "source": source })))
        };
        Value::Object(chance.some(3, entry).into_iter().collect())
    }

    fn task(chance: &mut Chance) -> Value {
        let task = json!({
            "subject": chance.word(), "description": chance.word(), "metadata": metadata(chance), "owner": null,
            "created_at": "2026-08-22T10:00:00+00:00", "state": chance.pick(&["pending", "IN_PROGRESS", "completed"]),
            "id": chance.word(), "blocks": [], "blocked_by": chance.some(1, Chance::word),
        });
        loosely(chance, task)
    }

    pub fn document(chance: &mut Chance) -> Value {
        let permissions = json!({
            "mode": chance.pick(&["default", "accept_edits", "explore", "BYPASS", "dont_ask"]),
            "working_directories": directories(chance), "allow_rules": rules(chance),
            "deny_rules": rules(chance), "ask_rules": rules(chance),
        });
        let tools = json!({
            "max_cache_files": chance.pick(&[100, 7]), "max_cache_bytes": chance.pick(&[25000.0, 3.0]),
            "activated_groups": chance.some(2, Chance::word), "spawn_registry": chance.pick(&[json!({}), json!({ "k": 1 })]),
        });
        let tasks = json!({ "tasks": chance.some(3, task) });
        let plan =
            json!({ "plan_active": chance.below(2) == 0, "current_plan_file": chance.word() });
        let document = json!({
            "session_id": chance.pick(&["s", "日/本"]), "user_id": "u", "summary": chance.word(),
            "context": chance.some(6, message), "reply_id": chance.word(), "cur_iter": chance.below(2),
            "shutdown_interrupted": chance.below(2) == 0,
            "permission_context": loosely(chance, permissions), "tool_context": loosely(chance, tools),
            "tasks_context": loosely(chance, tasks), "plan_mode_context": loosely(chance, plan),
        });
        loosely(chance, document)
    }

    /// A JSON pointer to every value inside this one.
    pub fn places(value: &Value) -> Vec<String> {
        let inside: Vec<(String, &Value)> = match value {
            Value::Object(members) => members.iter().map(|(name, it)| (name.clone(), it)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(n, it)| (n.to_string(), it)).collect()
            }
            _ => Vec::new(),
        };
        let mut places = Vec::new();
        for (step, value) in inside {
            let step = step.replace('~', "~0").replace('/', "~1");
            places.push(format!("/{step}"));
            places.extend(
                super::documents::places(value).iter().map(|below| format!("/{step}{below}")),
            );
        }
        places
    }
}

/// Random sessions of ours.
mod sessions {
    use super::documents::Chance;
    use super::*;

    fn rest(chance: &mut Chance) -> Map<String, Value> {
        let all = [json!({}), json!({}), json!({ "later": null }), json!({ "x": { "y": [1] } })];
        chance.pick(&all).as_object().cloned().unwrap()
    }

    fn maybe<T: Clone>(chance: &mut Chance, value: T) -> Option<T> {
        (chance.below(2) == 0).then_some(value)
    }

    fn block(chance: &mut Chance) -> Block {
        let provider = maybe(chance, json!({ "p": [1] }));
        let rest = rest(chance);
        let word = chance.word();
        match chance.below(6) {
            0 => Block::Text { text: word, provider, rest },
            1 => Block::Thinking {
                thinking: word,
                signature: maybe(chance, "s".into()),
                provider,
                rest,
            },
            2 => {
                use CallState::*;
                let state = chance.pick(&[Pending, Asking, Allowed, Finished]);
                let input = chance.pick(&[
                    json!({}),
                    json!({ "b": 1, "a": 2.5 }),
                    json!(null),
                    json!("x"),
                    json!([]),
                ]);
                Block::ToolUse(ToolUse {
                    id: word,
                    name: "look".into(),
                    input,
                    state,
                    awaits: chance.pick(&[None, Some("outside".to_owned())]),
                    asked: chance.pick(&[None, Some(json!({ "digest": "d" }))]),
                    provider,
                    rest,
                })
            }
            3 => {
                use ResultState::*;
                let state = chance.pick(&[Success, Error, Denied, Interrupted, Suspended]);
                let output = if chance.below(3) == 0 { vec![block(chance)] } else { Vec::new() };
                Block::ToolResult(ToolResult { id: word, name: "look".into(), output, state, rest })
            }
            4 => Block::Other(
                json!({ "type": "hologram", "depth": 3 }).as_object().cloned().unwrap(),
            ),
            _ => {
                use MediaKind::*;
                let kind = chance.pick(&[Image, Audio, Video, File]);
                let media_type = chance.pick(&["text/plain", "image/png", "video/mp4"]).to_owned();
                let source = match chance.below(2) {
                    0 => Source::Url { url: word, media_type: maybe(chance, media_type) },
                    _ => Source::Base64 { media_type, data: "AA==".into() },
                };
                Block::Media { kind, source, name: maybe(chance, "n".into()), rest }
            }
        }
    }

    fn message(chance: &mut Chance) -> Message {
        let count = chance.below(5) as u64;
        let usage =
            Usage { input_tokens: count, output_tokens: 2, cached_tokens: 1, seconds: 0.25 };
        Message {
            id: chance.word(),
            role: chance.pick(&[Role::User, Role::Assistant, Role::System, Role::Tool]),
            content: chance.some(4, block),
            name: maybe(chance, "Helper".into()),
            at: chance
                .pick(&["", "2026-08-22T10:00:00.123Z", "2026-08-22T10:00:00+02:00", "then"])
                .into(),
            usage: maybe(chance, usage),
            metadata: maybe(chance, json!({ "free": null }).as_object().cloned().unwrap()),
            tokens: Default::default(),
            rest: rest(chance),
        }
    }

    fn rules(chance: &mut Chance, behavior: Behavior) -> Vec<Rule> {
        // Tools in the order of their names: the reference keeps no order among them.
        let tools = ["execute", "look", "look"];
        tools[..chance.below(4)]
            .iter()
            .map(|tool| Rule {
                tool_name: (*tool).into(),
                rule_content: maybe(chance, "x:*".into()),
                behavior,
                source: chance.word(),
                rest: rest(chance),
            })
            .collect()
    }

    fn task(chance: &mut Chance) -> Task {
        Task {
            id: chance.word(),
            subject: chance.word(),
            state: chance.pick(&[TaskState::Pending, TaskState::InProgress, TaskState::Completed]),
            priority: maybe(chance, "low".into()),
            rest: rest(chance),
        }
    }

    pub fn session(chance: &mut Chance) -> Imported {
        use PermissionMode::*;
        let permission_context = PermissionContext {
            mode: chance.pick(&[Default, AcceptEdits, Explore, Bypass, DontAsk]),
            allow_rules: rules(chance, Behavior::Allow),
            ask_rules: rules(chance, Behavior::Ask),
            deny_rules: rules(chance, Behavior::Deny),
            working_directories: ["/a", "/b"][..chance.below(3)]
                .iter()
                .map(|it| (*it).into())
                .collect(),
            rest: rest(chance),
        };
        let facts = Facts {
            permission_context,
            plan_mode_context: PlanModeContext {
                plan_active: chance.below(2) == 0,
                current_plan_file: maybe(chance, "plans/PLAN.md".into()),
                rest: rest(chance),
            },
            tasks_context: TasksContext { tasks: chance.some(3, task), rest: rest(chance) },
            tool_context: ToolContext {
                activated_groups: chance.some(2, Chance::word),
                activated_skills: chance.some(2, Chance::word),
                rest: rest(chance),
            },
            shutdown_interrupted: chance.below(2) == 0,
            rest: rest(chance),
        };
        Imported {
            session_id: Some("s".into()),
            user_id: maybe(chance, "u".into()),
            context: chance.some(6, message),
            summary: chance.word(),
            facts,
        }
    }
}
