//! Models of providers: their dialects, over the port [`Http`](crate::port::Http).
//!
//! [`options`] say which model. [`transcript`] makes a valid conversation of the messages. The dialect ([`openai`],
//! [`anthropic`], [`gemini`]) writes the request, and [`provider`] sends it. The reply is split into [`frames`], which the
//! same dialect reads as deltas into a [`reply`].

pub mod anthropic;
mod calls;
mod dialect;
pub mod frames;
pub mod gemini;
mod halves;
pub mod openai;
pub mod options;
mod partial_arguments;
pub mod provider;
pub mod reply;
mod request;
#[cfg(feature = "testing")]
pub mod scripted;
pub mod transcript;
mod windows;
pub mod wire;

pub use dialect::{Dialect, Flavour};
pub use windows::window_of;
