//! The size of a JSON value, and the cost of its regular expressions if it is a schema.

use serde_json::Value;

/// The measured system.
pub(super) struct Size {
    /// Values, the whole and every part.
    pub(super) values: usize,
    /// Nested lists and objects.
    pub(super) depth: usize,
    pub(super) pattern_cost: u64,
    pub(super) has_format: bool,
}

/// Measures a value without recursion; `None` when it holds more than `limit` values.
pub(super) fn measure(value: &Value, limit: usize) -> Option<Size> {
    let mut size = Size { values: 0, depth: 0, pattern_cost: 0, has_format: false };
    let mut waiting = vec![(value, 1)];
    while let Some((value, depth)) = waiting.pop() {
        size.values += 1;
        if size.values > limit {
            return None;
        }
        match value {
            Value::Array(items) => {
                size.depth = size.depth.max(depth);
                waiting.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(entries) => {
                size.depth = size.depth.max(depth);
                size.has_format |= entries.contains_key("format");
                let pattern = entries.get("pattern").and_then(Value::as_str);
                let keys = entries.get("patternProperties").and_then(Value::as_object);
                let keys = keys.into_iter().flat_map(|keys| keys.keys().map(String::as_str));
                for pattern in pattern.into_iter().chain(keys) {
                    size.pattern_cost = size.pattern_cost.saturating_add(cost(pattern));
                }
                waiting.extend(entries.values().map(|entry| (entry, depth + 1)));
            }
            _ => {}
        }
    }
    Some(size)
}

/// About what a regular expression takes, in units of 300 bytes and 5 µs.
///
/// Counted repetitions are unrolled when compiled, one inside the other multiplied, and a Unicode
/// class is an automaton of its own. (`^[\p{L}\p{N}_.-]{1,128}$` took 8 MB and 0.1 s.)
fn cost(pattern: &str) -> u64 {
    const EACH: u64 = 500;
    const UNICODE: u64 = 8;
    let mut unrolled = pattern.len() as u64;
    // What looks like a repetition but is not only makes the estimate too high.
    for bounds in pattern.split('{').skip(1) {
        let bounds = bounds.split('}').next().unwrap_or_default();
        let numbers = bounds.split(',').filter(|number| !number.is_empty());
        let largest = numbers.map(|number| number.parse().unwrap_or(1)).max();
        unrolled = unrolled.saturating_mul(largest.unwrap_or(1).max(1));
    }
    if pattern.contains("\\p") || pattern.contains("\\P") {
        unrolled = unrolled.saturating_mul(UNICODE);
    }
    unrolled.saturating_add(EACH)
}
