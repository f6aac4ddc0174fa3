//! The workspace: who owns a file, which paths are valid, and what the tools refuse.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, Builder, CallRequest, Options};
use lockgate::error::ErrorKind;
use lockgate::message::{Block, ResultState};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Page, Shared, Store};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::keys;
use lockgate::store::workspace::files::{File, Files, Workspace};
use serde_json::{Value, json};

/// An agent with a workspace, whose model makes these calls one after the other.
fn agent_of(store: &Rc<dyn Store>, workspace: Workspace, calls: &[(&str, Value)]) -> Agent {
    let lines = calls.iter().map(|(name, input)| Line::calls(name, input));
    let model = ScriptedModel::new(lines.chain([Line::says("done")]));
    let (workspace, max_iterations) = (Some(workspace), 100);
    let options = Options { workspace, max_iterations, ..Options::new("helper") };
    let host = Rc::new(HostHandle(TestHost::new()));
    Builder::new(options).model(model).store(Rc::clone(store)).host(host).build().unwrap()
}

/// The result of each call, as the model reads it; a refusal begins with `!`.
fn results_for(slot: Slot, agent: &Agent) -> Vec<String> {
    let ended = block_on(agent.begin(CallRequest::new(slot, "go")).unwrap().finish()).unwrap();
    let blocks = ended.messages.iter().flat_map(|message| message.content.iter());
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult(result) => Some(result),
        _ => None,
    });
    let said = results.map(|result| {
        let mark = if result.state == ResultState::Success { "" } else { "!" };
        let texts: Vec<_> =
            result.output.iter().map(|it| Block::text_of(std::slice::from_ref(it))).collect();
        format!("{mark}{}", texts.join("|"))
    });
    said.collect()
}

fn results(workspace: Workspace, calls: &[(&str, Value)]) -> Vec<String> {
    results_for(slot("s1"), &agent_of(&memory(), workspace, calls))
}

fn templates(files: &[(&str, &str)]) -> Workspace {
    let templates = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Workspace { templates: templates.collect(), ..Workspace::default() }
}

fn files_on(store: &Rc<dyn Store>, workspace: Workspace) -> Files {
    let host = Rc::new(HostHandle(TestHost::new()));
    Files::new("helper", workspace, Rc::clone(store), host, 1_000).unwrap()
}

#[test]
fn a_model_writes_reads_changes_and_finds_files() {
    let calls = [
        ("write_file", json!({ "path": "notes/a.md", "content": "one\ntwo\nthree\n" })),
        ("read_file", json!({ "path": "./notes/a.md" })),
        ("edit_file", json!({ "path": "notes/a.md", "old_string": "two", "new_string": "2" })),
        ("read_file", json!({ "path": "notes/a.md", "offset": 1, "limit": 1 })),
        ("write_file", json!({ "path": "b.txt", "content": "Two", "overwrite": true })),
        ("grep_files", json!({ "pattern": "(?i)^two|2$" })),
        ("glob_files", json!({ "pattern": "*.md" })),
        ("list_files", json!({})),
        ("list_files", json!({ "path": "notes/" })),
    ];
    let expected = [
        "Wrote notes/a.md.",
        "one\ntwo\nthree\n",
        "Replaced 1 in notes/a.md.",
        "2\n|(Lines 2 to 2 of 3. Go on with offset 2.)",
        "Wrote b.txt.",
        "b.txt:1:Two\nnotes/a.md:2:2",
        "notes/a.md",
        "b.txt\nnotes/",
        "a.md",
    ];
    assert_eq!(results(Workspace::default(), &calls), expected);
}

