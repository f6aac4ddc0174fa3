//! Lockgate: one agent, many sessions, each behind its own gate, nothing said ever lost.
//!
//! The map, in reading order:
//!
//! | module | what it is |
//! |---|---|
//! | [`error`], [`future`], [`json`] | one error; futures of one thread; reading JSON by hand |
//! | [`message`], [`event`], [`state`], [`slot`], [`attributes`], [`spec`] | data: what is said, seen, kept, whose it is, what a caller adds, and what is known of a tool |
//! | [`agentscope`] | the reference's own state document, read and written whole |
//! | [`run`] | decides what a call does next; start here to understand the loop |
//! | [`policy`] | rules that look at values and answer with a value |
//! | [`port`] | what the engine asks of the world, on one page |
//! | [`model`], [`store`], [`tool`] | what is built on the ports |
//! | [`engine`] | does what was decided; the only place that waits |
//! | `wasm` | the border to JavaScript |
//! | [`mutants`] | bugs for the simulation to find, in no build but that of the tests |
//!
//! What is absent, and kept so by `tests/native/architecture.rs`:
//!
//! - `run` and `policy` know no future, no trait object, no clock and no chance.
//! - Only `wasm` knows JavaScript, and nothing uses `wasm`.
//! - Nothing is `Send`, nothing is spawned, there is no runtime: a call moves when it is pulled.
//! - There is one target `cfg`, below, and no `unsafe`.
//!
//! From Rust, on any executor of one thread (a call moves when it is asked for its next event):
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
//! use lockgate::store::memory::MemoryStore;
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
pub mod mutants;
pub mod policy;
pub mod port;
pub mod run;
pub mod slot;
pub mod spec;
pub mod state;
pub mod store;
pub mod tool;

#[cfg(target_arch = "wasm32")]
pub mod wasm;
