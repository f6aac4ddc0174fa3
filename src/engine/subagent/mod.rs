//! Subagents: calls of the same agent, in sessions of their own, that another call starts.
//!
//! A child runs together with the call that started it. When that call has ended, the child continues as background
//! work. Its task is a task record of the parent session. The result of the task is in the child's own log, and is
//! reported to the parent once: see `report.rs`.

pub(in crate::engine) mod children;
pub(in crate::engine) mod kinds;
pub(in crate::engine) mod report;
pub(in crate::engine) mod role;
pub(in crate::engine) mod tools;
