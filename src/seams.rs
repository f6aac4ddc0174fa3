//! The seams at which the simulation breaks the engine on purpose, one bug at a time.
//!
//! Each seam is a function that production code calls with the right value. Without the feature `mutants` it returns
//! that value, and the compiler leaves nothing of the call behind. With the feature it returns a wrong value if its bug
//! is chosen. The simulation must find every bug.

use std::pin::Pin;

/// Every bug, and what it does wrong.
#[cfg(feature = "mutants")]
pub const BUGS: &[(&str, &str)] = &[
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
    ("late-piece", "a part of an answer is stored whatever became of its input"),
    ("one-answer-id", "a whole answer has the id of its part that another node has logged"),
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
fn has_bug(name: &str) -> bool {
    CHOSEN.get() == name
}

/// Whether this bug is chosen: never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
const fn has_bug(_: &str) -> bool {
    false
}

/// Whether a call may pass the gate.
#[inline(always)]
pub(crate) fn may_enter(is_first: bool) -> bool {
    is_first || has_bug("no-gate")
}

/// Which numbers leave a queue together with a call, given the first number of the queue.
#[inline(always)]
pub(crate) fn leaving(own: u64, first: Option<u64>) -> impl Fn(u64) -> bool {
    move |number| {
        let stays = has_bug("waiter-stays") && first != Some(own);
        let is_released = has_bug("waiter-releases") && first == Some(number);
        number == own && !stays || is_released
    }
}

/// The lock that nodes share.
#[inline(always)]
pub(crate) fn shared_lock<T>(lock: Option<T>) -> Option<T> {
    lock.filter(|_| !has_bug("no-lock"))
}

/// The revision that a commit expects.
#[inline(always)]
pub(crate) fn expected<T>(revision: Option<T>) -> Option<T> {
    revision.filter(|_| !has_bug("no-compare"))
}

/// The random part of a revision.
#[inline(always)]
pub(crate) fn nonce(nonce: String) -> String {
    if has_bug("one-nonce") { String::new() } else { nonce }
}

/// Whether two heads belong to the same session, and not to a deleted one and its successor.
#[inline(always)]
pub(crate) fn is_same_session(has_same_epoch: bool) -> bool {
    has_same_epoch || has_bug("no-epoch")
}

/// The tombstone of a deleted session.
#[inline(always)]
pub(crate) fn tombstone<T>(record: T) -> Option<T> {
    Some(record).filter(|_| !has_bug("no-tombstone"))
}

/// The result of saving a turn. `hoped` is the result without waiting for the store.
#[inline(always)]
pub(crate) fn acknowledged<T, E>(saved: Result<T, E>, hoped: impl FnOnce() -> T) -> Result<T, E> {
    if has_bug("early-acknowledge") { Ok(hoped()) } else { saved }
}

/// Whether an input must be stored before the model is asked.
#[inline(always)]
pub(crate) fn must_store_input() -> bool {
    !has_bug("unstored-input")
}

/// Whether the log has an input already.
#[inline(always)]
pub(crate) fn is_logged(is_retried: bool) -> bool {
    is_retried && !has_bug("append-on-retry")
}

/// The outcome of a commit without an answer, before anything is read: unknown.
#[inline(always)]
pub(crate) fn unread_outcome<T>(done: T, refused: T) -> Option<T> {
    if has_bug("hopeful-commit") {
        return Some(done);
    }
    Some(refused).filter(|_| has_bug("hopeless-commit"))
}

/// The entry of an earlier attempt of this save, if that attempt arrived.
#[inline(always)]
pub(crate) fn arrived<T>(entry: Option<T>) -> Option<T> {
    entry.filter(|_| !has_bug("second-append"))
}

/// The head that a turn is saved on top of.
#[inline(always)]
pub(crate) fn head_below<T: Clone>(newest: T, base: &T) -> T {
    if has_bug("lost-update") { base.clone() } else { newest }
}

/// Whether an accepted input still waits for its call.
#[inline(always)]
pub(crate) fn still_waits(is_unchanged: bool) -> bool {
    is_unchanged || has_bug("doubled-input")
}

/// The messages of a recovered input that go into the log.
#[inline(always)]
pub(crate) fn recovered<T>(messages: &[T]) -> &[T] {
    if has_bug("mute-recovery") { &[] } else { messages }
}

/// The results that close the tool calls of a call that was cut off.
#[inline(always)]
pub(crate) fn closing_results<T>(results: Vec<T>, has_answers: bool) -> Vec<T> {
    if has_answers && has_bug("unspent-approval") { Vec::new() } else { results }
}

/// The input record that a stored turn removes.
#[inline(always)]
pub(crate) fn spent_input<T>(key: T) -> Option<T> {
    Some(key).filter(|_| !has_bug("waiting-input"))
}

/// Whether an input record stays after a commit.
#[inline(always)]
pub(crate) fn keeps_input(is_step: bool) -> bool {
    is_step && !has_bug("input-ends-with-step")
}

/// Whether the outcome of a call is kept under its name.
#[inline(always)]
pub(crate) fn keeps_outcome(is_named: bool) -> bool {
    is_named && !has_bug("nameless")
}

/// Whether the old entry of a session in the session list must be removed.
#[inline(always)]
pub(crate) fn must_remove_line(has_line: bool) -> bool {
    has_line && !has_bug("two-lines")
}

/// Whether a call that is stopped must close tool calls.
#[inline(always)]
pub(crate) fn must_close(is_open: bool) -> bool {
    is_open && !has_bug("open-calls-stay")
}

/// Before which messages a cut is safe.
#[inline(always)]
pub(crate) fn safe_cuts(mut is_safe: Vec<bool>) -> Vec<bool> {
    if has_bug("split-pair") {
        is_safe.fill(true);
    }
    is_safe
}

/// Runs a tool once, even if it fails.
#[inline(always)]
pub(crate) fn only_run<'a, T: 'a, E: 'a>(
    run: impl Fn() -> Pin<Box<dyn Future<Output = Result<T, E>> + 'a>> + 'a,
) -> Pin<Box<dyn Future<Output = Result<T, E>> + 'a>> {
    if !has_bug("tool-again") {
        return run();
    }
    Box::pin(async move {
        match run().await {
            Err(_) => run().await,
            done => done,
        }
    })
}

/// The user whose partition holds a session.
#[inline(always)]
pub(crate) fn owner<T>(user: Option<T>) -> Option<T> {
    user.filter(|_| !has_bug("no-user"))
}

/// The number of the entry after this one.
#[inline(always)]
pub(crate) fn number_after(number: u64) -> u64 {
    if has_bug("same-number") { number } else { number + 1 }
}

/// The input record that a part of an answer expects.
#[inline(always)]
pub(crate) fn expected_input<T>(record: Option<T>) -> Option<T> {
    record.filter(|_| !has_bug("late-piece"))
}

/// Whether the log has only a part of an answer, so that the whole answer needs an id of its own.
#[inline(always)]
pub(crate) fn is_only_part(is_part: bool) -> bool {
    is_part && !has_bug("one-answer-id")
}
