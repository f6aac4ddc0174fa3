//! Models that need nothing but a port.

pub mod demo;
#[cfg(feature = "testing")]
pub mod scripted;
