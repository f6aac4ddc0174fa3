//! Branches: what a resend leaves, switching between branches, and forks of a session.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Ended, Options};
use lockgate::error::ErrorKind;
use lockgate::message::{Message, Role};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::port::{Batch, Page, Store, ToolSpec};
use lockgate::slot::Slot;
use lockgate::store::operations::branches::Branch;
use lockgate::store::search::Query;
use serde_json::json;

fn scripted(answers: &[&str]) -> (Agent, Rc<dyn Store>, Rc<ScriptedModel>) {
    let store = memory();
    let model = ScriptedModel::new(answers.iter().map(|text| Line::says(text)));
    (agent_on(&store, Rc::clone(&model) as _), store, model)
}

fn resend(agent: &Agent) -> Ended {
    let request = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    block_on(agent.begin(request).unwrap().finish())
}

fn branches(agent: &Agent) -> Vec<Branch> {
    block_on(agent.branches(&slot("s1"))).unwrap()
}

fn switch(agent: &Agent, branch: &str) -> Result<(), ErrorKind> {
    block_on(agent.switch_branch(&slot("s1"), branch.to_owned())).map_err(|error| error.kind())
}

fn of(agent: &Agent, branch: &str) -> Vec<String> {
    let history = block_on(agent.history_of(&slot("s1"), Some(branch), None, 100)).unwrap();
    history.iter().map(|message| message.text()).collect()
}

fn texts(messages: &[Rc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}

#[test]
fn a_session_has_one_branch_until_a_question_is_resent() {
    let (agent, _, _) = scripted(&["one", "two"]);
    assert_eq!(branches(&agent), []);
    let first = ask(&agent, "s1", "first").unwrap();
    let [only] = &branches(&agent)[..] else { panic!() };
    assert_eq!((only.parent.as_deref(), only.current, only.text.as_str()), (None, true, "one"));
    assert_eq!(only.message_id, first.messages[0].id);
    assert_eq!(only.created_at, first.message.at);
    let second = ask(&agent, "s1", "second").unwrap();
    assert_eq!(branches(&agent)[0].message_id, second.messages[0].id, "the last question");
}

#[test]
fn every_resend_leaves_a_readable_branch_with_its_branching_point() {
    let (agent, _, _) = scripted(&["one", "two", "two b", "two c", "three", "three b"]);
    ask(&agent, "s1", "first").unwrap();
    let second = ask(&agent, "s1", "second").unwrap();
    resend(&agent).unwrap();
    resend(&agent).unwrap();
    let listed = branches(&agent);
    let lines: Vec<_> = listed.iter().map(|it| (it.text.as_str(), it.current)).collect();
    assert_eq!(lines, [("two", false), ("two b", false), ("two c", true)]);
    assert!(listed.iter().all(|it| it.message_id == second.messages[0].id));
    assert_eq!(listed[0].parent, None);
    assert!(listed[1..].iter().all(|it| it.parent.as_ref() == Some(&listed[0].id)));
    assert_eq!(of(&agent, &listed[1].id), ["first", "one", "second", "two b"]);
    // A branch can have branches of its own: these start from the current one.
    switch(&agent, &listed[1].id).unwrap();
    let third = ask(&agent, "s1", "third").unwrap();
    resend(&agent).unwrap();
    let listed = branches(&agent);
    let lines: Vec<_> = listed.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(lines, ["two", "three", "three b", "two c"]);
    assert_eq!(listed[2].parent.as_ref(), Some(&listed[1].id));
    assert_eq!(listed[1].parent.as_ref(), Some(&listed[0].id));
    assert_eq!(listed[3].parent.as_ref(), Some(&listed[0].id));
    assert_eq!(listed[2].message_id, third.messages[0].id);
    assert_eq!(listed[3].message_id, second.messages[0].id);
    assert_eq!(of(&agent, &listed[1].id)[2..], ["second", "two b", "third", "three"]);
}

#[test]
fn the_conversation_continues_from_the_chosen_branch() {
    let (agent, _, model) = scripted(&["one", "one b", "two", "two b", "three"]);
    ask(&agent, "s1", "first").unwrap();
    resend(&agent).unwrap();
    let old = branches(&agent)[0].id.clone();
    switch(&agent, &old).unwrap();
    assert_eq!(told(&agent, "s1"), ["user: first", "assistant: one"]);
    let info = block_on(agent.session(&slot("s1"))).unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.messages, info.branches), ("one", 2, 1));
    ask(&agent, "s1", "second").unwrap();
    assert_eq!(texts(&model.requests()[2]), ["first", "one", "second"]);
    resend(&agent).unwrap();
    assert_eq!(model.requests()[3], model.requests()[2], "the branch has its own anchor");
    // The branch has a new turn, so it has a new id.
    assert_eq!(switch(&agent, &old), Err(ErrorKind::InputInvalid));
    let other = branches(&agent).into_iter().find(|it| it.text == "one b").unwrap();
    switch(&agent, &other.id).unwrap();
    ask(&agent, "s1", "third").unwrap();
    assert_eq!(texts(&model.requests()[4]), ["first", "one b", "third"]);
    assert_eq!(branches(&agent).len(), 3);
}

