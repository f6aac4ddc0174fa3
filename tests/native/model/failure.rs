//! Refusals of providers: overflows and errors that look like them, statuses, retry waits, redacted keys.

use std::fs;

use lockgate::error::{Advice, Error, ErrorKind};
use lockgate::model::window_of;
use lockgate::policy::failure::{Failure, meaning};
use lockgate::policy::redact::redacted;
use lockgate::policy::retry::{Retries, falls_back, wait_ms};
use lockgate::policy::retry_after::{self, RetryHints};
use lockgate::policy::tokens::is_cut;
use serde_json::{Value, json};

fn corpus(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/fixtures/overflow.json", env!("CARGO_MANIFEST_DIR"));
    let all: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    all[name].as_array().unwrap().clone()
}

fn failure(each: &Value) -> Failure<'_> {
    let (status, body) = (each["status"].as_u64().unwrap() as u16, each["body"].as_str().unwrap());
    Failure { status, body, ..Failure::default() }
}

// M-19
#[test]
fn every_known_way_to_say_that_a_request_is_too_large_is_understood() {
    let overflows = corpus("overflow");
    assert!(overflows.len() >= 73);
    for each in &overflows {
        let meaning = meaning(failure(each));
        assert_eq!(meaning.kind, Some(ErrorKind::ModelContextOverflow), "{}", each["name"]);
        assert_eq!(meaning.advice.max_tokens, each["room"].as_u64(), "{}", each["name"]);
        assert_eq!(meaning.advice.window, each["window"].as_u64(), "{}", each["name"]);
    }
}

// M-21
#[test]
fn errors_that_only_look_like_an_overflow_are_not_one() {
    let alike = corpus("alike");
    assert!(alike.len() >= 27);
    for each in &alike {
        let found = meaning(failure(each)).kind.map(ErrorKind::code);
        assert_eq!(found, each["kind"].as_str(), "{}", each["name"]);
    }
}

// M-05
#[test]
fn an_empty_refusal_is_an_overflow_only_if_the_request_fills_the_window() {
    let empty = Failure { status: 413, body: "", ..Failure::default() };
    assert_eq!(meaning(empty).kind, Some(ErrorKind::ModelBadRequest));
    let large = Failure { is_large: true, ..empty };
    assert_eq!(meaning(large).kind, Some(ErrorKind::ModelContextOverflow));
}

// M-07
#[test]
fn the_reason_of_a_refusal_is_told_as_it_is() {
    let cases: &[(u16, &str, &str)] = &[
        (401, "", "refuses the key"),
        (400, r#"{"error":{"message":"API key not valid."}}"#, "refuses the key"),
        (403, r#"{"error":{"message":"Incorrect API key provided"}}"#, "refuses the key"),
        (402, "", "asks for payment"),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "asks for payment"),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, "asks for payment"),
        (403, "<html>no</html>", "refuses access"),
        (400, r#"{"error":{"status":"PERMISSION_DENIED"}}"#, "refuses access"),
        (500, "oops", "has an internal error"),
        (500, r#"{"error":{"type":"server_error"}}"#, "has an internal error"),
        (500, r#"{"error":{"message":"The model is overloaded"}}"#, "is overloaded"),
        (529, "", "is overloaded"),
        (503, "", "is unavailable"),
        (502, "", "is not reached by its gateway"),
        (504, "", "did not answer in time"),
        (408, "", "did not answer in time"),
        (409, "", "asks for another attempt"),
        (429, "", "limits the rate of requests"),
        (451, "", "has blocked the answer"),
        (404, "", "refuses the request"),
    ];
    for (status, body, expected) in cases {
        let meaning = meaning(Failure { status: *status, body, ..Failure::default() });
        assert_eq!(meaning.verdict, *expected, "{status} {body}");
    }
    let hint = |status| meaning(Failure { status, ..Failure::default() }).hint;
    assert_eq!(hint(402), Some("add credit to the account, or use another model"));
    assert!(hint(401).is_some_and(|hint| hint.contains("apiKey")));
}

// M-07
#[test]
fn the_kind_of_an_error_follows_from_status_and_text() {
    let cases: &[(u16, &str, Option<ErrorKind>)] = &[
        (401, "", Some(ErrorKind::ModelAuth)),
        (403, "<html>no</html>", Some(ErrorKind::ModelAuth)),
        (
            400,
            r#"{"error":{"message":"API key not valid.","status":"INVALID_ARGUMENT"}}"#,
            Some(ErrorKind::ModelAuth),
        ),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, Some(ErrorKind::ModelAuth)),
        (408, "", Some(ErrorKind::ModelTimeout)),
        (409, "", Some(ErrorKind::ModelOverloaded)),
        (500, "oops", Some(ErrorKind::ModelOverloaded)),
        (502, "", Some(ErrorKind::ModelOverloaded)),
        (503, "", Some(ErrorKind::ModelOverloaded)),
        (504, "", Some(ErrorKind::ModelOverloaded)),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            Some(ErrorKind::ModelOverloaded),
        ),
        (404, r#"{"error":{"message":"model 'x' not found"}}"#, Some(ErrorKind::ModelBadRequest)),
        (
            400,
            r#"{"error":{"code":"content_filter","message":"no"}}"#,
            Some(ErrorKind::ModelRefused),
        ),
        (0, "fetch failed", Some(ErrorKind::ModelNetwork)),
        (0, "the cable is out", None),
    ];
    for (status, body, kind) in cases {
        let failure = Failure { status: *status, body, ..Failure::default() };
        assert_eq!(meaning(failure).kind, *kind, "{status} {body}");
    }
}

fn said<'a>(header: Option<&'a str>) -> RetryHints<'a> {
    // Wed, 21 Oct 2026 07:28:00 GMT
    RetryHints { header, at_ms: 1_792_567_680_000.0, ..RetryHints::default() }
}

