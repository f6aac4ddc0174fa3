//! What is built on any store: the keys, the head and the log of a session, and how they are read and committed.

pub mod entry;
mod finish;
pub mod head;
pub mod id;
pub mod info;
pub mod key;
pub mod memory;
mod records;
#[cfg(feature = "testing")]
pub mod rules;
pub mod session;
pub mod sessions;
mod view;

pub use finish::Saved;
pub use sessions::Sessions;
