//! Conversations that outgrow the model's window: summaries and evicted results.

mod eviction;
mod overflow;
mod revise;
mod summaries;
mod summary_faults;
pub mod window;
