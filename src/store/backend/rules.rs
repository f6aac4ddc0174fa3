//! The rules that every store must follow: one rule for each sentence of the contract.
//!
//! The rules are in `rules.json`, which JavaScript reads too (`src/npm/testing/store-rules.ts`). This file runs them in Rust.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Local, join_all};
use crate::json::{self, Fields, Misread, Read};
use crate::port::{Batch, Capabilities, Committed, Page, Record, Shared, Store};

/// Largest value that a rule stores, in bytes.
const LARGEST: usize = 1_000_000;

/// One rule: a sentence that is true of every correct store, and the steps that check it.
pub struct StoreRule {
    /// The sentence.
    pub name: String,
    /// The faults of a store that this rule finds.
    pub broken: Vec<String>,
    needs: Vec<String>,
    steps: Vec<Value>,
}

/// Every rule.
pub fn rules() -> Result<Vec<StoreRule>> {
    let document = json::parse(include_bytes!("rules.json"), "the list of rules")?;
    json::list(&document, rule)
        .map_err(|misread| misread.into_error(ErrorKind::Internal, "the list of rules"))
}

fn rule(value: &Value) -> Read<StoreRule> {
    let fields = Fields::of(value)?;
    Ok(StoreRule {
        name: fields.required("rule", json::text)?,
        broken: fields.required("broken", json::texts)?,
        needs: fields.or_default("needs", json::texts)?,
        steps: fields.required("steps", |steps| json::list(steps, |step| Ok(expanded(step))))?,
    })
}

impl StoreRule {
    /// Why this rule does not apply to a store with these capabilities; `None` if it applies.
    pub fn skip(&self, capabilities: Capabilities, has_beside: bool) -> Option<String> {
        let lacks = |need: &&String| match need.as_str() {
            "atomic" => !capabilities.atomic,
            "compareAndSet" => !capabilities.compare_and_set,
            "shared" => capabilities.shared == Shared::Process || !has_beside,
            _ => false,
        };
        self.needs.iter().find(lacks).map(|need| format!("needs {need}"))
    }

    /// Checks the rule on an empty store. `beside` is a second store over the same records.
    pub async fn run(&self, store: &dyn Store, beside: Option<&dyn Store>) -> Result<()> {
        for (index, step) in self.steps.iter().enumerate() {
            let is_beside = step.get("beside").is_some();
            let store = if is_beside { beside.unwrap_or(store) } else { store };
            let done = take(step)
                .map_err(|misread| misread.into_error(ErrorKind::Internal, "the list of rules"));
            if let Some(complaint) = prove(done?, store).await? {
                let message = format!("step {}: {complaint}", index + 1);
                return Err(Error::new(ErrorKind::StoreCorrupt, message));
            }
        }
        Ok(())
    }
}

/// One step of a rule.
enum RuleStep {
    Get { keys: Vec<String>, answers: Vec<Option<Record>> },
    List { prefix: String, page: Page, answers: Listing },
    Commit { batch: Batch, answer: Committed },
    Together { batches: Vec<Batch>, one_wins: Option<String> },
}

/// What a listing must contain: whole records, or keys alone.
enum Listing {
    Records(Vec<(String, Record)>),
    Keys { keys: Vec<String>, revisions: Option<Vec<String>> },
}

/// Runs the step. Returns what is wrong with the answer, if something is.
async fn prove(step: RuleStep, store: &dyn Store) -> Result<Option<String>> {
    match step {
        RuleStep::Get { keys, answers } => {
            let found = store.get(&keys).await?;
            Ok((found != answers).then(|| "get returned other records".to_owned()))
        }
        RuleStep::List { prefix, page, answers } => {
            let found = store.list(&prefix, page).await?;
            Ok((!answers.is(&found)).then(|| format!("list {prefix} returned other records")))
        }
        RuleStep::Commit { batch, answer } => {
            let found = store.commit(&batch).await?;
            Ok((found != answer).then(|| format!("commit returned {found:?}, not {answer:?}")))
        }
        RuleStep::Together { batches, one_wins } => together(store, &batches, one_wins).await,
    }
}

async fn together(
    store: &dyn Store,
    batches: &[Batch],
    one_wins: Option<String>,
) -> Result<Option<String>> {
    let commits = batches.iter().map(|batch| store.commit(batch));
    let commits: Vec<Local<'_, Result<Committed>>> = commits.collect();
    let outcomes: Vec<_> = join_all(commits).await.into_iter().collect::<Result<_>>()?;
    let through = outcomes.iter().zip(batches).filter(|(it, _)| **it == Committed::Done);
    let winners: Vec<&Batch> = through.map(|(_, batch)| batch).collect();
    let wanted = if one_wins.is_some() { 1 } else { batches.len() };
    if winners.len() != wanted {
        return Ok(Some(format!("{} commits succeeded, not {wanted}", winners.len())));
    }
    let Some(key) = one_wins else { return Ok(None) };
    let found = store.get(&[key]).await?.pop().flatten().map(|record| record.revision);
    let is_winner = found.as_ref() == winners.first().map(|batch| &batch.revision);
    Ok((!is_winner)
        .then(|| "the stored record is not that of the commit that succeeded".to_owned()))
}

