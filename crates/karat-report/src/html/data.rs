//! The data block that the page's script reads.
//!
//! It holds what the tables and the inspector need, losslessly: an item can be rebuilt from it as it
//! stands in the report. What the table shows stands in columns over all items, what was observed stands
//! item by item, and both are packed, because a page of ten thousand items would be several times as
//! large otherwise. The text is safe inside a `script` element and shows no control or
//! direction-changing character even in the source.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use karat_core::report::{Better, CheckReport, Delta, Item, Report, Verdict};
use karat_io::text::printable;
use serde::Serialize;
use serde_json::{Value, json};

use super::kind::Kind;
use super::pack::{Packed, Packer};

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
    slices: Packed<'a>,
    /// Which items moved, by metric.
    flips: Vec<Flip<'a>>,
    /// The items behind checks that did not pass.
    blamed: BTreeSet<&'a str>,
    /// The names under which the scores of the items stand.
    scores: Vec<&'a str>,
    /// Lists over all items; null where an item has nothing of the kind.
    columns: BTreeMap<&'static str, Packed<'a>>,
    /// For each score its list over all items; false where an item has none, which is not null.
    scored: Vec<Packed<'a>>,
    /// What an item has of its own, read when it is looked at: the scores of each run, where there was
    /// more than one, and what was observed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    per_run: Vec<Packed<'a>>,
    observed: Vec<Packed<'a>>,
    texts: Vec<&'a str>,
    names: Vec<Vec<&'a str>>,
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
    improved: Packed<'a>,
    worsened: Packed<'a>,
}

/// What the packing refers to: the fields of the items as JSON, where they are not JSON already.
struct Source<'a> {
    slices: Value,
    columns: BTreeMap<&'static str, Value>,
    /// By name the items that have this score.
    scores: BTreeMap<&'a str, Vec<(usize, Value)>>,
    per_run: Vec<Value>,
    flips: Vec<(&'a Delta, [Value; 2])>,
}

/// The text of the block.
pub(super) fn block(check: &CheckReport, slugs: &[String]) -> Result<String, String> {
    let reports: Result<Vec<String>, serde_json::Error> =
        check.reports.iter().zip(slugs).map(|(report, slug)| one(report, slug)).collect();
    let reports = reports.map_err(|error| error.to_string())?;
    Ok(inert(&format!("{{\"reports\":[{}]}}", reports.join(","))))
}

fn one(report: &Report, slug: &str) -> Result<String, serde_json::Error> {
    let kind = Kind::of(report);
    let source = Source::of(report, kind);
    let mut packer = Packer::over(source.values().chain(observed(report)));
    let slices = packer.pack(&source.slices);
    let columns = source.columns.iter().map(|(name, column)| (*name, packer.pack(column)));
    let columns = columns.collect();
    let scored = source.scores.values().map(|scores| score_list(scores, report, &mut packer));
    let scored = scored.collect();
    let flips = source.flips.iter().map(|(delta, [improved, worsened])| Flip {
        metric: &delta.metric,
        slice: delta.slice.as_deref(),
        improved: packer.pack(improved),
        worsened: packer.pack(worsened),
    });
    let flips = flips.collect();
    let per_run = source.per_run.iter().map(|runs| packer.pack(runs)).collect();
    let observed = observed(report).map(|value| packer.pack(value)).collect();
    let (texts, names) = packer.into_parts();
    let scores: Vec<&str> = source.scores.keys().copied().collect();
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    serde_json::to_string(&ReportData {
        slug,
        evaluation: report.evaluation.name(),
        name: &report.name,
        kind,
        facet: kind.facet(),
        tones: kind.tones().iter().copied().collect(),
        metrics: metrics(report, &scores),
        slices,
        flips,
        blamed: checks
            .filter(|check| check.verdict != Verdict::Pass)
            .flat_map(|check| check.items.iter().map(String::as_str))
            .collect(),
        scores,
        columns,
        scored,
        per_run,
        observed,
        texts,
        names,
    })
}

fn observed(report: &Report) -> impl Iterator<Item = &Value> {
    report.items.iter().map(|item| &item.observed)
}

impl<'a> Source<'a> {
    fn of(report: &'a Report, kind: Kind) -> Source<'a> {
        let items = &report.items;
        let column = |of: &dyn Fn(&Item) -> Value| items.iter().map(of).collect::<Value>();
        let columns = BTreeMap::from([
            ("id", column(&|item| json!(item.id))),
            ("group", column(&|item| json!(item.group))),
            ("tags", column(&|item| json!(Some(&item.tags).filter(|tags| !tags.is_empty())))),
            ("error", column(&|item| json!(item.error))),
            ("facet", column(&|item| json!(kind.value(item)))),
        ]);
        let mut scores: BTreeMap<&str, Vec<(usize, Value)>> = BTreeMap::new();
        for (place, item) in items.iter().enumerate() {
            for (name, score) in &item.metrics {
                scores.entry(name).or_default().push((place, shortest(*score)));
            }
        }
        let deltas = report.comparison.iter().flat_map(|comparison| &comparison.deltas);
        let flips = deltas
            .filter(|delta| !(delta.improved.is_empty() && delta.worsened.is_empty()))
            .map(|delta| (delta, [json!(delta.improved), json!(delta.worsened)]))
            .collect();
        let per_run = match items.iter().all(|item| item.per_run.is_empty()) {
            true => Vec::new(),
            false => items.iter().map(runs).collect(),
        };
        Source { slices: json!(report.slices), columns, scores, per_run, flips }
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        let flips = self.flips.iter().flat_map(|(_, items)| items);
        self.columns.values().chain(flips).chain([&self.slices])
    }
}

/// The scores of each run.
fn runs(item: &Item) -> Value {
    let named = |run: &BTreeMap<String, Option<f64>>| -> Value {
        run.iter().map(|(name, score)| (name.clone(), shortest(*score))).collect()
    };
    item.per_run.iter().map(named).collect()
}

/// A score as JSON, without the `.0` of a whole number: a browser reads the same number.
fn shortest(score: Option<f64>) -> Value {
    let Some(score) = score else { return Value::Null };
    let whole = score.fract() == 0.0 && score.abs() < 1e15 && score.is_sign_positive();
    // The test above makes it exact.
    #[allow(clippy::cast_possible_truncation)]
    if whole { json!(score as i64) } else { json!(score) }
}

/// A score over all items.
fn score_list<'a>(
    scores: &'a [(usize, Value)],
    report: &Report,
    packer: &mut Packer<'a>,
) -> Packed<'a> {
    const ABSENT: Value = Value::Bool(false);
    let length = report.items.len();
    // A name that few items have must not cost a place for each of the others.
    if scores.len() * 2 < length {
        return packer.mostly(length, &ABSENT, scores.iter().map(|(place, score)| (*place, score)));
    }
    let mut all: Vec<&Value> = vec![&ABSENT; length];
    for (place, score) in scores {
        all[*place] = score;
    }
    packer.list(&all)
}

/// The headline metrics first, then what only the items have.
fn metrics<'a>(report: &'a Report, scores: &[&'a str]) -> Vec<Column<'a>> {
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
    fn whole_scores_are_short_and_nothing_is_rounded() {
        assert_eq!(shortest(Some(1.0)).to_string(), "1");
        assert_eq!(shortest(Some(-0.0)).to_string(), "-0.0");
        assert_eq!(shortest(Some(1e300)).to_string(), "1e+300");
        assert_eq!(shortest(Some(0.1)).to_string(), "0.1");
        assert_eq!(shortest(None), Value::Null);
    }
}
