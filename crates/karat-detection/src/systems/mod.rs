//! The adapters: one file for each way to reach a scanner.

pub(crate) mod answer;
pub(crate) mod batch;
mod batch_config;
pub(crate) mod builtin;
mod canary;
pub(crate) mod command;
mod documents;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod sarif;
mod starts;
pub(crate) mod verdicts;
#[cfg(feature = "yara")]
pub(crate) mod yara;

use karat_core::observed::DetectorFinding;
use karat_io::text::{clip, printable};
use serde_json::Value;

/// The most characters of a scanner's words that are kept.
const KEPT: usize = 500;

/// A scanner's words, safe to show and of bounded length.
pub(crate) fn text(said: &str) -> String {
    let start = said.floor_char_boundary(4 * KEPT);
    clip(&printable(&said[..start]), KEPT).into_owned()
}

/// The error of a scanner that did not do its work.
pub(crate) fn not_started(reason: impl std::fmt::Display) -> karat_core::error::EvalError {
    let message = format!("the system did not do its work: {reason}");
    karat_core::error::EvalError::NotStarted(message)
}

/// A finding in whatever shape a scanner writes it.
pub(crate) fn evidence(value: &Value) -> DetectorFinding {
    if let Value::String(message) = value {
        return DetectorFinding { message: text(message), ..DetectorFinding::default() };
    }
    let first = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| match value.get(key)? {
            Value::String(said) => Some(text(said)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            other => Some(other.to_string()),
        });
        found.unwrap_or_default()
    };
    DetectorFinding {
        rule: first(&["rule", "rule_id", "ruleId", "id", "type", "check", "name"]),
        severity: first(&["severity", "level", "tier"]),
        message: first(&["message", "description", "title", "summary", "category", "text"]),
        place: first(&["place", "location", "field", "path", "content_type"]),
        excerpt: first(&["excerpt", "evidence", "match", "snippet"]),
        ..DetectorFinding::default()
    }
}
