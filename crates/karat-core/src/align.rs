//! Two measurements, brought to the items that they share.
//!
//! On the same data everything is shared. On other versions of it, those items are shared whose
//! content is the same, whatever happened to the corpus behind them; the headline values are then
//! taken again over the shared items alone. A metric that depends on how many results were asked for
//! is not compared where that number changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use karat_metrics::ranking::Measure;
use karat_metrics::{MetricId, stats};

use crate::aggregate::is_near;
use crate::baseline::{Baseline, ItemReference, Reference, SliceReference};
use crate::compare::{CompareError, SliceKey};
use crate::dataset::{Contents, DataChange};
use crate::kind::Kind;
use crate::report::{DatasetRef, Item, Measured, NotCompared, Report, Scores, Slice};

/// Both sides over the items that they share.
pub(crate) struct Aligned<'a> {
    pub(crate) before: Cow<'a, Baseline>,
    pub(crate) after: Cow<'a, Report>,
    /// The way the data differs; none where it is the same.
    pub(crate) data: Option<DataChange>,
    pub(crate) depth: Option<Depth>,
}

impl Aligned<'_> {
    /// The metrics of both measurements that cannot be taken over the items that they share.
    pub(crate) fn over_fewer(&self, before: &Baseline, after: &Report) -> Option<NotCompared> {
        let defined = |id: &str| before.metric(id).is_some_and(|metric| metric.value.is_some());
        let metrics: Vec<MetricId> = after
            .metrics
            .iter()
            .filter(|metric| metric.value.is_some() && defined(&metric.id))
            .filter(|metric| self.before.metric(&metric.id).is_none())
            .map(|metric| metric.id.clone())
            .collect();
        let reason =
            "not all items are the same, and these are not means of their scores".to_owned();
        (!metrics.is_empty()).then_some(NotCompared { metrics, reason })
    }
}

/// Brings two measurements to their shared items.
///
/// # Errors
/// If they are of different kinds or share no item.
pub(crate) fn align<'a>(
    before: &'a Baseline,
    after: &'a Report,
) -> Result<Aligned<'a>, CompareError> {
    if before.evaluation != after.evaluation
        || before.kind.as_ref().is_some_and(|kind| *kind != after.kind)
    {
        let kind = before.kind.as_ref().unwrap_or(&after.kind);
        return Err(CompareError::Evaluation {
            before: format!("{} ({kind})", before.evaluation),
            after: format!("{} ({})", after.evaluation, after.kind),
        });
    }
    let data = comparable_data(before, &after.dataset, after.contents.as_ref())?;
    let data = data.or_else(|| selected(before, after));
    let old = distinct(before.items.iter().map(|item| item.id.as_str()), "before")?;
    let new = distinct(after.items.iter().map(|item| item.id.as_str()), "now")?;
    let whole = || (Cow::Borrowed(before), Cow::Borrowed(after));
    let (restricted, data) = match data {
        None => match old.symmetric_difference(&new).next() {
            None => (whole(), None),
            // The seconds of two loads are not pairs: only the values are compared.
            Some(_) if after.kind == Kind::Load => {
                let (metrics, slices) = (after.metrics.clone(), after.slices.clone());
                let after = after.with_scores(metrics, slices, Vec::new());
                let before = Baseline { items: Vec::new(), ..before.clone() };
                ((Cow::Owned(before), Cow::Owned(after)), None)
            }
            // What only one side found has no score on the other, and is in no pair.
            Some(_) if after.kind.finds_items() => (whole(), None),
            Some(first) => {
                return Err(CompareError::Items {
                    missing: old.difference(&new).count(),
                    added: new.difference(&old).count(),
                    first: (*first).to_owned(),
                });
            }
        },
        Some(change) => {
            let shared: BTreeSet<&str> =
                old.intersection(&new).copied().filter(|id| change.is_same(id)).collect();
            let sides = match shared.len() == old.len() && shared.len() == new.len() {
                true => whole(),
                false => {
                    let (before, after) = restrict(before, after, &shared);
                    (Cow::Owned(before), Cow::Owned(after))
                }
            };
            (sides, Some(change))
        }
    };
    let (before, after) = restricted;
    let depth = Depth::between(&before, &after);
    Ok(Aligned { before, after, data, depth })
}

