//! The data block that the page's script reads.
//!
//! It holds what the tables and the inspector need, losslessly: an item can be rebuilt from it as it
//! stands in the report. Scores become rows under one list of names and lists of alike objects become
//! tables, because a page of ten thousand items would be twice as large otherwise. The text is safe
//! inside a `script` element and shows no control or direction-changing character even in the source.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use karat_core::report::{Better, CheckReport, Delta, Item, ItemError, Report, Slice, Verdict};
use karat_core::text::printable;
use serde::Serialize;
use serde_json::Value;

use super::kind::Kind;

#[derive(Serialize)]
struct Data<'a> {
    reports: Vec<ReportData<'a>>,
}

#[derive(Serialize)]
struct ReportData<'a> {
    slug: &'a str,
    evaluation: &'static str,
    name: &'a str,
    /// What the items are about.
    kind: Kind,
    /// The property by which a reader sorts the items out first.
    #[serde(skip_serializing_if = "Option::is_none")]
    facet: Option<&'static str>,
    /// The values of it that have a look of their own.
    tones: BTreeMap<&'static str, &'static str>,
    /// The metrics in the order of the columns.
    metrics: Vec<Column<'a>>,
    slices: &'a [Slice],
    /// The names under which the scores of the items stand.
    scores: Vec<&'a str>,
    items: Vec<ItemData<'a>>,
    /// Which items moved, by metric.
    flips: Vec<Flip<'a>>,
    /// The items behind checks that did not pass.
    blamed: BTreeSet<&'a str>,
}

#[derive(Serialize)]
struct Column<'a> {
    id: &'a str,
    better: Better,
    /// The definition in the legend, where there is one.
    legend: Option<&'static str>,
}

#[derive(Serialize)]
struct Flip<'a> {
    metric: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<&'a str>,
    improved: &'a [String],
    worsened: &'a [String],
}

/// An item with the fields of the report, packed.
#[derive(Serialize)]
struct ItemData<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: &'a BTreeMap<String, String>,
    metrics: Scores<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    per_run: Vec<Scores<'a>>,
    observed: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ItemError>,
    /// The value of the report's facet.
    #[serde(skip_serializing_if = "Option::is_none")]
    facet: Option<&'a str>,
}

/// Scores as a row under the common names where the item has most of them, else with its own names.
#[derive(Serialize)]
#[serde(untagged)]
enum Scores<'a> {
    Row(Vec<Score>),
    Named(&'a BTreeMap<String, Option<f64>>),
}

/// A score in a row; `false` where the item has none of this name, which is not the same as null.
#[derive(Serialize)]
#[serde(untagged)]
enum Score {
    Value(Option<f64>),
    Absent(bool),
}

/// The text of the block.
pub(super) fn block(check: &CheckReport, slugs: &[String]) -> Result<String, String> {
    let reports = check.reports.iter().zip(slugs).map(|(report, slug)| one(report, slug)).collect();
    let json = serde_json::to_string(&Data { reports }).map_err(|error| error.to_string())?;
    Ok(inert(&json))
}

fn one<'a>(report: &'a Report, slug: &'a str) -> ReportData<'a> {
    let scores: BTreeSet<&str> =
        report.items.iter().flat_map(|item| item.metrics.keys().map(String::as_str)).collect();
    let scores: Vec<&str> = scores.into_iter().collect();
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    let kind = Kind::of(report);
    ReportData {
        kind,
        facet: kind.facet(),
        tones: kind.tones().iter().copied().collect(),
        slug,
        evaluation: report.evaluation.name(),
        name: &report.name,
        metrics: columns(report, &scores),
        slices: &report.slices,
        items: report.items.iter().map(|item| packed(item, &scores, kind)).collect(),
        scores,
        flips: report
            .comparison
            .iter()
            .flat_map(|comparison| &comparison.deltas)
            .filter(|delta| !(delta.improved.is_empty() && delta.worsened.is_empty()))
            .map(flip)
            .collect(),
        blamed: checks
            .filter(|check| check.verdict != Verdict::Pass)
            .flat_map(|check| check.items.iter().map(String::as_str))
            .collect(),
    }
}

