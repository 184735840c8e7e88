//! Traces after scoring: of each what a report needs, and counts over all of them.
//!
//! The calls, the conversation and the expectation of a trace are many times the size of its scores, and
//! nothing needs them once it is scored. So a report of 200,000 traces fits into memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use karat_core::error::EvalError;
use karat_core::observed;
use karat_core::report::DatasetRef;
use karat_metrics::MetricId;

use crate::controls::ControlTasks;
use crate::intake::{Intake, TraceSource};
use crate::pass::over_traces;
use crate::read_stats::ReadStats;
use crate::scores::{
    CallProblems, Confusion, Confusions, Own, TraceScore, TraceScorer, confusions, observed,
};
use crate::task_digest::{canonical_expectation, digest, room_for_another};
use crate::trace::{Expectation, Trace};
use crate::trace_set::TraceSet;

/// The number of traces that a report shows call by call.
pub(crate) const MAX_SHOWN: usize = 10_000;

/// The part of a trace that stays when it is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The data of a report.
    Scores,
    /// The calls too, to be compared with those of an earlier run.
    Calls,
}

/// A trace after scoring.
#[derive(Debug)]
pub struct ScoredTrace {
    /// The trace, without what only its scores needed.
    pub trace: Trace,
    /// Its scores.
    pub score: TraceScore,
    /// The servers that its task is about.
    pub(crate) server: Option<String>,
    /// The first tool that was called in place of another.
    pub(crate) confusion: Option<String>,
    /// The trace as a report shows it; none where there are too many.
    pub(crate) observed: Option<Box<observed::Traces>>,
}

/// Scored traces with their data.
#[derive(Debug)]
pub struct ScoredSet {
    /// The traces, sorted by `Trace::key`.
    pub traces: Vec<ScoredTrace>,
    /// Everything else that was found in the files.
    pub stats: ReadStats,
    /// The tasks that the traces are measured against.
    pub reference: DatasetRef,
    /// The ids of the scores.
    pub(crate) ids: Vec<MetricId>,
    pub(crate) tally: Tally,
}

/// Counts over all traces.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) problems: CallProblems,
    /// The number of times each tool was required.
    pub(crate) required: BTreeMap<String, u64>,
    pub(crate) confused: BTreeMap<Confusion, u64>,
    /// The reasons for which scores are undefined, by the place of the score.
    reasons: Vec<BTreeMap<&'static str, u64>>,
    pub(crate) controls: ControlTasks,
}

impl Tally {
    fn new(scores: usize) -> Self {
        Tally { reasons: vec![BTreeMap::new(); scores], ..Tally::default() }
    }

    fn add(&mut self, trace: &Trace, score: &TraceScore, confusions: Confusions) {
        self.problems.add(score);
        for (reasons, score) in self.reasons.iter_mut().zip(&score.scores) {
            if let Some(Err(reason)) = score {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        if trace.failed.is_some() {
            return;
        }
        for tool in confusions.required {
            *self.required.entry(tool).or_default() += 1;
        }
        for confusion in confusions.pairs {
            *self.confused.entry(confusion).or_default() += 1;
        }
    }

    /// The most common reason for which a score is undefined.
    pub(crate) fn reason(&self, place: usize) -> Option<&'static str> {
        let reasons = self.reasons.get(place)?.iter();
        let most = reasons.max_by_key(|(reason, count)| (**count, std::cmp::Reverse(**reason)));
        most.map(|(reason, _)| *reason)
    }
}

/// A trace that was just scored, with what is only counted.
struct Fresh {
    scored: ScoredTrace,
    task: Option<usize>,
    confusions: Confusions,
    expect: Option<Arc<Expectation>>,
    /// The text of the expectation for the digest of the data.
    expected: Option<String>,
}

/// The traces that are still shown call by call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    /// There are more than a report shows: those that did not succeed.
    Failed,
    None,
}

/// Scores traces and keeps what a report needs of them.
struct Scoring<'s> {
    scorer: &'s TraceScorer<'s>,
    keep: Keep,
    /// True if the data has no digest of its own.
    digests: bool,
    /// What is shown from here on, as a number. Only the taking side changes it, and a batch is taken
    /// after every batch before it, so what the workers leave out would not be kept either.
    shown: AtomicU8,
}

impl Scoring<'_> {
    fn shown(&self) -> Shown {
        match self.shown.load(Ordering::Relaxed) {
            0 => Shown::All,
            1 => Shown::Failed,
            _ => Shown::None,
        }
    }

    fn set_shown(&self, shown: Shown) {
        self.shown.store(shown as u8, Ordering::Relaxed);
    }

    /// Scores one trace, and drops what nothing needs any more.
    fn score(&self, mut trace: Trace, task: Option<usize>) -> Fresh {
        let score = self.scorer.score(&trace);
        let confusions = confusions(&trace);
        let wanted = match self.shown() {
            Shown::All => true,
            Shown::Failed => !succeeded(&score),
            Shown::None => false,
        };
        let observed = wanted.then(|| Box::new(observed(&trace, self.scorer, &score, &confusions)));
        let server = trace.about();
        let expect = trace.expect.take();
        let expected = self.digests.then(|| canonical_expectation(expect.as_deref()));
        trace.messages = Vec::new();
        trace.tools = None;
        trace.state = None;
        trace.servers = Vec::new();
        trace.peer_scores = BTreeMap::new();
        if self.keep == Keep::Scores {
            trace.calls = Vec::new();
            trace.input = None;
            trace.output = None;
        }
        let confusion = confusions.pairs.first().map(ToString::to_string);
        let scored = ScoredTrace { trace, score, server, confusion, observed };
        Fresh { scored, task, confusions, expect, expected }
    }
}

