//! Comparison of numbers within a tolerance.
//!
//! Whole numbers are compared exactly, however large: an account number that differs in its last
//! digit is another account. Without a tolerance a number must be equal. An infinite number is near
//! nothing.

use super::{Equality, Value};

/// Returns `true` if `found` is a number whose distance from `wanted` is at most `within`.
///
/// ```
/// use karat_metrics::calls::{Value, near};
///
/// assert!(near(&Value::from(0.3), 0.1, &Value::from(0.4)));
/// assert!(!near(&Value::from(0.3), 0.0, &Value::from(0.1 + 0.2)));
/// assert!(!near(&Value::from(1), 0.5, &Value::from("1")));
/// ```
#[must_use]
pub fn near(wanted: &Value<'_>, within: f64, found: &Value<'_>) -> bool {
    let (Some(from), Some(to)) = (finite(wanted), finite(found)) else { return false };
    if Equality::Json.values(wanted, found) {
        return true;
    }
    if within.is_nan() || within <= 0.0 {
        return false;
    }
    if let (Value::Int(wanted), Value::Int(found)) = (wanted, found) {
        return wanted.abs_diff(*found) as f64 <= within;
    }
    // An author who writes 0.3 within 0.1 means to include 0.4: the last bits of decimals that binary
    // numbers cannot represent do not move the border. They never outweigh a finer tolerance.
    let last_bits = 4.0 * f64::EPSILON * from.abs().max(to.abs());
    (to - from).abs() <= within + last_bits.min(within / 1000.0)
}

fn finite(value: &Value<'_>) -> Option<f64> {
    value.as_number().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn check(wanted: &str, within: f64, found: &str) -> bool {
        near(&json::parse(wanted).unwrap(), within, &json::parse(found).unwrap())
    }

    #[test]
    fn without_a_tolerance_a_number_must_be_equal() {
        assert!(check("5", 0.0, "5.0"));
        assert!(!check("5", 0.0, "5.000000000000001"));
        assert!(!check("4111111111111111", 0.0, "4111111111111114"));
        assert!(!check("9007199254740992", 0.0, "9007199254740993"));
        assert!(!check("18446744073709551616", 0.0, "18446744073709551617"));
        assert!(!check("0.3", 0.0, "0.30000000000000004"));
    }

    #[test]
    fn the_border_of_a_tolerance_is_within_it() {
        assert!(check("0.3", 0.1, "0.4"));
        assert!(check("0.3", 0.1, "0.2"));
        assert!(!check("0.3", 0.1, "0.4000001"));
        assert!(check("3", 1.0, "4"));
        assert!(!check("3", 1.0, "4.001"));
        assert!(check("-1", 0.5, "-1.5"));
        assert!(check("9007199254740992", 1.0, "9007199254740993"));
        assert!(!check("4111111111111111", 0.5, "4111111111111112"));
        assert!(!check("4111111111111111.5", 0.1, "4111111111111112.0"));
    }

    #[test]
    fn an_infinite_number_and_a_string_are_near_nothing() {
        assert!(!check("5", 1e300, "1e999"));
        assert!(!check("1e999", 1e300, "1e999"));
        assert!(!check("5", 1.0, "\"5\""));
        assert!(!check("1", 1.0, "true"));
        assert!(!check("5", f64::NAN, "6"));
    }
}
