//! One span, as far as it is read.

use serde_json::{Map, Value};

/// The part of a span that is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) name: String,
    /// The instrumentation that made it, if that is known.
    pub(super) scope: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) start: u128,
    pub(super) end: u128,
    pub(super) attributes: Map<String, Value>,
    /// Events by name, each with its attributes.
    pub(super) events: Vec<(String, Map<String, Value>)>,
    pub(super) failed: Option<String>,
    /// True if the status says that it went well, which most exporters leave open.
    pub(super) succeeded: bool,
    /// True for a log record, which belongs to the span with its id.
    pub(crate) is_log: bool,
}

impl Span {
    pub(super) fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.attributes.get(*key)?.as_str())
    }

    pub(super) fn number(&self, keys: &[&str]) -> Option<u64> {
        let number = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            // Counts are whole, also where they are written as 30.0.
            value => value.as_u64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok()),
        };
        keys.iter().find_map(|key| number(self.attributes.get(*key)?))
    }

    /// An attribute under one of its names, on the span or in one of its events.
    pub(super) fn anywhere(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().find_map(|key| {
            let in_events = || self.events.iter().find_map(|(_, attributes)| attributes.get(*key));
            self.attributes.get(*key).or_else(in_events).filter(|value| !value.is_null())
        })
    }

    pub(super) fn lasts_through(&self, other: &Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}
