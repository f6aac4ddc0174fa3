//! The names of all faults and actions, and how often each happened.

use crate::seeds::Counts;

/// The faults that must happen often enough.
pub const FAULTS: &[(&str, &str)] = &[
    ("store delay", "the store is slow, before it acts or before it answers"),
    ("store error", "an operation fails, and nothing is applied"),
    ("store applied error", "a commit is applied, but the store answers with an error"),
    ("store hang", "an operation is lost and never answered"),
    ("store late commit", "a commit is applied long after its deadline"),
    ("store outage", "every operation of the store fails for a while"),
    ("store full", "commits are refused for a while, because the store is full"),
    ("store blocked", "commits are refused for a while, because another page holds the store"),
    (
        "torn write",
        "the store dies during a commit, and replays the complete batches of its journal",
    ),
    ("stale read", "a commit happens after a read and before its result arrives"),
    ("duplicate delivery", "a commit arrives a second time, later"),
    ("conflict", "another commit was first"),
    ("crash", "a node dies at any point, and is restarted"),
    ("trap", "an engine traps and cleans up nothing"),
    ("freeze", "a node stops for a while, and then continues"),
    ("shutdown", "a node shuts down"),
    ("lock stolen", "a lock is taken from its holder, which is not told"),
    ("lock lost", "a lock is taken from its holder, which is told"),
    ("lock error", "a lock request fails"),
    ("lock delay", "a lock request is slow"),
    ("skewed clock", "a node starts with a wrong clock"),
    ("clock leap", "a clock jumps forward or back"),
    ("call dropped", "the reader of a call drops it"),
    ("stop", "a call is stopped"),
    ("abort", "a call is aborted"),
    ("interrupt", "the session is interrupted, with a new message"),
    ("deletion", "the session is deleted"),
    ("model early error", "the model fails before its first output"),
    ("model late error", "the model fails in the middle of its answer"),
    ("model hang", "the model stops answering"),
    ("model empty answer", "the model gives an empty answer"),
    ("model cut short", "the model reaches its token limit, sometimes within a tool call"),
    ("model overflow", "the conversation is too long for the model"),
    ("model garbled call", "the arguments of a tool call are not JSON"),
    ("model twin calls", "two tool calls of one answer have the same id"),
    ("tool error", "a tool fails"),
    ("tool hang", "a tool never ends"),
    ("summary trouble", "a summary fails"),
];

/// The actions of users besides asking, which must happen often enough too.
pub const DEEDS: &[&str] = &[
    "confirm",
    "approval",
    "resend",
    "resend from",
    "switch",
    "joined",
    "step",
    "summary",
    "clear",
    "put",
    "rename",
    "note",
    "import",
    "fork",
    "recovered",
    "rebased",
    "set aside",
    "superseded",
    "checkpoint",
    "late checkpoint",
];

/// The faults that happened less than a thousand times, and the actions that happened less than a few hundred times.
pub fn rare(counts: &Counts) -> Option<&'static str> {
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    let fault = FAULTS.iter().map(|(name, _)| *name).find(|name| count(name) < 1_000);
    fault.or_else(|| DEEDS.iter().copied().find(|name| count(name) < 300))
}

/// Prints how often each happened.
pub fn print(counts: &Counts) {
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    println!("{:<20} {:>8}  what goes wrong", "fault", "times");
    for (name, what) in FAULTS {
        println!("{name:<20} {:>8}  {what}", count(name));
    }
    let is_fault = |name: &str| FAULTS.iter().any(|(fault, _)| *fault == name);
    let others = counts.iter().filter(|(name, _)| !is_fault(name));
    let others: Vec<String> = others.map(|(name, n)| format!("{name} {n}")).collect();
    println!("and besides: {}", others.join(", "));
}
