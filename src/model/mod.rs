//! Models that need nothing but a port: providers' dialects over [`Http`](crate::port::Http).
//!
//! A request goes through [`transcript`] (whatever happened to a conversation, what is sent is valid), is written by
//! the dialect ([`openai`], [`anthropic`], [`gemini`]) and sent by [`provider`]; what comes back is cut into
//! [`frames`] and read by the same dialect as deltas.

pub mod anthropic;
pub mod frames;
pub mod gemini;
pub mod heard;
pub mod openai;
pub mod provider;
#[cfg(feature = "testing")]
pub mod scripted;
pub mod transcript;
mod windows;
pub mod wire;

pub use windows::window_of;

/// Which language a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Chat completions, of OpenAI and of all who are compatible with it.
    OpenAi,
    /// Messages, of Anthropic.
    Anthropic,
    /// generateContent, of Google.
    Gemini,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Dialect] = &[Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini];

    /// The dialect of this name.
    pub fn named(name: &str) -> Option<Dialect> {
        match name {
            "openai" => Some(Dialect::OpenAi),
            "anthropic" => Some(Dialect::Anthropic),
            "gemini" => Some(Dialect::Gemini),
            _ => None,
        }
    }
}
