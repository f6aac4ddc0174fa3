//! Formats times as text.

use crate::json;

/// Milliseconds since 1970 as RFC 3339 in UTC.
///
/// The calculation counts years from March, so that the leap day is the last day of a year.
pub fn rfc3339(ms: f64) -> String {
    let ms = ms.max(0.0) as u64;
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1_000 % 60, rest % 1_000);
    let mut text = String::with_capacity(24);
    let parts = [(year, 4, '-'), (month, 2, '-'), (day, 2, 'T')];
    let parts = parts.into_iter().chain([(hour, 2, ':'), (minute, 2, ':'), (second, 2, '.')]);
    for (number, width, end) in parts.chain([(milli, 3, 'Z')]) {
        json::pad(&mut text, number, width);
        text.push(end);
    }
    text
}
