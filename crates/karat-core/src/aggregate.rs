//! From scored items to metrics with intervals.
//!
//! Every evaluation scores item by item and lets this module average: over the items for a value,
//! run by run for the spread, with the interval that suits the kind of metric. An item on which a
//! metric is undefined is left out of the mean and counted.

use std::collections::BTreeMap;

use karat_metrics::MetricId;
use karat_metrics::registry::{self, MetricKind};
use karat_metrics::stats::{self, Bootstrap, ClusteredRate};

pub use crate::report::LEVEL;
use crate::report::{Better, Count, Groups, Interval, Item, Measured, Property, Slice};

/// The relative distance within which a mean of scores counts as equal to a value.
const SAME: f64 = 1e-9;

/// Returns whether a value is the mean of scores, but for rounding.
pub(crate) fn is_near(value: f64, mean: f64) -> bool {
    (mean - value).abs() <= SAME * value.abs().max(1.0)
}

/// Averages a score over tasks, drawn again by tasks for the interval; what is listed twice under one
/// name is drawn together.
pub fn over_tasks<'a>(
    id: &MetricId,
    scores: impl IntoIterator<Item = (&'a str, Option<f64>)>,
    seed: u64,
) -> Measured {
    let items: Vec<Item> = scores
        .into_iter()
        .map(|(task, score)| Item {
            id: task.to_owned(),
            group: Some(task.to_owned()),
            metrics: BTreeMap::from([(id.clone(), score)]),
            ..Item::default()
        })
        .collect();
    measure(id, &items.iter().collect::<Vec<_>>(), 1, seed)
}

/// Averages one metric over items. The registry says whether it is a rate, with Wilson's interval (for the
/// effective number of items where they share groups), or a mean, with one from a bootstrap over the items
/// (by groups where they share one). A rate whose items are hit in part, as a task in some of its runs, is
/// a mean.
pub fn measure(id: &MetricId, items: &[&Item], runs: u32, seed: u64) -> Measured {
    let mut carried = 0;
    let mut scored: Vec<(&Item, f64)> = Vec::with_capacity(items.len());
    for item in items {
        if let Some(value) = item.metrics.get(id) {
            carried += 1;
            scored.extend(value.map(|value| (*item, value)));
        }
    }
    let values: Vec<f64> = scored.iter().map(|(_, value)| *value).collect();
    let value = stats::mean(&values).ok();

    let is_rate = id.definition().is_some_and(|metric| metric.kind == MetricKind::Rate);
    let whole = |value: &f64| *value == 0.0 || *value == 1.0;
    let count = (is_rate && runs == 1 && values.iter().all(whole)).then(|| count(&scored));
    Measured {
        id: id.clone(),
        value,
        n: values.len() as u64,
        better: better(id),
        per_run: per_run(id, &scored, runs),
        interval: interval(count, &scored, &values, seed),
        count,
        undefined: value.is_none().then(|| {
            if carried == 0 {
                "no item carries this metric".to_owned()
            } else {
                "undefined on every item".to_owned()
            }
        }),
        left_out: (carried - values.len()) as u64,
    }
}

/// A value as a metric over `n` items or calls; `undefined` is the reason where there is none.
#[must_use]
pub fn value(id: MetricId, value: Option<f64>, n: u64, undefined: &str) -> Measured {
    Measured {
        better: better(&id),
        id,
        value,
        n,
        per_run: Vec::new(),
        interval: None,
        count: None,
        undefined: value.is_none().then(|| undefined.to_owned()),
        left_out: 0,
    }
}

/// Averages all metrics over the items of each value of a tag, sorted by that value.
pub fn slices(by: Property, ids: &[MetricId], items: &[Item], runs: u32, seed: u64) -> Vec<Slice> {
    let mut parts: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        if let Some(value) = item.tag(by) {
            parts.entry(value).or_default().push(item);
        }
    }
    parts
        .into_iter()
        .map(|(value, part)| Slice {
            by: by.into(),
            value: value.to_owned(),
            metrics: ids.iter().map(|id| measure(id, &part, runs, seed)).collect(),
        })
        .collect()
}