fn succeeded(score: &TraceScore) -> bool {
    score.value(Own::Success) == Some(1.0)
}

/// The set while traces are added.
struct Growing<'s> {
    scoring: &'s Scoring<'s>,
    traces: Vec<ScoredTrace>,
    tally: Tally,
    shown: usize,
    /// Tasks and expectations, for the digest.
    expected: BTreeSet<(String, String)>,
}

impl<'s> Growing<'s> {
    fn new(scoring: &'s Scoring<'s>) -> Self {
        Growing {
            scoring,
            traces: Vec::new(),
            tally: Tally::new(scoring.scorer.ids().len()),
            shown: 0,
            expected: BTreeSet::new(),
        }
    }

    fn push(&mut self, fresh: Fresh) {
        let Fresh { mut scored, confusions, expect, expected, .. } = fresh;
        self.tally.add(&scored.trace, &scored.score, confusions);
        if let Some(expect) = &expect {
            self.tally.controls.add(&scored.trace, expect);
        }
        if let Some(expected) = expected {
            self.expected.insert((scored.trace.id.clone(), expected));
        }
        scored.trace.unknown.clear();
        if self.traces.len() == MAX_SHOWN {
            self.scoring.set_shown(Shown::Failed);
            self.traces.iter_mut().filter(|one| succeeded(&one.score)).for_each(|one| {
                one.observed = None;
            });
            self.shown = self.traces.iter().filter(|one| one.observed.is_some()).count();
        }
        if self.traces.len() >= MAX_SHOWN {
            if self.shown == MAX_SHOWN || succeeded(&scored.score) {
                scored.observed = None;
            }
            self.shown += usize::from(scored.observed.is_some());
            if self.shown == MAX_SHOWN {
                self.scoring.set_shown(Shown::None);
            }
        }
        self.traces.push(scored);
    }

    fn finish(self, stats: ReadStats, reference: DatasetRef) -> ScoredSet {
        let Growing { scoring, mut traces, tally, expected, .. } = self;
        traces.sort_by(|a, b| a.trace.key().cmp(&b.trace.key()));
        let mut reference = reference;
        if scoring.digests {
            reference.digest = digest(&expected).to_string();
        }
        ScoredSet { traces, stats, reference, ids: scoring.scorer.ids().to_vec(), tally }
    }
}

impl ScoredSet {
    /// Reads files and scores every trace.
    ///
    /// # Errors
    /// If they cannot be read, too many records are bad, an id is a duplicate, or there is no trace.
    pub fn read(
        source: &TraceSource<'_>,
        scorer: &TraceScorer<'_>,
        keep: Keep,
    ) -> Result<Self, EvalError> {
        let digest = source.tasks.and_then(|tasks| tasks.digest);
        let scoring = Scoring { scorer, keep, digests: digest.is_none(), shown: AtomicU8::new(0) };
        let mut intake = Intake::new(*source, usize::MAX);
        let mut growing = Growing::new(&scoring);
        let work = |trace: Box<Trace>, task| Box::new(scoring.score(*trace, task));
        let notes = over_traces(source, None, work, |(file, line), found| {
            let mut fresh = match found {
                Err(bad) => return intake.bad(file, bad),
                Ok(fresh) => fresh,
            };
            intake.trace((file, line), &mut fresh.scored.trace, fresh.task)?;
            room_for_another(growing.traces.len(), &source.files.files[file])?;
            growing.push(*fresh);
            Ok(())
        })?;
        let stats = intake.finish(notes)?;
        let digest = digest.map_or_else(String::new, |digest| digest.to_string());
        let reference = DatasetRef { id: source.name(), version: "tasks".to_owned(), digest };
        Ok(growing.finish(stats, reference))
    }

    /// Scores traces that are in memory, on all processors.
    pub fn of(set: TraceSet, scorer: &TraceScorer<'_>, keep: Keep) -> Self {
        let scoring = Scoring { scorer, keep, digests: false, shown: AtomicU8::new(0) };
        let TraceSet { traces, stats, reference } = set;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = traces.len().div_ceil(threads).max(1);
        let mut parts = Vec::new();
        let mut traces = traces.into_iter();
        while traces.len() > 0 {
            parts.push(traces.by_ref().take(part).collect::<Vec<Trace>>());
        }
        let score = |part: Vec<Trace>| -> Vec<Fresh> {
            part.into_iter().map(|trace| scoring.score(trace, None)).collect()
        };
        let scored: Vec<Fresh> = std::thread::scope(|scope| {
            let parts: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| score(part))).collect();
            let join = |part: std::thread::ScopedJoinHandle<'_, Vec<Fresh>>| {
                part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            parts.into_iter().flat_map(join).collect()
        });
        let mut growing = Growing::new(&scoring);
        scored.into_iter().for_each(|fresh| growing.push(fresh));
        growing.finish(stats, reference)
    }

    /// A remark on the traces that are not shown call by call.
    pub(crate) fn not_shown(&self) -> Option<String> {
        let all = self.traces.len();
        let shown = self.traces.iter().filter(|one| one.observed.is_some()).count();
        (shown < all).then(|| {
            format!(
                "calls are shown for {shown} of {all} traces: the first {MAX_SHOWN} that did not succeed; \
                 scores are kept for all"
            )
        })
    }
}
