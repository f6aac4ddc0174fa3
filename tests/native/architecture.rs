//! The layers of the crate, and what must not occur in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module, and the modules of the crate that it may use. The module of deliberate bugs may be used everywhere.
const LAYERS: &[(&str, &[&str])] = &[
    ("seams", &[]),
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
                let allowed = [own.as_str(), "seams"].contains(&used.as_str())
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
fn architecture_decisions_use_no_random_numbers() {
    for folder in ["src/run", "src/policy"] {
        for (path, text) in sources(folder, ".rs") {
            for line in code(&text) {
                let is_random = ["random", "rand::", "RandomState", "Host"];
                let found = is_random.iter().find(|word| line.contains(**word));
                assert!(found.is_none(), "{}: {}", path.display(), line.trim());
            }
        }
    }
}

#[test]
fn architecture_nothing_is_unsafe() {
    let manifest = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""), "the lint forbids it");
    for (path, text) in sources("src", ".rs") {
        let words = |line: &str| {
            line.split(|it: char| !it.is_alphanumeric() && it != '_').any(|it| it == "unsafe")
        };
        let found = code(&text).find(|line| words(line));
        assert!(found.is_none(), "{}: {found:?}", path.display());
    }
}

/// The length of each function of a source, with its name.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.trim_start().split([' ', '(', '<']).collect();
        let name = words.iter().position(|word| *word == "fn").and_then(|at| words.get(at + 1));
        let (Some(name), false) = (name, line.trim_start().starts_with("//")) else { continue };
        let end = format!("{indent}}}");
        let rest = lines[start..].iter();
        let is_end = |line: &&str| {
            **line == end
                || (line.ends_with(';') && line.starts_with(indent) && line.contains("fn "))
        };
        if let Some(n) = rest.clone().position(is_end) {
            found.push(((*name).to_owned(), n + 1));
        }
    }
    found
}

#[test]
fn architecture_no_function_is_longer_than_60_lines() {
    let mut n = 0;
    for (path, text) in sources("src", ".rs") {
        for (name, length) in functions(&text) {
            n += 1;
            assert!(length <= 60, "{}: {name} has {length} lines", path.display());
        }
    }
    assert!(n > 1_500, "{n} functions were found");
}

#[test]
fn architecture_there_is_one_target_cfg() {
    // Also `cfg(not(target_os = …))`, `cfg_attr(all(unix, …))` and `cfg!(windows)`.
    let targets = ["target_", "unix", "windows", "wasm"];
    let names_target = |line: &&str| {
        let conditions = line.split("cfg").nth(1).filter(|it| it.starts_with(['(', '!', '_']));
        conditions.is_some_and(|it| targets.iter().any(|target| it.contains(target)))
    };
    let n: usize =
        sources("src", ".rs").iter().map(|(_, text)| code(text).filter(names_target).count()).sum();
    assert_eq!(n, 1, "the one in lib.rs");
}

#[test]
fn architecture_v_07_nothing_exported_waits_or_borrows_mutably() {
    let mut n = 0;
    for (path, text) in sources("src/wasm", ".rs") {
        let text: String = code(&text).collect::<Vec<_>>().join("\n");
        // A signature may have several lines, up to the body.
        for exported in text.split("\n    pub ").skip(1) {
            let signature = exported.split(['{', ';']).next().unwrap_or_default();
            let bad = signature.contains("async fn") || signature.contains("&mut self");
            assert!(!bad, "{}: {signature}", path.display());
            n += usize::from(signature.starts_with("fn "));
        }
    }
    assert!(n > 40, "{n} methods were found");
}

#[test]
fn architecture_every_file_opens_with_a_sentence_about_its_purpose() {
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

/// Names that the border shares with the engine because they are the same idea.
const SAME_IDEA: &[&str] = &["Agent", "Call"];

#[test]
fn architecture_a_type_name_is_unique_in_the_crate() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources("src", ".rs") {
        for line in code(&text) {
            // Types of the crate stand at the left margin; those of a trait are indented.
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = match line.split_once(") ") {
                Some((before, rest)) if before.starts_with("pub(") => rest,
                _ => line,
            };
            let mut words = line.split(|it: char| !it.is_alphanumeric() && it != '_');
            if let (Some("struct" | "enum" | "trait" | "type"), Some(name)) =
                (words.next(), words.next())
            {
                found.entry(name.to_owned()).or_default().push(path.display().to_string());
            }
        }
    }
    assert!(found.contains_key("AgentParts") && found.contains_key("StoreRule"));
    found.retain(|name, files| files.len() > 1 && !SAME_IDEA.contains(&name.as_str()));
    assert!(found.is_empty(), "these names have several types: {found:?}");
}

#[test]
fn architecture_no_folder_has_too_many_files() {
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (folder, ending) in [
        ("src", ".rs"),
        ("src/npm", ".ts"),
        ("src/build", ".mjs"),
        ("www", ".ts"),
        ("www", ".tsx"),
        ("tests", ".rs"),
        ("tests", ".mjs"),
    ] {
        for (path, _) in sources(folder, ending) {
            *counts.entry(path.parent().unwrap().to_owned()).or_default() += 1;
        }
    }
    counts.retain(|_, n| *n > 18);
    assert!(counts.is_empty(), "these folders hold more than one subject: {counts:?}");
}

