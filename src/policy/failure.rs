//! What a provider's refusal means: tables of words, looked through in order.
//!
//! Providers share no error format, and several say the same thing under different statuses. So everything that is
//! said (status, codes, types, sentences, also those that a gateway wraps) is joined, and the first rule that fits
//! decides. That a request is too large is asked first, and denied first: words about rates look much like it.

use serde_json::Value;

use crate::error::Advice;
use crate::error::ErrorKind;
use crate::policy::pattern;
use crate::policy::retry_after;

/// A refusal, as it came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure<'a> {
    /// The HTTP status; 0 where there is none.
    pub status: u16,
    /// The body, or the words of what was thrown.
    pub body: &'a str,
    /// The header `retry-after`.
    pub retry_after: Option<&'a str>,
    /// The header `retry-after-ms`.
    pub retry_after_ms: Option<&'a str>,
    /// Milliseconds since 1970.
    pub at_ms: f64,
    /// Whether the request is by our own estimate about as large as the model's window.
    pub is_large: bool,
}

/// What it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// What went wrong, if that can be told.
    pub kind: Option<ErrorKind>,
    /// The provider's sentence; empty if there is none.
    pub sentence: String,
    /// What the provider advises.
    pub advice: Advice,
}

/// Words that look like an overflow and are none.
const NO_OVERFLOW: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "throttl",
    "too many requests",
    "resource_exhausted",
    "insufficient_quota",
    "per minute",
    "string_above_max_length",
];

/// Codes and sentences of a request that is larger than the model's window.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "model_context_window_exceeded",
    "prompt is too long",
    "exceed context limit",
    "input is too long",
    "exceeds the context window",
    "context window exceeds limit",
    "input token count*exceeds the maximum",
    "range of input length should be",
    "maximum context length is #",
    "maximum prompt length is #",
    "tokens exceed the configured limit",
    "prompt token count*exceeds the limit of #",
    "prompt (length*longer than the maximum model length",
    "exceeds the available context size",
    "larger than the max context size",
    "context size has been exceeded",
    "longer than the context length",
    "exceeds the context length",
    "exceeds the model's maximum context length",
    "greater than the context length",
    "context length of only #",
    "`inputs` tokens + `max_new_tokens` must be",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "reduce the length of the messages",
    "reduce the length of the input prompt",
];

/// Overflows that tell both the window and the size of the question, and which of their numbers those are.
const NUMBERS: &[(&str, usize, usize)] = &[
    ("maximum context length is # tokens*requested # tokens (# in the messages", 0, 2),
    ("maximum context length is # tokens*requested about # tokens (# of text input", 0, 2),
    ("maximum context length is # tokens*requested # output tokens*contains # input", 0, 2),
    ("maximum context length is # tokens*requested # output tokens*at least # input", 0, 2),
    ("exceed context limit: # + # > #", 2, 0),
    ("must be <= #. given: # `inputs`", 0, 1),
];

/// An answer that is shorter than this is not worth asking for.
const SHORTEST_ANSWER: u64 = 1_024;

/// A file that is named by its address, and that the provider could not load.
const LOST_FILE: &[&str] = &[
    "invalid_image_url",
    "error while downloading",
    "timeout while downloading",
    "failed to download",
    "unable to download",
    "could not download",
    "cannot fetch content from the provided url",
    "url_retrieval_status_error",
    "permission to access the file*or it may not exist",
];

/// What words tell, in order.
const WORDS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::ModelAuth,
        &[
            "insufficient_quota",
            "insufficient balance",
            "insufficient_balance",
            "credit balance is too low",
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api_key_invalid",
            "authentication_error",
            "authentication fails",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
        ],
    ),
    (
        ErrorKind::ModelRefused,
        &[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "datainspectionfailed",
            "content management policy",
        ],
    ),
    (
        ErrorKind::ModelRateLimit,
        &[
            "rate limit",
            "rate_limit",
            "rate-limit",
            "ratelimit",
            "throttl",
            "too many requests",
            "resource_exhausted",
            "per minute",
        ],
    ),
    (
        ErrorKind::ModelOverloaded,
        &[
            "overloaded",
            "api_error",
            "server_error",
            "internal server error",
            "\ninternal\n",
            "\nunavailable\n",
            "deadline_exceeded",
            "service unavailable",
            "insufficient_system_resource",
        ],
    ),
    (
        ErrorKind::ModelNetwork,
        &[
            "fetch failed",
            "failed to fetch",
            "cannot connect to",
            "networkerror",
            "load failed",
            "network connection lost",
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "socket hang up",
        ],
    ),
    (ErrorKind::ModelBadRequest, &["invalid_request_error", "invalid_argument", "not_found_error"]),
];

/// How deep errors are unwrapped: gateways put the errors of others, as text, into their own.
const DEEPEST: u32 = 7;

