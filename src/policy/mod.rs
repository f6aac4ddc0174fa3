//! Rules that look at values and answer with a value.

pub mod compaction;
pub mod eviction;
pub mod failure;
pub mod memory;
pub mod pattern;
pub mod permission;
pub mod plan;
pub mod redact;
pub mod retry;
pub mod retry_after;
pub mod summary;
pub mod tokens;