// X-12
#[test]
fn r62_x12_a_path_that_leads_out_is_refused_by_every_tool_and_method() {
    let store = memory();
    let agent = agent_of(&store, Workspace::default(), &[]);
    let files = agent.files(Some("alice")).unwrap();
    let bad = [
        "../a",
        "a/../b",
        "..",
        "a/..",
        "/etc/passwd",
        "//a",
        "a//b",
        "a\\b",
        "..\\a",
        "a\0",
        "a\nb",
        "%2e%2e/a",
        "%2E%2e",
        "%252e%252e/a",
        "..%2fa",
        "a/..%5cb",
        "\u{ff0e}\u{ff0e}/a",
        "\u{2024}\u{2024}",
        "\u{2025}/a",
        "..\u{ff0f}a",
        ".../a",
        "",
        "/",
        "a/",
    ];
    let long = ["x".repeat(256), vec!["abc"; 300].join("/")];
    for path in bad.into_iter().chain(long.iter().map(String::as_str)) {
        let kinds = [
            block_on(files.read(path)).err().map(|error| error.kind()),
            block_on(files.put(path, "")).err().map(|error| error.kind()),
            block_on(files.remove(path)).err().map(|error| error.kind()),
        ];
        assert_eq!(kinds, [Some(ErrorKind::PathInvalid); 3], "{path:?}");
    }
    assert_eq!(block_on(files.list("..")).unwrap_err().kind(), ErrorKind::PathInvalid);
    let calls = [
        ("read_file", json!({ "path": "../a" })),
        ("write_file", json!({ "path": "../a", "content": "" })),
        ("edit_file", json!({ "path": "../a", "old_string": "a", "new_string": "b" })),
        ("grep_files", json!({ "pattern": "a", "path": "../a" })),
        ("glob_files", json!({ "pattern": "a", "path": "../a" })),
        ("list_files", json!({ "path": "../a" })),
    ];
    let why = "!the path \"../a\" leads out of its folder: paths are relative to the workspace, such as notes/today.md";
    assert_eq!(results(Workspace::default(), &calls), [why; 6]);
    assert_eq!(block_on(store.list("", Page::default())).unwrap(), []);
}

// X-12
#[test]
fn x12_names_that_only_look_like_a_path_out_are_plain_names() {
    let agent = agent_of(&memory(), Workspace::default(), &[]);
    let files = agent.files(Some("alice")).unwrap();
    let long = format!("{}/{}", "日本語".repeat(20), vec!["deep folder"; 40].join("/"));
    let names = ["a..b", "..a", "a..", ".hidden", "100%", "a b", "A", "a", "日本/語", "-", &long];
    for name in &names {
        block_on(files.put(name, name)).unwrap();
    }
    for name in &names {
        assert_eq!(block_on(files.read(name)).unwrap().unwrap().text, **name);
    }
    let listed = block_on(files.list("")).unwrap();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(listed, sorted);
    let below = long.rsplit_once('/').unwrap().0;
    assert_eq!(block_on(files.list(below)).unwrap(), [long.as_str()]);
    block_on(files.remove(&long)).unwrap();
    assert!(block_on(files.list(below)).unwrap().is_empty());
}

#[test]
fn keys_of_files_are_short_enough_for_every_store() {
    let store = memory();
    let agent = "\u{1f600}".repeat(60);
    let host = Rc::new(HostHandle(TestHost::new()));
    let files = Files::new(&agent, Workspace::default(), Rc::clone(&store), host, 1_000).unwrap();
    let path = vec!["\u{1f600}folder"; 85].join("/");
    for user in [Some("é".repeat(128)), None] {
        let slot = Slot::new(user.as_deref(), &"é".repeat(128)).unwrap();
        block_on(files.of(&slot).put(&path, "deep")).unwrap();
        assert_eq!(block_on(files.of(&slot).read(&path)).unwrap().unwrap().text, "deep");
    }
    let keys: Vec<_> = block_on(store.list("", Page::default())).unwrap();
    assert_eq!(keys.len(), 2);
    for (key, _) in keys {
        // The key of a chunk also has a revision and a number.
        assert!(key.len() + 40 <= 512, "{key}");
        let fits = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'/');
        assert!(key.bytes().all(fits) && !key.contains("--"), "{key}");
        assert!(keys::KINDS.contains(&keys::kind(&key).as_str()), "{key}");
    }
}

