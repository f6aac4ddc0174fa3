//! What must hold for any answer and any history, in every dialect: long-running, seeded and replayable
//! (`LOCKGATE_SEED` replays what is printed).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod chance;
mod histories;
mod streams;
mod wire;
