//! Paired comparison of a report with earlier scores.
//!
//! The same items were scored before and after, so the difference is taken item by item: its mean
//! with an interval, a paired test, and the list of items that moved. Metrics that are not means
//! over items (precision, F1) get a difference without a test. Scores on different data are not
//! compared.

use std::collections::{BTreeMap, BTreeSet};

use karat_metrics::stats::{self, Alternative};

use crate::aggregate::{LEVEL, better, groups, paired_interval};
use crate::baseline::Baseline;
use crate::report::{Better, Comparison, DatasetRef, Delta, Interval, Item, Report};

/// Differences smaller than this are rounding, not change.
const NOTHING: f64 = 1e-12;

/// So many differing items are tested exactly whatever their values.
const EXACT: u32 = 24;

/// How many seeded permutations where the exact test is too large.
const PERMUTATIONS: u64 = 20_000;

/// A metric, over everything or over one slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The metric's id.
    pub metric: String,
    /// The slice.
    pub slice: Option<SliceKey>,
}

/// A slice by the property and its value; written `by=value`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceKey {
    /// The property.
    pub by: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Display for SliceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.by, self.value)
    }
}

impl std::str::FromStr for SliceKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((by, value)) if !by.is_empty() && !value.is_empty() => {
                Ok(SliceKey { by: by.to_owned(), value: value.to_owned() })
            }
            _ => {
                Err(format!("{text:?} is not a slice; write it as property=value, like split=test"))
            }
        }
    }
}

impl SliceKey {
    /// Whether an item belongs to the slice. It belongs to one for each of its tags, which stand in it
    /// in one line.
    pub fn holds(&self, item: &Item) -> bool {
        let tagged = |tags: &String| format!(", {tags}, ").contains(&format!(", {}, ", self.value));
        item.tags.get(&self.by) == Some(&self.value)
            || (self.by == "tag" && item.tags.get("tags").is_some_and(tagged))
    }
}

/// Why two sets of scores cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Different questions.
    #[error("{before} and {after} are different evaluations and cannot be compared")]
    Evaluation {
        /// The earlier.
        before: String,
        /// The later.
        after: String,
    },
    /// Different data.
    #[error(
        "the scores are of different data ({id} {before} before, {after} now) and cannot be \
         compared; measure both on one dataset version, or accept the new scores with \
         `karat baseline update`"
    )]
    Dataset {
        /// The dataset's name.
        id: String,
        /// Version and digest before.
        before: String,
        /// Version and digest after.
        after: String,
    },
    /// The same data, but not the same items.
    #[error(
        "the items differ although the dataset is the same: {missing} only before, {added} only \
         now (first: {first}); were they filtered?"
    )]
    Items {
        /// How many are gone.
        missing: usize,
        /// How many are new.
        added: usize,
        /// One of them.
        first: String,
    },
}

/// Compares the metrics that both sides have: the whole-set ones, and those of `slices`.
pub fn compare(
    before: &Baseline,
    after: &Report,
    slices: &[SliceKey],
) -> Result<Comparison, CompareError> {
    comparable(before, after)?;
    let mut selectors: Vec<Selector> = after
        .metrics
        .iter()
        .filter(|metric| before.metric(&metric.id).is_some())
        .map(|metric| Selector { metric: metric.id.clone(), slice: None })
        .collect();
    for key in slices {
        let ids = after
            .slices
            .iter()
            .filter(|slice| slice.by == key.by && slice.value == key.value)
            .flat_map(|slice| &slice.metrics)
            .filter(|metric| before.slice_metric(&key.by, &key.value, &metric.id).is_some());
        selectors.extend(
            ids.map(|metric| Selector { metric: metric.id.clone(), slice: Some(key.clone()) }),
        );
    }
    let earlier: BTreeMap<&str, &BTreeMap<String, Option<f64>>> =
        before.items.iter().map(|item| (item.id.as_str(), &item.metrics)).collect();
    let mut deltas: Vec<Delta> =
        selectors.iter().map(|selector| delta(selector, before, &earlier, after)).collect();

    // Holm within one slice at a time: those are the metrics that are read, and gated, together.
    let families: BTreeSet<Option<String>> = deltas.iter().map(|d| d.slice.clone()).collect();
    for family in families {
        let members: Vec<usize> = (0..deltas.len())
            .filter(|&n| deltas[n].slice == family && deltas[n].p_value.is_some())
            .collect();
        let p: Vec<f64> = members.iter().filter_map(|&n| deltas[n].p_value).collect();
        for (&n, adjusted) in members.iter().zip(stats::holm(&p)) {
            deltas[n].p_holm = Some(adjusted);
        }
    }
    Ok(Comparison {
        against: format!(
            "{} {} on {} {}",
            before.evaluation, before.name, before.dataset.id, before.dataset.version
        ),
        deltas,
    })
}

