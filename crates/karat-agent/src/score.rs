//! Scoring a file of recorded traces.
//!
//! [`score_file`] keeps sums, not samples: whoever wants the scores of each sample takes them from
//! the callback, which sees them in the order of the file. An error ends the run with file and line;
//! samples before it have been handed out by then. Blank lines are skipped.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;

use karat_io::input::{Blocks, InputError, Limits, blocks};
use karat_metrics::calls::json::DEPTH_LIMIT;
use karat_metrics::calls::ragas::Warning;
use karat_metrics::stats::{Interval, student_two_sided_quantile};

use crate::error::AgentError;
use crate::ids::Ids;
use crate::importers::{self, Format, ImportProblem};
use crate::metric::CallMetric;
use crate::pipeline::{self, BatchScores, LineFailure, Plan};
use crate::sample::Sample;

/// What to compute, and within which bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// The metrics, in the order in which scores are given.
    pub metrics: Vec<CallMetric>,
    /// How many threads parse and score; as many as the machine runs at once if not given.
    pub threads: Option<NonZero<usize>>,
    /// How many bytes a line may have.
    pub line_limit: usize,
    /// How deep lists and objects may nest in a line.
    pub depth_limit: usize,
    /// How many ids later ones are compared with; 0 does not compare any. Each takes about 16 bytes.
    pub remembered_ids: usize,
}

impl Options {
    /// The usual bounds: lines of 16 MiB, nesting of 128, the first 65,536 ids remembered.
    pub fn new(metrics: Vec<CallMetric>) -> Self {
        Options {
            metrics,
            threads: None,
            line_limit: 16 << 20,
            depth_limit: DEPTH_LIMIT,
            remembered_ids: 1 << 16,
        }
    }
}

/// The score of one sample by one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ItemScore {
    /// The score.
    pub score: f64,
    /// Whether it reaches the metric's threshold, if the metric has one.
    pub success: Option<bool>,
}

/// The scores of one sample.
#[derive(Clone, Copy, Debug)]
pub struct ItemScores<'a> {
    /// The sample's line in the file, from 1.
    pub line: u64,
    /// The sample's id, if it has one.
    pub id: Option<&'a str>,
    /// One score for each metric of the options, in their order.
    pub scores: &'a [ItemScore],
    /// What RAGAS would warn of, if one of its accuracies was asked for.
    pub warning: Option<Warning>,
}

/// What a file scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many samples were scored.
    pub items: u64,
    /// One summary for each metric of the options, in their order.
    pub metrics: Vec<MetricSummary>,
    /// How many samples RAGAS would warn of, by warning.
    pub warnings: Warnings,
    /// Ids that later ones were not compared with, because there were too many.
    pub unremembered_ids: u64,
    /// Whether the callback ended the run before the end of the file.
    pub stopped: bool,
}

/// What a file scored by one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSummary {
    /// The metric's id.
    pub id: String,
    /// How many samples have a score: all, as call metrics are never undefined.
    pub n: u64,
    /// The mean score.
    pub mean: f64,
    /// Its 95 % t interval, within the range of the scores; none for fewer than two samples, or
    /// where all scores are alike, which would claim certainty.
    pub interval: Option<Interval>,
    /// How many samples reach the metric's threshold, if it has one.
    pub succeeded: Option<u64>,
}

/// How many samples RAGAS would warn of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Calls were expected and none was made.
    pub no_predicted_calls: u64,
    /// Calls were made and none was expected.
    pub empty_reference: u64,
    /// More or fewer calls were made than expected.
    pub length_mismatch: u64,
}

impl Warnings {
    fn count(&mut self, warning: Warning) {
        *match warning {
            Warning::NoPredictedCalls => &mut self.no_predicted_calls,
            Warning::EmptyReference => &mut self.empty_reference,
            Warning::LengthMismatch => &mut self.length_mismatch,
        } += 1;
    }
}

