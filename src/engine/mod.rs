//! The engine does what `run/` and `policy/` decide. It alone decides what to wait for, and for how long.
//!
//! One [`Agent`] serves many sessions. In memory it keeps only a cache of sessions, and turns whose save has failed.
//!
//! Where to start reading: `agent.rs` lists the public methods. A call begins in `driver/begin.rs`, passes the stations
//! in `driver/mod.rs`, and talks to the model in `turn/mod.rs`. `parts.rs` lists the parts that all calls of an agent
//! share.
//!
//! An example with a tool that uses an attribute of the call, a tool whose result comes from outside, and a hook:
//!
//! ```
//! # use std::{cell::Cell, future::{pending, ready}, rc::Rc, task::{Context, Poll, Waker}};
//! # use lockgate::{error::Result, future::Local, message::Block, store::backend::memory_store::MemoryStore};
//! # use lockgate::model::scripted::{Line, ScriptedModel};
//! # use serde_json::{Value, json};
//! # struct Clock(Cell<u8>);
//! # impl lockgate::port::Host for Clock {
//! #     fn now_ms(&self) -> f64 { 0.0 }
//! #     fn random(&self, bytes: &mut [u8]) { bytes.fill_with(|| { self.0.set(self.0.get().wrapping_add(7)); self.0.get() }) }
//! #     fn sleep(&self, _: u64) -> Local<'static, ()> { Box::pin(pending()) }
//! # }
//! # fn block_on<T>(future: impl Future<Output = T>) -> T {
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) { return value; }
//! #     }
//! # }
//! # let model = ScriptedModel::new([
//! #     Line::calls_all(&[("c1", "find", json!({})), ("c2", "sign", json!({}))]),
//! #     Line::says("found and signed"),
//! # ]);
//! use lockgate::engine::{Agent, RuntimeContext};
//! use lockgate::port::{Hook, HookRun, Point, Tool, ToolRun, ToolSpec};
//!
//! struct Orders(&'static str);
//!
//! struct Office(Rc<ToolSpec>);
//!
//! impl Tool for Office {
//!     fn spec(&self) -> &Rc<ToolSpec> {
//!         &self.0
//!     }
//!     fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
//!         let found = run.attributes.of::<Orders>().map_or("nothing", |orders| orders.0);
//!         Box::pin(ready(Ok(vec![Block::text(found)])))
//!     }
//! }
//!
//! struct Watch(Cell<usize>);
//!
//! impl Hook for Watch {
//!     fn name(&self) -> &str {
//!         "watch"
//!     }
//!     fn is_at(&self, point: Point) -> bool {
//!         point == Point::BeforeTool
//!     }
//!     fn at<'a>(&'a self, _: Point, _: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
//!         // The hook sees the state of the call. Null means: do not change the tool's input.
//!         self.0.set(run.desk.state().map_or(0, |state| state.context.len()));
//!         Box::pin(ready(Ok(Value::Null)))
//!     }
//! }
//!
//! let find = ToolSpec::new("find", "finds an order", json!({ "type": "object" }));
//! let sign = ToolSpec::new("sign", "signs it", json!({ "type": "object" }));
//! let watch = Rc::new(Watch(Cell::new(0)));
//! let agent = Agent::builder()
//!     .name("clerk")
//!     .tool(Rc::new(Office(Rc::new(find))))
//!     .tool(Rc::new(Office(Rc::new(ToolSpec { external: true, ..sign }))))
//!     .hook(Rc::clone(&watch) as Rc<dyn Hook>)
//! #   .model(model)
//! #   .store(Rc::new(MemoryStore::new()))
//! #   .host(Rc::new(Clock(Cell::new(0))))
//!     .build()?;
//!
//! let context = || RuntimeContext::new("alice", "s1").with(Orders("order 17"));
//! let mut call = agent.call("sign my order", context())?;
//! let reply = block_on(call.finish()).map_err(|failed| failed.error)?;
//! assert_eq!(reply.asks[0].name, "sign");
//! assert_eq!(watch.0.get(), 2, "the question, and the answer that calls the tools");
//!
//! let signed = json!({ "toolCallId": "c2", "output": "signed by Alice" });
//! let mut call = agent.confirm(vec![signed], context())?;
//! let reply = block_on(call.finish()).map_err(|failed| failed.error)?;
//! assert_eq!(reply.text, "found and signed");
//!
//! // Nothing to interrupt: no call runs. Nothing to resume: no turn was interrupted.
//! assert!(!agent.interrupt(call.slot(), Vec::new()));
//! assert!(block_on(agent.resume(context())?.finish()).is_err());
//! # Ok::<(), lockgate::error::Error>(())
//! ```

mod agent;
mod agent_for_caller;
mod background;
mod builder;
mod built_in_tools;
mod call;
mod compaction;
mod driver;
mod instructions;
mod memory;
mod models;
mod options;
mod parts;
mod session;
mod stamp;
mod subagent;
mod tool_list;
mod turn;

pub use agent::Agent;
pub use builder::Builder;
pub use call::Call;
pub use call::cancel::{Cancel, Cause};
pub use call::gate::{Gate, Ticket};
pub use call::live::{Live, Shown};
pub use call::outbox::Outbox;
pub use call::outcome::{Ended, Failed};
pub use call::request::{CallRequest, RuntimeContext, UserInput};
pub use compaction::inspect::{ContextReport, Part};
pub use models::Counter;
pub use options::{Bounds, CheckpointRate, Durability, Options, Overlap, Subagent, Timeouts};
pub use session::cache::Cache;
pub use session::transfer::Format;
pub use subagent::children::Child;
pub use tool_list::ToolInfo;