/// The way the items differ where other ones of the same data were chosen; none where that is not known.
fn selected(before: &Baseline, after: &Report) -> Option<DataChange> {
    let (old, new) = (before.contents.as_ref()?, after.contents.as_ref()?);
    let change = DataChange::between(old, new);
    let shares = new.items.keys().any(|id| change.is_same(id));
    Some(change).filter(|change| change.no_corpus && shares && !change.items.is_empty())
}

/// Refuses data that shares nothing with a baseline's. Returns the way it differs, if it does.
///
/// # Errors
/// If the data is another one and no item is known to be the same.
pub(crate) fn comparable_data(
    before: &Baseline,
    dataset: &DatasetRef,
    contents: Option<&Contents>,
) -> Result<Option<DataChange>, CompareError> {
    if before.dataset.digest == dataset.digest {
        return Ok(None);
    }
    let refuse = |why: String| {
        let (before, after) = (shown(&before.dataset), shown(dataset));
        Err(CompareError::Dataset { before, after, why })
    };
    let (Some(old), Some(new)) = (&before.contents, contents) else {
        let why = match contents {
            Some(_) => {
                "the earlier scores do not record their items and corpus, so the changes are unknown"
            }
            None => "scores of this kind can only be compared on the same data",
        };
        return refuse(why.to_owned());
    };
    let change = DataChange::between(old, new);
    if !new.items.keys().any(|id| old.items.contains_key(id) && change.is_same(id)) {
        let lines = change.lines(3).join("; ");
        return refuse(match change.no_corpus {
            true => format!("no item is the same ({lines})"),
            false => format!("no item of the golden set is the same ({lines})"),
        });
    }
    Ok(Some(change))
}

fn shown(dataset: &DatasetRef) -> String {
    let short: String = dataset.digest.chars().take(19).collect();
    format!("{} {} {short}…", dataset.id, dataset.version)
}

/// The ids, each of which occurs once.
fn distinct<'a>(
    ids: impl Iterator<Item = &'a str>,
    side: &'static str,
) -> Result<BTreeSet<&'a str>, CompareError> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(CompareError::Twice { id: id.to_owned(), side });
        }
    }
    Ok(seen)
}

