//! The means of any number of traces in one pass: of a trace nothing is kept but its scores, and of
//! these only sums.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;

use karat_core::aggregate;
use karat_core::error::EvalError;
use karat_core::evaluation::Scored;
use karat_core::report::{Count, DatasetRef, Interval, Item, Measured};
use karat_metrics::MetricId;
use karat_metrics::calls::ragas::Warning;
use karat_metrics::calls::samples::{Sample, SampleFormat};
use karat_metrics::registry::{Metric, MetricKind};

use crate::error::check_scored;
use crate::formats::{Position, TraceFormat};
use crate::intake::{Fingerprint, Intake, TraceSource, fingerprint};
use crate::metric::CallMetric;
use crate::pass::over_traces;
use crate::pipeline;
use crate::read::{Bad, Batch, Reader, classed};
use crate::read_stats::ReadStats;
use crate::report::warnings;
use crate::scores::{CallProblems, Own, Score, TraceScore, TraceScorer};
use crate::tools::Tools;
use crate::totals::Total;
use crate::trace::{Setting, Trace};

/// The number of ids that later ones are compared with.
const MAX_IDS: usize = 1 << 16;

/// The metric of traces without tools.
static WITHOUT_TOOLS: MetricId = MetricId::known("gauge.success_without_tools");

/// The result of one pass.
#[derive(Debug)]
pub struct Aggregates {
    /// The number of traces that were scored.
    pub traces: u64,
    /// Everything else that was found in the files.
    pub stats: ReadStats,
    /// The name of the data. It has no digest: that would need all tasks at once.
    pub reference: DatasetRef,
    /// The scores of each trace, if they are wanted in the report; not filled here.
    pub items: Vec<Item>,
    /// The means.
    pub metrics: Vec<Measured>,
    /// Remarks for a careful reader.
    pub warnings: Vec<String>,
}

impl Aggregates {
    /// The report.
    ///
    /// # Errors
    /// If no score is defined.
    pub(crate) fn scored(&self) -> Result<Scored, EvalError> {
        check_scored(&self.metrics, &self.stats, self.traces)?;
        Ok(Scored {
            metrics: self.metrics.clone(),
            items: self.items.clone(),
            conventions: warnings::conventions(None),
            warnings: self.warnings.clone(),
            ..Scored::default()
        })
    }
}

/// The scores of one trace.
#[derive(Clone, Copy, Debug)]
pub struct ItemScores<'a> {
    /// The id of the task.
    pub id: &'a str,
    /// The number of the run.
    pub run: u32,
    /// The ids of the scores.
    pub ids: &'a [MetricId],
    /// The scores, in the order of the ids; none where the setting has no such score.
    pub scores: &'a [Option<Score>],
    /// The warning that RAGAS would give.
    pub warning: Option<Warning>,
}

impl ItemScores<'_> {
    /// The ids and values of the scores that the trace has.
    pub fn values(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        let scores = self.ids.iter().zip(self.scores);
        scores.filter_map(|(id, score)| Some((id.as_str(), (*score)?.ok())))
    }
}

/// The format of samples that are scored by metrics of calls alone, as they are: that needs neither tasks
/// nor tools, and is much faster than making traces of them.
pub fn scores_samples(
    formats: &[TraceFormat],
    has_tasks: bool,
    has_tools: bool,
) -> Option<SampleFormat> {
    let first = formats.first()?;
    let samples = first.samples()?;
    (!has_tasks && !has_tools && formats.iter().all(|format| format == first)).then_some(samples)
}

/// The metrics of samples unless others are named: the peer's own, and ours.
pub fn usual_metrics_of_samples(format: SampleFormat) -> Vec<CallMetric> {
    let own = [CallMetric::Exact, CallMetric::Alignment, CallMetric::F1];
    let peer: Vec<CallMetric> = match format {
        SampleFormat::Ragas => {
            vec![CallMetric::RagasAccuracy, CallMetric::RagasAccuracyUnordered, CallMetric::RagasF1]
        }
        SampleFormat::Deepeval => {
            ["default|name", "default|name+input", "ordered|name+input", "exact|name+input"]
                .iter()
                .filter_map(|setting| setting.parse().ok().map(CallMetric::ToolCorrectness))
                .collect()
        }
    };
    peer.into_iter().chain(own).collect()
}

