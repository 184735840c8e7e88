//! From scored traces to a report: items, headline metrics, slices, and what tools are worth.
//!
//! Every trace is one item. Traces without tools count only where they are compared with those that
//! had them. Nothing here reads a file or a clock.

mod averages;
mod items;
mod numbers;
mod repeated;
pub(crate) mod warnings;

use std::collections::BTreeMap;

use karat_core::aggregate;
use karat_core::evaluation::Scored;
use karat_core::observed::Observed;
use karat_core::report::{Control, Count, Interval, Item, Measured, Property, Slice};
use karat_metrics::{MetricId, metric, stats};

use self::averages::Averages;
pub(crate) use self::averages::runs_of_every_task;
use self::items::Names;
use self::numbers::LISTED;
pub(crate) use self::numbers::bare_item;
use crate::controls;
use crate::judge::Verdicts;
use crate::metric::CallMetric;
use crate::pairs::Pairs;
use crate::scored::{MAX_SHOWN, ScoredSet, ScoredTrace, Tally};
use crate::scores::{Confusion, Own, Section};
use crate::tools::Tools;
use crate::trace::Trace;
use crate::trajectories::{self, Tolerances};

/// The metrics of every report, in the order in which they are shown.
pub fn metrics() -> Vec<MetricId> {
    let own = |sections: &[Section]| -> Vec<MetricId> {
        sections.iter().flat_map(|section| own_in(*section)).map(Own::id).collect()
    };
    [
        own(&[Section::Success, Section::Calls, Section::Result, Section::Gauge]),
        averages::OVER_TASKS.to_vec(),
        own(&[Section::Validity, Section::Mistakes]),
        CallMetric::usual().iter().map(CallMetric::id).collect(),
        own(&[Section::Usage]),
    ]
    .concat()
}

/// The scores that are in a report only if a trace has them.
pub fn optional() -> impl Iterator<Item = Own> {
    own_in(Section::RareResult).chain(own_in(Section::RareUsage))
}

fn own_in(section: Section) -> impl Iterator<Item = Own> {
    Own::ALL.iter().copied().filter(move |own| own.section() == section)
}

/// Everything that a report is made from.
pub(crate) struct Scoring<'a> {
    /// The traces.
    pub(crate) set: &'a ScoredSet,
    /// The tools that were on offer.
    pub(crate) tools: &'a Tools,
    /// The metrics of peers.
    pub(crate) metrics: &'a [CallMetric],
    /// The recorded verdicts of a judge.
    pub(crate) verdicts: Option<&'a Verdicts>,
    /// An earlier run of the same tasks.
    pub(crate) before: Option<&'a [Trace]>,
    /// The seed of the bootstrap.
    pub(crate) seed: u64,
}

impl Scoring<'_> {
    /// Makes the report of the traces.
    pub(crate) fn scored(&self) -> Scored {
        let traces = &self.set.traces;
        let names = Names::of(traces);
        let mut items = items::items(self.set, self.verdicts, &names);
        let compared = self.before.map(|before| compare(before, traces, &mut items));
        let mut items: Vec<Item> = items.into_iter().map(|(item, _)| item).collect();
        let averages = Averages::new(traces, &names, self.seed);
        let ids = self.ids();
        let mut metrics = averages.headline(&ids, &items, self.set);
        let mut slices = averages.slices(&ids, &items, &metrics);
        drop(averages);
        metrics.extend(repeated::measures(traces, self.seed));
        if let Some((verdicts, labels)) = self.verdicts.and_then(|v| Some((v, v.labels.as_ref()?)))
        {
            let traces = traces.iter().map(|scored| &scored.trace);
            metrics.extend(labels.measures(verdicts, traces, self.seed));
        }
        slices.extend(confusion_slices(&self.set.tally));
        let mut controls = controls::run(&self.set.tally.controls, self.tools, self.seed);
        controls.extend(expected_scores(self.set));
        let mut warnings = warnings::warnings(&self.set.stats, &self.set.tally.problems);
        warnings.extend(self.set.not_shown());
        warnings.extend(compared);
        if items.len() > MAX_SHOWN {
            // With this many items, undefined scores are left out.
            for item in &mut items {
                let metrics = std::mem::take(&mut item.metrics).into_iter();
                item.metrics = metrics.filter(|(_, score)| score.is_some()).collect();
            }
        }
        Scored {
            metrics,
            slices,
            controls,
            conventions: warnings::conventions(self.verdicts),
            warnings,
            items,
            ..Scored::default()
        }
    }

    /// The metrics of this report: the usual ones, and those that were asked for.
    fn ids(&self) -> Vec<MetricId> {
        let mut ids = metrics();
        for own in optional() {
            if self.set.traces.iter().any(|scored| scored.score.value(own).is_some()) {
                ids.push(own.id());
            }
        }
        for metric in self.metrics {
            let id = metric.id();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if self.verdicts.is_some() {
            ids.extend([metric!("judge.task_completion"), metric!("judge.agreement")]);
        }
        ids
    }
}