#[test]
fn a_branch_that_is_not_there_is_refused_and_nothing_changes() {
    let (agent, _, _) = scripted(&["one", "two"]);
    assert_eq!(switch(&agent, "x"), Err(ErrorKind::NoSuchSession));
    ask(&agent, "s1", "first").unwrap();
    resend(&agent).unwrap();
    let before = block_on(agent.state(&slot("s1"))).unwrap().revision;
    for wrong in ["", "x", "../head", "a/b", "ümlaut"] {
        assert_eq!(switch(&agent, wrong), Err(ErrorKind::InputInvalid), "{wrong:?}");
        let read = block_on(agent.history_of(&slot("s1"), Some(wrong), None, 10));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InputInvalid, "{wrong:?}");
    }
    let current = branches(&agent).into_iter().find(|it| it.current).unwrap();
    switch(&agent, &current.id).unwrap();
    assert_eq!(block_on(agent.state(&slot("s1"))).unwrap().revision, before);
    let gone = block_on(agent.history_of(&slot("none"), Some("x"), None, 10)).unwrap();
    assert_eq!(gone.len(), 0);
}

#[test]
fn a_search_finds_messages_on_every_branch() {
    let (agent, _, _) = scripted(&["a zebra", "a giraffe", "an okapi"]);
    let first = ask(&agent, "s1", "which animal is tallest?").unwrap();
    resend(&agent).unwrap();
    resend(&agent).unwrap();
    let find = |text: &str| {
        let query = Query { text, user: Some("alice"), session: None, limit: 10 };
        block_on(agent.search(query)).unwrap()
    };
    for word in ["zebra", "giraffe", "okapi"] {
        assert_eq!(find(word).len(), 1, "{word}");
    }
    let asked = find("tallest");
    assert_eq!(asked.len(), 1, "the question is one message on every branch");
    assert_eq!(asked[0].message_id, first.messages[0].id);
}

#[test]
fn a_deleted_session_leaves_no_branch() {
    let (agent, store, _) = scripted(&["one", "two", "three"]);
    ask(&agent, "s1", "first").unwrap();
    resend(&agent).unwrap();
    block_on(agent.delete_session(&slot("s1"))).unwrap();
    let left = block_on(store.list("", Page::default())).unwrap();
    assert_eq!(left.len(), 1, "the tombstone");
    ask(&agent, "s1", "again").unwrap();
    assert_eq!(branches(&agent).len(), 1);
}

/// A conversation in which a tool is called twice at once.
fn with_tools(store: &Rc<dyn Store>) -> Agent {
    let calls = [("a", "look", json!({})), ("b", "look", json!({}))];
    let lines = [Line::says("one"), Line::calls_all(&calls), Line::says("two"), Line::says("more")];
    agent_on(store, ScriptedModel::new(lines) as _)
}

#[test]
fn a_fork_starts_at_any_message_and_leaves_the_first_session_unchanged() {
    let store = memory();
    let agent = with_tools(&store);
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s1", "second").unwrap();
    let whole = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    assert_eq!(whole.len(), 7);
    for (n, message) in whole.iter().enumerate() {
        let to = slot(&format!("fork-{n}"));
        let up_to = Some(message.id.clone());
        let info = block_on(agent.fork(&slot("s1"), &to, up_to)).unwrap().unwrap();
        let said = block_on(agent.history(&to, None, 100)).unwrap();
        assert_eq!(said[..=n], whole[..=n], "up to message {n}");
        assert_eq!((info.branches, info.messages), (0, said.len() as u64));
        // A call without a result gets one, so that the conversation can continue.
        let n_closed = match n {
            3 => 2,
            4 => 1,
            _ => 0,
        };
        assert_eq!(said.len(), n + 1 + n_closed, "up to message {n}");
        assert!(said[n + 1..].iter().all(|it| it.role == Role::Tool));
        let state = block_on(agent.state(&to)).unwrap();
        assert_eq!(state.context, said);
        let model = ScriptedModel::new([Line::says("on")]);
        let other = agent_on(&store, Rc::clone(&model) as _);
        let request = CallRequest::new(to.clone(), "and then?");
        block_on(other.begin(request).unwrap().finish()).unwrap();
        assert_eq!(model.requests()[0].len(), said.len() + 1);
    }
    assert_eq!(block_on(agent.history(&slot("s1"), None, 100)).unwrap(), whole);
    assert_eq!(branches(&agent).len(), 1);
}