/// The direction of a metric as the registry gives it; higher for one that is not in it.
pub fn better(id: &str) -> Better {
    registry::find(id).map_or(Better::Higher, |metric| metric.better.into())
}

fn per_run(id: &str, scored: &[(&Item, f64)], runs: u32) -> Vec<Option<f64>> {
    if runs == 1 {
        let values: Vec<f64> = scored.iter().map(|(_, value)| *value).collect();
        return vec![stats::mean(&values).ok()];
    }
    (0..runs as usize)
        .map(|run| {
            let values: Vec<f64> = scored
                .iter()
                .filter_map(|(item, _)| item.per_run.get(run)?.get(id).copied().flatten())
                .collect();
            stats::mean(&values).ok()
        })
        .collect()
}

/// The counts of a rate over items, with their groups where items share any.
fn count(scored: &[(&Item, f64)]) -> Count {
    let groups = groups(scored.iter().map(|(item, _)| *item));
    let hits = scored.iter().map(|(_, value)| *value == 1.0);
    count_trials(groups.into_iter().zip(hits))
}

/// The counts of trials, each with the number of its group. Trials of which no two share a group,
/// or that all share one, are independent.
pub fn count_trials(trials: impl IntoIterator<Item = (usize, bool)>) -> Count {
    let trials: Vec<(usize, bool)> = trials.into_iter().collect();
    let hits = trials.iter().filter(|(_, hit)| *hit).count() as u64;
    let plain = Count::independent(hits, trials.len() as u64);
    match ClusteredRate::of(trials) {
        Ok(ClusteredRate { of, clusters, effective, freedom, .. }) if clusters < of => {
            Count { groups: Some(Groups { number: clusters, effective, freedom }), ..plain }
        }
        _ => plain,
    }
}

/// Wilson's interval of a count, for the effective number of trials where they come in groups.
pub fn wilson(count: Count) -> Option<Interval> {
    match count.clustered() {
        Some(rate) => Some(Interval::new(rate.wilson(LEVEL).ok()?, "wilson_clustered")),
        None => Some(Interval::new(stats::wilson(count.hits, count.of, LEVEL).ok()?, "wilson")),
    }
}

/// A sentence on the independence of items: the design effect of each rate that has one.
pub(crate) fn independence(metrics: &[Measured], items: &str, groups: &str) -> String {
    let counted = |measured: &Measured| {
        let Count { of, groups: found, .. } = measured.count?;
        let found = found?;
        Some(format!(
            "{}: {of} {items} of {} {groups} count as about {:.0}",
            measured.id, found.number, found.effective
        ))
    };
    let counted: Vec<String> = metrics.iter().filter_map(counted).collect();
    match counted.is_empty() {
        true => format!("{items} were taken as independent, except where a bootstrap is by group"),
        false => counted.join("; "),
    }
}

fn interval(
    count: Option<Count>,
    scored: &[(&Item, f64)],
    values: &[f64],
    seed: u64,
) -> Option<Interval> {
    let binary = values.iter().all(|value| *value == 0.0 || *value == 1.0);
    let spread = values.iter().any(|value| *value != values[0]);
    // Shares that are all alike still have Wilson's.
    if binary && (count.is_some() || !spread) {
        return wilson(count.unwrap_or_else(|| self::count(scored)));
    }
    if !spread {
        return None;
    }
    paired_interval(values, &groups(scored.iter().map(|(item, _)| *item)), seed)
}

/// Bootstrap interval of a mean, over whole groups where any group has more than one item. None where it has no
/// width: values or groups that are all alike say nothing of others.
pub(crate) fn paired_interval(values: &[f64], groups: &[usize], seed: u64) -> Option<Interval> {
    let bootstrap = Bootstrap { seed, confidence: LEVEL, ..Bootstrap::default() };
    let distinct = groups.iter().collect::<std::collections::BTreeSet<_>>().len();
    let found = if distinct < groups.len() && distinct > 1 {
        Interval::new(bootstrap.clustered_mean(values, groups).ok()?, "bootstrap_clustered")
    } else {
        Interval::new(bootstrap.mean(values).ok()?, "bootstrap")
    };
    Some(found).filter(Interval::has_width)
}