// M-06
#[test]
fn a_providers_retry_wait_is_read_in_every_form() {
    let by_header = [
        ("20", Some(20_000)),
        ("0", Some(0)),
        ("1.5", Some(1_500)),
        ("60", Some(60_000)),
        ("61", None),
        ("-1", None),
        ("86400", None),
        ("soon", None),
        ("Wed, 21 Oct 2026 07:28:10 GMT", Some(10_000)),
        ("Wed, 21 Oct 2026 07:27:50 GMT", None),
        ("Thu, 22 Oct 2026 07:28:00 GMT", None),
        ("Mon, 01 Mar 2027 00:00:00 GMT", None),
    ];
    for (header, wait) in by_header {
        assert_eq!(retry_after::wait_ms(said(Some(header))), wait, "{header}");
    }
    let ms = RetryHints { header_ms: Some("250"), ..said(Some("20")) };
    assert_eq!(retry_after::wait_ms(ms), Some(250));
    let body = json!({ "error": { "code": 429, "details": [
        { "@type": "type.googleapis.com/google.rpc.Help" },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s" },
    ] } });
    assert_eq!(retry_after::wait_ms(RetryHints { body: Some(&body), ..said(None) }), Some(34_500));
    let words = [
        ("please try again in 8s.", Some(8_000)),
        ("try again in 250ms", Some(250)),
        ("try again in 1m2s", None),
        ("try again in 0m2.5s", Some(2_500)),
        ("try again later", None),
    ];
    for (words, wait) in words {
        assert_eq!(retry_after::wait_ms(RetryHints { words, ..said(None) }), wait, "{words}");
    }
    assert_eq!(retry_after::wait_ms(said(None)), None);
}

