//! Equality of values, objects and calls.
//!
//! [`Equality::Json`] is the equality of JSON Schema: numbers are equal by value (1 is 1.0), `true` is
//! not a number, the order of keys does not matter, the order of lists does. [`Equality::Python`] is
//! `==` in Python and differs in one thing: `True` is 1 and `False` is 0. Whole numbers are compared
//! exactly, however large, also with floats. [`Value::identical`] is the strictest comparison.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Call, Object, Value};

/// A definition of equality.
///
/// ```
/// use karat_metrics::calls::{Equality, Value};
///
/// assert!(Equality::Json.values(&Value::from(1), &Value::from(1.0)));
/// assert!(!Equality::Json.values(&Value::from(1), &Value::from(true)));
/// assert!(Equality::Python.values(&Value::from(1), &Value::from(true)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equality {
    /// As JSON Schema defines it: `1` is `1.0`, `true` is not `1`.
    Json,
    /// As `==` in Python: `1` is `1.0` is `True`.
    Python,
}

impl Equality {
    /// Returns `true` if two values are equal.
    #[must_use]
    pub fn values(self, a: &Value<'_>, b: &Value<'_>) -> bool {
        match (a, b) {
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::BigInt(a), Value::BigInt(b)) => a.digits() == b.digits(),
            (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
                whole(*float) == Some(*int)
            }
            (Value::BigInt(int), Value::Float(float))
            | (Value::Float(float), Value::BigInt(int)) => int.equals_float(*float),
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.values(a, b))
            }
            (Value::Object(a), Value::Object(b)) => self.objects(a, b),
            (Value::Bool(bool), Value::Int(_) | Value::Float(_)) if self == Equality::Python => {
                self.values(&Value::Int(i64::from(*bool)), b)
            }
            (Value::Int(_) | Value::Float(_), Value::Bool(bool)) if self == Equality::Python => {
                self.values(a, &Value::Int(i64::from(*bool)))
            }
            _ => false,
        }
    }

    /// Returns `true` if two objects have the same keys with equal values, in any order.
    #[must_use]
    pub fn objects(self, a: &Object<'_>, b: &Object<'_>) -> bool {
        if a.len() != b.len() {
            return false;
        }
        let mut in_b = b.lookup();
        a.iter().enumerate().all(|(position, (key, value))| {
            in_b.find(key, position).is_some_and(|other| self.values(value, other))
        })
    }

    /// Returns `true` if two calls are of the same tool with equal arguments. Outputs are ignored, and
    /// arguments that were not recorded count as an empty object.
    #[must_use]
    pub fn calls(self, a: &Call<'_>, b: &Call<'_>) -> bool {
        a.name == b.name && (a.written_alike(b) || self.objects(a.arguments(), b.arguments()))
    }

    /// A number that is the same for equal values.
    pub(super) fn hash_value(self, value: &Value<'_>, into: &mut impl Hasher) {
        match value {
            Value::Null => 0_u8.hash(into),
            Value::Bool(value) => match self {
                Equality::Json => (1_u8, value).hash(into),
                Equality::Python => hash_int(i64::from(*value), into),
            },
            Value::Int(value) => hash_int(*value, into),
            Value::BigInt(value) => hash_digits(value.digits(), into),
            Value::Float(value) => match whole(*value) {
                Some(int) => hash_int(int, into),
                None if value.fract() == 0.0 => hash_digits(&format!("{value:.0}"), into),
                None => (4_u8, value.to_bits()).hash(into),
            },
            Value::String(value) => (5_u8, value).hash(into),
            Value::List(items) => {
                (6_u8, items.len()).hash(into);
                for item in items {
                    self.hash_value(item, into);
                }
            }
            Value::Object(object) => (7_u8, self.object_hash(object)).hash(into),
        }
    }

    /// A sum over the entries, so that their order does not matter.
    pub(super) fn object_hash(self, object: &Object<'_>) -> u64 {
        object.iter().fold(0, |sum, (key, value)| {
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            self.hash_value(value, &mut hasher);
            u64::wrapping_add(sum, hasher.finish())
        })
    }
}

fn hash_int(value: i64, into: &mut impl Hasher) {
    (2_u8, value).hash(into);
}

fn hash_digits(digits: &str, into: &mut impl Hasher) {
    (3_u8, digits).hash(into);
}

/// The float as a 64-bit integer, if it is exactly one.
fn whole(float: f64) -> Option<i64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if !(-TWO_TO_63..TWO_TO_63).contains(&float) || float.fract() != 0.0 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above: in range and whole")]
    Some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn hash(equality: Equality, value: &Value<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        equality.hash_value(value, &mut hasher);
        hasher.finish()
    }

    #[track_caller]
    fn check(a: &str, b: &str, json_equal: bool, python_equal: bool) {
        let (x, y) = (json::parse(a).unwrap(), json::parse(b).unwrap());
        for (equality, expected) in [(Equality::Json, json_equal), (Equality::Python, python_equal)]
        {
            assert_eq!(equality.values(&x, &y), expected, "{equality:?}: {a} and {b}");
            assert_eq!(equality.values(&y, &x), expected, "{equality:?}: {b} and {a}");
            if expected {
                assert_eq!(
                    hash(equality, &x),
                    hash(equality, &y),
                    "{equality:?} hash: {a} and {b}"
                );
            }
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        check("1", "1.0", true, true);
        check("0", "-0.0", true, true);
        check("1", "1.5", false, false);
        check("9007199254740993", "9007199254740992.0", false, false);
        check("18446744073709551616", "18446744073709551616.0", true, true);
        check("18446744073709551617", "18446744073709551616.0", false, false);
        check("9223372036854775808", "9223372036854775808.0", true, true);
        check("-9223372036854775808", "-9223372036854775808.0", true, true);
        check("1e999", "1e998", true, true);
        check("1", "\"1\"", false, false);
    }

    #[test]
    fn true_equals_one_in_python_only() {
        check("true", "1", false, true);
        check("false", "0.0", false, true);
        check("true", "2", false, false);
        check("false", "null", false, false);
        check("true", "18446744073709551616", false, false);
        check("[true]", "[1.0]", false, true);
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_that_of_lists_does() {
        check(r#"{"a":1,"b":[2,3]}"#, r#"{"b":[2,3],"a":1}"#, true, true);
        check("[1,2]", "[2,1]", false, false);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false, false);
        check(r#"{"a":1}"#, r#"{"b":1}"#, false, false);
        check("{}", "[]", false, false);
    }
}