// R62: create-only writes, unique edits, no empty text to replace.
#[test]
fn r62_an_ambiguous_write_or_edit_changes_nothing_and_gives_a_reason() {
    let write = |content: &str| ("write_file", json!({ "path": "a", "content": content }));
    let edit = |old: &str, new: &str| {
        ("edit_file", json!({ "path": "a", "old_string": old, "new_string": new }))
    };
    let calls = [
        edit("x", "y"),
        write("aaa b b"),
        write("again"),
        edit("", "y"),
        edit("c", "y"),
        edit("b", "y"),
        edit("aa", "y"),
        ("read_file", json!({ "path": "a" })),
        (
            "edit_file",
            json!({ "path": "a", "old_string": "b", "new_string": "c", "replace_all": true }),
        ),
        ("read_file", json!({ "path": "a" })),
        ("read_file", json!({ "path": "b" })),
    ];
    let twice = "!old_string is in the file more than once. Give more of what is around it, or set replace_all.";
    let expected = [
        "!There is no file a. Make one with write_file.",
        "Wrote a.",
        "!There is a file a already. Change it with edit_file, or set overwrite to replace it.",
        "!old_string is empty. Say which text is to be replaced.",
        "!old_string is not in the file. Read it, and copy the text exactly.",
        twice,
        twice,
        "aaa b b",
        "Replaced 2 in a.",
        "aaa c c",
        "!There is no file b.",
    ];
    assert_eq!(results(Workspace::default(), &calls), expected);
}

// X-13
#[test]
fn x13_a_session_cannot_read_the_files_of_another_user_or_another_anonymous_session() {
    let of = |user, session| Slot::new(user, session).unwrap();
    for shared in [Shared::Process, Shared::Origin, Shared::Host, Shared::Cluster] {
        let store: Rc<dyn Store> = Rc::new(MemoryStore::shared_by(shared));
        let write = [("write_file", json!({ "path": "a", "content": "secret" }))];
        for owner in [of(Some("alice"), "s1"), of(None, "s1")] {
            let agent = agent_of(&store, Workspace::default(), &write);
            assert_eq!(results_for(owner, &agent), ["Wrote a."]);
        }
        let sees = |slot: Slot| {
            let calls = [("read_file", json!({ "path": "a" })), ("list_files", json!({}))];
            results_for(slot, &agent_of(&store, Workspace::default(), &calls))[0] == "secret"
        };
        assert!(sees(of(Some("alice"), "s2")) && sees(of(None, "s1")), "{shared:?}");
        assert!(!sees(of(Some("bob"), "s1")), "{shared:?}");
        assert_eq!(sees(of(None, "s2")), shared == Shared::Origin, "{shared:?}");
    }
}

#[test]
fn files_are_deleted_with_their_user_or_with_their_anonymous_session() {
    let store: Rc<dyn Store> = Rc::new(MemoryStore::shared_by(Shared::Host));
    let keys = || {
        let records = block_on(store.list("", Page::default())).unwrap();
        records.into_iter().filter(|(key, _)| key.contains("/file/")).count()
    };
    let write = [("write_file", json!({ "path": "a", "content": "text" }))];
    let anonymous = |session| Slot::new(None, session).unwrap();
    for slot in [slot("s1"), anonymous("s1"), anonymous("s2")] {
        results_for(slot, &agent_of(&store, Workspace::default(), &write));
    }
    assert_eq!(keys(), 3);
    let agent = agent_of(&store, Workspace::default(), &[]);
    block_on(agent.delete_session(&slot("s1"))).unwrap();
    assert_eq!(keys(), 3, "a user's files outlive a session");
    block_on(agent.delete_session(&anonymous("s1"))).unwrap();
    assert_eq!(keys(), 2);
    block_on(agent.delete_user(Some("alice"))).unwrap();
    assert_eq!(keys(), 1);
    block_on(agent.delete_user(None)).unwrap();
    assert_eq!(keys(), 0);
}

