//! Sessions and files on top of any store: their keys and formats, and how they are read and committed.
//!
//! From the bottom up: [`id`] and [`keys`] name records. [`format`](mod@format) says what records hold. `log` follows
//! paths through the entries of a session, `rejected` finds what providers have rejected on them, and `records` reads and
//! commits with a deadline. [`session`] is one session
//! in memory: it decides what a commit contains and never waits. [`operations`] loads, saves and lists sessions,
//! [`transfer`] copies them;
//! [`search`] finds messages, [`workspace`] keeps files, [`tasks`] keeps tasks of child sessions, and [`memory_mark`] says
//! how far a session was searched for facts. [`backend`] is the other side: stores that implement the port, and the rules
//! that every store must follow.

pub mod backend;
pub mod format;
mod history;
mod host_values;
pub mod id;
pub mod keys;
mod log;
pub mod memory_mark;
pub mod operations;
mod records;
mod rejected;
mod seal;
pub mod search;
pub mod session;
pub mod tasks;
pub mod transfer;
pub mod workspace;

pub use operations::{AnsweredInput, LeaseState, OnConflict, PartialAnswer, Saved, Sessions};