// M-06
#[test]
fn a_date_is_counted_from_the_same_day_as_the_clock() {
    let at = |at_ms, header| {
        retry_after::wait_ms(RetryHints { header: Some(header), at_ms, ..RetryHints::default() })
    };
    assert_eq!(at(0.0, "Thu, 01 Jan 1970 00:00:07 GMT"), Some(7_000));
    assert_eq!(at(951_782_400_000.0, "Tue, 29 Feb 2000 00:00:01 GMT"), Some(1_000));
    assert_eq!(at(1_709_251_199_000.0, "Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_000));
    assert_eq!(at(4_102_444_799_000.0, "Fri, 01 Jan 2100 00:00:00 GMT"), Some(1_000));
}

// M-06, R67
#[test]
fn only_passing_failures_are_tried_again_and_the_providers_wait_is_kept() {
    let retries = Retries::default();
    let error = |kind| Error::new(kind, "no");
    let asked =
        error(ErrorKind::ModelRateLimit).advise(Advice { wait_ms: Some(7), ..Advice::default() });
    assert_eq!(wait_ms(retries, 1, &asked, 0.5), Some(7));
    assert_eq!(wait_ms(retries, 3, &asked, 0.5), None);
    assert_eq!(wait_ms(retries, 1, &error(ErrorKind::ModelOverloaded), 0.0), Some(500));
    assert_eq!(wait_ms(retries, 2, &error(ErrorKind::ModelOverloaded), 0.999), Some(1_999));
    for kind in [
        ErrorKind::ModelAuth,
        ErrorKind::ModelBadRequest,
        ErrorKind::ModelRefused,
        ErrorKind::ModelContextOverflow,
    ] {
        assert_eq!(wait_ms(retries, 1, &error(kind), 0.5), None, "{kind:?}");
    }
    assert!(falls_back(ErrorKind::ModelAuth) && falls_back(ErrorKind::ModelBadRequest));
    assert!(!falls_back(ErrorKind::ModelRefused) && !falls_back(ErrorKind::ModelContextOverflow));
}

// M-18
#[test]
fn a_text_that_looks_like_an_api_key_is_redacted() {
    let sentence = "Incorrect API key provided: sk-proj-abcdefghijklmnop. See https://example.com";
    assert_eq!(
        redacted(sentence),
        "Incorrect API key provided: [redacted]. See https://example.com"
    );
    assert_eq!(redacted("key AIzaSyA1234567890abcdef_x!"), "key [redacted]!");
    assert_eq!(redacted("Bearer aB3dEfGhIjKlMnOpQrStUvWxYz012345"), "Bearer [redacted]");
    assert_eq!(
        redacted("the model gpt-4o-mini-2024-07-18 does not exist"),
        "the model gpt-4o-mini-2024-07-18 does not exist"
    );
    let long = redacted(&"é".repeat(1_000));
    assert!(long.len() <= 504 && long.ends_with('…'));
}

// M-20
#[test]
fn a_token_count_far_below_the_request_means_that_the_provider_cut_it() {
    assert!(is_cut(20_000, 4_096, None));
    assert!(is_cut(1_000, 9_000, Some(8_192)));
    assert!(!is_cut(20_000, 12_000, None));
    assert!(!is_cut(2_000, 500, None), "too little to compare");
    assert!(!is_cut(20_000, 0, None), "the provider reported no count");
}

#[test]
fn the_window_of_a_model_comes_from_the_longest_matching_prefix() {
    assert_eq!(window_of("gpt-4"), Some(8_192));
    assert_eq!(window_of("gpt-4o-mini"), Some(128_000));
    assert_eq!(window_of("gpt-4.1-nano"), Some(1_047_576));
    assert_eq!(window_of("anthropic/Claude-Sonnet-4"), Some(200_000));
    assert_eq!(window_of("qwen3"), None);
    assert_eq!(window_of("my-own"), None);
}

#[test]
fn a_file_that_a_provider_could_not_load_is_distinguished_from_other_bad_requests() {
    let said = [
        (
            400,
            r#"{"error":{"message":"Error while downloading https://x.test/a.png.","type":"invalid_request_error","param":"url","code":"invalid_image_url"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Failed to download image from https://x.test/a.png. Image size: unknown","type":"invalid_request_error"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Unable to download the file. Please verify the URL and try again."}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Cannot fetch content from the provided URL. Please ensure the URL is valid and accessible.","status":"INVALID_ARGUMENT"}}"#,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"You do not have permission to access the File abc or it may not exist.","status":"PERMISSION_DENIED"}}"#,
        ),
    ];
    for (status, body) in said {
        let meaning = meaning(Failure { status, body, ..Failure::default() });
        assert!(meaning.advice.without_files, "{body}");
        assert_eq!(meaning.kind, Some(ErrorKind::ModelBadRequest), "{body}");
    }
    for (status, body) in
        [(400, "invalid_request_error: messages must not be empty"), (503, "unable to download")]
    {
        assert!(!meaning(Failure { status, body, ..Failure::default() }).advice.without_files);
    }
}
