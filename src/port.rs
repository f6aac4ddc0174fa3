//! The ports: the traits through which the engine uses the outside world. Everything here stays on its thread.

use std::rc::Rc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::error::Result;
use crate::future::Local;
pub use crate::message::Lineage;
use crate::message::{Block, Delta, Message};
use crate::slot::Slot;
pub use crate::spec::{Effect, Opinion, OwnDecision, ToolSpec};
use crate::state::{AgentState, Facts};

/// Keeps records under keys, and changes them all at once or not at all.
///
/// Keys are already encoded: parts of `[a-z0-9.-]` joined by `/`, at most 512 bytes. Values are bytes. The first two
/// parts name the owner of the record. All keys and prefixes of a batch have the same owner.
pub trait Store {
    /// What this store guarantees. The engine refuses a store that guarantees too little.
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

/// Which part of a listing is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only keys after this one.
    pub after: Option<String>,
    /// The most records to return.
    pub limit: Option<usize>,
    /// The values may be left empty.
    pub keys_only: bool,
}

/// A change of several records.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The key whose revision must still be this one (`None`: it must be absent).
    pub expect: Option<(String, Option<String>)>,
    /// The revision that every written record gets.
    pub revision: String,
    /// Keys to remove.
    pub remove: Vec<String>,
    /// Prefixes whose keys are removed.
    pub remove_prefix: Vec<String>,
    /// Records to put, after the removes.
    pub put: Vec<(String, Vec<u8>)>,
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All of it is applied.
    Done,
    /// The expected revision has moved; nothing is applied.
    Conflict,
}

/// What a store guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A batch is all or nothing.
    pub atomic: bool,
    /// `expect` is checked in the same step.
    pub compare_and_set: bool,
    /// Who else may write to it.
    pub shared: Shared,
    /// The largest value it accepts, if there is a limit. The engine splits larger values into chunks.
    pub max_value_bytes: Option<usize>,
}

impl Capabilities {
    /// The capabilities of a store that keeps every rule and accepts values of any size.
    pub const fn whole(shared: Shared) -> Capabilities {
        Capabilities { atomic: true, compare_and_set: true, shared, max_value_bytes: None }
    }
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

/// A language model that streams its reply.
pub trait Model {
    /// Its name, as events of a call show it.
    fn id(&self, tag: u32) -> String;
    /// The size of its context window in tokens (request and reply together), if it is known.
    fn window(&self, _tag: u32) -> Option<u64> {
        None
    }
    /// Whether it supports structured output itself ([`Request::form`]), with tools or without them.
    fn keeps_form(&self, _tag: u32, _beside_tools: bool) -> bool {
        false
    }
    /// Starts a reply. An error here means that no delta of the reply was seen.
    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>>;
}

/// A reply that is being received. Dropping it cancels the request.
pub trait Deltas {
    /// All deltas that have arrived, at least one. An empty list is the end.
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>>;
}

/// Sends requests to a provider. Secrets never reach the engine: the host adds the base URL, the API key and the
/// user's own headers, and removes them from every response.
pub trait Http {
    /// Sends a request. Ready when status and headers have arrived. Dropping the future or the response aborts it.
    fn send(&self, request: HttpRequest) -> Local<'static, Result<Box<dyn HttpAnswer>>>;
}

/// A request to a provider.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The path below the base URL, such as `/chat/completions`.
    pub path: String,
    /// Headers without secrets, in lower case.
    pub headers: &'static [(&'static str, &'static str)],
    /// The header that carries the API key, and the prefix before the key.
    pub key_header: (&'static str, &'static str),
    /// JSON.
    pub body: Vec<u8>,
}

/// The response of a provider.
pub trait HttpAnswer {
    /// The HTTP status.
    fn status(&self) -> u16;
    /// A header, by its name in lower case.
    fn header(&self, name: &str) -> Option<String>;
    /// The bytes that have arrived, at least one. An empty list is the end.
    fn next(&mut self) -> Local<'_, Result<Vec<u8>>>;
    /// No more bytes are needed. The rest of the answer is read in the background, so that its connection can be used
    /// again. An answer that is dropped without this is cancelled.
    fn done(&mut self) {}
}

/// A request to a model.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The session.
    pub slot: &'a Slot,
    /// The number under which the caller knows the call.
    pub tag: u32,
    /// The instructions.
    pub system: &'a str,
    /// The conversation so far.
    pub messages: &'a [Rc<Message>],
    /// Tells which of the messages code outside the engine may already have.
    pub lineage: &'a Lineage,
    /// The tools that it may call.
    pub tools: &'a [Rc<ToolSpec>],
    /// Options such as the temperature, as the caller gave them.
    pub generate: &'a Value,
    /// The JSON Schema of an object that the reply must match. Set only if [`Model::keeps_form`] is true.
    pub form: Option<&'a Value>,
}

/// A tool that the model can call.
pub trait Tool {
    /// The description of the tool, for the model and for the engine.
    fn spec(&self) -> &Rc<ToolSpec>;
    /// Checks an input before the tool runs, and tells which of these rule contents match the input. An error denies
    /// the call.
    fn check<'a>(&'a self, _run: ToolRun<'a>, _rules: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        Box::pin(std::future::ready(Ok(Opinion::of(self.spec().effect))))
    }
    /// Runs the tool. An error becomes a result that the model can read. Dropping the future tells the tool to stop.
    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>>;
}

