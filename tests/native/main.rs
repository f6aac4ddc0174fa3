//! The stories that are quick: decisions, stores, the driver, the architecture, the contract.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod agentscope;
mod approval;
mod architecture;
mod aside;
mod branches;
mod cache;
mod chunks;
mod compaction;
mod compaction_faults;
mod contract;
mod dialects;
mod ending;
mod engine;
mod eviction;
mod failure;
mod flaws;
mod gate;
mod groups;
mod head;
mod hooks;
mod json;
mod key;
mod leases;
mod listing;
mod live;
mod matrix;
mod memory;
mod message;
mod open;
mod output;
mod permission;
mod plan;
mod repair;
mod resend;
mod run;
mod schema;
mod search;
mod sessions;
mod skills;
mod steps;
mod stores;
mod subagents;
mod support;
mod tasks;
mod terms;
mod users;
mod window;
mod workspace;
