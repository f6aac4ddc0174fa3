//! The table of faults is true: every fault has its row, every named test exists, and the counts are right.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The ids of the promises of ARCHITECTURE.md.
const PROMISE: &str = "Promise ";

/// Every family of ids, and how many there are; the first is number 1.
const FAMILIES: &[(&str, usize)] = &[
    (PROMISE, 15),
    ("G-", 18),
    ("S-", 23),
    ("B-", 19),
    ("T-", 13),
    ("W-", 19),
    ("H-", 12),
    ("M-", 22),
    ("C-", 11),
    ("A-", 13),
    ("X-", 20),
    ("I-", 12),
    ("V-", 15),
    ("F-", 12),
    ("P-", 8),
    ("R-", 17),
    ("R", 70),
];

struct Row {
    id: String,
    what: String,
    state: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Covered,
    Partly,
    Open,
    NotApplicable,
}

impl Row {
    fn state(&self) -> State {
        let begins = |with: &str| self.state.starts_with(with);
        match () {
            () if begins("partly: ") => State::Partly,
            () if begins("open, issue ") => State::Open,
            () if begins("not applicable: ") => State::NotApplicable,
            () => State::Covered,
        }
    }

    /// The reason after `missing:` or `not applicable:`.
    fn reason(&self) -> &str {
        let marks = ["missing: ", "not applicable: "];
        let behind = marks.iter().find_map(|mark| self.state.split_once(mark));
        behind.map_or("", |(_, reason)| reason.trim())
    }

    /// The tests that the row names, by their files; text in brackets is a remark.
    fn tests(&self) -> Vec<(&str, &str)> {
        let named = self.state.split("missing: ").next().unwrap_or_default();
        let mut tests = Vec::new();
        let (mut file, mut n_open) = ("", 0);
        for (n, piece) in named.split('`').enumerate() {
            if n % 2 == 0 {
                n_open += piece.matches('(').count();
                n_open -= piece.matches(')').count();
                let path = piece.trim_end().strip_suffix(':').filter(|_| n_open == 0);
                file = path.map_or(file, |it| it.rsplit([' ', ';']).next().unwrap_or_default());
            } else if n_open == 0 {
                tests.push((file, piece));
            }
        }
        tests
    }
}

fn text(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    fs::read_to_string(root.join(file)).unwrap_or_default()
}

fn rows() -> Vec<Row> {
    let table = text("faults.md");
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(str::trim).map(str::to_owned).collect()
    };
    let rows = table.lines().filter(|line| line.starts_with("| ")).map(cells);
    let rows = rows.filter(|cells: &Vec<String>| cells[0] != "id");
    let row = |cells: Vec<String>| {
        assert_eq!(cells.len(), 3, "{} does not have three cells", cells[0]);
        let [id, what, state] = [0, 1, 2].map(|n| cells[n].clone());
        Row { id, what, state }
    };
    rows.map(row).collect()
}

/// Whether a file has a test of this name. In JavaScript a part of the name is enough, and `<…>` or `${…}` stands for what differs.
fn has_test(file: &str, name: &str) -> bool {
    let text = text(file);
    if file.ends_with(".rs") {
        let is_test = |before: &str| before.trim_end().ends_with("test]");
        return text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
            let before = text[..at].trim_end().trim_end_matches("async").trim_end();
            is_test(before)
        });
    }
    let mut longest = "";
    for piece in name.split(['<', '$']) {
        let piece = piece.split_once(['>', '}']).map_or(piece, |(_, behind)| behind);
        if piece.len() > longest.len() {
            longest = piece;
        }
    }
    let is_title = |at: usize| {
        let Some(quote) = text[..at].rfind(['"', '`', '\'']) else { return false };
        // An apostrophe within the title is not a closing quote.
        let quote = if text[quote..].starts_with('\'') {
            text[..at].rfind(['"', '`']).unwrap_or(quote)
        } else {
            quote
        };
        let before = text[..quote].trim_end();
        before.ends_with('(') && !before.ends_with("skip(") && !before.ends_with("todo(")
    };
    longest.len() >= 8 && text.match_indices(longest).any(|(at, _)| is_title(at))
}

