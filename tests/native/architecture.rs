//! The layers hold, and what is said to be absent is absent.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module, and what it may use of ours. Deliberate bugs may be anywhere.
const LAYERS: &[(&str, &[&str])] = &[
    ("mutants", &[]),
    ("error", &[]),
    ("future", &[]),
    ("json", &["error"]),
    ("attributes", &["json"]),
    ("message", &["json"]),
    ("slot", &["error"]),
    ("spec", &["json", "message"]),
    ("state", &["json", "message", "slot"]),
    ("agentscope", &["error", "json", "message", "slot", "state"]),
    ("event", &["error", "message", "slot", "state"]),
    ("run", &["error", "event", "json", "message", "state"]),
    ("policy", &["error", "message", "spec", "policy", "state"]),
    ("port", &["attributes", "error", "future", "json", "message", "spec", "slot", "state"]),
    ("model", &["error", "future", "json", "message", "policy", "port"]),
    ("store", &["error", "event", "future", "json", "message", "port", "slot", "state", "store"]),
    (
        "tool",
        &[
            "error", "future", "json", "message", "spec", "policy", "port", "slot", "state",
            "store", "tool",
        ],
    ),
    (
        "engine",
        &[
            "agentscope",
            "attributes",
            "engine",
            "error",
            "event",
            "future",
            "json",
            "message",
            "spec",
            "policy",
            "port",
            "run",
            "slot",
            "state",
            "store",
            "tool",
        ],
    ),
    (
        "wasm",
        &[
            "attributes",
            "engine",
            "error",
            "event",
            "future",
            "json",
            "message",
            "model",
            "spec",
            "policy",
            "port",
            "slot",
            "state",
            "store",
            "tool",
            "wasm",
        ],
    ),
];

/// The files below a folder, by their ending; there must be some.
fn sources(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty(), "no {ending} below {folder}");
    found
}

/// The module of a source file: the first name below `src`.
fn module(path: &Path) -> String {
    let name = path.iter().nth(1).unwrap().to_str().unwrap();
    name.trim_end_matches(".rs").to_owned()
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn architecture_every_module_uses_only_what_its_layer_may() {
    for (path, text) in sources("src", ".rs") {
        let own = module(&path);
        if own == "lib" {
            continue;
        }
        let (_, may) = LAYERS
            .iter()
            .find(|(name, _)| *name == own)
            .unwrap_or_else(|| panic!("no layer for {own}"));
        for line in code(&text) {
            for rest in line.split("crate::").skip(1) {
                let used: String =
                    rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
                let allowed = [own.as_str(), "mutants"].contains(&used.as_str())
                    || may.contains(&used.as_str());
                assert!(allowed, "{}: {own} may not use {used}: {}", path.display(), line.trim());
            }
        }
    }
}

#[test]
fn architecture_imports_are_one_line_for_each_module() {
    for (path, text) in sources("src", ".rs") {
        assert!(
            !text.contains("use crate::{"),
            "{} imports several modules in one line",
            path.display()
        );
    }
}

#[test]
fn architecture_decisions_are_pure() {
    for folder in ["src/run", "src/policy"] {
        for (path, text) in sources(folder, ".rs") {
            for line in code(&text) {
                let words = line.split(|it: char| !it.is_alphanumeric() && it != '_');
                let impure = words
                    .clone()
                    .find(|word| ["async", "await", "dyn", "now", "Future"].contains(word));
                assert!(impure.is_none(), "{}: {}", path.display(), line.trim());
            }
        }
    }
}

#[test]
fn architecture_only_the_border_knows_javascript() {
    for (path, text) in sources("src", ".rs") {
        let knows =
            ["wasm_bindgen", "js_sys", "web_sys", "gloo"].iter().find(|name| text.contains(**name));
        assert!(module(&path) == "wasm" || knows.is_none(), "{} knows {knows:?}", path.display());
    }
}

#[test]
fn architecture_there_is_one_target_cfg() {
    let n: usize =
        sources("src", ".rs").iter().map(|(_, text)| text.matches("cfg(target").count()).sum();
    assert_eq!(n, 1, "the one in lib.rs");
}

#[test]
fn architecture_v_07_nothing_exported_waits_or_borrows_mutably() {
    for (path, text) in sources("src/wasm", ".rs") {
        let exported = code(&text).filter(|line| line.trim_start().starts_with("pub "));
        for line in exported {
            let bad = line.contains("async fn") || line.contains("&mut self");
            assert!(!bad, "{}: {}", path.display(), line.trim());
        }
    }
}

#[test]
fn architecture_every_file_says_first_what_it_is_for() {
    for (path, text) in sources("src", ".rs") {
        assert!(text.starts_with("//! "), "{} does not open with a sentence", path.display());
    }
    for (folder, ending) in
        [("src/npm", ".ts"), ("src/build", ".mjs"), ("www", ".ts"), ("www", ".tsx")]
    {
        for (path, text) in sources(folder, ending) {
            assert!(text.starts_with("// "), "{} does not open with a sentence", path.display());
        }
    }
}

#[test]
fn architecture_no_file_is_longer_than_400_lines() {
    for (path, text) in sources("src", ".rs")
        .into_iter()
        .chain(sources("src/npm", ".ts"))
        .chain(sources("www", ".tsx"))
    {
        let n = text.lines().count();
        let limit = if path.ends_with("types.ts") { 600 } else { 400 };
        assert!(n <= limit, "{} has {n} lines", path.display());
    }
}

#[test]
fn architecture_only_one_typescript_file_touches_the_glue() {
    for (path, text) in sources("src/npm", ".ts") {
        let runs_it =
            text.lines().any(|line| line.starts_with("import {") && line.contains("/core.js\""));
        assert!(!runs_it || path.ends_with("wasm.ts"), "{} imports the glue", path.display());
    }
}

#[test]
fn architecture_the_web_ui_uses_the_package_by_its_name() {
    for (path, text) in sources("www", ".ts").into_iter().chain(sources("www", ".tsx")) {
        if path.ends_with("vite.config.ts") {
            continue;
        }
        // A folder of the page may reach for the page's other files, and no further.
        let place = path.components().skip_while(|part| part.as_os_str() != "www");
        let n_folders = place.count().saturating_sub(2);
        for line in text.lines().filter(|line| line.contains(" from \"")) {
            let is_deep = match line.split_once("\"lockgate/") {
                Some((_, sub_path)) => !is_exported(sub_path.trim_end_matches([';', '"'])),
                None => line.matches("../").count() > n_folders,
            };
            assert!(!is_deep, "{}: {line}", path.display());
        }
    }
}

/// Whether users may import this sub-path of the package.
fn is_exported(sub_path: &str) -> bool {
    let manifest = std::fs::read_to_string("package.json").unwrap_or_default();
    manifest.contains(&format!("\"./{sub_path}\": {{"))
}
