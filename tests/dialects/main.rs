//! Properties of any answer and any history, in every dialect, tested with random inputs for a long time
//! (`LOCKGATE_SEED` replays the printed seed).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test that meets something unexpected is to fail there"
)]

mod chance;
mod halves;
mod histories;
mod streams;
mod wire;
