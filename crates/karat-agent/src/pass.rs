//! One pass over files of traces: read in order, worked on by all processors, taken in order.
//!
//! Every way of using traces goes through here: whole traces, scored ones, sums alone. They differ in the
//! work on each trace and in what is kept of it.

use std::collections::BTreeMap;
use std::num::NonZero;

use karat_core::error::EvalError;

use crate::intake::TraceSource;
use crate::pipeline;
use crate::read::{Bad, Batch, Reader, Record};
use crate::trace::Trace;

/// A batch, and what came of the records in it, each with its line.
struct Slot<T> {
    batch: Batch,
    found: Vec<(u64, Result<T, Bad>)>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot { batch: Batch::default(), found: Vec::new() }
    }
}

/// Completes every trace, passes it through `work` on all processors, and the result with its file and
/// line on to `take`, in the order of the files. Returns the remarks of importers.
///
/// # Errors
/// If a file cannot be read, or an error of `take`.
pub(crate) fn over_traces<T: Send>(
    source: &TraceSource<'_>,
    threads: Option<NonZero<usize>>,
    work: impl Fn(Box<Trace>, Option<usize>) -> T + Sync,
    mut take: impl FnMut((usize, u64), Result<T, Bad>) -> Result<(), EvalError>,
) -> Result<BTreeMap<String, u64>, EvalError> {
    let mut reader = Reader::new(source.files);
    let work = |slot: &mut Slot<T>| {
        let Slot { batch, found } = slot;
        batch.records(&source.files, |line, record| {
            let done = match record {
                Record::Bad(bad) => Err(bad),
                Record::Trace(mut trace) => {
                    let task = source.complete(&mut trace);
                    Ok(work(trace, task))
                }
            };
            found.push((line, done));
        });
    };
    pipeline::run(
        threads,
        |slot: &mut Slot<T>| reader.next(&mut slot.batch),
        work,
        |slot| {
            let file = slot.batch.file;
            slot.found.drain(..).try_for_each(|(line, found)| take((file, line), found))
        },
    )?;
    Ok(reader.notes)
}