/// Refuses to compare what is not of one kind.
pub fn comparable(before: &Baseline, after: &Report) -> Result<(), CompareError> {
    if before.evaluation != after.evaluation {
        return Err(CompareError::Evaluation {
            before: before.evaluation.to_string(),
            after: after.evaluation.to_string(),
        });
    }
    same_data(&before.dataset, &after.dataset)?;
    let old: BTreeSet<&str> = before.items.iter().map(|item| item.id.as_str()).collect();
    let new: BTreeSet<&str> = after.items.iter().map(|item| item.id.as_str()).collect();
    if let Some(first) = old.symmetric_difference(&new).next() {
        return Err(CompareError::Items {
            missing: old.difference(&new).count(),
            added: new.difference(&old).count(),
            first: (*first).to_owned(),
        });
    }
    Ok(())
}

/// Refuses to compare scores on different data.
pub fn same_data(before: &DatasetRef, after: &DatasetRef) -> Result<(), CompareError> {
    if before.digest == after.digest {
        return Ok(());
    }
    let text = |dataset: &DatasetRef| {
        let short: String = dataset.digest.chars().take(19).collect();
        format!("{} {short}…", dataset.version)
    };
    Err(CompareError::Dataset { id: after.id.clone(), before: text(before), after: text(after) })
}

/// One item's score before and after.
pub(crate) struct Pair<'a> {
    pub(crate) item: &'a Item,
    pub(crate) before: f64,
    pub(crate) after: f64,
}

/// The items of a selector on which the metric is defined on both sides.
pub(crate) fn pairs<'a>(
    metric: &str,
    slice: Option<&SliceKey>,
    earlier: &BTreeMap<&str, &BTreeMap<String, Option<f64>>>,
    after: &'a Report,
) -> Vec<Pair<'a>> {
    after
        .items
        .iter()
        .filter(|item| slice.is_none_or(|slice| slice.holds(item)))
        .filter_map(|item| {
            let now = item.metrics.get(metric).copied().flatten()?;
            let then = earlier.get(item.id.as_str())?.get(metric).copied().flatten()?;
            Some(Pair { item, before: then, after: now })
        })
        .collect()
}

fn delta(
    selector: &Selector,
    before: &Baseline,
    earlier: &BTreeMap<&str, &BTreeMap<String, Option<f64>>>,
    after: &Report,
) -> Delta {
    let id = &selector.metric;
    let (then, now) = match &selector.slice {
        None => (
            before.metric(id).and_then(|metric| metric.value),
            after.metric(id).and_then(|metric| metric.value),
        ),
        Some(SliceKey { by, value }) => (
            before.slice_metric(by, value, id).and_then(|metric| metric.value),
            after.slice_metric(by, value, id).and_then(|metric| metric.value),
        ),
    };
    let better = better(id);
    let pairs = pairs(id, selector.slice.as_ref(), earlier, after);
    let differences: Vec<f64> = pairs.iter().map(|pair| pair.after - pair.before).collect();
    let moved = |wanted: fn(f64) -> bool| -> Vec<String> {
        let sign = if better == Better::Higher { 1.0 } else { -1.0 };
        pairs
            .iter()
            .filter(|pair| wanted(sign * (pair.after - pair.before)))
            .map(|pair| pair.item.id.clone())
            .collect()
    };
    let (p_value, test) = paired_test(&pairs, &differences, after.seed).unzip();
    Delta {
        metric: id.clone(),
        slice: selector.slice.as_ref().map(ToString::to_string),
        before: then,
        after: now,
        delta: then.zip(now).map(|(then, now)| now - then),
        better,
        interval: difference_interval(&pairs, &differences, after.seed),
        p_value,
        p_holm: None,
        test: test.map(str::to_owned),
        pairs: pairs.len() as u64,
        improved: moved(|gain| gain > NOTHING),
        worsened: moved(|gain| gain < -NOTHING),
    }
}

/// McNemar's exact test where every score is 0 or 1, sign flips otherwise.
fn paired_test(pairs: &[Pair<'_>], differences: &[f64], seed: u64) -> Option<(f64, &'static str)> {
    if pairs.is_empty() {
        return None;
    }
    let binary = |value: f64| value == 0.0 || value == 1.0;
    if pairs.iter().all(|pair| binary(pair.before) && binary(pair.after)) {
        let only_before = pairs.iter().filter(|pair| pair.before > pair.after).count() as u64;
        let only_after = pairs.iter().filter(|pair| pair.after > pair.before).count() as u64;
        return Some((stats::mcnemar_exact(only_before, only_after), "mcnemar_exact"));
    }
    let test =
        stats::sign_flip(differences, Alternative::TwoSided, EXACT, PERMUTATIONS, seed).ok()?;
    Some((test.p, if test.exact { "sign_flip_exact" } else { "sign_flip_seeded" }))
}

fn difference_interval(pairs: &[Pair<'_>], differences: &[f64], seed: u64) -> Option<Interval> {
    if pairs.is_empty() {
        return None;
    }
    if differences.iter().all(|difference| difference.abs() <= NOTHING) {
        return Some(Interval {
            low: 0.0,
            high: 0.0,
            level: LEVEL,
            method: "no_change".to_owned(),
        });
    }
    paired_interval(differences, &groups(pairs.iter().map(|pair| pair.item)), seed)
}