/// Scores every sample of a JSONL file, plain, gzip or zstd. `on_item` gets the scores of each sample
/// in the order of the file and may end the run by breaking off.
pub fn score_file(
    path: &Path,
    format: Format,
    options: &Options,
    on_item: &mut dyn FnMut(&ItemScores<'_>) -> ControlFlow<()>,
) -> Result<Summary, AgentError> {
    if options.metrics.is_empty() {
        return Err(AgentError::NoMetrics);
    }
    let mut blocks = open(path, options)?;
    // A suspected id is looked up by reading the file again, which a pipe does not allow.
    let can_read_again = path.is_file();
    let mut run = Run {
        path,
        format,
        options,
        lines_before: 0,
        ids: Ids::new(if can_read_again { options.remembered_ids } else { 0 }),
        totals: vec![Total::default(); options.metrics.len()],
        summary: Summary {
            items: 0,
            metrics: Vec::new(),
            warnings: Warnings::default(),
            unremembered_ids: 0,
            stopped: false,
        },
    };
    let plan = Plan { format, metrics: &options.metrics, depth_limit: options.depth_limit };
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok());
    let mut failure = None;
    let read =
        pipeline::run(&mut blocks, &plan, threads.unwrap_or(NonZero::<usize>::MIN), |batch| {
            run.take(batch, on_item).unwrap_or_else(|error| {
                failure = Some(error);
                ControlFlow::Break(())
            })
        });
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(error.at_line(run.lines_before + 1).into()),
        (None, Ok(())) => run.finish(),
    }
}

fn open(path: &Path, options: &Options) -> Result<Blocks<'static>, AgentError> {
    let limits = Limits { line_bytes: options.line_limit, ..Limits::streaming() };
    Ok(blocks(path, &limits)?)
}

/// The state of a run between batches.
struct Run<'r> {
    path: &'r Path,
    format: Format,
    options: &'r Options,
    lines_before: u64,
    ids: Ids,
    totals: Vec<Total>,
    summary: Summary,
}

