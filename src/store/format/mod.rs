//! The format on disk: what the records of a session hold, and how they are read from JSON.

pub mod entry;
pub mod head;
pub mod input;
pub mod lease;
pub(in crate::store) mod memory_mark;
pub mod partial;
pub mod session_info;
pub mod task;
pub mod view;
