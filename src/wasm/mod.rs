//! The border to JavaScript. Its rules:
//!
//! - Nothing here makes a promise for a user. Every future is a [`task`] that TypeScript polls from inside a `try`, so
//!   a trap is seen by the one who called, and TypeScript rejects what its users hold.
//! - Exported methods take `&self`, wait for nothing and keep no borrow while JavaScript runs.
//! - JavaScript may throw anything, anywhere: every call out is caught, and what was thrown comes back as `cause`.
//! - Secrets stay outside: no key, token or header value has a way in.

mod agent;
mod branch;
mod call;
mod child;
mod database;
mod error;
mod files;
mod hook;
mod host;
mod http;
mod indexed_db;
mod js;
mod local_storage;
mod lock;
mod model;
mod options;
mod permissions;
mod plan;
mod request;
mod search;
mod store;
mod task;
mod tool;
mod transcript;

pub use agent::Agent;
pub use call::Call;
pub use indexed_db::IndexedDb;
pub use local_storage::LocalStore;
pub use store::OpenStore;
pub use task::{Task, install};
#[cfg(feature = "testing")]
pub use task::{trap, trap_later};
pub use transcript::{check_transcript, repair_transcript};
