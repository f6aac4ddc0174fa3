//! Recognises the refusal of a request that is larger than the model's window, and reads the window from it.
//!
//! Messages about rate limits look similar. So words of rate limits and quotas are excluded first.

use crate::policy::pattern;

/// Words of rate limits and quotas. A limit of tokens for a time or an account is not a limit of the request.
pub(super) const RATE: &[&str] = &[
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "throttl",
    "too many requests",
    "resource_exhausted",
    "per minute",
    "per hour",
    "per day",
    "tokens per",
    "requests per",
    "tokens/",
    "quota",
    "daily",
    "monthly",
    "this month",
    "please wait",
];

/// Codes and messages that mean that the request is larger than the model's window.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "model_context_window_exceeded",
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "input is too long",
    "exceeds the context window",
    "exceed context window of",
    "context window exceeds limit",
    "input token count*exceeds the maximum",
    "input token count*only supports up to #",
    "exceeds the maximum allowed input length",
    "range of input length should be",
    "maximum context length is #",
    "maximum prompt length is #",
    "tokens exceed the configured limit",
    "prompt token count*exceeds the limit of #",
    "prompt (length*longer than the maximum model length",
    "too long to fit into the model",
    "exceeds the available context size",
    "configured context size is #",
    "larger than the max context size",
    "context size has been exceeded",
    "longer than the context length",
    "longer than the model's context length",
    "exceeds the context length",
    "exceeds the model's maximum context length",
    "greater than the context length",
    "context length of only #",
    "reached context length of #",
    "greater than max_seq_len",
    "`inputs` tokens + `max_new_tokens` must be",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "reduce the length of the messages",
    "reduce the length of the input prompt",
];

/// Phrases that mean the same in the sentences of unknown providers and of models in JavaScript.
const PHRASES: &[&str] = &[
    "maximum context",
    "max context",
    "token limit",
    "tokens limit",
    "limit of # tokens",
    "too many tokens",
    "too many input tokens",
    "exceeds the model's maximum",
    "exceed*context length",
    "exceed*context window",
    "exceed*context size",
    "exceed*context limit",
    "context length*exceed",
    "context window*exceed",
    "context overflow",
];

/// Words of limits for the answer. Next to them, a phrase of [`PHRASES`] means nothing.
const ANSWER_LIMIT: &[&str] =
    &["max_tokens", "max_completion_tokens", "maxoutputtokens", "output token", "completion token"];

/// The numbers of an overflow message: the place of the window, and of the size of the input if it is known.
const NUMBERS: &[(&str, usize, Option<usize>)] = &[
    ("maximum context length is # tokens*requested # tokens (# in the messages", 0, Some(2)),
    ("maximum context length is # tokens*requested # tokens (# in your prompt", 0, Some(2)),
    ("maximum context length is # tokens*requested about # tokens (# of text input", 0, Some(2)),
    ("maximum context length is # tokens*requested # output tokens*contains # input", 0, Some(2)),
    ("maximum context length is # tokens*requested # output tokens*at least # input", 0, Some(2)),
    ("maximum context length is # tokens*request has # input tokens", 0, Some(1)),
    ("exceed context limit: # + # > #", 2, Some(0)),
    ("must be <= #. given: # `inputs`", 0, Some(1)),
    ("maximum context length is #", 0, None),
    ("maximum context length of #", 0, None),
    ("maximum context length: #", 0, None),
    ("maximum context length (#", 0, None),
    ("# maximum context length", 0, None),
    ("tokens > # maximum", 0, None),
    ("tokens > # token limit", 0, None),
    ("maximum number of tokens allowed (#", 0, None),
    ("maximum number of tokens allowed #", 0, None),
    ("only supports up to #", 0, None),
    ("allowed input length of #", 0, None),
    ("input length should be [#, #]", 1, None),
    ("maximum prompt length is #", 0, None),
    ("maximum model length of #", 0, None),
    ("context length of only #", 0, None),
    ("context length of # tokens", 0, None),
    ("context length (# tokens", 0, None),
    ("(context length #", 0, None),
    ("context size (# tokens", 0, None),
    ("context size is #", 0, None),
    ("context window of #", 0, None),
    ("n_ctx: #", 0, None),
    ("max_seq_len #", 0, None),
    ("token limit: #", 0, None),
    ("token limit of #", 0, None),
    ("limit of #", 0, None),
    ("limit is #", 0, None),
];

/// Smaller numbers are not taken for a window.
const SMALLEST_WINDOW: u64 = 256;

/// The smallest limit for a reply that is worth a retry, unless a quarter of the window is less.
const SHORTEST_ANSWER: u64 = 1_024;

/// Whether the words of an error with this HTTP status (0 if there is none) mean that the request is too large.
pub(super) fn is_said(status: u16, words: &str) -> bool {
    if status == 429 || pattern::any(RATE, words) || words.contains("string_above_max_length") {
        return false;
    }
    let is_about_request = matches!(status, 0 | 200 | 400 | 413 | 422 | 500..);
    pattern::any(OVERFLOW, words)
        || (is_about_request && pattern::any(PHRASES, words) && !pattern::any(ANSWER_LIMIT, words))
}

/// The model's window, and how many tokens are left for a reply if these are enough.
pub(super) fn sizes(words: &str) -> (Option<u64>, Option<u64>) {
    let found = NUMBERS.iter().find_map(|(pattern, window, asked)| {
        let numbers = pattern::find(pattern, words)?;
        let window = *numbers.get(*window)?;
        let room = asked.and_then(|asked| window.checked_sub(*numbers.get(asked)?));
        let is_enough = |room: &u64| *room >= SHORTEST_ANSWER.min(window / 4);
        (window >= SMALLEST_WINDOW).then_some((Some(window), room.filter(is_enough)))
    });
    found.unwrap_or_default()
}
