//! Equality of JSON values.

use serde_json::{Number, Value};

/// Returns whether two values are equal as JSON: the order of keys does not count, and numbers are
/// compared by value, whole ones exactly.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || numbers_equal(x, y),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}

/// Compares whole numbers as such: as doubles, large neighbours would be equal.
fn numbers_equal(x: &Number, y: &Number) -> bool {
    match (x.as_i128(), y.as_i128()) {
        (Some(x), Some(y)) => x == y,
        (Some(whole), None) => y.as_f64().is_some_and(|y| has_value(y, whole)),
        (None, Some(whole)) => x.as_f64().is_some_and(|x| has_value(x, whole)),
        (None, None) => x.as_f64() == y.as_f64(),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a double within 64 bits without a fraction")]
fn has_value(double: f64, whole: i128) -> bool {
    !beyond_64_bits(double) && double.fract() == 0.0 && double as i128 == whole
}

/// Returns whether a double is outside the range of whole numbers of 64 bits.
pub(super) fn beyond_64_bits(number: f64) -> bool {
    !(-9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&number)
}

/// Returns whether a number was read as its nearest double, so that its neighbours would be equal
/// to it.
pub(super) fn is_inexact(number: &Number) -> bool {
    !number.is_i64() && !number.is_u64() && number.as_f64().is_none_or(beyond_64_bits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_and_doubles_are_equal_if_their_values_are() {
        assert!(equal(&json!(3), &json!(3.0)));
        assert!(equal(&json!({"a": [1, -3.0]}), &json!({"a": [1.0, -3]})));
        assert!(!equal(&json!(3), &json!(3.5)));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
        assert!(!equal(&json!(18_446_744_073_709_551_616.0), &json!(u64::MAX)));
        assert!(!equal(&json!(true), &json!(1)));
    }
}