#[test]
fn when_two_write_one_file_at_once_one_succeeds_and_the_other_is_refused() {
    let store = memory();
    let (one, other) =
        (files_on(&store, Workspace::default()), files_on(&store, Workspace::default()));
    let (slot, later) = (slot("s1"), slot("s2"));
    let (one, other) = (one.of(&slot), other.of(&later));
    assert!(block_on(one.write("a", "first", None)).unwrap());
    assert!(!block_on(other.write("a", "second", None)).unwrap(), "it is there by now");
    let read = |shelf: &lockgate::store::workspace::files::OwnerFiles<'_>| {
        block_on(shelf.read("a")).unwrap().unwrap()
    };
    let (seen, seen_too): (File, File) = (read(&one), read(&other));
    assert!(block_on(other.write("a", "third", Some(&seen_too))).unwrap());
    assert!(!block_on(one.write("a", "fourth", Some(&seen))).unwrap(), "it has changed by now");
    assert_eq!(read(&one).text, "third");
    block_on(other.remove("a")).unwrap();
    assert!(!block_on(one.write("a", "fifth", Some(&seen))).unwrap(), "it is gone by now");
}

#[test]
fn every_user_sees_a_template_until_they_write_that_file() {
    let workspace = templates(&[("guide.md", "as given"), ("docs/faq.md", "questions")]);
    let store = memory();
    let calls = [
        ("read_file", json!({ "path": "guide.md" })),
        ("write_file", json!({ "path": "guide.md", "content": "new" })),
        ("edit_file", json!({ "path": "guide.md", "old_string": "given", "new_string": "mine" })),
        ("read_file", json!({ "path": "guide.md" })),
        ("list_files", json!({})),
    ];
    let expected = [
        "as given",
        "!There is a file guide.md already. Change it with edit_file, or set overwrite to replace it.",
        "Replaced 1 in guide.md.",
        "as mine",
        "docs/\nguide.md",
    ];
    let agent = agent_of(&store, workspace, &calls);
    assert_eq!(results_for(slot("s1"), &agent), expected);
    let text = |user| {
        let files = agent.files(Some(user)).unwrap();
        block_on(files.read("guide.md")).unwrap().unwrap().text
    };
    assert_eq!((text("alice").as_str(), text("bob").as_str()), ("as mine", "as given"));
    block_on(agent.files(Some("alice")).unwrap().remove("guide.md")).unwrap();
    assert_eq!(text("alice"), "as given", "the template is back");
}

#[test]
fn read_only_files_are_read_only_for_tools_but_not_for_the_host() {
    let read_only = vec!["docs".to_owned(), "./guide.md".to_owned()];
    let workspace = Workspace { read_only, ..templates(&[("docs/a", "given")]) };
    let write =
        |path: &str| ("write_file", json!({ "path": path, "content": "x", "overwrite": true }));
    let edit = json!({ "path": "docs/a", "old_string": "given", "new_string": "x" });
    let calls = [
        write("docs/a"),
        write("guide.md"),
        ("edit_file", edit),
        write("docs.md"),
        write("a/docs/b"),
    ];
    let store = memory();
    let agent = agent_of(&store, workspace, &calls);
    let expected = [
        "!docs/a is read-only: write to another path",
        "!guide.md is read-only: write to another path",
        "!docs/a is read-only: write to another path",
        "Wrote docs.md.",
        "Wrote a/docs/b.",
    ];
    assert_eq!(results_for(slot("s1"), &agent), expected);
    let files = agent.files(Some("alice")).unwrap();
    block_on(files.put("docs/a", "by the host")).unwrap();
    assert_eq!(block_on(files.read("docs/a")).unwrap().unwrap().text, "by the host");
}

#[test]
fn invalid_workspace_options_are_refused_when_the_agent_is_built() {
    let too_large = Workspace { max_file_bytes: 3, ..templates(&[("a", "four")]) };
    let pattern = Workspace { read_only: vec!["docs/**".into()], ..Workspace::default() };
    let outside = Workspace { read_only: vec!["../docs".into()], ..Workspace::default() };
    for workspace in [templates(&[("../a", "")]), too_large, pattern, outside] {
        let host = Rc::new(HostHandle(TestHost::new()));
        let error = Files::new("helper", workspace, memory(), host, 1_000).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Options, "{error}");
        assert!(error.message().starts_with("workspace: ") && error.hint_text().is_some());
    }
    let error = agent(ScriptedModel::new([])).files(Some("alice")).err().unwrap();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Options, "the agent has no workspace"));
}

