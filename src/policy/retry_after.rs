//! How long a provider asks us to wait before a retry, in every form that providers use.

use serde_json::Value;

use crate::policy::pattern;

/// Longest `Retry-After` we obey. Above it we use our own backoff.
const LONGEST_MS: f64 = 60_000.0;

/// Where a provider may state the wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryHints<'a> {
    /// The header `retry-after-ms`.
    pub header_ms: Option<&'a str>,
    /// The header `retry-after`: seconds, or a date.
    pub header: Option<&'a str>,
    /// The body of the error.
    pub body: Option<&'a Value>,
    /// The text of the error in lower case.
    pub words: &'a str,
    /// Milliseconds since 1970.
    pub at_ms: f64,
}

/// The wait that the provider asks for, if we obey it.
pub fn wait_ms(hints: RetryHints<'_>) -> Option<u64> {
    let by_header = |text: &str| {
        number(text.trim())
            .map(|it| it * 1_000.0)
            .or_else(|| date_ms(text).map(|it| it - hints.at_ms))
    };
    let asked = hints.header_ms.and_then(|text| number(text.trim()));
    let asked = asked.or_else(|| hints.header.and_then(by_header));
    let asked = asked.or_else(|| hints.body.and_then(retry_info));
    let asked = asked.or_else(|| in_words(hints.words))?;
    (0.0..=LONGEST_MS).contains(&asked).then_some(asked as u64)
}

/// `retryDelay: "34.5s"`, somewhere in the details of a Google error.
fn retry_info(body: &Value) -> Option<f64> {
    let inner = match body {
        Value::Array(items) => items.first()?,
        body => body,
    };
    let details = inner.get("error").unwrap_or(inner).get("details")?.as_array()?;
    let delay = details.iter().find_map(|it| it.get("retryDelay")?.as_str())?;
    Some(number(delay.strip_suffix('s')?)? * 1_000.0)
}

/// "try again in 1m2.5s", "try again in 20s", "try again in 250ms".
fn in_words(words: &str) -> Option<f64> {
    let mut rest = pattern::behind("try again in ", words)?;
    let mut total = None;
    loop {
        let n = rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
        let (digits, unit) = rest.split_at(n);
        let Some(number) = number(digits) else { return total };
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (1.0, 2),
            [b'm', ..] => (60_000.0, 1),
            [b's', ..] => (1_000.0, 1),
            [b'h', ..] => (3_600_000.0, 1),
            _ => return None,
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = unit.get(length..).unwrap_or_default();
    }
}

/// `Wed, 21 Oct 2026 07:28:00 GMT` in milliseconds since 1970.
fn date_ms(text: &str) -> Option<f64> {
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut parts = text.trim().split(' ').skip(1);
    let day = number(parts.next()?)?;
    let name = parts.next()?;
    let month = MONTHS.chunks(3).position(|month| month == name.as_bytes())? + 1;
    let year: i64 = parts.next()?.parse().ok()?;
    let mut clock = parts.next()?.split(':').map(number);
    let seconds = clock.next()?? * 3_600.0 + clock.next()?? * 60.0 + clock.next()??;
    // Years start in March here, so that the leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month as i64 + 9) % 12) + 2) / 5;
    let of_era = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = (of_era + of_year - 719_469) as f64 + day;
    Some((days * 86_400.0 + seconds) * 1_000.0)
}

/// A number with or without a decimal point. The parser of the standard library would add large tables to the wasm.
fn number(text: &str) -> Option<f64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit()) && text.len() < 10;
    if whole.is_empty() || !digits(whole) || !digits(rest) {
        return None;
    }
    let read = |text: &str| text.bytes().fold(0.0, |sum, it| sum * 10.0 + f64::from(it - b'0'));
    Some(read(whole) + read(rest) / 10_f64.powi(rest.len() as i32))
}
