//! Which failures of a model deserve another try, and when.

use crate::error::Error;
use crate::error::ErrorKind;

/// How often, and how long between.
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

/// How long to wait before the next attempt, or `None` if there is to be none.
///
/// `attempt` counts from 1; `chance` is a random number in 0..1 that spreads the waits over half of their length.
/// What the provider asks for is honoured. The caller asks only while nothing of the answer has been seen: a replay
/// after that would say things twice.
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

/// Whether another model may do better: not where the request is too large, or a filter has stopped the answer, or
/// where the failure is not the model's.
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