/// A batch of samples, and what was found in it.
#[derive(Default)]
struct Slot {
    batch: Batch,
    found: Vec<(Position, Found)>,
    /// The scores of all samples, one after the other, and whether they reach the thresholds.
    scores: Vec<(Option<Score>, Option<bool>)>,
    /// The ids of all samples, joined.
    ids: String,
}

enum Found {
    Bad(Bad),
    Sample { id: Option<(Range<usize>, Fingerprint)>, warning: Option<Warning> },
}

/// Scores every trace in one pass. `on_item` gets the scores of each, in the order of the files.
///
/// # Errors
/// If a file cannot be read, too many records are bad, an id is a duplicate, or there is no trace.
pub fn score(
    source: &TraceSource<'_>,
    tools: &Tools,
    threads: Option<NonZero<usize>>,
    on_item: &mut dyn FnMut(&ItemScores<'_>),
) -> Result<Aggregates, EvalError> {
    let files = &source.files;
    let samples = scores_samples(files.formats, source.tasks.is_some(), tools.count() > 0);
    let scorer = match samples {
        Some(_) => TraceScorer::of_samples(tools, files.metrics),
        None => TraceScorer::new(tools, files.metrics),
    };
    let mut pass = Pass::new(source, &scorer, samples.is_some());
    let notes = match samples {
        Some(format) => {
            let mut reader = Reader::new(*files);
            pipeline::run(
                threads,
                |slot: &mut Slot| reader.next(&mut slot.batch),
                |slot| score_samples(slot, format, &scorer),
                |slot| pass.take(slot, on_item),
            )?;
            reader.notes
        }
        None => {
            let work = |trace: Box<Trace>, task| {
                // A run that failed has no scores.
                let score = trace.failed.is_none().then(|| scorer.score(&trace));
                (slim(*trace), task, score)
            };
            over_traces(source, threads, work, |(file, line), found| match found {
                Err(bad) => pass.intake.bad(file, bad),
                Ok(found) => pass.trace((file, line), found, on_item),
            })?
        }
    };
    pass.finish(source, notes)
}

/// The part of a trace that is counted: freed where it was made, the rest costs no other thread time.
fn slim(trace: Trace) -> Box<Trace> {
    let Trace { id, run, model, setting, turns, failed, unknown, .. } = trace;
    Box::new(Trace { id, run, model, setting, turns, failed, unknown, ..Trace::default() })
}

fn score_samples(slot: &mut Slot, format: SampleFormat, scorer: &TraceScorer<'_>) {
    let Slot { batch, found, scores, ids } = slot;
    let mut sample = Sample::default();
    batch.documents(|at: Position, text| {
        let read = text.and_then(|text| {
            sample.read(format, text).map_err(|error| classed(format.into(), at, text, &error))
        });
        if let Err(bad) = read {
            return found.push((at, Found::Bad(bad)));
        }
        let id = sample.id.as_deref().map(|id| {
            let start = ids.len();
            ids.push_str(id);
            (start..ids.len(), fingerprint(&id))
        });
        let warning = scorer.score_sample(&sample, |score| {
            scores.push((Some(Ok(score.score)), score.success));
        });
        found.push((at, Found::Sample { id, warning }));
    });
}

/// The state of a pass between batches.
struct Pass<'a> {
    intake: Intake<'a>,
    ids: &'a [MetricId],
    /// Of each id, and of success without tools.
    totals: Vec<Total>,
    samples: bool,
    traces: u64,
    problems: CallProblems,
    ragas: BTreeMap<&'static str, u64>,
    scores: Vec<Option<Score>>,
}

impl<'a> Pass<'a> {
    fn new(source: &TraceSource<'a>, scorer: &'a TraceScorer<'_>, samples: bool) -> Self {
        Pass {
            intake: Intake::new(*source, MAX_IDS),
            ids: scorer.ids(),
            totals: vec![Total::default(); scorer.ids().len() + 1],
            samples,
            traces: 0,
            problems: CallProblems::default(),
            ragas: BTreeMap::new(),
            scores: Vec::new(),
        }
    }

