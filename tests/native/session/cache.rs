//! The cache of sessions in memory: it is bounded, and everything in it is also in the store.

use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Bounds, Builder, Cache, Options};
use lockgate::model::scripted::{Line, ScriptedModel};
use lockgate::store::Sessions;
use lockgate::store::session::Session;

fn session(name: &str, bytes: usize) -> Session {
    let sessions = Sessions::new("helper", memory(), Rc::new(HostHandle(TestHost::new())), 1_000);
    Session { bytes, ..block_on(sessions.load(&slot(name), None)).unwrap() }
}

fn kept(cache: &mut Cache, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| cache.take(&slot(name)).is_some()).collect()
}

#[test]
fn r13_the_least_recently_used_session_goes_first() {
    let mut cache = Cache::new(Bounds { sessions: 2, bytes: 1_000 });
    for name in ["a", "b"] {
        cache.put(session(name, 1));
    }
    let used_again = cache.take(&slot("a")).unwrap();
    cache.put(used_again);
    cache.put(session("c", 1));
    assert_eq!(cache.len(), 2);
    assert_eq!(kept(&mut cache, &["a", "b", "c"]), [true, false, true]);
    assert!(cache.is_empty());
}

#[test]
fn r13_the_cache_is_bounded_by_bytes_too() {
    let mut cache = Cache::new(Bounds { sessions: 100, bytes: 10 });
    for name in ["a", "b", "c"] {
        cache.put(session(name, 4));
    }
    assert_eq!(kept(&mut cache, &["a", "b", "c"]), [false, true, true]);
    cache.put(session("huge", 11));
    assert!(cache.is_empty());
}

#[test]
fn r13_an_evicted_session_is_read_again_and_continues() {
    let model = ScriptedModel::new((0..9).map(|_| Line::says("ok")));
    let options =
        Options { cache: Bounds { sessions: 1, bytes: 1 << 20 }, ..Options::new("helper") };
    let agent = Builder::new(options)
        .model(Rc::clone(&model) as _)
        .store(memory())
        .host(Rc::new(HostHandle(TestHost::new())))
        .build()
        .unwrap();
    for turn in 0..3 {
        for name in ["a", "b", "c"] {
            ask(&agent, name, &format!("question {turn}")).unwrap();
        }
    }
    let lengths: Vec<_> = model.requests().iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 1, 1, 3, 3, 3, 5, 5, 5]);
}

#[test]
fn r13_a_running_session_is_not_evicted_from_the_cache() {
    let model = ScriptedModel::new([Line::Hangs(Vec::new()), Line::says("b"), Line::says("c")]);
    let options =
        Options { cache: Bounds { sessions: 1, bytes: 1 << 20 }, ..Options::new("helper") };
    let builder = Builder::new(options).model(model).store(memory());
    let agent = builder.host(Rc::new(HostHandle(TestHost::new()))).build().unwrap();
    let mut running = begin(&agent, "a", "first");
    while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(running.next())) {}
    ask(&agent, "b", "hello").unwrap();
    ask(&agent, "c", "hello").unwrap();
    running.cancel().ask(lockgate::engine::Cause::Stopped(Vec::new()));
    block_on(running.finish()).unwrap();
    assert_eq!(told(&agent, "a"), ["user: first"]);
}
