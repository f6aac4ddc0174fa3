//! Deliberate bugs, one at a time, for the simulation to find; without the feature `mutants` there are none.
//!
//! Each is a question at the very place where the engine would do the wrong thing. Without the feature the answer is a
//! constant no, and the compiler leaves nothing of the question behind.

/// Every bug, and what it does wrong.
#[cfg(feature = "mutants")]
pub const ALL: &[(&str, &str)] = &[
    ("no-gate", "calls of one session do not wait for each other"),
    ("no-lock", "nodes do not wait for the lock that they share"),
    ("waiter-releases", "a waiting call that is cancelled opens the gate"),
    ("waiter-stays", "a waiting call that is cancelled keeps its place"),
    ("no-compare", "a commit does not expect the revision that was read"),
    ("one-nonce", "two commits from one revision have the same name"),
    ("no-epoch", "a session that was deleted and made anew is taken for the old one"),
    ("no-tombstone", "a deleted session leaves nothing behind"),
    ("early-acknowledge", "a call ends well before it is known that it is stored"),
    ("unstored-input", "the model is asked before the input is stored"),
    ("append-on-retry", "a question that is asked again is logged again"),
    ("hopeful-commit", "a commit without an answer is taken for done"),
    ("hopeless-commit", "a commit without an answer is taken for refused"),
    ("second-append", "a turn that arrived after all is stored again"),
    ("lost-update", "a turn that meets another's takes its place"),
    ("doubled-input", "an input that was recovered elsewhere is logged again"),
    ("mute-recovery", "an input whose call died is taken out and not logged"),
    ("unspent-approval", "an approval whose call died stays open"),
    ("waiting-input", "an input stays behind when its turn is stored"),
    ("input-ends-with-step", "an input is forgotten as soon as a step of its call is stored"),
    ("nameless", "the outcome of a named call is not kept"),
    ("two-lines", "a session keeps its old line in the list"),
    ("open-calls-stay", "a call that is stopped leaves tool calls without a result"),
    ("split-pair", "a summary parts a tool call from its result"),
    ("tool-again", "a tool that failed is started again"),
    ("no-user", "users share the records of sessions of the same name"),
    ("same-number", "two entries of a log have one number"),
];

#[cfg(feature = "mutants")]
thread_local! {
    static CHOSEN: std::cell::Cell<&'static str> = const { std::cell::Cell::new("") };
}

/// Chooses the bug that this thread has from now on; "" is none.
#[cfg(feature = "mutants")]
pub fn choose(name: &'static str) {
    CHOSEN.set(name);
}

/// Whether this bug is chosen.
#[cfg(feature = "mutants")]
pub(crate) fn is(name: &str) -> bool {
    CHOSEN.get() == name
}

/// Whether this bug is chosen: never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn is(_: &str) -> bool {
    false
}