    fn take(
        &mut self,
        slot: &mut Slot,
        on_item: &mut dyn FnMut(&ItemScores<'_>),
    ) -> Result<(), EvalError> {
        let file = slot.batch.file;
        let mut samples = slot.scores.drain(..);
        for (at, found) in slot.found.drain(..) {
            let place = (file, at.line);
            match found {
                Found::Bad(bad) => self.intake.bad(file, bad)?,
                Found::Sample { id, warning } => {
                    let id = id.map(|(range, key)| (&slot.ids[range], key));
                    self.intake.sample(place, id)?;
                    self.traces += 1;
                    self.scores.clear();
                    for total in &mut self.totals[..self.ids.len()] {
                        let Some((score, success)) = samples.next() else { break };
                        score.into_iter().for_each(|score| total.add(score));
                        total.judged(success);
                        self.scores.push(score);
                    }
                    if let Some(warning) = warning {
                        *self.ragas.entry(described(warning)).or_default() += 1;
                    }
                    let name = || Cow::Owned(at.name());
                    let id = id.map_or_else(name, |(id, _)| Cow::Borrowed(id));
                    let (ids, scores) = (self.ids, &self.scores[..]);
                    on_item(&ItemScores { id: &id, run: 1, ids, scores, warning });
                }
            }
        }
        slot.ids.clear();
        Ok(())
    }

    fn trace(
        &mut self,
        place: (usize, u64),
        (mut trace, task, score): (Box<Trace>, Option<usize>, Option<TraceScore>),
        on_item: &mut dyn FnMut(&ItemScores<'_>),
    ) -> Result<(), EvalError> {
        self.intake.trace(place, &mut trace, task)?;
        let Some(score) = score else { return Ok(()) };
        self.traces += 1;
        self.problems.add(&score);
        self.add(trace.setting, &score);
        let (id, run, ids, scores) = (&trace.id, trace.run, self.ids, &score.scores[..]);
        on_item(&ItemScores { id, run, ids, scores, warning: None });
        Ok(())
    }

    /// Adds the scores of a trace. Without tools only success counts, under a name of its own.
    fn add(&mut self, setting: Setting, score: &TraceScore) {
        let Some((without_tools, totals)) = self.totals.split_last_mut() else { return };
        if setting == Setting::WithoutTools {
            let success = score.scores[Own::Success as usize];
            return success.into_iter().for_each(|score| without_tools.add(score));
        }
        for (total, score) in totals.iter_mut().zip(&score.scores) {
            score.iter().for_each(|score| total.add(*score));
        }
    }

    fn finish(
        self,
        source: &TraceSource<'_>,
        notes: BTreeMap<String, u64>,
    ) -> Result<Aggregates, EvalError> {
        let stats = self.intake.finish(notes)?;
        let ids = self.ids.iter().chain([&WITHOUT_TOOLS]);
        let mut metrics = Vec::new();
        let mut warnings = warnings::warnings(&stats, &self.problems);
        warnings.extend(self.ragas.iter().map(|(text, count)| format!("{count} traces {text}")));
        for (id, total) in ids.zip(&self.totals).filter(|(_, total)| total.n + total.left_out > 0) {
            metrics.push(measured(id, total));
            if let Some(succeeded) = total.succeeded {
                warnings
                    .push(format!("{id}: {succeeded} of {} traces reach its threshold", total.n));
            }
        }
        if !self.samples {
            metrics.sort_by(|a, b| a.id.cmp(&b.id));
        }
        let reference =
            DatasetRef { id: source.name(), version: "tasks".to_owned(), digest: String::new() };
        Ok(Aggregates {
            traces: self.traces,
            stats,
            reference,
            items: Vec::new(),
            metrics,
            warnings,
        })
    }
}

fn measured(id: &MetricId, total: &Total) -> Measured {
    let is_share = id.definition().is_some_and(Metric::is_share);
    let is_rate = id.definition().is_some_and(|metric| metric.kind == MetricKind::Rate);
    let interval = match total.hits().filter(|_| is_rate) {
        Some(hits) => aggregate::wilson(Count::independent(hits, total.n)),
        None => total.interval(is_share).map(|found| Interval::new(found, "t")),
    };
    Measured {
        id: id.clone(),
        value: total.mean(),
        n: total.n,
        better: aggregate::better(id),
        per_run: vec![total.mean()],
        interval,
        count: None,
        undefined: total.mean().is_none().then(|| total.undefined.unwrap_or("not recorded").into()),
        left_out: total.left_out,
    }
}

fn described(warning: Warning) -> &'static str {
    match warning {
        Warning::NoPredictedCalls => "expected calls and made none",
        Warning::EmptyReference => "made calls and expected none",
        Warning::LengthMismatch => "made more or fewer calls than expected",
    }
}
