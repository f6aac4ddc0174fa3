//! Numbers compared exactly: `1` is `1.0`, and large integers are not rounded.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::json::Object;

/// Which of two numbers is greater.
pub(super) fn order(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => whole_to_float(a, float(b)),
        (None, Some(b)) => whole_to_float(b, float(a)).reverse(),
        (None, None) => float(a).total_cmp(&float(b)),
    }
}

/// Whether two values are equal as JSON.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => order(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, a)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

/// The value with all numbers in one form, so that equal JSON values become equal.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(plain_number(number)),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(object) => {
            let mut copy = Object::new();
            for (name, member) in object {
                copy.insert(name.clone(), plain(member));
            }
            Value::Object(copy)
        }
        other => other.clone(),
    }
}

/// Whether one number is a multiple of the other, in decimal notation: `0.07` is a multiple of `0.01`.
pub(super) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (Some(number), Some(divisor)) = (Decimal::of(number), Decimal::of(divisor)) else {
        return true;
    };
    if number.digits == 0 || divisor.digits == 0 {
        return number.digits == 0;
    }
    // Digits do not end in zero, so a multiple has no more decimal places than its divisor.
    let Ok(shift) = u32::try_from(number.exponent - divisor.exponent) else { return false };
    let ten = (0..shift).fold(1, |power, _| power * 10 % divisor.digits);
    number.digits % divisor.digits * ten % divisor.digits == 0
}

/// `digits * 10^exponent`; the digits do not end in zero. They fit in `u64`, so that the product of two remainders fits
/// in `u128`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// A number without its sign, from its shortest notation.
    fn of(number: &Number) -> Option<Decimal> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut decimal = Decimal { digits: 0, exponent: exponent.parse().ok()? };
        let mut is_after_point = false;
        for byte in mantissa.bytes() {
            is_after_point |= byte == b'.';
            if byte.is_ascii_digit() {
                decimal.digits = decimal.digits.checked_mul(10)? + u128::from(byte - b'0');
                decimal.exponent -= i32::from(is_after_point);
            }
        }
        while decimal.digits != 0 && decimal.digits.is_multiple_of(10) {
            decimal.digits /= 10;
            decimal.exponent += 1;
        }
        (decimal.digits <= u64::MAX.into()).then_some(decimal)
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    // Floats have two zeros, JSON has one.
    number.as_f64().unwrap_or_default() + 0.0
}

fn whole_to_float(whole: i128, float: f64) -> Ordering {
    // The cast drops the fraction and saturates far beyond any `whole`.
    let fraction = 0.0_f64.total_cmp(&(float.fract() + 0.0));
    whole.cmp(&(float as i128)).then(fraction)
}

fn plain_number(number: &Number) -> Number {
    let float = float(number);
    let is_whole_float = number.is_f64() && float.fract() == 0.0;
    // A number that is too large for an integer has only one form.
    let whole = is_whole_float.then(|| Number::from_i128(float as i128)).flatten();
    whole.unwrap_or_else(|| number.clone())
}
