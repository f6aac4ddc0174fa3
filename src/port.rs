//! What the engine asks of the world, on one page. Everything here stays on its thread.

use std::cell::Cell;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Read};
use crate::message::{Block, Delta, Message};
use crate::slot::Slot;
use crate::state::Facts;

/// Keeps records under keys, and changes them all at once or not at all.
///
/// Keys come ready-encoded: parts of `[a-z0-9.-]` joined by `/`, at most 512 bytes. Values are bytes.
pub trait Store {
    /// What this store promises; the engine refuses what it cannot work with.
    fn capabilities(&self) -> Capabilities;
    /// The record under each key, in the order asked, if there is one.
    fn get<'a>(&'a self, keys: &'a [String]) -> Local<'a, Result<Vec<Option<Record>>>>;
    /// The records whose key begins with `prefix`, in key order, one page.
    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> Local<'a, Result<Vec<(String, Record)>>>;
    /// Applies the whole batch, or nothing if the expected revision has moved. Removes come before puts.
    fn commit<'a>(&'a self, batch: &'a Batch) -> Local<'a, Result<Committed>>;
}

/// A value and the batch that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The bytes.
    pub value: Vec<u8>,
    /// The revision of the batch that put it.
    pub revision: String,
}

/// Which part of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only keys after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// The values may be left empty.
    pub keys_only: bool,
}

/// A change of several records.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The key whose revision must still be this one (`None`: it must be absent).
    pub expect: Option<(String, Option<String>)>,
    /// What every put is stamped with.
    pub revision: String,
    /// Keys to remove.
    pub remove: Vec<String>,
    /// Prefixes whose keys are removed.
    pub remove_prefix: Vec<String>,
    /// Records to put, after the removes.
    pub put: Vec<(String, Vec<u8>)>,
}

/// What came of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All of it is applied.
    Done,
    /// The expected revision has moved; nothing is applied.
    Conflict,
}

/// What a store promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A batch is all or nothing.
    pub atomic: bool,
    /// `expect` is checked in the same step.
    pub compare_and_set: bool,
    /// Who else may write to it.
    pub shared: Shared,
}

/// Who else may write to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// This process only.
    Process,
    /// The pages and workers of one web origin.
    Origin,
    /// The processes of one machine.
    Host,
    /// Any machine.
    Cluster,
}

/// Answers, piece by piece.
pub trait Model {
    /// Its name, as events of a call show it.
    fn id(&self, tag: u32) -> String;
    /// Begins an answer. An error here means that nothing of it was seen.
    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>>;
}

/// An answer under way; dropping it cancels the request.
pub trait Deltas {
    /// All deltas that have arrived, at least one; none at all is the end.
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>>;
}

/// What a model is asked.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Whose conversation.
    pub slot: &'a Slot,
    /// The call that asks, as its caller knows it.
    pub tag: u32,
    /// The instructions.
    pub system: &'a str,
    /// The conversation so far.
    pub messages: &'a [Rc<Message>],
    /// What of it somebody outside may already have.
    pub lineage: &'a Lineage,
    /// What it may call.
    pub tools: &'a [Rc<ToolSpec>],
    /// Temperature and the like, as the caller gave them.
    pub generate: &'a Value,
}

/// One conversation held in memory. It only grows at its end, so a border that hands it to somebody outside pays
/// for what is new, and once.
#[derive(Debug)]
pub struct Lineage {
    id: u64,
    unchanged: Cell<usize>,
}

impl Lineage {
    /// A lineage of its own.
    pub fn new() -> Lineage {
        thread_local!(static LAST: Cell<u64> = const { Cell::new(0) });
        let id = LAST.get() + 1;
        LAST.set(id);
        Lineage { id, unchanged: Cell::new(usize::MAX) }
    }

    /// Tells it from all others.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Says that the message of this number is not what it was.
    pub fn changed(&self, index: usize) {
        self.unchanged.set(self.unchanged.get().min(index));
    }

    /// How many messages are what they were when this was last asked.
    pub fn take_unchanged(&self) -> usize {
        self.unchanged.replace(usize::MAX)
    }
}

