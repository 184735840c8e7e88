//! Paired comparison of a report with earlier scores.
//!
//! The same items were scored before and after, so the difference is taken item by item: its mean
//! with an interval, a paired test, and the list of items that moved. Metrics that are not means
//! over items (precision, F1) get a difference without interval and test. Where the data changed, the
//! items that are the same are compared and the rest is named (the module `align`).

use std::collections::{BTreeMap, BTreeSet};

use karat_metrics::MetricId;
use karat_metrics::stats::{self, Alternative};

use crate::aggregate::{LEVEL, better};
use crate::align::align;
use crate::baseline::Baseline;
use crate::dataset::DataChange;
use crate::kind::Kind;
use crate::paired::{Headlines, ItemScores, Pair, Paired, ROUNDING, scores};
use crate::report::{
    Better, Comparison, Delta, Interval, Item, NotCompared, Report, Scores, SystemRef,
};
pub use crate::slice_key::SliceKey;
use karat_io::text::{count, first_few, printable};

/// Up to this many differing items are tested exactly, whatever their values.
pub(crate) const EXACT: u32 = 24;

/// Fewer groups than this are too few to draw from: two of them would often give an interval of no width.
const FEWEST_TO_DRAW: usize = 6;

/// The most items that are named as found by one of two runs.
const NAMED: usize = 3;

/// The number of seeded permutations where the exact test is too large.
pub(crate) const PERMUTATIONS: u64 = 20_000;

/// A metric, over everything or over one slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The metric's id.
    pub metric: MetricId,
    /// The slice.
    pub slice: Option<SliceKey>,
}

/// The reason why two sets of scores cannot be compared.
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
        "the scores are of different data ({} before, {} now) and cannot be compared: {}; measure \
         both on one dataset version, or accept the new scores with `karat baseline update`",
        printable(before),
        printable(after),
        printable(why)
    )]
    Dataset {
        /// Name, version and digest before.
        before: String,
        /// Name, version and digest after.
        after: String,
        /// The reason that nothing can be paired.
        why: String,
    },
    /// An item that cannot be paired.
    #[error("item {id:?} is listed twice {side}, so it cannot be compared")]
    Twice {
        /// The one.
        id: String,
        /// Before or now.
        side: &'static str,
    },
    /// The same data, but not the same items.
    #[error(
        "the items differ although the dataset is the same: {missing} only before, {added} only \
         now (first: {}); were they filtered?",
        printable(first)
    )]
    Items {
        /// The number that are gone.
        missing: usize,
        /// The number that are new.
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
    let aligned = align(before, after)?;
    let over_fewer = aligned.over_fewer(before, after);
    let (before, after) = (aligned.before.as_ref(), aligned.after.as_ref());
    let can = |id: &str| !aligned.depth.is_some_and(|depth| depth.affects(id));
    let both = |id: &str| before.metric(id).is_some();
    let mut selectors: Vec<Selector> = after
        .metrics
        .iter()
        .filter(|metric| both(&metric.id) && can(&metric.id))
        .map(|metric| Selector { metric: metric.id.clone(), slice: None })
        .collect();
    for key in slices {
        let ids = after
            .slices
            .iter()
            .filter(|slice| slice.by == key.by && slice.value == key.value)
            .flat_map(|slice| &slice.metrics)
            .filter(|metric| before.slice_metric(&key.by, &key.value, &metric.id).is_some())
            .filter(|metric| can(&metric.id));
        selectors.extend(
            ids.map(|metric| Selector { metric: metric.id.clone(), slice: Some(key.clone()) }),
        );
    }
    let earlier = scores(before);
    let mut deltas: Vec<Delta> =
        selectors.iter().map(|selector| delta(selector, before, &earlier, after)).collect();

    correct(&mut deltas, None);
    Ok(Comparison {
        against: format!(
            "{} {} on {} {}",
            before.evaluation, before.name, before.dataset.id, before.dataset.version
        ),
        not_compared: {
            let ids = after.metrics.iter().map(|metric| &metric.id).filter(|id| both(id));
            let by_depth = aligned.depth.and_then(|depth| depth.not_compared(ids));
            by_depth.into_iter().chain(over_fewer).reduce(|one, other| NotCompared {
                metrics: [one.metrics, other.metrics].concat(),
                reason: format!("{}; {}", one.reason, other.reason),
            })
        },
        changed: changed(before, after),
        runs_before: Some(before.runs).filter(|runs| *runs != after.runs),
        before: earlier_scores(before, after, &deltas),
        deltas,
        data: aligned.data.filter(|data| *data != DataChange::default()),
    })
}

