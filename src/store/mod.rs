//! What is built on any store: the keys, the head and the log of a session, and how they are read and committed.

pub mod branch;
pub mod capable;
pub mod chunks;
pub mod entry;
pub mod files;
mod finish;
pub mod fork;
pub mod head;
pub mod id;
pub mod info;
pub mod input;
pub mod key;
pub mod lease;
mod look;
pub mod mark;
pub mod memory;
pub(crate) mod path;
mod records;
mod repair;
mod resend;
mod reshape;
#[cfg(feature = "testing")]
pub mod rules;
pub mod search;
pub mod session;
pub mod sessions;
mod share;
pub mod task;
mod turn;
pub mod users;
mod view;

pub use finish::{OnConflict, Saved};
pub use sessions::Sessions;
pub use share::Kept;
