//! From scored traces to a report: items, headline metrics, slices, and what tools are worth.
//!
//! Every trace is one item. Traces without tools count only where they are compared with those that
//! had them. Nothing here reads a file or a clock.

mod averages;
mod items;
mod repeated;
pub(crate) mod warnings;

use std::collections::BTreeMap;

use karat_core::aggregate::{self, Average};
use karat_core::evaluation::Scored;
use karat_core::observed::Observed;
use karat_core::report::{Control, Count, Interval, Item, Measured, Slice};
use karat_metrics::stats;

use self::averages::Averages;
pub(crate) use self::averages::{bare_item, runs_of_every_task};
use self::items::Names;
use crate::controls;
use crate::judge::Verdicts;
use crate::metric::CallMetric;
use crate::scores::{Confusion, Confusions, Own, TraceScore, TraceScorer, confusions, observed};
use crate::tools::Tools;
use crate::trace::{Key, Trace};
use crate::trace_set::TraceSet;
use crate::trajectories::{self, Tolerances};

/// The metrics of every report, in the order in which they are shown.
pub(crate) const METRICS: &[(&str, Average)] = &[
    ("task.success", Average::Rate),
    ("calls.exact", Average::Rate),
    ("calls.alignment", Average::Mean),
    ("calls.f1", Average::Mean),
    ("answer.correct", Average::Rate),
    ("state.reached", Average::Rate),
    ("gauge.proactivity", Average::Rate),
    ("gauge.compliance", Average::Rate),
    ("gauge.unneeded_call", Average::Rate),
    ("gauge.effectiveness", Average::Mean),
    ("gauge.success_with_tools", Average::Rate),
    ("gauge.success_without_tools", Average::Rate),
    ("gauge.overhead_tokens", Average::Mean),
    ("gauge.tokens_with_tools", Average::Mean),
    ("gauge.tokens_without_tools", Average::Mean),
    ("gauge.overhead_ms", Average::Mean),
    ("gauge.ms_with_tools", Average::Mean),
    ("gauge.ms_without_tools", Average::Mean),
    ("mcpbench.tool_name_validity", Average::Mean),
    ("mcpbench.schema_compliance", Average::Mean),
    ("mcpbench.execution_success", Average::Mean),
    ("calls.first_error", Average::Mean),
    ("calls.forbidden", Average::Rate),
    ("calls.loop", Average::Rate),
    ("ragas.tool_call_accuracy", Average::Mean),
    ("ragas.tool_call_accuracy_unordered", Average::Mean),
    ("ragas.tool_call_f1", Average::Mean),
    ("deepeval.tool_correctness", Average::Mean),
    ("deepeval.tool_correctness|ordered|name+input", Average::Mean),
    ("run.tokens", Average::Mean),
    ("run.ms", Average::Mean),
];

/// Metrics that are in a report only if a trace has them.
const OPTIONAL: [Own; 4] = [Own::Outcome, Own::Cost, Own::CachedTokens, Own::ReasoningTokens];

/// The number of examples in a message.
const LISTED: usize = 10;

/// Everything that a report is made from.
pub(crate) struct Scoring<'a> {
    /// The traces.
    pub(crate) set: &'a TraceSet,
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
    /// Scores the traces.
    pub(crate) fn scored(&self) -> Scored {
        let traces = &self.set.traces;
        let scorer = TraceScorer::new(self.tools, self.metrics);
        let scores = score_all(traces, &scorer);
        let confusions: Vec<Confusions> = traces.iter().map(confusions).collect();
        let observe = |at: usize| observed(&traces[at], &scorer, &scores[at], &confusions[at]);
        let names = Names::of(traces);
        let mut items = items::items(traces, &scorer, &scores, &confusions, self.verdicts, &names);
        for (item, at) in items.iter_mut() {
            item.observed = Some(Observed::Traces(observe(*at)));
        }
        let compared = self.before.and_then(|before| compare(before, traces, &mut items));
        let items: Vec<Item> = items.into_iter().map(|(item, _)| item).collect();
        let averages = Averages::new(traces, &names, self.seed);
        let ids = self.ids(&scores);
        let mut metrics = averages.headline(&ids, &items, &scorer, &scores);
        metrics.extend(repeated::measures(traces, &scores, self.seed));
        if let Some((verdicts, labels)) = self.verdicts.and_then(|v| Some((v, v.labels.as_ref()?)))
        {
            metrics.extend(labels.measures(verdicts, traces, self.seed));
        }
        let mut slices = averages.slices(&ids, &items);
        slices.extend(confusion_slices(traces, &confusions));
        let mut controls = controls::run(traces, self.tools, self.seed);
        controls.extend(expected_scores(traces, &scorer, &scores));
        let problems = warnings::CallProblems::of(&scores);
        let mut warnings = warnings::warnings(&self.set.stats, &problems);
        warnings.extend(compared);
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
    fn ids(&self, scores: &[TraceScore]) -> Vec<(String, Average)> {
        let mut ids: Vec<_> = METRICS.iter().map(|(id, kind)| ((*id).to_owned(), *kind)).collect();
        for own in OPTIONAL {
            if scores.iter().any(|score| score.value(own).is_some()) {
                ids.push((Own::IDS[own as usize].to_owned(), Average::Mean));
            }
        }
        for metric in self.metrics {
            let id = metric.id();
            if ids.iter().all(|(known, _)| *known != id) {
                ids.push((id, Average::Mean));
            }
        }
        if self.verdicts.is_some() {
            let judged = ["judge.task_completion", "judge.agreement"];
            ids.extend(judged.map(|id| (id.to_owned(), Average::Mean)));
        }
        ids
    }
}

