//! The items of a report: one for each trace.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::observed::Observed;
use karat_core::report::{Item, ItemError, Property, Scores};
use karat_metrics::{MetricId, metric, stats};

use crate::judge::Verdicts;
use crate::scored::{ScoredSet, ScoredTrace};
use crate::scores::{Own, TraceScore};
use crate::trace::{Setting, Trace, Turns};

/// A task with its model and turns, whatever the setting and run.
pub(super) type TaskKey<'a> = (&'a str, Option<&'a str>, Turns);

pub(super) fn task_key(trace: &Trace) -> TaskKey<'_> {
    (&trace.id, trace.model.as_deref(), trace.turns)
}

/// The ids and groups of items: by the task alone, as far as that identifies them.
pub(super) struct Names {
    models: bool,
    repeated: bool,
}

impl Names {
    pub(super) fn of(traces: &[ScoredTrace]) -> Names {
        let traces = traces.iter().map(|scored| &scored.trace);
        let models: BTreeSet<Option<&str>> = traces.clone().map(|t| t.model.as_deref()).collect();
        let ids: BTreeSet<&str> = traces.clone().map(|trace| trace.id.as_str()).collect();
        Names { models: models.len() > 1, repeated: ids.len() < traces.len() }
    }

    pub(super) fn id(&self, trace: &Trace) -> String {
        let mut id = trace.id.clone();
        if self.models
            && let Some(model) = &trace.model
        {
            id.push_str(&format!("@{model}"));
        }
        if trace.setting != Setting::WithTools {
            id.push_str(&format!("/{}", trace.setting.name()));
        }
        if self.repeated {
            if trace.turns == Turns::Multi {
                id.push_str("/multi");
            }
            id.push_str(&format!("#{}", trace.run));
        }
        id
    }

    fn group(&self, scored: &ScoredTrace) -> Option<String> {
        if self.repeated { Some(scored.trace.id.clone()) } else { scored.server.clone() }
    }
}

/// The results of a task without tools.
#[derive(Default)]
struct WithoutTools {
    success: Vec<f64>,
    tokens: Vec<f64>,
    ms: Vec<f64>,
}

/// The items, sorted by id, each with the number of its trace.
pub(super) fn items(
    set: &ScoredSet,
    verdicts: Option<&Verdicts>,
    names: &Names,
) -> Vec<(Item, usize)> {
    let mut without: BTreeMap<TaskKey<'_>, WithoutTools> = BTreeMap::new();
    for ScoredTrace { trace, score, .. } in &set.traces {
        if trace.setting == Setting::WithoutTools && trace.failed.is_none() {
            let entry = without.entry(task_key(trace)).or_default();
            entry.success.extend(score.value(Own::Success));
            entry.tokens.extend(trace.usage.tokens().map(|tokens| tokens as f64));
            entry.ms.extend(trace.usage.duration_ms);
        }
    }
    let item = |(at, scored): (usize, &ScoredTrace)| {
        let trace = &scored.trace;
        let values = || {
            let mut metrics =
                metrics(trace, &set.ids, &scored.score, without.get(&task_key(trace)));
            metrics.extend(judged(trace, verdicts));
            metrics
        };
        let item = Item {
            id: names.id(trace),
            group: names.group(scored),
            tags: tags(scored),
            metrics: if trace.failed.is_none() { values() } else { BTreeMap::new() },
            per_run: Vec::new(),
            observed: scored.observed.clone().map(Observed::Traces),
            error: trace.failed.as_ref().map(|failed| ItemError {
                class: failed.class.clone(),
                message: failed.message.clone(),
            }),
        };
        (item, at)
    };
    let mut items: Vec<(Item, usize)> = set.traces.iter().enumerate().map(item).collect();
    items.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
    items
}

fn tags(scored: &ScoredTrace) -> BTreeMap<String, String> {
    let trace = &scored.trace;
    let mut tags = trace.tags.clone();
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            tags.insert(name.to_owned(), value);
        }
    };
    set("setting", Some(trace.setting.name().to_owned()));
    set(Property::Turns.name(), Some(trace.turns.name().to_owned()));
    set("case", trace.case.clone());
    set(Property::Model.name(), trace.model.clone());
    set("server", scored.server.clone());
    set(Property::Confusion.name(), scored.confusion.clone());
    set("stopped", trace.stopped.clone());
    tags
}

fn metrics(
    trace: &Trace,
    ids: &[MetricId],
    score: &TraceScore,
    without: Option<&WithoutTools>,
) -> Scores {
    let success = score.value(Own::Success);
    let tokens = trace.usage.tokens().map(|tokens| tokens as f64);
    if trace.setting == Setting::WithoutTools {
        return BTreeMap::from([
            (metric!("gauge.success_without_tools"), success),
            (metric!("gauge.tokens_without_tools"), tokens),
            (metric!("gauge.ms_without_tools"), trace.usage.duration_ms),
        ]);
    }
    let scores = ids.iter().zip(&score.scores);
    let mut metrics: Scores =
        scores.filter_map(|(id, score)| Some((id.clone(), (*score)?.ok()))).collect();
    // Distractors are a setting of their own: the price of tools is that of the tools alone.
    let Some(without) = without.filter(|_| trace.setting == Setting::WithTools) else {
        return metrics;
    };
    let mut both = |with: MetricId, delta: MetricId, own: Option<f64>, other: &[f64]| {
        if let (Some(own), Ok(other)) = (own, stats::mean(other)) {
            metrics.insert(with, Some(own));
            metrics.insert(delta, Some(own - other));
        }
    };
    both(
        metric!("gauge.success_with_tools"),
        metric!("gauge.effectiveness"),
        success,
        &without.success,
    );
    both(
        metric!("gauge.tokens_with_tools"),
        metric!("gauge.overhead_tokens"),
        tokens,
        &without.tokens,
    );
    both(
        metric!("gauge.ms_with_tools"),
        metric!("gauge.overhead_ms"),
        trace.usage.duration_ms,
        &without.ms,
    );
    metrics
}

/// The verdict of a judge on a trace with tools.
fn judged(trace: &Trace, verdicts: Option<&Verdicts>) -> Scores {
    let verdicts = verdicts.filter(|_| trace.setting.has_tools());
    let Some(opinion) = verdicts.map(|verdicts| verdicts.of(trace).unwrap_or_default()) else {
        return BTreeMap::new();
    };
    BTreeMap::from([
        (metric!("judge.task_completion"), opinion.score),
        (metric!("judge.agreement"), opinion.agreement),
    ])
}
