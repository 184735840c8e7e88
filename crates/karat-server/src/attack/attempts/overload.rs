//! Attempts to end or block the server by the size or the form of a value.

use serde_json::json;

use super::{Attempt, Planner, Proof};
use crate::attack::parameters::{self, Parameter};

/// The length of texts that are too long.
const HUGE: usize = 4 << 20;
/// The depth of arguments that are too deep: JSON readers still read them.
const DEEP: usize = 100;
/// Maxima up to this are harmless.
const HARMLESS: i64 = 1_000;

impl Planner<'_> {
    pub(super) fn huge_strings(&self, parameter: &Parameter) -> Vec<Attempt> {
        let text = "a".repeat(HUGE);
        vec![self.sent(parameter, "a text of 4 MiB", text, vec![Proof::Ended])]
    }

    pub(super) fn deep_lists(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut value = json!([]);
        for _ in 1..DEEP {
            value = json!([value]);
        }
        vec![self.with(parameter, "100 nested lists", value, vec![Proof::Ended])]
    }

    pub(super) fn numbers(&self, parameter: &Parameter) -> Vec<Attempt> {
        let sizes = match parameter.maximum() {
            Some(most) if most <= HARMLESS => return Vec::new(),
            Some(most) => vec![most],
            // If nothing suggests a count, one number is enough.
            None if !parameter.is_count() => vec![2_000_000_000],
            None => vec![10_000_000, 2_000_000_000],
        };
        let attempt = |size: i64| {
            self.with(parameter, "a very large number", json!(size), vec![Proof::Overrun])
        };
        sizes.into_iter().map(attempt).collect()
    }

    pub(super) fn patterns(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut attempt = self.sent(
            parameter,
            "a pattern that backtracks",
            "^(a+)+$".to_owned(),
            vec![Proof::Ended],
        );
        let against = format!("{}!", "a".repeat(40));
        for other in parameters::of(self.tool) {
            if other.outer != parameter.outer && other.is_free_text() && !other.is_path() {
                other.put(&mut attempt.arguments, json!(against));
            }
        }
        vec![attempt]
    }
}