/// The differences between two measurements apart from data and scores.
fn changed(before: &Baseline, after: &Report) -> Vec<String> {
    let mut changed = Vec::new();
    let named = |system: &SystemRef| match &system.version {
        Some(version) => format!("{} {version}", system.name),
        None => system.name.clone(),
    };
    let (was, is) = (named(&before.system), named(&after.system));
    if was != is {
        changed.push(format!("system {was} → {is}"));
    }
    let keys: BTreeSet<&String> =
        before.system.settings.keys().chain(after.system.settings.keys()).collect();
    for key in keys {
        let value = |system: &SystemRef| {
            system.settings.get(key).cloned().unwrap_or_else(|| "nothing".to_owned())
        };
        let (was, is) = (value(&before.system), value(&after.system));
        if was != is {
            changed.push(format!("{key} {was} → {is}"));
        }
    }
    changed.extend(found(before, after));
    if before.runs != after.runs {
        changed.push(format!("runs {} → {}", before.runs, after.runs));
    }
    if before.seed != after.seed {
        changed.push(format!("seed {} → {}", before.seed, after.seed));
    }
    changed
}

/// The items that only one of two runs found. That one lasted for more seconds says nothing.
fn found(before: &Baseline, after: &Report) -> Vec<String> {
    if !after.kind.finds_items() || after.kind == Kind::Load {
        return Vec::new();
    }
    let old: BTreeSet<&str> = before.items.iter().map(|item| item.id.as_str()).collect();
    let new: BTreeSet<&str> = after.items.iter().map(|item| item.id.as_str()).collect();
    let (added, gone): (Vec<&str>, Vec<&str>) =
        (new.difference(&old).copied().collect(), old.difference(&new).copied().collect());
    [("added", added), ("gone", gone)]
        .into_iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(what, ids)| {
            format!("{} {what} ({})", count(ids.len(), "item"), first_few(&ids, NAMED))
        })
        .collect()
}

/// The earlier scores of the items that moved, as far as they differ.
fn earlier_scores(before: &Baseline, after: &Report, deltas: &[Delta]) -> BTreeMap<String, Scores> {
    let moved: BTreeSet<&String> = deltas
        .iter()
        .flat_map(|delta| delta.worsened.iter().chain(&delta.improved).chain(&delta.lost))
        .collect();
    let now: BTreeMap<&String, &Item> = after.items.iter().map(|item| (&item.id, item)).collect();
    let mut scores = BTreeMap::new();
    for item in before.items.iter().filter(|item| moved.contains(&item.id)) {
        let Some(now) = now.get(&item.id) else { continue };
        let differs = |id: &MetricId, score: &Option<f64>| now.metrics.get(id) != Some(score);
        let own = item.metrics.iter().filter(|(id, score)| differs(id, score));
        scores.insert(item.id.clone(), own.map(|(id, score)| (id.clone(), *score)).collect());
    }
    scores
}

impl Comparison {
    /// Makes one metric the question that is asked: its test stands alone, and Holm's correction is over
    /// the others. Returns false if it was not compared.
    pub fn set_primary(&mut self, id: &str) -> bool {
        correct(&mut self.deltas, Some(id));
        self.deltas.iter().any(|delta| delta.metric == id)
    }
}

/// Holm within one slice at a time: those are the metrics that are read, and gated, together. The
/// primary metric is a family of its own.
fn correct(deltas: &mut [Delta], primary: Option<&str>) {
    let family = |delta: &Delta| (delta.slice.clone(), Some(delta.metric.as_str()) == primary);
    let families: BTreeSet<(Option<String>, bool)> = deltas.iter().map(family).collect();
    for one in families {
        let members: Vec<usize> = (0..deltas.len())
            .filter(|&n| family(&deltas[n]) == one && deltas[n].p_value.is_some())
            .collect();
        let p: Vec<f64> = members.iter().filter_map(|&n| deltas[n].p_value).collect();
        for (&n, adjusted) in members.iter().zip(stats::holm(&p)) {
            deltas[n].p_holm = Some(adjusted);
        }
    }
}