#[test]
fn the_host_reaches_files_without_a_user_only_where_their_owner_is_clear() {
    let on = |shared, default: Option<&str>| {
        let store: Rc<dyn Store> = Rc::new(MemoryStore::shared_by(shared));
        let options = Options {
            workspace: Some(Workspace::default()),
            default_session_id: default.map(str::to_owned),
            ..Options::new("helper")
        };
        let model = ScriptedModel::new([]);
        let host = Rc::new(HostHandle(TestHost::new()));
        let agent = Builder::new(options).model(model).store(store).host(host).build().unwrap();
        agent.files(None).map(|files| block_on(files.put("a", "b"))).map_err(|error| error.kind())
    };
    assert!(on(Shared::Origin, None).unwrap().is_ok());
    assert!(on(Shared::Host, Some("main")).unwrap().is_ok());
    assert_eq!(on(Shared::Host, None).unwrap_err(), ErrorKind::IdInvalid);
    let agent = agent_of(&memory(), Workspace::default(), &[]);
    assert_eq!(agent.files(Some(" ")).err().unwrap().kind(), ErrorKind::IdInvalid);
}

// X-10
#[test]
fn x10_a_pattern_that_makes_other_engines_backtrack_is_searched_in_linear_time() {
    let workspace = templates(&[("a", &"a".repeat(60_000))]);
    let grep = |pattern: &str| ("grep_files", json!({ "pattern": pattern }));
    let calls = [
        grep("(a+)+$b"),
        grep("(a|a)*c"),
        grep("(.*)*x"),
        grep("(a{1000}){1000}"),
        grep("("),
        grep(r"(a)\1"),
        grep(&"a".repeat(1_001)),
    ];
    let found = results(workspace, &calls);
    assert_eq!(found[..3], ["Nothing was found."; 3]);
    for refusal in &found[3..6] {
        assert!(refusal.starts_with("!The pattern cannot be used: "), "{refusal}");
    }
    assert_eq!(found[6], "!The pattern is too long.");
}

// X-10
#[test]
fn x10_a_large_pattern_searches_less_text_than_a_small_one() {
    let workspace = templates(&[("a", &"aaaaaaaaa\n".repeat(30_000))]);
    let calls = [
        ("grep_files", json!({ "pattern": "b" })),
        ("grep_files", json!({ "pattern": "b".repeat(200) })),
    ];
    let found = results(workspace, &calls);
    assert_eq!(found[0], "Nothing was found.");
    assert!(found[1].starts_with("(The search ended at a:"), "{}", found[1]);
}

// X-12
#[test]
fn x12_every_path_stays_inside_the_workspace_and_is_a_file_of_its_own() {
    let pieces = [
        "a", "b", "A", ".", "..", "/", "\\", "%2e", "%2F", "%25", "\u{ff0e}", "\u{2215}", "é", " ",
        "-", "\0",
    ];
    let store = memory();
    let agent = agent_of(&store, Workspace::default(), &[]);
    let files = agent.files(Some("alice")).unwrap();
    let mut kept = std::collections::BTreeMap::new();
    let mut seed = 7_u64;
    for n in 0..3_000 {
        let mut path = String::new();
        for _ in 0..1 + n % 9 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            path.push_str(pieces[(seed >> 60) as usize]);
        }
        if block_on(files.put(&path, &format!("{n}"))).is_ok() {
            let names = path.split('/').filter(|name| *name != ".");
            kept.insert(names.collect::<Vec<_>>().join("/"), format!("{n}"));
        }
    }
    let listed = block_on(files.list("")).unwrap();
    assert!(listed.len() > 300 && listed.iter().eq(kept.keys()), "each path is one file");
    for (path, text) in &kept {
        assert!(path.split('/').all(|name| !matches!(name, "" | "." | "..")), "{path:?}");
        assert_eq!(block_on(files.read(path)).unwrap().unwrap().text, *text, "{path:?}");
    }
    let keys = block_on(store.list("", Page::default())).unwrap();
    assert!(keys.iter().all(|(key, _)| key.starts_with("1.t.helper/t.alice/file/t.")));
}