/// The headline metrics first, then what only the items have.
fn columns<'a>(report: &'a Report, scores: &[&'a str]) -> Vec<Column<'a>> {
    let headline = report.metrics.iter().map(|metric| (metric.id.as_str(), metric.better));
    let others = scores.iter().filter(|id| report.metric(id).is_none()).map(|id| {
        (*id, karat_metrics::registry::find(id).map_or(Better::Higher, |m| m.better.into()))
    });
    headline
        .chain(others)
        .map(|(id, better)| Column {
            id,
            better,
            legend: karat_metrics::registry::find(id).map(|metric| metric.id),
        })
        .collect()
}

fn flip(delta: &Delta) -> Flip<'_> {
    Flip {
        metric: &delta.metric,
        slice: delta.slice.as_deref(),
        improved: &delta.improved,
        worsened: &delta.worsened,
    }
}

fn packed<'a>(item: &'a Item, names: &[&str], kind: Kind) -> ItemData<'a> {
    ItemData {
        id: &item.id,
        group: item.group.as_deref(),
        tags: &item.tags,
        metrics: row(&item.metrics, names),
        per_run: item.per_run.iter().map(|run| row(run, names)).collect(),
        observed: pack(&item.observed),
        error: item.error.as_ref(),
        facet: kind.value(item),
    }
}

fn row<'a>(scores: &'a BTreeMap<String, Option<f64>>, names: &[&str]) -> Scores<'a> {
    let common = names.iter().filter(|name| scores.contains_key(**name)).count();
    if common < scores.len() || common * 2 < names.len() {
        return Scores::Named(scores);
    }
    let score = |name: &&str| match scores.get(*name) {
        Some(value) => Score::Value(*value),
        None => Score::Absent(false),
    };
    Scores::Row(names.iter().map(score).collect())
}

/// A list becomes `[0, …]`, or `[1, [keys], cells…]` if it is of objects with the same keys. The
/// first number tells which, so no value of the report can be mistaken for the packing.
fn pack(value: &Value) -> Value {
    match value {
        Value::Array(values) => match table_keys(values) {
            Some(keys) => {
                let keys = keys.iter().map(|key| Value::from(key.as_str())).collect();
                let cells = values.iter().filter_map(Value::as_object).flat_map(|row| row.values());
                [Value::from(1), Value::Array(keys)].into_iter().chain(cells.map(pack)).collect()
            }
            None => [Value::from(0)].into_iter().chain(values.iter().map(pack)).collect(),
        },
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), pack(value))).collect()
        }
        other => other.clone(),
    }
}

/// The keys that all the objects of a list have, in the same order.
fn table_keys(values: &[Value]) -> Option<Vec<&String>> {
    let first: Vec<&String> = values.first()?.as_object()?.keys().collect();
    let alike =
        |value: &Value| value.as_object().is_some_and(|row| row.keys().eq(first.iter().copied()));
    (values.len() > 1 && !first.is_empty() && values.iter().all(alike)).then_some(first)
}

/// JSON that cannot end the element it stands in, nor hide anything from who reads the source.
fn inert(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 64);
    let mut buffer = [0_u8; 4];
    for character in json.chars() {
        let visible = match character {
            '<' => false,
            ' '..='~' => true,
            other => matches!(printable(other.encode_utf8(&mut buffer)), Cow::Borrowed(_)),
        };
        if visible {
            text.push(character);
            continue;
        }
        // Outside of strings JSON is plain ASCII without `<`, so this is always inside one.
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn escaped_text_is_the_same_json() {
        let value =
            json!({"</script><!--": "a\u{2028}b\u{202e}c\u{e0041}d\u{7f}e\u{0}\n\u{1b}[0m"});
        let text = inert(&value.to_string());
        assert!(!text.contains('<') && text.is_ascii());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn what_is_harmless_stays_readable() {
        assert_eq!(inert(r#"{"q":"Größe 漢字 🙂"}"#), r#"{"q":"Größe 漢字 🙂"}"#);
    }

    #[test]
    fn lists_of_alike_objects_become_tables() {
        let packed = pack(&json!([{"a": 1, "b": [2]}, {"a": 3, "b": []}]));
        assert_eq!(packed, json!([1, ["a", "b"], 1, [0, 2], 3, [0]]));
        assert_eq!(pack(&json!([{"a": 1}])), json!([0, {"a": 1}]));
        assert_eq!(pack(&json!([{"a": 1}, {"b": 1}])), json!([0, {"a": 1}, {"b": 1}]));
        assert_eq!(pack(&json!([{}, {}])), json!([0, {}, {}]));
        assert_eq!(pack(&json!([1, ["a"], 2])), json!([0, 1, [0, "a"], 2]));
    }
}
