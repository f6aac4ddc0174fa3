//! Classifies the errors of providers with tables of words, in order.
//!
//! Providers share no error format, and several report the same error with different HTTP statuses. So all texts of the
//! error (status, codes, types, messages, also those wrapped by a gateway) are joined, and the first rule that matches
//! decides. The rule for too large requests comes first (`overflow.rs`).

use serde_json::Value;

use crate::error::Advice;
use crate::error::ErrorKind;
use crate::policy::overflow;
use crate::policy::pattern;
use crate::policy::retry_after;

/// An error as the provider sent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure<'a> {
    /// The HTTP status; 0 if there is none.
    pub status: u16,
    /// The body, or the text of what was thrown.
    pub body: &'a str,
    /// The header `retry-after`.
    pub retry_after: Option<&'a str>,
    /// The header `retry-after-ms`.
    pub retry_after_ms: Option<&'a str>,
    /// Milliseconds since 1970.
    pub at_ms: f64,
    /// Whether our own estimate says that the request is about as large as the model's window.
    pub is_large: bool,
}

/// The classified error.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// The kind of the error, if it is known.
    pub kind: Option<ErrorKind>,
    /// What the provider does, after "the provider".
    pub verdict: &'static str,
    /// What to do next, if it is known.
    pub hint: Option<&'static str>,
    /// The provider's message; empty if there is none.
    pub sentence: String,
    /// The advice of the provider.
    pub advice: Advice,
}

/// Messages that mean that the provider could not load a file from its URL.
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

/// Words that mean that the account has no credit.
const PAYMENT: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "insufficient_balance",
    "credit balance is too low",
];

/// Words that mean that the key is wrong.
const KEY: &[&str] = &[
    "invalid api key",
    "invalid_api_key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "authentication_error",
    "authentication fails",
    "unauthenticated",
    "unauthorized",
];

/// Words that mean that the account may not do this.
const ACCESS: &[&str] = &["permission_error", "permission_denied"];

/// Words that mean that the provider has too much to do.
const LOAD: &[&str] = &["overloaded", "capacity", "insufficient_system_resource"];

/// Words and the error kind that they mean, in order.
const WORDS: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::ModelAuth, PAYMENT),
    (ErrorKind::ModelAuth, KEY),
    (ErrorKind::ModelAuth, ACCESS),
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
    (ErrorKind::ModelRateLimit, overflow::RATE),
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

/// How deep errors are unwrapped. Gateways put the errors of other providers as text into their own.
const DEEPEST: u32 = 7;

/// The longest text that is searched.
const LOOKED_THROUGH: usize = 8_000;

/// Classifies an error.
pub fn meaning(failure: Failure<'_>) -> Meaning {
    let body: Option<Value> = serde_json::from_str(failure.body).ok();
    let mut refusal = RefusalText { status: failure.status, ..RefusalText::default() };
    match &body {
        Some(body) => refusal.look(body, 0),
        None => refusal.sentence(failure.body, 0),
    }
    let words = refusal.words();
    let without_files = refusal.status < 500 && pattern::any(LOST_FILE, &words);
    let advice = |(window, max_tokens)| Advice {
        without_files,
        window,
        wait_ms: retry_after::wait_ms(retry_after::RetryHints {
            header_ms: failure.retry_after_ms,
            header: failure.retry_after,
            body: body.as_ref(),
            words: &words,
            at_ms: failure.at_ms,
        }),
        max_tokens,
    };
    if is_overflow(&failure, refusal.status, &words) {
        let kind = Some(ErrorKind::ModelContextOverflow);
        let (verdict, hint) = verdict(kind, refusal.status, &words);
        let advice = advice(overflow::sizes(&words));
        return Meaning { kind, verdict, hint, sentence: refusal.sentence, advice };
    }
    let told = || WORDS.iter().find(|(_, patterns)| pattern::any(patterns, &words));
    let kind = match without_files {
        true => Some(ErrorKind::ModelBadRequest),
        false => told().map(|(kind, _)| *kind).or_else(|| by_status(refusal.status)),
    };
    let (verdict, hint) = verdict(kind, refusal.status, &words);
    let advice = advice((None, None));
    Meaning { kind, verdict, hint, sentence: refusal.sentence, advice }
}

/// What the provider does, and what to do next. One kind has several reasons, and each needs something else.
fn verdict(
    kind: Option<ErrorKind>,
    status: u16,
    words: &str,
) -> (&'static str, Option<&'static str>) {
    let says = |patterns| pattern::any(patterns, words);
    let later = Some("try again later, or give a fallbackModel");
    match kind {
        Some(ErrorKind::ModelAuth) => {
            if says(PAYMENT) || (status == 402 && !says(KEY)) {
                ("asks for payment", Some("add credit to the account, or use another model"))
            } else if !says(KEY) && (status == 403 || says(ACCESS)) {
                ("refuses access", Some("check that the account may use this model from here"))
            } else {
                ("refuses the key", Some("check apiKey, and that the account may use this model"))
            }
        }
        Some(ErrorKind::ModelRateLimit) => ("limits the rate of requests", later),
        Some(ErrorKind::ModelOverloaded) => {
            let verdict = match status {
                _ if says(LOAD) => "is overloaded",
                529 => "is overloaded",
                503 => "is unavailable",
                502 => "is not reached by its gateway",
                504 | 524 => "did not answer in time",
                409 | 425 => "asks for another attempt",
                _ => "has an internal error",
            };
            (verdict, later)
        }
        Some(ErrorKind::ModelTimeout) => ("did not answer in time", later),
        Some(ErrorKind::ModelContextOverflow) => {
            let hint = "turn compaction on, or start a new session";
            ("refuses the request as too large", Some(hint))
        }
        Some(ErrorKind::ModelRefused) => ("has blocked the answer", Some("rephrase the message")),
        Some(ErrorKind::ModelBadRequest) => {
            ("refuses the request", Some("check model, baseUrl and generate"))
        }
        _ => ("refuses the request", None),
    }
}

fn is_overflow(failure: &Failure<'_>, status: u16, words: &str) -> bool {
    let says_nothing = failure.body.trim().is_empty() && matches!(status, 400 | 413);
    overflow::is_said(status, words) || (says_nothing && failure.is_large)
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

/// All texts of an error.
#[derive(Default)]
struct RefusalText {
    status: u16,
    codes: String,
    sentence: String,
}

impl RefusalText {
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
                if let Some(window) = value.get("n_ctx").and_then(Value::as_u64) {
                    self.code(&format!("n_ctx: {window}"));
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
            // The innermost message says most. Outer ones are like "provider returned error".
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

    /// In lower case, with single spaces, and each code on its own line.
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
