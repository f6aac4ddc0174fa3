//! Stores that implement the port: one in memory, chunks above a store with small values, and what every store must do.

pub mod capabilities;
pub mod chunks;
pub mod memory_store;
#[cfg(feature = "testing")]
pub mod rules;
