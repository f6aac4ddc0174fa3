//! The border to JavaScript. Its rules:
//!
//! - Nothing here makes a promise for a user. Every future is a [`task`] that TypeScript polls from inside a `try`, so
//!   a trap is seen by the one who called, and TypeScript rejects what its users hold.
//! - Exported methods take `&self`, wait for nothing and keep no borrow while JavaScript runs.
//! - JavaScript may throw anything, anywhere: every call out is caught, and what was thrown comes back as `cause`.
//! - Secrets stay outside: no key, token or header value has a way in.

mod agent;
mod call;
mod error;
mod hook;
mod host;
mod indexed_db;
mod js;
mod lock;
mod model;
mod options;
mod store;
mod task;
mod tool;

pub use agent::Agent;
pub use call::Call;
pub use indexed_db::IndexedDb;
pub use store::OpenStore;
#[cfg(feature = "testing")]
pub use task::trap;
pub use task::{Task, install};
