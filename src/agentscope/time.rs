//! Converts between AgentScope's times without a zone and our times. AgentScope's times are taken as UTC.

/// `yyyy-MM-dd HH:mm:ss.SSS` as RFC 3339; `None` for other texts.
pub(super) fn to_rfc3339(timestamp: &str) -> Option<String> {
    let (date, time) = timestamp.split_once(' ')?;
    (is_date(date) && is_time(time)).then(|| format!("{date}T{time}Z"))
}

/// RFC 3339 in UTC with milliseconds as `yyyy-MM-dd HH:mm:ss.SSS`; `None` for other texts.
pub(super) fn to_timestamp(at: &str) -> Option<String> {
    let (date, time) = at.strip_suffix('Z')?.split_once('T')?;
    (is_date(date) && is_time(time)).then(|| format!("{date} {time}"))
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = numbers(text, ['-', '-'], [4, 2, 2]);
    let (Some(year), Some(month), Some(day)) = (year, month, day) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=last).contains(&day)
}

fn is_time(text: &str) -> bool {
    let Some((clock, millis)) = text.split_once('.') else { return false };
    let [hour, minute, second] = numbers(clock, [':', ':'], [2, 2, 2]);
    let below = |part: Option<u32>, limit| part.is_some_and(|number| number < limit);
    below(hour, 24) && below(minute, 60) && below(second, 60) && number(millis, 3).is_some()
}

/// Three numbers with a separator between them, each with exactly this many digits.
fn numbers(text: &str, between: [char; 2], digits: [usize; 3]) -> [Option<u32>; 3] {
    let [first_end, second_end] = between;
    let (first, rest) = text.split_once(first_end).unwrap_or_default();
    let (second, third) = rest.split_once(second_end).unwrap_or_default();
    let [a, b, c] = digits;
    [number(first, a), number(second, b), number(third, c)]
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}
