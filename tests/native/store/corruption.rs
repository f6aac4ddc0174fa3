//! Random damage to the records of a stored session: each reader returns what was said, or fails with STORE_CORRUPT.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::*;
use lockgate::engine::{Agent, CallRequest, Format, Options};
use lockgate::error::{ErrorKind, Result};
use lockgate::model::scripted::{Line, ScriptedModel, words};
use lockgate::port::{Batch, Page, Record, Store};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;
use lockgate::store::search::Query;
use serde_json::json;

/// Below this the records of the damaged session are.
const DAMAGED: &str = "1.t.helper/t.alice/slot/t.s1/";

/// Random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

type Records = BTreeMap<String, Record>;

fn records(store: &Rc<dyn Store>) -> Records {
    block_on(store.list("", Page::default())).unwrap().into_iter().collect()
}

fn store_of(records: &Records) -> Rc<dyn Store> {
    let store = MemoryStore::new();
    for (key, record) in records {
        let put = vec![(key.clone(), record.value.clone())];
        let batch = Batch { revision: record.revision.clone(), put, ..Batch::default() };
        block_on(store.commit(&batch)).unwrap();
    }
    Rc::new(store)
}

fn agent_that(store: &Rc<dyn Store>, lines: Vec<Line>) -> Agent {
    let mut options = Options::new("helper");
    options.compaction.keep_messages = 2;
    let host = HostHandle(TestHost::new());
    let builder = lockgate::engine::Builder::new(options).model(ScriptedModel::new(lines));
    builder.store(Rc::clone(store)).host(Rc::new(host)).build().unwrap()
}

fn of(user: &str, session: &str) -> Slot {
    Slot::new(Some(user), session).unwrap()
}

fn say(agent: &Agent, slot: &Slot, text: &str) -> Result<()> {
    let request = CallRequest::new(slot.clone(), text);
    block_on(agent.begin(request).unwrap().finish()).map(|_| ()).map_err(|failed| failed.error)
}

/// A session with a summary, branches, an outcome that is kept and, if `is_cut`, a call that died during its answer.
/// Beside it are another session of the same user and one of another user.
fn sessions(is_cut: bool) -> Records {
    let store = memory();
    let lines = (0..9).map(|n| Line::says(&format!("answer {n} with several words"))).collect();
    let agent = agent_that(&store, lines);
    let s1 = of("alice", "s1");
    let long = "a question of many words ".repeat(9);
    (0..3).for_each(|n| say(&agent, &s1, &format!("{n} {long}")).unwrap());
    block_on(agent.compact(&s1)).unwrap();
    say(&agent, &s1, "after the summary").unwrap();
    let resent = CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
    block_on(agent.begin(resent).unwrap().finish()).unwrap();
    let named = CallRequest { call_id: Some("mine".into()), ..request("s1", "a named call") };
    block_on(agent.begin(named).unwrap().finish()).unwrap();
    let others = (0..4).map(|n| Line::says(&format!("other {n}"))).collect();
    let agent = agent_that(&store, others);
    for slot in [of("alice", "s2"), of("bob", "s1")] {
        ["one", "two"].iter().for_each(|text| say(&agent, &slot, text).unwrap());
    }
    if is_cut {
        let agent = agent_that(&store, vec![Line::Hangs(words("half an answer"))]);
        let mut call = begin(&agent, "s1", "and then?");
        for _ in 0..2 {
            while let std::task::Poll::Ready(Some(_)) = poll_once(&mut Box::pin(call.next())) {}
            agent.checkpoint();
        }
        drop(call);
    }
    records(&store)
}

