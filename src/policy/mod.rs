//! Rules that look at values and answer with a value.

pub mod retry;
