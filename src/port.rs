//! What the engine asks of the world, on one page. Everything here stays on its thread.

use std::rc::Rc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::error::Result;
use crate::future::Local;
pub use crate::message::Lineage;
use crate::message::{Block, Delta, Message};
use crate::slot::Slot;
pub use crate::spec::{Effect, Opinion, Own, ToolSpec};
use crate::state::{AgentState, Facts};

/// Keeps records under keys, and changes them all at once or not at all.
///
/// Keys come ready-encoded: parts of `[a-z0-9.-]` joined by `/`, at most 512 bytes. Values are bytes. The first two parts
/// are whose the record is: all keys and prefixes of a batch have the same two.
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
    /// The largest value it takes, if there is a limit; larger ones are cut above it.
    pub max_value_bytes: Option<usize>,
}

impl Capabilities {
    /// Those of a store that keeps every rule and takes values of any size.
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

/// Answers, piece by piece.
pub trait Model {
    /// Its name, as events of a call show it.
    fn id(&self, tag: u32) -> String;
    /// How many tokens it takes, question and answer together, if that is known.
    fn window(&self, _tag: u32) -> Option<u64> {
        None
    }
    /// Whether it keeps to a form by itself ([`Request::form`]), beside tools or without.
    fn keeps_form(&self, _tag: u32, _beside_tools: bool) -> bool {
        false
    }
    /// Begins an answer. An error here means that nothing of it was seen.
    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>>;
}

/// An answer under way; dropping it cancels the request.
pub trait Deltas {
    /// All deltas that have arrived, at least one; none at all is the end.
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>>;
}

/// Sends requests to a provider. What is secret never comes here: the host joins the address, the key and the user's
/// own headers, and takes them out of whatever comes back.
pub trait Http {
    /// Sends a request; ready when status and headers are there. Dropping the future, or the answer, aborts it.
    fn send(&self, request: HttpRequest) -> Local<'static, Result<Box<dyn HttpAnswer>>>;
}

/// What is sent to a provider.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Below the base address, such as `/chat/completions`.
    pub path: String,
    /// Headers that hold no secret, in lower case.
    pub headers: &'static [(&'static str, &'static str)],
    /// The header that the key goes into, and what stands there before it.
    pub key_header: (&'static str, &'static str),
    /// JSON.
    pub body: Vec<u8>,
}

/// What a provider answers.
pub trait HttpAnswer {
    /// The status.
    fn status(&self) -> u16;
    /// A header, by its name in lower case.
    fn header(&self, name: &str) -> Option<String>;
    /// The bytes that have arrived, at least one; none at all is the end.
    fn next(&mut self) -> Local<'_, Result<Vec<u8>>>;
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
    /// The form that the answer is to have, as JSON Schema of an object; only for a model that keeps to it by itself.
    pub form: Option<&'a Value>,
}

/// Does something for the model.
pub trait Tool {
    /// What a model is told of it.
    fn spec(&self) -> &Rc<ToolSpec>;
    /// What it says of an input before it runs, and which of these contents of rules fit that input. An error denies it.
    fn check<'a>(&'a self, _run: ToolRun<'a>, _rules: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        Box::pin(std::future::ready(Ok(Opinion::of(self.spec().effect))))
    }
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
    /// What the caller gave.
    pub attributes: &'a Attributes,
    /// The tool call.
    pub tool_call_id: &'a str,
    /// What it is given.
    pub input: &'a Value,
    /// What it may ask of the engine.
    pub desk: &'a dyn Desk,
}

/// What tools and hooks ask of the engine: the state of the call that runs them.
pub trait Desk {
    /// The call's own AgentState as it is now, its changes included; `None` once the tool or hook has ended.
    fn state(&self) -> Option<AgentState>;
    /// The AgentState fields as they are now: those of [`Desk::state`], without the messages.
    fn facts(&self) -> Facts;
    /// Changes them; they are saved with the call.
    fn change(&self, change: &mut dyn FnMut(&mut Facts));
    /// The whole of a result that is only shown in part, by the path that is shown with it; `None` if there is no such.
    fn evicted<'a>(&'a self, path: &'a str) -> Local<'a, Result<Option<String>>>;
    /// Ends the turn behind this tool: its result comes later, from outside. What the tool answers is not used.
    fn suspend(&self, tool_call_id: &str, why: &str);
}

/// What the tools that read the log ask for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The newest sessions, at most so many.
    Sessions(usize),
    /// The last messages of a session, at most so many.
    History(&'a str, usize),
    /// The messages that fit some words best, at most so many.
    Hits(&'a str, usize),
}

/// What was said in a user's sessions.
pub trait Archive {
    /// Looks something up, as JSON, within what this session may see.
    fn look_up<'a>(&'a self, by: &'a Slot, wanted: Wanted<'a>) -> Local<'a, Result<Value>>;
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
    /// What the caller gave.
    pub attributes: &'a Attributes,
    /// The tool call, where it is about one.
    pub tool_call_id: &'a str,
    /// What it may ask of the engine.
    pub desk: &'a dyn Desk,
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
    /// What tells this node from all others that share its store; "" if it has no name of its own.
    fn node(&self) -> String {
        String::new()
    }
    /// Whether another node is known to be gone; one of which nothing is known is not.
    fn is_gone(&self, _node: &str) -> bool {
        false
    }
}

/// One holder of a name at a time, also across tabs where the host can do that.
pub trait Lock {
    /// Waits for the name; dropping what it answers with lets go of it.
    fn acquire<'a>(&'a self, name: &'a str) -> Local<'a, Result<Box<dyn Held>>>;
}

/// A name that is held until this is dropped.
pub trait Held {
    /// Ready if somebody has taken it from us: a holder that does not answer may be robbed.
    fn lost(&self) -> Local<'_, ()> {
        Box::pin(std::future::pending())
    }
}
