//! Error bodies of providers: any body is understood or not, without a panic and without taking long.

use lockgate::error::ErrorKind;
use lockgate::policy::failure::{Failure, meaning};
use lockgate::policy::redact::{redacted, without_keys};
use serde_json::json;

use crate::each;
use crate::make::Chance;

const WORDS: &[&str] = &[
    "error",
    "message",
    "type",
    "code",
    "status",
    "details",
    "metadata",
    "raw",
    "param",
    "retryDelay",
    "3s",
    "1.5s",
    "rate limit",
    "context_length_exceeded",
    "maximum context length is 8192 tokens",
    "invalid_api_key",
    "insufficient_quota",
    "overloaded_error",
    "prompt is too long",
    "529",
    "429",
    "tokens exceed the configured limit",
    "sk-abcdefghijklmnopqrstuvwxyz0123",
    "Bearer abc.def.ghi",
    "please try again in 20s",
    "input token count (",
    ") exceeds the maximum",
    "99999999999999999999",
    "content_filter",
    "safety",
    "model_not_found",
    "file not found",
    "Too Many Requests",
    "{\"error\":",
];

fn body(chance: &mut Chance) -> String {
    match chance.below(4) {
        0 => (0..chance.below(30)).map(|_| chance.word(WORDS)).collect(),
        1 => {
            let inner = json!({ "error": { "message": chance.word(WORDS) } }).to_string();
            json!({ "error": { "message": inner, "code": chance.json(WORDS, 1) } }).to_string()
        }
        2 => {
            let good = chance.json(WORDS, 4).to_string();
            String::from_utf8_lossy(&chance.bent(good.as_bytes())).into_owned()
        }
        _ => chance.json(WORDS, 5).to_string(),
    }
}

#[test]
fn any_refusal_has_one_meaning() {
    each("any_refusal", |chance| {
        let body = body(chance);
        let headers =
            [None, Some("5"), Some("-1"), Some("1e9"), Some("Wed, 21 Oct 2026 07:28:00 GMT")];
        let failure = Failure {
            status: chance.pick(&[0, 200, 400, 401, 403, 404, 413, 422, 429, 500, 503, 529, 999]),
            body: &body,
            retry_after: chance.pick(&headers),
            retry_after_ms: chance.pick(&headers),
            at_ms: 1.79e12,
            is_large: chance.one_in(2),
        };
        let meant = meaning(failure);
        assert_eq!(meant, meaning(failure), "{body}");
        let is_overflow = meant.kind == Some(ErrorKind::ModelContextOverflow);
        assert!(!is_overflow || failure.status != 429, "{body}");
    });
}

#[test]
fn redaction_removes_keys_and_a_second_redaction_changes_nothing() {
    each("redaction_removes", |chance| {
        let words: Vec<String> = (0..chance.below(6)).map(|_| chance.word(WORDS)).collect();
        let text = words.join(chance.pick(&[" ", "\n", "\"", ": "]));
        let once = redacted(&text);
        assert!(!once.contains("sk-abcdefghijklmnopqrstuvwxyz0123"), "{text:?} became {once:?}");
        assert_eq!(without_keys(&without_keys(&text)), without_keys(&text), "{text:?}");
    });
}