/// Damages the records of one session, and says how.
fn damage(records: &mut Records, chance: &mut Chance) -> String {
    let own: Vec<String> = records.keys().filter(|key| key.starts_with(DAMAGED)).cloned().collect();
    let log: Vec<String> = own.iter().filter(|key| key.contains("/log/")).cloned().collect();
    // Of a running answer, what was stored last can be missing after a crash too.
    let can_miss = |key: &&String| !key.contains("/partial/");
    let lasting: Vec<String> = own.iter().filter(can_miss).cloned().collect();
    let key = chance.one_of(&own).clone();
    let other = chance.one_of(&own).clone();
    let copy = records[&key].clone();
    // Some stores give the records new revisions, for example if they are written by hand.
    let keeps_revision = chance.below(2) == 0;
    let put = |records: &mut Records, key: &str, record: Record| {
        let old = records.get(key).map(|record| record.revision.clone());
        let revision = old.filter(|_| keeps_revision).unwrap_or(record.revision);
        records.insert(key.to_owned(), Record { revision, ..record });
    };
    match chance.below(7) {
        0 | 1 => {
            let n_bits = 1 + chance.below(4);
            let value = &mut records.get_mut(&key).unwrap().value;
            for _ in 0..n_bits {
                let place = chance.below(value.len() * 8);
                value[place / 8] ^= 1 << (place % 8);
            }
            format!("{n_bits} bits of {key}")
        }
        2 => {
            let key = chance.one_of(&lasting);
            records.remove(key);
            format!("without {key}")
        }
        3 => {
            let second = records[&other].clone();
            put(records, &key, second);
            put(records, &other, copy);
            format!("{key} and {other} are swapped")
        }
        4 => {
            put(records, &other, copy);
            format!("{key} also in place of {other}")
        }
        5 => {
            let place = chance.below(log.len());
            let rotated = log.iter().cycle().skip(place).take(log.len());
            let values: Vec<Record> = rotated.map(|key| records[key].clone()).collect();
            log.iter().zip(values).for_each(|(key, record)| put(records, key, record));
            format!("the log begins with entry {place}")
        }
        _ => {
            let of_others: Vec<String> = records
                .keys()
                .filter(|it| it.contains("/log/") && !it.starts_with(DAMAGED))
                .cloned()
                .collect();
            let from = chance.one_of(&of_others).clone();
            let to = chance.one_of(&log).clone();
            let (foreign, name) = (records[&from].clone(), from.rsplit('/').next().unwrap());
            let to = if chance.below(2) == 0 { to } else { format!("{DAMAGED}log/{name}") };
            put(records, &to, foreign);
            format!("{from} in place of {to}")
        }
    }
}

/// What each reader returns.
fn read(agent: &Agent, slot: &Slot, is_cut: bool) -> Vec<(&'static str, Result<String>)> {
    let text = |value: serde_json::Value| value.to_string();
    let branches = block_on(agent.branches(slot));
    let on_branches = branches.as_ref().map_err(Clone::clone).and_then(|branches| {
        let told = branches
            .iter()
            .map(|branch| block_on(agent.history_of(slot, Some(&branch.id), None, 99)));
        told.collect::<Result<Vec<_>>>().map(|told| text(json!(told)))
    });
    let query =
        Query { text: "words", user: slot.user(), session: Some(slot.session()), limit: 50 };
    let hits = block_on(agent.search(query)).map(|hits| hits.into_iter().map(|it| it.message_id));
    let mut read = vec![
        ("history", block_on(agent.history(slot, None, 99)).map(|it| text(json!(it)))),
        ("state", block_on(agent.state(slot)).map(|it| text(json!(it)))),
        ("branches", branches.map(|it| text(json!(it)))),
        ("on branches", on_branches),
        ("session", block_on(agent.session(slot)).map(|it| text(json!(it)))),
        ("search", hits.map(|it| format!("{:?}", it.collect::<std::collections::BTreeSet<_>>()))),
        ("inspect", block_on(agent.inspect(slot)).map(|it| text(json!(it)))),
    ];
    if !is_cut {
        // The export of a call that died has new ids each time.
        read.push(("export", block_on(agent.export_session(slot, Format::Lockgate))));
    }
    read
}