pub(crate) fn delta(
    selector: &Selector,
    before: &Baseline,
    earlier: &ItemScores<'_>,
    after: &Report,
) -> Delta {
    let id = &selector.metric;
    let headlines = match &selector.slice {
        None => Headlines {
            before: before.metric(id).and_then(|metric| metric.value),
            after: after.metric(id).and_then(|metric| metric.value),
        },
        Some(SliceKey { by, value }) => Headlines {
            before: before.slice_metric(by, value, id).and_then(|metric| metric.value),
            after: after.slice_metric(by, value, id).and_then(|metric| metric.value),
        },
    };
    let better = better(id);
    let paired = Paired::new(id, selector.slice.as_ref(), earlier, after, headlines);
    let moved = |wanted: fn(f64) -> bool| -> Vec<String> {
        let sign = if better == Better::Higher { 1.0 } else { -1.0 };
        let wanted = paired.pairs.iter().filter(|pair| wanted(sign * pair.change()));
        wanted.map(|pair| pair.item.id.clone()).collect()
    };
    let (p_value, test) = paired_test(&paired, after.seed).unzip();
    let (interval, no_interval) = match interval(&paired, after.seed) {
        Ok(interval) => (interval, None),
        Err(reason) => (None, Some(reason)),
    };
    Delta {
        metric: id.clone(),
        slice: selector.slice.as_ref().map(ToString::to_string),
        before: headlines.before,
        after: headlines.after,
        delta: paired.delta(),
        better,
        interval,
        no_interval,
        p_value,
        p_holm: None,
        test: test.map(str::to_owned),
        pairs: paired.pairs.len() as u64,
        improved: moved(|gain| gain > ROUNDING),
        worsened: moved(|gain| gain < -ROUNDING),
        lost: paired.lost,
        gained: paired.gained,
    }
}

/// McNemar's exact test where every score is 0 or 1 and no two items share a group, sign flips of
/// items or groups otherwise; none where the change is not that of the items.
fn paired_test(paired: &Paired<'_>, seed: u64) -> Option<(f64, &'static str)> {
    let pairs = &paired.pairs;
    if pairs.is_empty() || !paired.is_mean() {
        return None;
    }
    let blocks = paired.blocks(Pair::change);
    let binary = |value: f64| value == 0.0 || value == 1.0;
    if blocks.len() == pairs.len()
        && pairs.iter().all(|pair| binary(pair.before) && binary(pair.after))
    {
        let only_before = pairs.iter().filter(|pair| pair.before > pair.after).count() as u64;
        let only_after = pairs.iter().filter(|pair| pair.after > pair.before).count() as u64;
        return Some((stats::mcnemar_exact(only_before, only_after), "mcnemar_exact"));
    }
    let test = stats::sign_flip(&blocks, Alternative::TwoSided, EXACT, PERMUTATIONS, seed).ok()?;
    Some((test.p, if test.exact { "sign_flip_exact" } else { "sign_flip_seeded" }))
}

/// The interval of a change; none where the value is not a mean of items.
///
/// # Errors
/// The reason, where all items or groups changed alike: nothing is known of their spread.
fn interval(paired: &Paired<'_>, seed: u64) -> Result<Option<Interval>, String> {
    if paired.pairs.is_empty() || !paired.is_mean() {
        return Ok(None);
    }
    if paired.pairs.iter().all(|pair| pair.change().abs() <= ROUNDING) {
        return Ok(Some(Interval {
            low: 0.0,
            high: 0.0,
            level: LEVEL,
            method: "no_change".to_owned(),
        }));
    }
    let (items, blocks) = (paired.pairs.len(), paired.blocks(Pair::change).len());
    if blocks < FEWEST_TO_DRAW && blocks < items {
        return paired.interval_of_few_groups().map(Some).ok_or_else(|| {
            format!(
                "{blocks} groups of items that succeed or fail together changed in the same way: too \
                 few for an interval"
            )
        });
    }
    paired.interval(seed).map(Some).ok_or_else(|| match items {
        1 => "one item is too few for an interval".to_owned(),
        _ if blocks < items => format!(
            "all {blocks} groups of items that succeed or fail together changed by the same amount: the \
             spread of others is unknown"
        ),
        _ => format!(
            "all {items} items changed by the same amount: the spread of others is unknown"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_belongs_to_the_slice_of_each_of_its_tags() {
        let item = Item {
            id: "a".to_owned(),
            tags: BTreeMap::from([("tags".to_owned(), "errors, state".to_owned())]),
            ..Item::default()
        };
        let holds = |slice: &str| slice.parse::<SliceKey>().unwrap().holds(&item);
        assert!(holds("tag=errors") && holds("tag=state") && holds("tags=errors, state"));
        assert!(!holds("tag=error") && !holds("tag=time") && !holds("tool=errors"));
    }
}
