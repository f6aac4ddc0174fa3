//! Which errors of a model are retried, and when.

use crate::error::Error;
use crate::error::ErrorKind;

/// How often to retry, and how long to wait between attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The first wait.
    pub initial_ms: u64,
    /// The longest wait.
    pub max_ms: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Retries { attempts: 3, initial_ms: 1_000, max_ms: 30_000 }
    }
}

/// The wait before the next attempt; `None` if there is none.
///
/// `attempt` starts at 1. `chance` is a random number in 0..1 that spreads the waits over half of their length. A wait
/// that the provider asks for is obeyed. The caller retries only if no delta of the reply was seen, because a later
/// retry would repeat text.
pub fn wait_ms(retries: Retries, attempt: u32, error: &Error, chance: f64) -> Option<u64> {
    let passing = matches!(
        error.kind(),
        ErrorKind::ModelRateLimit
            | ErrorKind::ModelOverloaded
            | ErrorKind::ModelTimeout
            | ErrorKind::ModelNetwork
            | ErrorKind::ModelTruncated
    );
    if !passing || attempt >= retries.attempts {
        return None;
    }
    if let Some(asked) = error.advice().wait_ms {
        return Some(asked);
    }
    let doubled = retries.initial_ms.saturating_mul(1 << attempt.saturating_sub(1).min(20));
    let longest = doubled.min(retries.max_ms);
    Some(longest / 2 + (longest as f64 / 2.0 * chance) as u64)
}

/// Whether another model may succeed. Not if the request is too large, if a filter stopped the reply, or if the model
/// is not the reason for the error.
pub fn falls_back(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ModelAuth
            | ErrorKind::ModelRateLimit
            | ErrorKind::ModelOverloaded
            | ErrorKind::ModelBadRequest
            | ErrorKind::ModelTruncated
            | ErrorKind::ModelTimeout
            | ErrorKind::ModelNetwork
            | ErrorKind::ModelFailed
    )
}