#[test]
fn a_damaged_session_is_read_as_it_was_or_refused_and_repaired_or_refused_with_the_reason() {
    let n_seeds = std::env::var("CORRUPTIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(1_000);
    let one = std::env::var("LOCKGATE_SEED").ok().and_then(|it| it.parse().ok());
    let baselines = [false, true].map(|is_cut| {
        let records = sessions(is_cut);
        let agent = agent_that(&store_of(&records), Vec::new());
        let [s1, s2, bob] = [of("alice", "s1"), of("alice", "s2"), of("bob", "s1")];
        let expected = [s1, s2, bob].map(|slot| (read(&agent, &slot, is_cut), slot));
        (records, expected)
    });
    let (mut n_refused, mut n_repaired) = (0, 0);
    for seed in one.map_or(0..n_seeds, |seed: u64| seed..seed + 1) {
        let mut chance = Chance(seed);
        let is_cut = seed % 2 == 1;
        let (baseline, expected) = &baselines[usize::from(is_cut)];
        let mut records = baseline.clone();
        let how = damage(&mut records, &mut chance);
        let how = format!("LOCKGATE_SEED={seed}: {how}");
        let store = store_of(&records);
        let lines = || (0..6).map(|n| Line::says(&format!("later {n}"))).collect();
        let agent = agent_that(&store, lines());
        let (then, s1) = &expected[0];
        let mut is_refused = false;
        for ((reader, now), (_, then)) in read(&agent, s1, is_cut).into_iter().zip(then) {
            match now {
                Ok(now) => assert_eq!(&now, then.as_ref().unwrap(), "{reader}: {how}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{reader}: {how}: {error:?}");
                    is_refused = true;
                }
            }
        }
        n_refused += u64::from(is_refused);
        // A call answers on top of what was said, or is refused.
        let before = records_of(&agent, s1);
        if let Err(error) = say(&agent, s1, "go on") {
            assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "a call: {how}: {error:?}");
            assert_eq!(records_of(&agent, s1), before, "a refused call stores nothing: {how}");
        }
        match block_on(agent.repair_session(s1)) {
            Ok(_) => {
                n_repaired += 1;
                let lines = (0..6).map(|n| Line::says(&format!("again {n}"))).collect();
                let agent = agent_that(&store, lines);
                for (reader, now) in read(&agent, s1, true) {
                    assert!(now.is_ok(), "{reader} after a repair: {how}: {now:?}");
                }
                say(&agent, s1, "are you there?").unwrap_or_else(|it| panic!("{how}: {it:?}"));
                let again =
                    CallRequest { messages: Vec::new(), resends: true, ..request("s1", "") };
                block_on(agent.begin(again).unwrap().finish())
                    .unwrap_or_else(|it| panic!("{how}: {it:?}"));
                block_on(agent.export_session(s1, Format::Lockgate))
                    .unwrap_or_else(|it| panic!("{how}: {it:?}"));
                let listed = block_on(agent.list_sessions(Some("alice"), Page::default())).unwrap();
                assert_eq!(listed.len(), 2, "{how}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{how}: {error:?}");
                assert!(error.hint_text().is_some(), "{how}: {error:?}");
            }
        }
        for (then, slot) in &expected[1..] {
            for ((reader, now), (_, then)) in read(&agent, slot, is_cut).into_iter().zip(then) {
                assert_eq!(now.unwrap(), *then.as_ref().unwrap(), "{slot}: {reader}: {how}");
            }
            say(&agent, slot, "more").unwrap_or_else(|it| panic!("{slot}: {how}: {it:?}"));
        }
    }
    if one.is_none() {
        assert!(n_refused > n_seeds / 3, "only {n_refused} of {n_seeds} were noticed");
        assert!(n_repaired > n_seeds / 2, "only {n_repaired} of {n_seeds} were repaired");
    }
}

/// The number of messages that a history shows, if it can be read.
fn records_of(agent: &Agent, slot: &Slot) -> Option<usize> {
    block_on(agent.history(slot, None, 99)).ok().map(|it| it.len())
}
