//! The digest of tasks and expectations, and the limit on the traces that are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use serde_json::Value;

use crate::trace::Expectation;

/// The number of traces in a report; of more only the means are computed.
pub(crate) const MAX_TRACES: usize = 200_000;

/// Refuses one more trace than a report takes.
pub(crate) fn room_for_another(traces: usize, path: &Path) -> Result<(), EvalError> {
    match traces < MAX_TRACES {
        true => Ok(()),
        false => Err(EvalError::config(format!(
            "{}: a report takes at most {MAX_TRACES} traces; --means scores any number in one pass",
            path.display()
        ))),
    }
}

/// An expectation with sorted keys.
pub(crate) fn canonical_expectation(expect: Option<&Expectation>) -> String {
    let value = expect.and_then(|expect| serde_json::from_str::<Value>(expect.text()).ok());
    canonical(&value.unwrap_or_default())
}

/// The digest of tasks and expectations, not of the traces: two runs of the same tasks are measured on
/// the same data.
pub(crate) fn digest(expected: &BTreeSet<(String, String)>) -> Digest {
    let mut text = String::new();
    for (id, expect) in expected {
        text.push_str(&format!("{}\t{expect}\n", Value::from(id.as_str())));
    }
    Digest::of(text.as_bytes())
}

/// The text of a value with sorted keys.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            let parts: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(all) => {
            let parts: Vec<String> = all.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        plain => plain.to_string(),
    }
}
