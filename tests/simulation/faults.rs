//! Every kind of fault by its name: what goes wrong, and how often it did.

use crate::seeds::Counts;

/// Everything that is to go wrong, or to get in the way, often enough to matter.
pub const FAULTS: &[(&str, &str)] = &[
    ("store delay", "the store takes its time, before it acts or before it answers"),
    ("store error", "an operation fails, and nothing is applied"),
    ("store applied error", "a commit is applied, and its answer is an error"),
    ("store hang", "an operation gets lost and is never answered"),
    ("store late commit", "a commit is applied long after everybody has given it up"),
    ("store outage", "everything fails for a while"),
    ("store full", "commits are refused for a while, because the store is full"),
    ("store blocked", "commits are refused for a while, because another page holds the store"),
    ("torn write", "the store dies within a commit, and what its journal has whole is replayed"),
    ("stale read", "something is committed between a reading and its arrival"),
    ("duplicate delivery", "a commit arrives a second time, later"),
    ("conflict", "another was first"),
    ("crash", "a node dies at any point, and is started anew"),
    ("trap", "an engine stops where it stands: nothing of it is tidied up"),
    ("freeze", "a node stands still for a while, and goes on as if nothing had happened"),
    ("shutdown", "a node is told to end, and does"),
    ("lock stolen", "a lock is taken from a holder who does not hear of it"),
    ("lock lost", "a lock is taken from a holder who is told"),
    ("lock error", "a lock cannot be asked for"),
    ("lock delay", "a lock takes its time"),
    ("skewed clock", "a node begins with a clock that is wrong"),
    ("clock leap", "a clock leaps, forward or back"),
    ("call dropped", "whoever reads a call lets go of it"),
    ("stop", "a call is stopped"),
    ("abort", "a call is aborted"),
    ("interrupt", "the session is interrupted with something to say"),
    ("deletion", "the session is deleted"),
    ("model early error", "the model fails before it says anything"),
    ("model late error", "the model fails in the middle of its answer"),
    ("model hang", "the model falls silent"),
    ("model empty answer", "the model says nothing"),
    ("model cut short", "the model runs out of tokens, also within a tool call"),
    ("model overflow", "the conversation is too long for the model"),
    ("model garbled call", "the arguments of a tool call are no JSON"),
    ("model twin calls", "two tool calls of an answer have one id"),
    ("tool error", "a tool fails"),
    ("tool hang", "a tool never ends"),
    ("summary trouble", "a summary fails"),
];

/// What people do besides asking; it is to meet the faults often enough, too.
pub const DEEDS: &[&str] = &[
    "confirm",
    "approval",
    "resend",
    "switch",
    "joined",
    "step",
    "summary",
    "clear",
    "put",
    "rename",
    "note",
    "recovered",
    "rebased",
    "set aside",
    "superseded",
];

/// A fault that was met less than a thousand times, or a deed that was met less than a few hundred times.
pub fn rare(counts: &Counts) -> Option<&'static str> {
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    let fault = FAULTS.iter().map(|(name, _)| *name).find(|name| count(name) < 1_000);
    fault.or_else(|| DEEDS.iter().copied().find(|name| count(name) < 300))
}

/// Prints how often each was met.
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
