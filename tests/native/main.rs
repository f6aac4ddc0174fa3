//! The quick tests: decisions, stores, the driver, the architecture, the contract.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod architecture;
mod call;
mod compaction;
mod contract;
mod data;
mod faults;
mod memory;
mod model;
mod session;
mod store;
mod subagent;
mod support;
mod turn;
mod workspace;