/// Adds the difference from an earlier run to each item, and summarizes it.
fn compare(before: &[Trace], after: &[ScoredTrace], items: &mut [(Item, usize)]) -> String {
    let (earlier, later): (Vec<&Trace>, Vec<&Trace>) =
        (before.iter().collect(), after.iter().map(|scored| &scored.trace).collect());
    let pairs = Pairs::of(&earlier, &later);
    let earlier: BTreeMap<usize, &Trace> =
        pairs.tasks.iter().filter_map(|(_, at, other)| Some(((*other)?, earlier[*at]))).collect();
    let (mut all, mut same, mut not_compared) = (Vec::new(), 0_usize, 0_usize);
    for (item, at) in items {
        let trace = &after[*at].trace;
        let Some(other) = earlier.get(at) else { continue };
        let found = trajectories::compare(other, trace, &Tolerances::new());
        not_compared += usize::from(found.not_compared.is_some());
        all.extend(found.similarity);
        same += usize::from(found.is_same());
        if let Some(Observed::Traces(observed)) = &mut item.observed {
            observed.trajectory = Some(found);
        }
    }
    let count = all.len();
    let too_many = match not_compared {
        0 => String::new(),
        more => format!("; {more} have too many calls to be compared"),
    };
    let similarity = match stats::mean(&all) {
        Ok(mean) => format!(", mean similarity {mean:.4}"),
        Err(_) if not_compared == 0 => {
            return "against the earlier run: no task is in both (with several models or settings, \
                by the same model and in the same setting)"
                .to_owned();
        }
        Err(_) => String::new(),
    };
    format!(
        "against the earlier run: {same} of {count} traces make the same calls{similarity}{too_many}"
    )
}

/// The tools that were called instead of others: how often, of how often the other was required.
fn confusion_slices(tally: &Tally) -> Vec<Slice> {
    let Tally { required, confused, .. } = tally;
    let mut all: Vec<(&Confusion, u64)> = confused.iter().map(|(one, n)| (one, *n)).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let of = |confusion: &Confusion| required.get(confusion.expected.as_str()).copied();
    all.into_iter()
        .map(|(confusion, hits)| Slice {
            by: Property::Confusion.into(),
            value: confusion.to_string(),
            metrics: vec![share(metric!("calls.confusion"), hits, of(confusion).unwrap_or(hits))],
        })
        .collect()
}

/// A share of a count, with Wilson's interval.
fn share(id: MetricId, hits: u64, of: u64) -> Measured {
    Measured {
        better: aggregate::better(&id),
        id,
        value: (of > 0).then(|| hits as f64 / of as f64),
        n: of,
        per_run: Vec::new(),
        interval: stats::wilson(hits, of, aggregate::LEVEL)
            .ok()
            .map(|i| Interval::new(i, "wilson")),
        count: Some(Count::independent(hits, of)),
        undefined: None,
        left_out: 0,
    }
}

/// The control of traces that state the scores which they must get.
fn expected_scores(set: &ScoredSet) -> Option<Control> {
    let text = |score: Option<f64>| score.map_or("undefined".to_owned(), |score| score.to_string());
    let (mut stated, mut wrong) = (0_u64, Vec::new());
    for ScoredTrace { trace, score, .. } in &set.traces {
        for (id, expected) in &trace.expected_scores {
            stated += 1;
            let place = set.ids.iter().position(|known| known == id);
            let found = place.and_then(|place| score.scores[place]?.ok());
            let same = match (expected, found) {
                (Some(expected), Some(found)) => (expected - found).abs() < 1e-6,
                (None, None) => true,
                _ => false,
            };
            if !same {
                let (found, expected) = (text(found), text(*expected));
                wrong.push(format!("{} {id}: {found} instead of {expected}", trace.id));
            }
        }
    }
    let mut expected = format!("the {stated} scores that the traces state");
    if !wrong.is_empty() {
        let first = wrong[..wrong.len().min(LISTED)].join("; ");
        expected.push_str(&format!("; {} differ: {first}", wrong.len()));
    }
    (stated > 0).then(|| Control {
        name: "expected-scores".to_owned(),
        expected,
        metrics: Vec::new(),
        ok: wrong.is_empty(),
    })
}