// X-11
#[test]
fn x11_braces_and_stars_in_a_glob_never_explode() {
    let workspace =
        templates(&[(&"a".repeat(250), ""), ("b/c.md", ""), ("b/d/e.txt", ""), ("x{y", "")]);
    let glob = |pattern: &str| ("glob_files", json!({ "pattern": pattern }));
    let calls = [
        glob(&"{a,b}".repeat(40)),
        glob(&"*a".repeat(60)),
        glob(&format!("{}b", "**/".repeat(200))),
        glob("{b,b/**}/*.{md,txt}"),
        glob("*.md"),
        glob("b/*"),
        glob("?/**"),
        glob("[b]*"),
        glob("{a"),
        glob(&"{".repeat(1_001)),
    ];
    let found = results(workspace, &calls);
    let name = "a".repeat(250);
    let none = "No file fits the pattern.";
    assert_eq!(found[0], none);
    assert_eq!(found[1], name);
    let refused = found[2].starts_with("!The pattern cannot be used: ");
    assert!(refused || found[2] == none, "{}", found[2]);
    assert_eq!(found[3..8], ["b/c.md\nb/d/e.txt", "b/c.md", "b/c.md", "b/c.md\nb/d/e.txt", none]);
    assert!(found[8].starts_with("!The pattern cannot be used: "), "{}", found[8]);
    assert_eq!(found[9], "!The pattern is too long.");
}

// X-14
#[test]
fn x14_files_and_results_of_a_tool_stay_within_their_limits() {
    let many: Vec<(String, String)> =
        (0..1_200).map(|n| (format!("many/{n:04}"), "hit\n".repeat(2))).collect();
    let workspace = Workspace { templates: many, max_file_bytes: 100_000, ..Workspace::default() };
    let calls = [
        ("write_file", json!({ "path": "a", "content": "x".repeat(100_001) })),
        ("write_file", json!({ "path": "a", "content": "x".repeat(100_000) })),
        (
            "edit_file",
            json!({ "path": "a", "old_string": "x", "new_string": "y".repeat(90_000), "replace_all": true }),
        ),
        ("read_file", json!({ "path": "a" })),
        ("read_file", json!({ "path": "a", "column": 80_000 })),
        ("grep_files", json!({ "pattern": "x", "path": "a" })),
        ("grep_files", json!({ "pattern": "hit" })),
        ("list_files", json!({ "path": "many" })),
        ("read_file", json!({ "path": "a", "offset": 1 })),
    ];
    let found = results(workspace, &calls);
    let limit = "and a file has at most 100000: write less, or several files";
    assert_eq!(found[0], format!("!a would have 100001 bytes, {limit}"));
    assert_eq!(found[2], format!("!a would have 9000000000 bytes, {limit}"));
    let x = |n| "x".repeat(n);
    assert_eq!(
        found[3],
        format!("{}|(Lines 1 to 1 of 1. Go on with offset 0 and column 40000.)", x(40_000))
    );
    assert_eq!(found[4], format!("{}|(Lines 1 to 1 of 1.)", x(20_000)));
    assert_eq!(found[5], format!("a:1:{}", x(400)));
    let lines: Vec<&str> = found[6].lines().collect();
    assert_eq!((lines.len(), lines[200]), (201, "(There is more: make the pattern narrower.)"));
    assert!(found[7].ends_with("\n0999\n(The first 1000 of 1200.)"));
    assert_eq!(found[8], "!There is nothing there: the file has 1 lines.");
}

