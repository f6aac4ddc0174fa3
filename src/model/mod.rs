//! Models that need nothing but a port.

#[cfg(feature = "testing")]
pub mod scripted;