/// A number for each item, equal where the items share a group.
pub fn groups<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<usize> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut next = 0;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    items
        .map(|item| match item.group.as_deref() {
            Some(group) => *numbers.entry(group).or_insert_with(&mut fresh),
            None => fresh(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, group: Option<&str>, value: Option<f64>) -> Item {
        Item {
            id: id.to_owned(),
            group: group.map(str::to_owned),
            tags: BTreeMap::from([(Property::Kind.into(), id[..1].to_owned())]),
            metrics: BTreeMap::from([(MRR, value), (SUCCESS, value)]),
            ..Item::default()
        }
    }

    const MRR: MetricId = MetricId::known("mrr");
    const SUCCESS: MetricId = MetricId::known("success@5");

    #[test]
    fn an_undefined_item_is_left_out_and_counted() {
        let items = [item("a", None, Some(1.0)), item("b", None, None), item("c", None, Some(0.5))];
        let measured = measure(&MRR, &items.iter().collect::<Vec<_>>(), 1, 0);
        assert_eq!((measured.value, measured.n, measured.left_out), (Some(0.75), 2, 1));
    }

    #[test]
    fn no_items_is_undefined_and_never_zero() {
        let measured = measure(&MRR, &[], 1, 0);
        assert_eq!((measured.value, measured.n), (None, 0));
        assert!(measured.undefined.is_some());
        assert_eq!(measured.interval, None);
    }

    #[test]
    fn a_perfect_score_still_has_a_width() {
        let items: Vec<_> = (0..20).map(|n| item(&format!("i{n}"), None, Some(1.0))).collect();
        let interval = measure(&MRR, &items.iter().collect::<Vec<_>>(), 1, 0).interval.unwrap();
        assert_eq!(interval.method, "wilson");
        assert!(interval.low < 0.9 && interval.high == 1.0, "{interval:?}");
    }

    #[test]
    fn a_rate_of_groups_says_what_its_items_count_as() {
        let flagged = |n: usize| Some(f64::from(u8::from(n < 30)));
        let items: Vec<_> = (0..300)
            .map(|n| item(&format!("i{n}"), Some(&format!("server-{}", n / 15)), flagged(n)))
            .collect();
        let measured = measure(&SUCCESS, &items.iter().collect::<Vec<_>>(), 1, 0);
        let interval = measured.interval.clone().unwrap();
        assert_eq!(interval.method, "wilson_clustered");
        assert!(interval.high > 0.25, "{interval:?}");
        let said = independence(&[measured], "tools", "servers");
        assert!(said.starts_with("success@5: 300 tools of 20 servers count as about 1"), "{said}");
        assert!(independence(&[], "tools", "servers").contains("independent"));
    }

    #[test]
    fn items_of_one_group_widen_the_interval() {
        let value = |n: usize| Some(if (n / 10).is_multiple_of(2) { 0.9 } else { 0.1 });
        let alone: Vec<_> = (0..40).map(|n| item(&format!("i{n}"), None, value(n))).collect();
        let shared: Vec<_> = (0..40)
            .map(|n| item(&format!("i{n}"), Some(["a", "b", "c", "d"][n / 10]), value(n)))
            .collect();
        let width = |items: &[Item]| {
            let interval = measure(&MRR, &items.iter().collect::<Vec<_>>(), 1, 0).interval.unwrap();
            interval.high - interval.low
        };
        assert!(width(&shared) > 1.5 * width(&alone));
    }

    #[test]
    fn slices_are_sorted_by_value() {
        let items =
            [item("b1", None, Some(1.0)), item("a1", None, Some(0.5)), item("a2", None, None)];
        let slices = slices(Property::Kind, &[MRR], &items, 1, 0);
        let found: Vec<_> =
            slices.iter().map(|s| (s.value.as_str(), s.metrics[0].value, s.metrics[0].n)).collect();
        assert_eq!(found, [("a", Some(0.5), 1), ("b", Some(1.0), 1)]);
    }
}