/// Scores traces on all processors.
fn score_all(traces: &[Trace], scorer: &TraceScorer<'_>) -> Vec<TraceScore> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = traces.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = traces
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().map(|t| scorer.score(t)).collect::<Vec<_>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Adds the difference from an earlier run to each item, and summarizes it.
fn compare(before: &[Trace], after: &[Trace], items: &mut [(Item, usize)]) -> Option<String> {
    let mut earlier: BTreeMap<Key<'_>, &Trace> = before.iter().map(|t| (t.key(), t)).collect();
    let (mut all, mut same, mut not_compared) = (Vec::new(), 0_usize, 0_usize);
    for (item, at) in items {
        let Some(other) = earlier.remove(&after[*at].key()) else { continue };
        let found = trajectories::compare(other, &after[*at], &Tolerances::new());
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
        Err(_) if not_compared == 0 => return None,
        Err(_) => String::new(),
    };
    Some(format!(
        "against the earlier run: {same} of {count} traces make the same calls{similarity}{too_many}"
    ))
}

/// The tools that were called instead of others: how often, of how often the other was required.
fn confusion_slices(traces: &[Trace], confusions: &[Confusions]) -> Vec<Slice> {
    let mut required: BTreeMap<&str, u64> = BTreeMap::new();
    let mut confused: BTreeMap<&Confusion, u64> = BTreeMap::new();
    let scored = traces.iter().zip(confusions).filter(|(trace, _)| trace.failed.is_none());
    for (_, confusions) in scored {
        for tool in &confusions.required {
            *required.entry(tool).or_default() += 1;
        }
        for confusion in &confusions.pairs {
            *confused.entry(confusion).or_default() += 1;
        }
    }
    let mut all: Vec<(&Confusion, u64)> = confused.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let of = |confusion: &Confusion| required.get(confusion.expected.as_str()).copied();
    all.into_iter()
        .map(|(confusion, hits)| Slice {
            by: "confusion".to_owned(),
            value: confusion.to_string(),
            metrics: vec![share("calls.confusion", hits, of(confusion).unwrap_or(hits))],
        })
        .collect()
}

/// A share of a count, with Wilson's interval.
fn share(id: &str, hits: u64, of: u64) -> Measured {
    Measured {
        id: id.to_owned(),
        value: (of > 0).then(|| hits as f64 / of as f64),
        n: of,
        better: aggregate::better(id),
        per_run: Vec::new(),
        interval: stats::wilson(hits, of, aggregate::LEVEL).ok().map(|i| interval(i, "wilson")),
        count: Some(Count::independent(hits, of)),
        undefined: None,
        left_out: 0,
    }
}

/// An interval for a report.
pub(crate) fn interval(interval: stats::Interval, method: &str) -> Interval {
    let stats::Interval { low, high } = interval;
    Interval { low, high, level: aggregate::LEVEL, method: method.to_owned() }
}

/// Returns whether a metric lies between 0 and 1.
pub(crate) fn is_share(id: &str) -> bool {
    let counts = ["run.", "gauge.overhead_", "gauge.tokens_", "gauge.ms_"];
    !counts.iter().any(|start| id.starts_with(start))
        && !matches!(id, "calls.first_error" | "gauge.effectiveness" | "outcome.score")
}

/// The control of traces that state the scores which they must get.
fn expected_scores(
    traces: &[Trace],
    scorer: &TraceScorer<'_>,
    scores: &[TraceScore],
) -> Option<Control> {
    let text = |score: Option<f64>| score.map_or("undefined".to_owned(), |score| score.to_string());
    let (mut stated, mut wrong) = (0_u64, Vec::new());
    for (trace, score) in traces.iter().zip(scores) {
        for (id, expected) in &trace.expected_scores {
            stated += 1;
            let place = scorer.ids().iter().position(|known| known == id);
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