#[test]
fn matrix_every_fault_has_one_row_in_its_order() {
    let ids: Vec<String> = rows().into_iter().map(|row| row.id).collect();
    for (family, n) in FAMILIES {
        let number = |n: usize| match *family {
            "R" | PROMISE => format!("{family}{n}"),
            family => format!("{family}{n:02}"),
        };
        let expected: Vec<String> = (1..=*n).map(number).collect();
        let digits =
            |id: &&String| id.strip_prefix(family).is_some_and(|it| it.parse::<u32>().is_ok());
        let found: Vec<&String> = ids.iter().filter(digits).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "the rows of {family}");
    }
    assert_eq!(ids.len(), FAMILIES.iter().map(|(_, n)| n).sum::<usize>(), "{ids:?}");
}

#[test]
fn matrix_every_promise_of_the_architecture_has_its_row() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let architecture = fs::read_to_string(manifest.join("ARCHITECTURE.md")).unwrap();
    let promise = |line: &str| {
        let (number, rest) = line.split_once(". **")?;
        let number: u32 = number.parse().ok()?;
        let title = rest.split(['*', '.']).next()?;
        Some((format!("{PROMISE}{number}"), title.to_owned()))
    };
    let promises: Vec<_> = architecture.lines().filter_map(promise).collect();
    let rows = rows().into_iter().filter(|row| row.id.starts_with(PROMISE));
    assert_eq!(promises, rows.map(|row| (row.id, row.what)).collect::<Vec<_>>());
}

#[test]
fn matrix_every_row_names_a_test_or_says_why_there_is_none() {
    let mut open = Vec::new();
    for row in rows() {
        let n_tests = row.tests().len();
        let has_reason = row.reason().split_whitespace().count() >= 2;
        let is_good = match row.state() {
            State::Covered => n_tests > 0,
            State::Partly => n_tests > 0 && has_reason,
            State::NotApplicable => has_reason,
            State::Open => true,
        };
        assert!(is_good, "{} has neither a test nor a reason: {}", row.id, row.state);
        assert!(!row.what.is_empty(), "{} does not say what it is", row.id);
        if row.state() == State::Open {
            open.push(row.id);
        }
    }
    assert!(open.is_empty(), "these are still open: {open:?}");
}

#[test]
fn matrix_every_test_named_in_a_row_exists() {
    let mut missing = Vec::new();
    for row in rows() {
        let is_proved = matches!(row.state(), State::Covered | State::Partly);
        for (file, name) in row.tests() {
            if is_proved && !has_test(file, name) {
                missing.push(format!("{}: {file}: {name}", row.id));
            }
        }
    }
    assert!(missing.is_empty(), "no test has these names:\n{}", missing.join("\n"));
}

#[test]
fn matrix_the_counts_at_its_end_are_right() {
    let mut counts: BTreeMap<(bool, State), usize> = BTreeMap::new();
    for row in rows().into_iter().filter(|row| !row.id.starts_with(PROMISE)) {
        let is_behaviour = row.id.starts_with('R') && !row.id.starts_with("R-");
        *counts.entry((is_behaviour, row.state())).or_default() += 1;
    }
    let line = |is_behaviour: bool| {
        let n = |state| counts.get(&(is_behaviour, state)).copied().unwrap_or_default();
        let [covered, partly, open, not] =
            [State::Covered, State::Partly, State::Open, State::NotApplicable].map(n);
        let all = covered + partly + open + not;
        format!("{covered} covered, {partly} partly, {open} open, {not} not applicable (of {all})")
    };
    let expected = format!("Counts: faults {}; behaviours {}.", line(false), line(true));
    assert_eq!(text("faults.md").lines().last(), Some(expected.as_str()));
}

#[test]
fn matrix_a_name_that_no_test_has_is_noticed() {
    assert!(has_test("native/call/gate.rs", "g_01_r1_slots_never_wait_for_each_other"));
    assert!(!has_test("native/call/gate.rs", "g_01_r1_slots_never_wait"));
    assert!(!has_test("native/faults.rs", "has_test"), "a function that is not a test");
    assert!(has_test("ui/conversation/markdown.test.mjs", "raw HTML is shown as text"));
    assert!(!has_test("ui/conversation/markdown.test.mjs", "raw HTML is shown as the page it is"));
    assert!(!has_test("ui/no-such-file.test.mjs", "raw HTML is shown as text"));
}