#[test]
fn a_long_file_is_read_to_its_end_by_following_the_offsets_in_the_results() {
    let text: String = (0..8_000).map(|n| format!("line {n}: é\n")).collect();
    let workspace = Workspace { max_file_bytes: 1 << 20, ..templates(&[("long", &text)]) };
    let mut read = String::new();
    let mut input = json!({ "path": "long" });
    loop {
        let found = results(workspace.clone(), &[("read_file", input.clone())]).remove(0);
        let (piece, note) = found.split_once('|').unwrap();
        read.push_str(piece);
        let Some((_, next)) = note.split_once("Go on with offset ") else { break };
        input["offset"] = next.trim_end_matches(".)").parse().unwrap();
    }
    assert_eq!(read, text);
}

#[test]
fn a_search_shows_the_place_in_a_long_line_and_says_where_it_ended() {
    let line = format!("{}needle{}", "é".repeat(5_000), "ü".repeat(5_000));
    let big = "x".repeat(1_000_000);
    let names = ["b1", "b2", "b3"];
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (*name, big.as_str())).collect();
    files.push(("a", &line));
    let calls = [
        ("grep_files", json!({ "pattern": "needle" })),
        ("grep_files", json!({ "pattern": "^needle", "glob": "b*", "path": "b1" })),
    ];
    let found = results(templates(&files), &calls);
    let shown = format!("a:1:{}needle{}", "é".repeat(50), "ü".repeat(147));
    assert_eq!(
        found[0],
        format!(
            "{shown}\n(The search ended at b3:1: give a path or a glob, or a simpler pattern.)"
        )
    );
    assert_eq!(found[1], "Nothing was found.");
}

#[test]
fn more_files_than_a_page_has_are_all_listed_once_and_in_order() {
    let names: Vec<String> = (0..1_001).map(|n| format!("n/{n:04}.md")).collect();
    let agent = agent_of(&memory(), templates(&[("n/0007.md", "")]), &[]);
    let files = agent.files(Some("alice")).unwrap();
    for name in names.iter().rev() {
        block_on(files.put(name, "")).unwrap();
    }
    block_on(files.put("n.md", "")).unwrap();
    assert_eq!(block_on(files.list("n")).unwrap(), names);
    assert_eq!(block_on(files.list("n/0500.md")).unwrap(), ["n/0500.md"]);
    assert_eq!(block_on(files.list("")).unwrap().len(), 1_002);
}

#[test]
fn a_tool_with_the_name_of_a_workspace_tool_is_refused() {
    let agent = agent_of(&memory(), Workspace::default(), &[]);
    let files = Rc::new(files_on(&memory(), Workspace::default()));
    let own = lockgate::tool::workspace::tools(&files).unwrap().remove(0);
    let builder = Builder::new(agent.options().clone()).tool(own).store(memory());
    let built = builder.model(ScriptedModel::new([])).host(Rc::new(HostHandle(TestHost::new())));
    let error = built.build().err().unwrap();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Options, "two tools are named \"read_file\"")
    );
}

#[test]
fn an_unreadable_file_is_reported_and_can_be_replaced() {
    let store = memory();
    let agent = agent_of(&store, Workspace::default(), &[]);
    let files = agent.files(Some("alice")).unwrap();
    block_on(files.put("a", "text")).unwrap();
    let (key, _) = block_on(store.list("", Page::default())).unwrap().remove(0);
    let spoil = |value: &[u8]| {
        let batch = lockgate::port::Batch {
            revision: "spoilt".into(),
            put: vec![(key.clone(), value.to_vec())],
            ..Default::default()
        };
        block_on(store.commit(&batch)).unwrap();
        block_on(files.read("a")).err().unwrap().kind()
    };
    assert_eq!(spoil(b"{"), ErrorKind::StoreCorrupt);
    assert_eq!(spoil(br#"{"path":"b","text":""}"#), ErrorKind::StoreCorrupt, "another file's");
    block_on(files.put("a", "new")).unwrap();
    assert_eq!(block_on(files.read("a")).unwrap().unwrap().text, "new");
}
