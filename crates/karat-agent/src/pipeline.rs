//! Batches of lines through any number of threads and out again in order.
//!
//! The calling thread reads and emits; workers parse and score. What comes out does not depend on
//! the number of threads: batches are cut by the reader alone, and emitted in the order in which they
//! were read. Only a few batches are under way at a time, so memory does not grow with the file.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError, mpsc};

use karat_io::input::{BlockError, Blocks};
use karat_metrics::calls::ragas::Warning;

use crate::importers::{self, Format, ImportError};
use crate::metric::CallMetric;
use crate::sample::Sample;
use crate::score::ItemScore;

/// How lines are read and scored.
pub(crate) struct Plan<'p> {
    pub(crate) format: Format,
    pub(crate) metrics: &'p [CallMetric],
    pub(crate) depth_limit: usize,
}

/// The scores of one batch of lines.
#[derive(Default)]
pub(crate) struct BatchScores {
    /// How many lines the batch has, blank ones included.
    pub(crate) lines: u64,
    pub(crate) items: Vec<Item>,
    /// The scores of all items, each with one for each metric.
    pub(crate) scores: Vec<ItemScore>,
    /// The ids of all items, joined.
    ids: String,
    /// The line, from 0 in the batch, at which scoring stopped, and why.
    pub(crate) failure: Option<(u64, LineFailure)>,
}

/// One sample in a batch.
pub(crate) struct Item {
    /// Its line, from 0 in the batch.
    pub(crate) line: u64,
    id: Option<Range<usize>>,
    pub(crate) warning: Option<Warning>,
}

/// Why a line could not be scored.
pub(crate) enum LineFailure {
    NotUtf8 { column: usize },
    Import(ImportError),
}

impl BatchScores {
    /// The id of one of the items.
    pub(crate) fn id(&self, item: &Item) -> Option<&str> {
        item.id.clone().map(|range| &self.ids[range])
    }

    fn clear(&mut self) {
        self.lines = 0;
        self.items.clear();
        self.scores.clear();
        self.ids.clear();
        self.failure = None;
    }
}

/// A batch on its way, with memory that is used again for later ones.
#[derive(Default)]
struct Slot {
    sequence: usize,
    batch: Vec<u8>,
    scores: BatchScores,
}

impl Slot {
    fn score(&mut self, plan: &Plan<'_>) {
        self.scores.clear();
        score_batch(&self.batch, plan, &mut self.scores);
    }
}

/// Scores all lines, handing each batch to `emit` in order until that breaks off.
pub(crate) fn run(
    blocks: &mut Blocks<'_>,
    plan: &Plan<'_>,
    threads: NonZero<usize>,
    emit: impl FnMut(&BatchScores) -> ControlFlow<()>,
) -> Result<(), BlockError> {
    match threads.get() {
        1 => run_here(blocks, plan, emit),
        threads => run_threads(blocks, plan, threads, emit),
    }
}

fn run_here(
    blocks: &mut Blocks<'_>,
    plan: &Plan<'_>,
    mut emit: impl FnMut(&BatchScores) -> ControlFlow<()>,
) -> Result<(), BlockError> {
    let mut slot = Slot::default();
    loop {
        blocks.next_block(&mut slot.batch)?;
        if slot.batch.is_empty() {
            return Ok(());
        }
        slot.score(plan);
        if emit(&slot.scores).is_break() {
            return Ok(());
        }
    }
}

fn run_threads(
    blocks: &mut Blocks<'_>,
    plan: &Plan<'_>,
    threads: usize,
    mut emit: impl FnMut(&BatchScores) -> ControlFlow<()>,
) -> Result<(), BlockError> {
    let (work, jobs) = mpsc::channel::<Slot>();
    let (finished, results) = mpsc::channel::<Slot>();
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (jobs, finished) = (&jobs, finished.clone());
            scope.spawn(move || {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut slot) = job else { return };
                    slot.score(plan);
                    if finished.send(slot).is_err() {
                        return;
                    }
                }
            });
        }
        drop(finished);
        // Dropped when this closure returns, which sends the workers home.
        let work = work;
        let mut spare: Vec<Slot> = Vec::new();
        let mut waiting: BTreeMap<usize, Slot> = BTreeMap::new();
        let (mut read, mut emitted) = (0, 0);
        // How reading ended, once it has.
        let mut end = None;
        loop {
            // Two batches for each worker: one at work, one ready.
            while end.is_none() && read - emitted < 2 * threads {
                let mut slot = spare.pop().unwrap_or_default();
                match blocks.next_block(&mut slot.batch) {
                    Ok(()) if slot.batch.is_empty() => end = Some(Ok(())),
                    Ok(()) => {
                        slot.sequence = read;
                        read += 1;
                        // Fails only if every worker has panicked, which ends the scope anyway.
                        let _ = work.send(slot);
                    }
                    Err(error) => end = Some(Err(error)),
                }
            }
            if emitted == read {
                return end.unwrap_or(Ok(()));
            }
            let Ok(slot) = results.recv() else { return Ok(()) };
            waiting.insert(slot.sequence, slot);
            while let Some(slot) = waiting.remove(&emitted) {
                emitted += 1;
                if emit(&slot.scores).is_break() {
                    return Ok(());
                }
                spare.push(slot);
            }
        }
    })
}

fn score_batch(batch: &[u8], plan: &Plan<'_>, into: &mut BatchScores) {
    let valid = match std::str::from_utf8(batch) {
        Ok(text) => text,
        // What precedes the first wrong byte is scored; the line with that byte fails.
        Err(error) => std::str::from_utf8(&batch[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut trace = Sample::default();
    let mut start = 0;
    while start < batch.len() {
        let end = memchr::memchr(b'\n', &batch[start..]).map_or(batch.len(), |end| start + end);
        let line = into.lines;
        into.lines += 1;
        let scored = if end > valid.len() {
            Err(LineFailure::NotUtf8 { column: valid.len() - start + 1 })
        } else {
            score_line(&valid[start..end], line, plan, &mut trace, into)
                .map_err(LineFailure::Import)
        };
        if let Err(failure) = scored {
            into.failure = Some((line, failure));
            return;
        }
        start = end + 1;
    }
}

fn score_line<'a>(
    text: &'a str,
    line: u64,
    plan: &Plan<'_>,
    trace: &mut Sample<'a>,
    into: &mut BatchScores,
) -> Result<(), ImportError> {
    if text.trim_ascii().is_empty() {
        return Ok(());
    }
    trace.clear();
    importers::read(plan.format, text, plan.depth_limit, trace)?;
    let id = trace.id.as_deref().map(|id| {
        let start = into.ids.len();
        into.ids.push_str(id);
        start..into.ids.len()
    });
    let mut item = Item { line, id, warning: None };
    for metric in plan.metrics {
        let (score, warning) = metric.measure(trace);
        into.scores.push(score);
        item.warning = item.warning.or(warning);
    }
    into.items.push(item);
    Ok(())
}
