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
mod architecture;
mod cache;
mod contract;
mod ending;
mod engine;
mod gate;
mod groups;
mod hooks;
mod key;
mod message;
mod output;
mod run;
mod schema;
mod sessions;
mod stores;
mod support;