#[test]
fn a_fork_of_a_whole_session_equals_it_and_then_changes_independently() {
    let (agent, _, model) = scripted(&["one", "two", "two of the fork", "three"]);
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s1", "second").unwrap();
    let bob = Slot::new(Some("bob"), "his").unwrap();
    let info = block_on(agent.fork(&slot("s1"), &bob, None)).unwrap().unwrap();
    assert_eq!((info.title.as_str(), info.user_id.as_deref()), ("first", Some("bob")));
    let ids = |slot: &Slot| json!(block_on(agent.state(slot)).unwrap().context);
    assert_eq!(ids(&bob), ids(&slot("s1")));
    // The fork can resend its last question, and the first session does not change.
    let again =
        CallRequest { messages: Vec::new(), resends: true, ..CallRequest::new(bob.clone(), "") };
    block_on(agent.begin(again).unwrap().finish()).unwrap();
    assert_eq!(model.requests()[2], model.requests()[1]);
    assert_eq!(told(&agent, "s1").last().unwrap(), "assistant: two");
    let listed = block_on(agent.list_sessions(Some("bob"), Page::default())).unwrap();
    assert_eq!((listed.len(), listed[0].branches), (1, 1));
}

#[test]
fn a_fork_of_a_branch_has_the_messages_of_that_branch() {
    let (agent, _, _) = scripted(&["one", "two"]);
    let old = ask(&agent, "s1", "first").unwrap();
    resend(&agent).unwrap();
    let up_to = Some(old.message.id.clone());
    block_on(agent.fork(&slot("s1"), &slot("s2"), up_to)).unwrap();
    assert_eq!(told(&agent, "s2"), ["user: first", "assistant: one"]);
}

#[test]
fn a_fork_of_a_summarised_session_has_the_view_of_that_message() {
    let (store, model) = (memory(), Rc::new(crate::compaction::window::Windowed::default()));
    let by_trigger = |options: &mut Options| {
        options.compaction.when = lockgate::policy::compaction::When::ByTrigger;
        (options.compaction.trigger_messages, options.compaction.keep_messages) = (6, 2);
    };
    let agent = crate::compaction::window::set_up(&store, &model, by_trigger).build().unwrap();
    let mut shown = Vec::new();
    for turn in 0..9 {
        ask(&agent, "s1", &format!("question {turn} {}", "of many words ".repeat(20))).unwrap();
        let mut context = model.last();
        context.extend(block_on(agent.history(&slot("s1"), None, 1)).unwrap());
        shown.push(context);
    }
    assert!(model.condensed.borrow().len() >= 2);
    let whole = block_on(agent.history(&slot("s1"), None, 100)).unwrap();
    for (turn, shown) in shown.iter().enumerate() {
        let (to, answer) = (slot(&format!("fork-{turn}")), &whole[2 * turn + 1]);
        block_on(agent.fork(&slot("s1"), &to, Some(answer.id.clone()))).unwrap();
        let state = block_on(agent.state(&to)).unwrap();
        assert_eq!(texts(&state.context), texts(shown), "up to answer {turn}");
        assert_eq!(block_on(agent.history(&to, None, 100)).unwrap(), whole[..=2 * turn + 1]);
    }
}

