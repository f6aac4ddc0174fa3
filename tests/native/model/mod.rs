//! Providers: their requests and their refusals.

mod dialects;
mod failure;