impl Run<'_> {
    /// Adds a batch to the sums and hands out its samples.
    fn take(
        &mut self,
        batch: &BatchScores,
        on_item: &mut dyn FnMut(&ItemScores<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, AgentError> {
        for (item, scores) in batch.items.iter().zip(batch.scores.chunks(self.totals.len())) {
            let line = self.lines_before + item.line + 1;
            let id = batch.id(item);
            if let Some(id) = id {
                self.refuse_repetition(id, line)?;
            }
            self.summary.items += 1;
            if let Some(warning) = item.warning {
                self.summary.warnings.count(warning);
            }
            for (total, score) in self.totals.iter_mut().zip(scores) {
                total.add(*score);
            }
            let scores = ItemScores { line, id, scores, warning: item.warning };
            if on_item(&scores).is_break() {
                self.summary.stopped = true;
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some((line, failure)) = &batch.failure {
            return Err(self.line_error(self.lines_before + line + 1, failure));
        }
        self.lines_before += batch.lines;
        Ok(ControlFlow::Continue(()))
    }

    fn finish(mut self) -> Result<Summary, AgentError> {
        if self.summary.items == 0 {
            return Err(AgentError::NothingToScore { path: self.path.to_owned() });
        }
        let n = self.summary.items;
        let summary = |(metric, total): (&CallMetric, &Total)| MetricSummary {
            id: metric.id(),
            n,
            mean: total.sum() / n as f64,
            interval: total.interval(n, true),
            succeeded: total.succeeded,
        };
        self.summary.metrics = self.options.metrics.iter().zip(&self.totals).map(summary).collect();
        self.summary.unremembered_ids = self.ids.unremembered;
        Ok(self.summary)
    }

    fn refuse_repetition(&mut self, id: &str, line: u64) -> Result<(), AgentError> {
        if !self.ids.is_suspect(id) {
            return Ok(());
        }
        match self.first_line_with(id, line)? {
            Some(first_line) => {
                let (path, id) = (self.path.to_owned(), id.to_owned());
                Err(AgentError::DuplicateId { path, line, first_line, id })
            }
            None => Ok(()),
        }
    }

    /// Reads the file again up to a line, looking for an id.
    fn first_line_with(&self, id: &str, before: u64) -> Result<Option<u64>, AgentError> {
        let mut blocks = open(self.path, self.options)?;
        let mut batch = Vec::new();
        let mut line = 0;
        loop {
            blocks.next_block(&mut batch).map_err(|error| error.at_line(line + 1))?;
            let mut rest = &batch[..];
            if rest.is_empty() {
                return Ok(None);
            }
            while !rest.is_empty() {
                line += 1;
                if line == before {
                    return Ok(None);
                }
                let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                let (this, following) = rest.split_at(end);
                rest = following;
                let mut trace = Sample::default();
                let text = std::str::from_utf8(this).unwrap_or_default();
                // Lines without sample, such as blank ones, have no id.
                let read = importers::read(self.format, text, self.options.depth_limit, &mut trace);
                if read.is_ok() && trace.id.as_deref() == Some(id) {
                    return Ok(Some(line));
                }
            }
        }
    }

    fn line_error(&self, line: u64, failure: &LineFailure) -> AgentError {
        let path = self.path.to_owned();
        let error = match failure {
            LineFailure::NotUtf8 { column } => {
                let (column, hint) = (*column as u64, "save the file as UTF-8");
                return InputError::NotUtf8 { path, line, column, hint }.into();
            }
            LineFailure::Import(error) => error.clone(),
        };
        let field = if error.field.is_empty() { "the sample".to_owned() } else { error.field };
        match error.problem {
            ImportProblem::BrokenJson(source) => AgentError::BrokenJson { path, line, source },
            ImportProblem::Missing => AgentError::MissingField { path, line, field },
            ImportProblem::WrongType { expected, found } => {
                AgentError::WrongType { path, line, field, expected, found }
            }
            ImportProblem::UnknownValue { value, known } => {
                AgentError::UnknownValue { path, line, field, value, known }
            }
        }
    }
}

/// A running sum that keeps the digits a plain one loses over millions of samples (Neumaier).
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    sum: f64,
    lost: f64,
    squares: f64,
    succeeded: Option<u64>,
}

impl Total {
    pub(crate) fn add(&mut self, ItemScore { score, success }: ItemScore) {
        let sum = self.sum + score;
        self.lost += if self.sum.abs() >= score.abs() {
            (self.sum - sum) + score
        } else {
            (score - sum) + self.sum
        };
        self.sum = sum;
        self.squares += score * score;
        if let Some(success) = success {
            *self.succeeded.get_or_insert(0) += u64::from(success);
        }
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum + self.lost
    }

    /// The t interval of the mean, held to 0 and 1 if the scores are.
    pub(crate) fn interval(&self, n: u64, is_share: bool) -> Option<Interval> {
        let count = n as f64;
        let mean = self.sum() / count;
        let variance = (self.squares - count * mean * mean) / (count - 1.0);
        // What is left of a variance of 0 after rounding, and the 0/0 of a single sample.
        if variance.is_nan() || variance <= 1e-12 {
            return None;
        }
        let reach = student_two_sided_quantile(0.05, count - 1.0) * (variance / count).sqrt();
        let (low, high) = (mean - reach, mean + reach);
        Some(match is_share {
            true => Interval { low: low.max(0.0), high: high.min(1.0) },
            false => Interval { low, high },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_whole_sample() {
        let scores = [1.0, 0.0, 0.5, 1.0, 0.25];
        let mut total = Total::default();
        for score in scores {
            total.add(ItemScore { score, success: None });
        }
        let whole = karat_metrics::stats::t_interval(&scores, 0.95).unwrap();
        let found = total.interval(5, true).unwrap();
        // The t interval itself leaves the range of the scores here.
        assert!((found.low - whole.low.max(0.0)).abs() < 1e-12);
        assert!((found.high - whole.high.min(1.0)).abs() < 1e-12);
        let mut alike = Total::default();
        for _ in 0..3 {
            alike.add(ItemScore { score: 1.0, success: None });
        }
        assert_eq!(alike.interval(3, true), None);
        assert_eq!(alike.interval(1, true), None);
    }

    #[test]
    fn a_running_sum_keeps_small_terms() {
        let mut total = Total::default();
        for score in [1.0, 1e100, 1.0, -1e100] {
            total.add(ItemScore { score, success: None });
        }
        assert_eq!(total.sum(), 2.0);
        assert_eq!(total.succeeded, None);
    }
}