#[test]
fn a_fork_never_replaces_a_session_with_messages() {
    let (agent, _, _) = scripted(&["one", "two"]);
    let fork = |from: &str, to: &str, up_to: Option<&str>| {
        let forked = agent.fork(&slot(from), &slot(to), up_to.map(str::to_owned));
        block_on(forked).map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(fork("s1", "s2", None), Err(ErrorKind::NoSuchSession));
    ask(&agent, "s1", "first").unwrap();
    ask(&agent, "s2", "other").unwrap();
    assert_eq!(fork("s1", "s2", None), Err(ErrorKind::InputInvalid));
    assert_eq!(fork("s1", "s1", None), Err(ErrorKind::InputInvalid));
    assert_eq!(fork("s1", "s3", Some("nowhere")), Err(ErrorKind::InputInvalid));
    assert_eq!(block_on(agent.session(&slot("s3"))).unwrap().map(|it| it.messages), None);
    // A deleted session and an empty session may become a fork.
    block_on(agent.delete_session(&slot("s2"))).unwrap();
    block_on(
        agent.put_state(&slot("s3"), &json!(block_on(agent.state(&slot("s3"))).unwrap())).unwrap(),
    )
    .unwrap();
    assert_eq!(fork("s1", "s2", None), Ok(()));
    assert_eq!(fork("s1", "s3", None), Ok(()));
    assert_eq!(told(&agent, "s3"), ["user: first", "assistant: one"]);
    let listed = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
    assert_eq!(listed.len(), 3);
}

#[test]
fn a_session_whose_tools_wait_is_not_forked() {
    let spec = ToolSpec::new("outside", "done elsewhere", json!({ "type": "object" }));
    let spec = Rc::new(ToolSpec { external: true, ..spec });
    let model = ScriptedModel::new([Line::calls("outside", &json!({}))]);
    let tool = Rc::new(crate::compaction::window::Letters(spec));
    let agent = builder_on(&memory(), model as _).tool(tool as _).build().unwrap();
    ask(&agent, "s1", "first").unwrap();
    let forked = block_on(agent.fork(&slot("s1"), &slot("s2"), None));
    assert_eq!(forked.unwrap_err().kind(), ErrorKind::PendingTools);
}

/// A long session: `n` turns, appended by hand.
fn long(agent: &Agent, n: usize) {
    for turn in 0..n {
        block_on(agent.append(&slot("s1"), said(&format!("message {turn}")))).unwrap();
    }
}

#[test]
fn a_long_fork_is_written_in_batches_and_never_seen_half_written() {
    let store = Rc::new(Counting::default());
    let shared = Rc::clone(&store) as Rc<dyn Store>;
    let agent = agent_on(&shared, ScriptedModel::new([]) as _);
    long(&agent, 250);
    store.sizes.borrow_mut().clear();
    block_on(agent.fork(&slot("s1"), &slot("s2"), None)).unwrap();
    assert_eq!(
        store.sizes.take(),
        [99, 98, 56],
        "two batches of entries, then heads and a list line"
    );
    assert_eq!(told(&agent, "s2").len(), 250);
    assert!(
        store.seen.take().iter().all(|it| *it == 0),
        "the fork was listed before it was complete"
    );
}

#[test]
fn a_half_written_fork_is_replaced_by_the_next_call() {
    let store = Rc::new(Counting::default());
    let shared = Rc::clone(&store) as Rc<dyn Store>;
    let model = ScriptedModel::new([Line::says("one")]);
    let agent = agent_on(&shared, Rc::clone(&model) as _);
    long(&agent, 250);
    store.patience.set(Some(2));
    assert!(block_on(agent.fork(&slot("s1"), &slot("s2"), None)).is_err());
    store.patience.set(None);
    assert!(block_on(agent.session(&slot("s2"))).unwrap().is_none());
    assert_eq!(told(&agent, "s2").len(), 0);
    let other = agent_on(&shared, Rc::clone(&model) as _);
    ask(&other, "s2", "hello").unwrap();
    assert_eq!(told(&other, "s2"), ["user: hello", "assistant: one"]);
    let left = block_on(store.list("", Page::default())).unwrap();
    let of_s2 = left.iter().filter(|(key, _)| key.contains("/t.s2/log/")).count();
    assert_eq!(of_s2, 1, "an entry of the half-written fork is left");
}

/// A store that counts the records of each commit, and may stop accepting commits.
#[derive(Default)]
struct Counting {
    inner: lockgate::store::backend::memory_store::MemoryStore,
    sizes: std::cell::RefCell<Vec<usize>>,
    /// Before each commit, how many list lines the second session has.
    seen: std::cell::RefCell<Vec<usize>>,
    patience: std::cell::Cell<Option<u32>>,
}

impl Store for Counting {
    fn capabilities(&self) -> lockgate::port::Capabilities {
        self.inner.capabilities()
    }

    fn get<'a>(
        &'a self,
        keys: &'a [String],
    ) -> lockgate::future::Local<'a, lockgate::error::Result<Vec<Option<lockgate::port::Record>>>>
    {
        self.inner.get(keys)
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        page: Page,
    ) -> lockgate::future::Local<'a, lockgate::error::Result<Vec<(String, lockgate::port::Record)>>>
    {
        self.inner.list(prefix, page)
    }

    fn commit<'a>(
        &'a self,
        batch: &'a Batch,
    ) -> lockgate::future::Local<'a, lockgate::error::Result<lockgate::port::Committed>> {
        if let Some(left) = self.patience.get() {
            if left == 0 {
                let error = lockgate::error::Error::new(ErrorKind::StoreQuota, "full");
                return Box::pin(std::future::ready(Err(error)));
            }
            self.patience.set(Some(left - 1));
        }
        self.sizes.borrow_mut().push(batch.put.len());
        let lines = block_on(self.inner.list("", Page::default())).unwrap();
        let of_second = |key: &str| key.contains("/index/") && key.ends_with(".t.s2");
        self.seen.borrow_mut().push(lines.iter().filter(|(key, _)| of_second(key)).count());
        self.inner.commit(batch)
    }
}