/// One run of a tool.
#[derive(Clone, Copy)]
pub struct ToolRun<'a> {
    /// The session.
    pub slot: &'a Slot,
    /// The number under which the caller knows the call.
    pub tag: u32,
    /// The attributes that the caller passed.
    pub attributes: &'a Attributes,
    /// The id of the tool call.
    pub tool_call_id: &'a str,
    /// The input of the tool.
    pub input: &'a Value,
    /// Access to the state of the call.
    pub desk: &'a dyn Desk,
}

/// The engine's services for tools and hooks: access to the state of the call that runs them.
pub trait Desk {
    /// The AgentState of the call with its unsaved changes; `None` once the tool or hook has ended.
    fn state(&self) -> Option<AgentState>;
    /// The same state without the messages.
    fn facts(&self) -> Facts;
    /// Changes these facts. The change is saved with the call.
    fn change(&self, change: &mut dyn FnMut(&mut Facts));
    /// The full text of an evicted tool result, by the path that the preview shows; `None` if there is no such result.
    fn evicted<'a>(&'a self, path: &'a str) -> Local<'a, Result<Option<String>>>;
    /// Ends the turn after this tool. The result of the tool call comes later, from outside. The tool's own output is
    /// ignored.
    fn suspend(&self, tool_call_id: &str, why: &str);
}

/// A query of the tools that read the log.
#[derive(Clone, Copy, Debug)]
pub enum SessionQuery<'a> {
    /// The newest sessions, with the most to return.
    Sessions(usize),
    /// The last messages of a session, with the most to return.
    History(&'a str, usize),
    /// The messages that match a query best, with the most to return.
    Hits(&'a str, usize),
}

/// The log of a user's sessions.
pub trait SessionReader {
    /// Answers a query as JSON, limited to what this session may see. With `agent`, the sessions of another agent are
    /// read.
    fn look_up<'a>(
        &'a self,
        by: &'a Slot,
        agent: Option<&'a str>,
        wanted: SessionQuery<'a>,
    ) -> Local<'a, Result<Value>>;
}

/// A hook (middleware) of a call. It can change what it is given, or stop the call.
pub trait Hook {
    /// Its name, for errors.
    fn name(&self) -> &str;
    /// Whether the hook handles this point.
    fn is_at(&self, point: Point) -> bool;
    /// Gets a value as JSON text and returns the changes to it; null changes nothing. An error stops the call.
    fn at<'a>(&'a self, point: Point, given: &str, run: HookRun<'a>) -> Local<'a, Result<Value>>;
}

/// Where in a call a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// With the input, before the first model call.
    OnCall,
    /// With the system prompt, once per call, and again if plan mode is switched in the call.
    SystemPrompt,
    /// With the messages of the next request, to change what is kept of them.
    ReviseContext,
    /// With a request.
    BeforeModel,
    /// With a reply.
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
        Point::ReviseContext,
        Point::BeforeModel,
        Point::AfterModel,
        Point::BeforeTool,
        Point::AfterTool,
        Point::OnEnd,
    ];

    /// Its name in JavaScript.
    pub fn word(self) -> &'static str {
        match self {
            Point::OnCall => "onCall",
            Point::SystemPrompt => "systemPrompt",
            Point::ReviseContext => "reviseContext",
            Point::BeforeModel => "beforeModel",
            Point::AfterModel => "afterModel",
            Point::BeforeTool => "beforeTool",
            Point::AfterTool => "afterTool",
            Point::OnEnd => "onEnd",
        }
    }
}

/// One run of a hook.
#[derive(Clone, Copy)]
pub struct HookRun<'a> {
    /// The number under which the caller knows the call.
    pub tag: u32,
    /// The attributes that the caller passed.
    pub attributes: &'a Attributes,
    /// The id of the tool call at the tool points, otherwise empty.
    pub tool_call_id: &'a str,
    /// Access to the state of the call.
    pub desk: &'a dyn Desk,
    /// The messages of the request at [`Point::BeforeModel`], otherwise empty.
    pub messages: &'a [Rc<Message>],
    /// Tells which of the messages code outside the engine may already have.
    pub lineage: &'a Lineage,
}

/// The only source of time and randomness.
pub trait Host {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> f64;
    /// Fills the bytes with random values.
    fn random(&self, bytes: &mut [u8]);
    /// Waits for this time.
    fn sleep(&self, ms: u64) -> Local<'static, ()>;
    /// The name of this node, unique among the nodes that share the store; empty if the node has no name.
    fn node(&self) -> String {
        String::new()
    }
    /// Whether another node is known to have ended. An unknown node counts as running.
    fn is_gone(&self, _node: &str) -> bool {
        false
    }
}

/// Named locks with one holder at a time, across browser tabs too where the host supports it.
pub trait Lock {
    /// Waits for the lock. Dropping the returned value releases it.
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>>;
    /// Whether the lock is held now, by any holder.
    fn is_held<'a>(&'a self, _name: &'a str) -> Local<'a, Result<bool>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// Tells which calls are alive in this process and its tabs. Leases of other nodes are read from the head.
pub trait Liveness {
    /// Whether one of these calls waits or runs in this process.
    fn is_here(&self, slot: &Slot, call_ids: &[&str]) -> bool;
    /// Whether a lock is held by a call of any tab or agent.
    fn is_locked<'a>(&'a self, name: &'a str) -> Local<'a, Result<bool>>;
}

/// A lock that is held until this value is dropped.
pub trait Held {
    /// Ready when another holder has taken the lock over. That can happen to a holder that does not respond.
    fn lost(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }
}