/// The longest text that is looked through.
const LOOKED_THROUGH: usize = 8_000;

/// What a refusal means.
pub fn meaning(failure: Failure<'_>) -> Meaning {
    let body: Option<Value> = serde_json::from_str(failure.body).ok();
    let mut heard = Heard { status: failure.status, ..Heard::default() };
    match &body {
        Some(body) => heard.look(body, 0),
        None => heard.sentence(failure.body, 0),
    }
    let words = heard.words();
    let without_files = heard.status < 500 && pattern::any(LOST_FILE, &words);
    let advice = |max_tokens| Advice {
        without_files,
        wait_ms: retry_after::wait_ms(retry_after::Said {
            header_ms: failure.retry_after_ms,
            header: failure.retry_after,
            body: body.as_ref(),
            words: &words,
            at_ms: failure.at_ms,
        }),
        max_tokens,
    };
    if is_overflow(&failure, heard.status, &words) {
        let (kind, sentence) = (Some(ErrorKind::ModelContextOverflow), heard.sentence);
        return Meaning { kind, sentence, advice: advice(room(&words)) };
    }
    if without_files {
        let kind = Some(ErrorKind::ModelBadRequest);
        return Meaning { kind, sentence: heard.sentence, advice: advice(None) };
    }
    let told = WORDS.iter().find(|(_, patterns)| pattern::any(patterns, &words));
    let kind = told.map(|(kind, _)| *kind).or_else(|| by_status(heard.status));
    Meaning { kind, sentence: heard.sentence, advice: advice(None) }
}

fn is_overflow(failure: &Failure<'_>, status: u16, words: &str) -> bool {
    if status == 429 || pattern::any(NO_OVERFLOW, words) {
        return false;
    }
    let says_nothing = failure.body.trim().is_empty() && matches!(status, 400 | 413);
    pattern::any(OVERFLOW, words) || (says_nothing && failure.is_large)
}

/// How many tokens are left for an answer, if enough are.
fn room(words: &str) -> Option<u64> {
    NUMBERS.iter().find_map(|(pattern, window, asked)| {
        let numbers = pattern::find(pattern, words)?;
        let room = numbers.get(*window)?.checked_sub(*numbers.get(*asked)?)?;
        (room >= SHORTEST_ANSWER).then_some(room)
    })
}

fn by_status(status: u16) -> Option<ErrorKind> {
    match status {
        401..=403 => Some(ErrorKind::ModelAuth),
        408 => Some(ErrorKind::ModelTimeout),
        409 | 425 | 500..=599 => Some(ErrorKind::ModelOverloaded),
        429 => Some(ErrorKind::ModelRateLimit),
        451 => Some(ErrorKind::ModelRefused),
        400..=499 => Some(ErrorKind::ModelBadRequest),
        _ => None,
    }
}

/// Everything a refusal says.
#[derive(Default)]
struct Heard {
    status: u16,
    codes: String,
    sentence: String,
}

impl Heard {
    /// Collects codes and sentences.
    fn look(&mut self, value: &Value, depth: u32) {
        match value {
            Value::String(text) => self.sentence(text, depth),
            Value::Array(items) => items.iter().take(1).for_each(|it| self.look(it, depth)),
            Value::Object(_) if depth < DEEPEST => {
                for name in ["code", "type", "status", "param", "finish_reason", "stop_reason"] {
                    match value.get(name) {
                        Some(Value::String(code)) => self.code(code),
                        Some(Value::Number(code)) if matches!(self.status, 0 | 200) => {
                            self.status = code.as_u64().map_or(self.status, |it| it as u16);
                        }
                        _ => {}
                    }
                }
                for name in ["message", "msg", "detail", "error", "metadata", "raw", "response"] {
                    if let Some(inner) = value.get(name) {
                        self.look(inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn sentence(&mut self, text: &str, depth: u32) {
        let inner = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str(text));
        match inner {
            Some(Ok(inner)) if depth < DEEPEST => self.look(&inner, depth + 1),
            // The innermost sentence says most: "provider returned error" stands around it.
            _ if !text.trim().is_empty() => {
                self.code(text);
                self.sentence = text.trim().to_owned();
            }
            _ => {}
        }
    }

    fn code(&mut self, text: &str) {
        self.codes.push('\n');
        self.codes.extend(text.chars().take(LOOKED_THROUGH));
    }

    /// In lower case and with single blanks, each code on a line of its own.
    fn words(&self) -> String {
        let mut words = String::with_capacity(self.codes.len() + 1);
        for letter in self.codes.chars() {
            match letter {
                ' ' | '\t' | '\r' if words.ends_with([' ', '\n']) => {}
                '\t' | '\r' => words.push(' '),
                letter => words.push(letter.to_ascii_lowercase()),
            }
        }
        words.push('\n');
        words
    }
}