/// Both sides over some items. A value that is not the mean of its items' scores cannot be taken over
/// fewer of them, and is left out.
fn restrict(before: &Baseline, after: &Report, shared: &BTreeSet<&str>) -> (Baseline, Report) {
    let items: Vec<Item> = after
        .items
        .iter()
        .filter(|item| shared.contains(item.id.as_str()))
        .map(|item| Item {
            id: item.id.clone(),
            group: item.group.clone(),
            tags: item.tags.clone(),
            metrics: item.metrics.clone(),
            per_run: item.per_run.clone(),
            observed: None,
            error: item.error.clone(),
        })
        .collect();
    let old: BTreeMap<&str, &Scores> =
        before.items.iter().map(|item| (item.id.as_str(), &item.metrics)).collect();
    let means = |id: &str, value: Option<f64>, all: &mut dyn Iterator<Item = &Scores>| {
        value.zip(mean(id, all).0).is_some_and(|(value, mean)| is_near(value, mean))
    };
    let ids: Vec<&str> = before
        .metrics
        .iter()
        .filter(|metric| {
            let id = metric.id.as_str();
            let now = after.metric(id).and_then(|metric| metric.value);
            means(id, metric.value, &mut before.items.iter().map(|item| &item.metrics))
                && means(id, now, &mut after.items.iter().map(|item| &item.metrics))
        })
        .map(|metric| metric.id.as_str())
        .collect();
    let reference = |id: &str, key: Option<&SliceKey>| {
        let within = items.iter().filter(|item| key.is_none_or(|key| key.holds(item)));
        let (value, n) = mean(id, within.filter_map(|item| old.get(item.id.as_str()).copied()));
        Reference { id: id.into(), value, n, per_run: Vec::new() }
    };
    let measured = |metric: &Measured, key: Option<&SliceKey>| {
        let within = items.iter().filter(|item| key.is_none_or(|key| key.holds(item)));
        let (value, n) = mean(&metric.id, within.map(|item| &item.metrics));
        Measured { value, n, per_run: Vec::new(), interval: None, count: None, ..metric.clone() }
    };
    let key = |by: &str, value: &str| SliceKey { by: by.to_owned(), value: value.to_owned() };
    let kept = |metric: &&Measured| ids.contains(&metric.id.as_str());
    let slices = before.slices.iter().map(|slice| SliceReference {
        by: slice.by.clone(),
        value: slice.value.clone(),
        metrics: ids
            .iter()
            .filter(|id| slice.metrics.iter().any(|metric| metric.id == **id))
            .map(|id| reference(id, Some(&key(&slice.by, &slice.value))))
            .collect(),
    });
    let before = Baseline {
        metrics: ids.iter().map(|id| reference(id, None)).collect(),
        slices: slices.collect(),
        items: before
            .items
            .iter()
            .filter(|item| shared.contains(item.id.as_str()))
            .map(|item| ItemReference { id: item.id.clone(), metrics: item.metrics.clone() })
            .collect(),
        contents: None,
        schema: before.schema.clone(),
        kind: before.kind.clone(),
        evaluation: before.evaluation.clone(),
        name: before.name.clone(),
        dataset: before.dataset.clone(),
        system: before.system.clone(),
        ..*before
    };
    let metrics = after.metrics.iter().filter(kept).map(|one| measured(one, None)).collect();
    let slices = after.slices.iter().map(|slice| {
        let key = key(&slice.by, &slice.value);
        let metrics = slice.metrics.iter().filter(kept);
        Slice {
            by: slice.by.clone(),
            value: slice.value.clone(),
            metrics: metrics.map(|one| measured(one, Some(&key))).collect(),
        }
    });
    let slices = slices.collect();
    (before, after.with_scores(metrics, slices, items))
}

/// The mean of the scores of items, and how many have one.
fn mean<'a>(id: &str, items: impl Iterator<Item = &'a Scores>) -> (Option<f64>, u64) {
    let values: Vec<f64> = items.filter_map(|item| item.get(id).copied().flatten()).collect();
    (stats::mean(&values).ok(), values.len() as u64)
}

/// The numbers of results that two measurements of a search asked for, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    before: u64,
    after: u64,
}

impl Depth {
    fn between(before: &Baseline, after: &Report) -> Option<Depth> {
        if after.kind != Kind::Ranking {
            return None;
        }
        let limit = |settings: &BTreeMap<String, String>| settings.get("limit")?.parse().ok();
        let (before, after) = (limit(&before.system.settings)?, limit(&after.system.settings)?);
        (before != after).then_some(Depth { before, after })
    }

    /// Returns whether a metric looks further than the smaller number of results.
    pub(crate) fn affects(self, id: &str) -> bool {
        let seen = self.before.min(self.after);
        match id.parse::<Measure>() {
            Ok(measure) => measure.cutoff().is_none_or(|k| u64::from(k.get()) > seen),
            Err(_) => id == "answer_tokens",
        }
    }

    /// The metrics among these that cannot be compared.
    pub(crate) fn not_compared<'m>(
        self,
        ids: impl Iterator<Item = &'m MetricId>,
    ) -> Option<NotCompared> {
        let metrics: Vec<MetricId> = ids.filter(|id| self.affects(id)).cloned().collect();
        (!metrics.is_empty()).then(|| NotCompared { metrics, reason: self.to_string() })
    }
}

impl std::fmt::Display for Depth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Depth { before, after } = self;
        write!(f, "{before} results were requested before, {after} now")
    }
}