impl Listing {
    fn is(&self, found: &[(String, Record)]) -> bool {
        match self {
            Listing::Records(records) => found == records.as_slice(),
            Listing::Keys { keys, revisions } => {
                let same = found.iter().map(|(_, record)| &record.revision);
                found.iter().map(|(key, _)| key).eq(keys)
                    && revisions.as_ref().is_none_or(|revisions| same.eq(revisions))
            }
        }
    }
}

fn take(step: &Value) -> Read<RuleStep> {
    let fields = Fields::of(step)?;
    if let Some(batch) = fields.value("commit") {
        let is_conflict = fields.value("answers").is_some();
        let answer = if is_conflict { Committed::Conflict } else { Committed::Done };
        return Ok(RuleStep::Commit { batch: batch_of(batch)?, answer });
    }
    if let Some(batches) = fields.value("together") {
        let one_wins = fields.optional("oneWins", json::text)?;
        return Ok(RuleStep::Together { batches: json::list(batches, batch_of)?, one_wins });
    }
    if let Some(keys) = fields.value("get") {
        let answers = fields.required("answers", |answers| json::list(answers, record_of))?;
        return Ok(RuleStep::Get { keys: json::list(keys, key_of)?, answers });
    }
    let page = Page {
        after: fields.optional("after", json::text)?,
        limit: fields.optional("limit", json::count)?.map(|limit| limit as usize),
        keys_only: fields.or_default("keysOnly", json::boolean)?,
    };
    let answers = match fields.value("answers") {
        Some(records) => Listing::Records(json::list(records, listed_of)?),
        None => Listing::Keys {
            keys: fields.required("keys", json::texts)?,
            revisions: fields.optional("revisions", json::texts)?,
        },
    };
    Ok(RuleStep::List { prefix: fields.required("list", json::text)?, page, answers })
}

fn batch_of(value: &Value) -> Read<Batch> {
    let fields = Fields::of(value)?;
    let keys = |value: &Value| json::list(value, key_of);
    Ok(Batch {
        expect: fields.optional("expect", |expect| {
            Ok((key_of(item(expect, 0))?, item(expect, 1).as_str().map(str::to_owned)))
        })?,
        revision: fields.required("revision", json::text)?,
        remove: fields.or_default("remove", keys)?,
        remove_prefix: fields.or_default("removePrefix", keys)?,
        put: fields.or_default("put", |puts| {
            json::list(puts, |put| Ok((key_of(item(put, 0))?, bytes_of(item(put, 1))?)))
        })?,
    })
}

fn record_of(value: &Value) -> Read<Option<Record>> {
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(Record { value: bytes_of(item(value, 0))?, revision: json::text(item(value, 1))? }))
}

fn listed_of(value: &Value) -> Read<(String, Record)> {
    let record = Record { value: bytes_of(item(value, 1))?, revision: json::text(item(value, 2))? };
    Ok((key_of(item(value, 0))?, record))
}

fn key_of(value: &Value) -> Read<String> {
    String::from_utf8(bytes_of(value)?).map_err(|_| Misread::new("a key"))
}

/// Bytes written as text, as `{ repeat, times, then }`, or as all 256 byte values.
fn bytes_of(value: &Value) -> Read<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let fields = Fields::of(value)?;
    if fields.value("bytes").is_some() {
        return Ok((0..=255).collect());
    }
    let unit = fields.required("repeat", json::text)?;
    let most = LARGEST / unit.len().max(1);
    let times = fields.value("times").and_then(Value::as_u64).map_or(most, |it| it as usize);
    Ok([unit.repeat(times), fields.or_default("then", json::text)?].concat().into_bytes())
}

fn item(value: &Value, index: usize) -> &Value {
    value.get(index).unwrap_or(&Value::Null)
}

/// The value with every `{ many, of }` in its lists expanded; `#` stands for the number.
fn expanded(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().flat_map(written_out).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, it)| (name.clone(), expanded(it))).collect())
        }
        other => other.clone(),
    }
}

fn written_out(item: &Value) -> Vec<Value> {
    match (item.get("many").and_then(Value::as_u64), item.get("of")) {
        (Some(many), Some(of)) => (0..many).map(|n| numbered(of, &format!("{n:04}"))).collect(),
        _ => vec![expanded(item)],
    }
}

fn numbered(value: &Value, number: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('#', number)),
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), numbered(member, number)))
            .collect::<json::Object>()
            .into(),
        other => other.clone(),
    }
}
