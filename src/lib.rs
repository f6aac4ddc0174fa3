//! Lockgate: one agent serves many sessions. Each session runs one call at a time, and every message is kept in a log.
//!
//! The modules, in reading order:
//!
//! | module | what it is |
//! |---|---|
//! | [`error`], [`future`], [`json`] | the error type; futures for one thread; JSON read and written by hand |
//! | [`message`], [`event`], [`state`], [`slot`], [`attributes`], [`spec`] | data: messages, events, AgentState, slots, values of the caller, descriptions of tools |
//! | [`agentscope`] | the state document of AgentScope Java, read and written |
//! | [`run`] | decides what a turn does next; start here to understand the loop |
//! | [`policy`] | rules: functions from values to a value |
//! | [`port`] | the traits through which the engine uses the outside world, in one file |
//! | [`model`], [`store`], [`tool`] | dialects of providers, the stored format, built-in tools: built on the ports |
//! | [`engine`] | carries out the decisions; only the engine decides what to wait for |
//! | `wasm` | the border to JavaScript |
//! | [`seams`] | the places where the simulation adds bugs on purpose; no effect in other builds |
//!
//! What the code never contains (checked by `tests/native/architecture.rs`):
//!
//! - `run` and `policy` use no futures, trait objects, clock or random numbers.
//! - Only `wasm` uses JavaScript, and no other module uses `wasm`.
//! - Nothing is `Send`, nothing is spawned, and there is no runtime: a call makes progress only when it is polled.
//! - There is only one target `cfg`, below, and no `unsafe`.
//!
//! An example in Rust. It works on any single-threaded executor: a call makes progress when its next event is polled.
//!
//! ```
//! # use std::{future::{pending, ready}, rc::Rc, task::{Context, Poll, Waker}};
//! # use lockgate::{error::Result, future::Local, message::Delta, port::{Deltas, Host, Model, Request}};
//! # struct Parrot;
//! # struct Words(Vec<Delta>);
//! # impl Model for Parrot {
//! #     fn id(&self, _: u32) -> String { "parrot".into() }
//! #     fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
//! #         let said = request.messages.last().map(|message| message.text()).unwrap_or_default();
//! #         Box::pin(ready(Ok(Box::new(Words(vec![Delta::Text(said)])) as Box<dyn Deltas>)))
//! #     }
//! # }
//! # impl Deltas for Words {
//! #     fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> { Box::pin(ready(Ok(std::mem::take(&mut self.0)))) }
//! # }
//! # struct Clock(std::cell::Cell<u8>);
//! # impl Host for Clock {
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
//! use lockgate::engine::{Agent, RuntimeContext};
//! use lockgate::store::backend::memory_store::MemoryStore;
//!
//! let agent = Agent::builder()
//!     .name("helper")
//!     .model(Rc::new(Parrot))
//!     .store(Rc::new(MemoryStore::new()))
//!     .host(Rc::new(Clock(Default::default())))
//!     .build()?;
//!
//! let mut call = agent.call("hello", RuntimeContext::new("alice", "s1"))?;
//! let reply = block_on(call.finish()).map_err(|failed| failed.error)?;
//! assert_eq!(reply.text, "hello");
//! assert_eq!(block_on(agent.history(call.slot(), None, 10))?.len(), 2);
//! # Ok::<(), lockgate::error::Error>(())
//! ```

pub mod agentscope;
pub mod attributes;
pub mod engine;
pub mod error;
pub mod event;
pub mod future;
pub mod json;
pub mod message;
pub mod model;
pub mod policy;
pub mod port;
pub mod run;
pub mod seams;
pub mod slot;
pub mod spec;
pub mod state;
pub mod store;
pub mod tool;

#[cfg(target_arch = "wasm32")]
pub mod wasm;
