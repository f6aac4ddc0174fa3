//! Lockgate: one agent, many sessions, each behind its own gate, nothing said ever lost.
//!
//! The map, in reading order:
//!
//! | module | what it is |
//! |---|---|
//! | [`error`], [`future`], [`json`] | one error; futures of one thread; reading JSON by hand |
//! | [`message`], [`event`], [`state`], [`slot`] | data: what is said, seen, kept, and whose it is |
//! | [`agentscope`] | the reference's own state document, read and written whole |
//! | [`run`] | decides what a call does next; start here to understand the loop |
//! | [`policy`] | rules that look at values and answer with a value |
//! | [`port`] | what the engine asks of the world, on one page |
//! | [`model`], [`store`], [`tool`] | what is built on the ports |
//! | [`engine`] | does what was decided; the only place that waits |
//! | `wasm` | the border to JavaScript |
//!
//! What is absent, and kept so by `tests/native/architecture.rs`:
//!
//! - `run` and `policy` know no future, no trait object, no clock and no chance.
//! - Only `wasm` knows JavaScript, and nothing uses `wasm`.
//! - Nothing is `Send`, nothing is spawned, there is no runtime: a call moves when it is pulled.
//! - There is one target `cfg`, below, and no `unsafe`.

pub mod agentscope;
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
pub mod slot;
pub mod state;
pub mod store;
pub mod tool;

#[cfg(target_arch = "wasm32")]
pub mod wasm;