impl Default for Lineage {
    fn default() -> Self {
        Lineage::new()
    }
}

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name; one of a kind within an agent.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes, as JSON Schema.
    pub input_schema: Value,
    /// Whether calls of it may run beside others.
    #[serde(skip)]
    pub parallel: bool,
    /// How long it may take, if not the agent's default.
    #[serde(skip)]
    pub timeout_ms: Option<u64>,
}

impl ToolSpec {
    /// Reads what a model is to be told of a tool.
    pub fn from_json(value: &Value) -> Read<ToolSpec> {
        let fields = Fields::of(value)?;
        Ok(ToolSpec {
            name: fields.required("name", json::text)?,
            description: fields.required("description", json::text)?,
            input_schema: fields.required("inputSchema", json::object).map(Value::Object)?,
            parallel: fields.optional("parallel", json::boolean)?.unwrap_or(true),
            timeout_ms: fields.optional("timeoutMs", json::count)?,
        })
    }
}

/// Does something for the model.
pub trait Tool {
    /// What a model is told of it.
    fn spec(&self) -> &Rc<ToolSpec>;
    /// Does it. An error becomes a result that the model can read. Dropping the future tells the tool to stop.
    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>>;
}

/// One run of a tool.
#[derive(Clone, Copy)]
pub struct ToolRun<'a> {
    /// Whose conversation.
    pub slot: &'a Slot,
    /// The call that runs it, as its caller knows it.
    pub tag: u32,
    /// The tool call.
    pub tool_call_id: &'a str,
    /// What it is given.
    pub input: &'a Value,
    /// What it may ask of the engine.
    pub desk: &'a dyn Desk,
}

/// What tools of ours ask of the engine: the state of the call that runs them.
pub trait Desk {
    /// The AgentState fields as they are now.
    fn facts(&self) -> Facts;
    /// Changes them; they are saved with the call.
    fn change(&self, change: &mut dyn FnMut(&mut Facts));
}

/// Looks at a call from outside; may change what it sees, or stop the call.
pub trait Hook {
    /// Its name, for errors.
    fn name(&self) -> &str;
    /// Whether it has something to say there.
    fn is_at(&self, point: Point) -> bool;
    /// Is given a value, as JSON text, and answers with what is to change in it; null changes nothing. An error stops
    /// the call.
    fn at<'a>(&'a self, point: Point, given: &str, run: HookRun<'a>) -> Local<'a, Result<Value>>;
}

/// Where a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// With the input, before the first model call.
    OnCall,
    /// With the instructions, once a call.
    SystemPrompt,
    /// With a request.
    BeforeModel,
    /// With an answer.
    AfterModel,
    /// With a tool's name and input.
    BeforeTool,
    /// With a tool's result.
    AfterTool,
    /// With the outcome, once it is saved.
    OnEnd,
}

impl Point {
    /// Every point.
    pub const ALL: &'static [Point] = &[
        Point::OnCall,
        Point::SystemPrompt,
        Point::BeforeModel,
        Point::AfterModel,
        Point::BeforeTool,
        Point::AfterTool,
        Point::OnEnd,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Point::OnCall => "onCall",
            Point::SystemPrompt => "systemPrompt",
            Point::BeforeModel => "beforeModel",
            Point::AfterModel => "afterModel",
            Point::BeforeTool => "beforeTool",
            Point::AfterTool => "afterTool",
            Point::OnEnd => "onEnd",
        }
    }
}

/// The call that a hook looks at.
#[derive(Clone, Copy)]
pub struct HookRun<'a> {
    /// The call, as its caller knows it.
    pub tag: u32,
    /// The tool call, where it is about one.
    pub tool_call_id: &'a str,
    /// The conversation, where a request is about to be made.
    pub messages: &'a [Rc<Message>],
    /// What of it somebody outside may already have.
    pub lineage: &'a Lineage,
}

/// Time and chance: the only doors to both.
pub trait Host {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> f64;
    /// Fills the bytes with chance.
    fn random(&self, bytes: &mut [u8]);
    /// Waits.
    fn sleep(&self, ms: u64) -> Local<'static, ()>;
}

/// One holder of a name at a time, also across tabs where the host can do that.
pub trait Lock {
    /// Waits for the name; dropping what it answers with lets go of it.
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>>;
}

/// A name that is held until this is dropped.
pub trait Held {}
