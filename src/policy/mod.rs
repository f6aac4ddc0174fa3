//! Pure decisions: permission, plan mode, compaction, summaries, eviction, token estimates, retry, the meaning of provider
//! errors, what a rejected turn leaves out, memory, and the redaction of secrets.

pub mod compaction;
pub mod eviction;
pub mod failure;
pub mod memory;
mod overflow;
pub mod pattern;
pub mod permission;
pub mod plan;
pub mod redact;
pub mod rejection;
pub mod retry;
pub mod retry_after;
pub mod revision;
pub mod summary;
pub mod tokens;