#[test]
fn architecture_the_engine_imports_from_the_defining_file() {
    for (path, text) in sources("src/engine", ".rs") {
        for line in code(&text).filter(|line| line.starts_with("use crate::engine::")) {
            let rest = &line["use crate::engine::".len()..];
            let from_root = rest.starts_with(|it: char| it.is_uppercase() || it == '{');
            assert!(!from_root, "{}: {line}", path.display());
        }
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

/// Proves that a type is not `Send`: for a `Send` type both implementations apply, and this does not compile.
trait NotSend<Marker> {
    fn holds() {}
}
struct ByBeingSend;
impl<T: ?Sized> NotSend<()> for T {}
impl<T: ?Sized + Send> NotSend<ByBeingSend> for T {}

#[test]
fn architecture_agents_and_calls_stay_on_their_thread() {
    <lockgate::engine::Agent as NotSend<_>>::holds();
    <lockgate::engine::Call as NotSend<_>>::holds();
}

/// The words about threads and runtimes in a source, without its comments.
fn signs_of_threads(text: &str) -> Vec<&'static str> {
    const SIGNS: &[&str] = &[
        ": Send",
        "+ Send",
        "Send +",
        "impl Send",
        "Send for",
        ": Sync",
        "+ Sync",
        "Sync +",
        "impl Sync",
        "Sync for",
        "thread::",
        "::spawn(",
        "spawn_local",
        "spawn_blocking",
        "tokio",
        "async_std",
        "smol::",
    ];
    let found = code(text).flat_map(|line| SIGNS.iter().filter(|it| line.contains(**it)));
    found.copied().collect()
}

#[test]
fn architecture_nothing_is_send_nothing_is_spawned_and_there_is_no_runtime() {
    let bad = "fn f<T: Send>() { std::thread::spawn(g) }";
    assert_eq!(signs_of_threads(bad), [": Send", "thread::", "::spawn("]);
    for (path, text) in sources("src", ".rs") {
        let found = signs_of_threads(&text);
        assert!(found.is_empty(), "{} has {found:?}", path.display());
    }
}

/// Layers whose modules must import each other in one direction only.
const WITHOUT_CYCLES: &[&str] =
    &["engine", "message", "model", "policy", "run", "store", "tool", "wasm"];

/// The modules that each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The path of a module below `src`, such as `engine/call`; a `mod.rs` is its folder.
fn module_path(path: &Path) -> String {
    let path = path.strip_prefix("src").unwrap().with_extension("");
    let path = path.to_str().unwrap();
    path.strip_suffix("/mod").unwrap_or(path).to_owned()
}

/// The imports among these sources, by their `crate::` and `super::` paths. A folder and the files below it are one
/// subject, so imports between a module and its own ancestors do not count.
fn imports(sources: &[(PathBuf, String)]) -> Imports {
    let modules: BTreeSet<String> = sources.iter().map(|(path, _)| module_path(path)).collect();
    let is_inside = |inner: &str, outer: &str| inner.starts_with(&format!("{outer}/"));
    let mut found = Imports::new();
    for (path, text) in sources {
        let own = module_path(path);
        let parent = own.rsplit_once('/').map_or("", |(parent, _)| parent);
        let mut used = BTreeSet::new();
        for line in code(text) {
            for (start, base) in [("crate::", ""), ("super::", parent)] {
                for rest in line.split(start).skip(1) {
                    let is_name = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
                    let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
                    let mut name = format!("{base}/{}", rest[..end].replace("::", "/"));
                    name = name.trim_matches('/').to_owned();
                    // The last names of a path are items, so the longest beginning that is a module counts.
                    while !modules.contains(&name) && !name.is_empty() {
                        name = name.rsplit_once('/').map_or("", |(it, _)| it).to_owned();
                    }
                    let is_family = is_inside(&name, &own) || is_inside(&own, &name);
                    if !name.is_empty() && name != own && !is_family {
                        used.insert(name);
                    }
                }
            }
        }
        found.insert(own, used);
    }
    found
}

/// The same imports between the folders and files directly below a layer.
fn between_folders(imports: &Imports) -> Imports {
    let folder = |name: &str| name.split('/').take(2).collect::<Vec<_>>().join("/");
    let mut found = Imports::new();
    for (own, used) in imports {
        let own = folder(own);
        let others = used.iter().map(|it| folder(it)).filter(|it| *it != own);
        found.entry(own.clone()).or_default().extend(others);
    }
    found
}

/// The modules that import themselves through others.
fn in_cycles(imports: &Imports) -> Vec<&str> {
    let is_reached_again = |start: &String| {
        let mut open: Vec<&String> = imports[start].iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(next) = open.pop() {
            if next == start {
                return true;
            }
            if seen.insert(next) {
                open.extend(imports.get(next).into_iter().flatten());
            }
        }
        false
    };
    imports.keys().filter(|it| is_reached_again(it)).map(String::as_str).collect()
}

#[test]
fn architecture_modules_of_a_layer_import_each_other_in_one_direction() {
    for layer in WITHOUT_CYCLES {
        let files = imports(&sources(&format!("src/{layer}"), ".rs"));
        assert!(in_cycles(&files).is_empty(), "a cycle of {:?}", in_cycles(&files));
        let folders = between_folders(&files);
        assert!(in_cycles(&folders).is_empty(), "a cycle of {:?}", in_cycles(&folders));
    }
}

#[test]
fn architecture_a_cycle_of_imports_is_noticed() {
    let source = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let a = source("src/layer/a/one.rs", "use crate::layer::b::Thing;");
    let b = source("src/layer/b.rs", "use super::a::two::Other;");
    let two = source("src/layer/a/two.rs", "// use crate::layer::b::Thing;");
    let files = imports(&[a.clone(), b.clone(), two]);
    assert_eq!(in_cycles(&files), [""; 0], "two imports nothing");
    assert_eq!(in_cycles(&between_folders(&files)), ["layer/a", "layer/b"]);
    let two = source("src/layer/a/two.rs", "use super::one::Thing;");
    let files = imports(&[a, b, two]);
    assert_eq!(in_cycles(&files), ["layer/a/one", "layer/a/two", "layer/b"]);
}
