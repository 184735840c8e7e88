//! Batches through any number of threads and out again in order.
//!
//! The calling thread reads and emits; the others work. The result does not depend on the number of
//! threads: batches are cut by the reader alone and emitted in the order in which they were read. Only a
//! few batches are in flight, so memory does not grow with the input; their memory is used again.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// Runs batches through `read`, `work` and `emit`. `read` fills a batch and returns false at the end;
/// `work` runs on other threads.
///
/// # Errors
/// The first error of `read` or `emit`; batches that were read before an error of `read` are emitted.
pub(crate) fn run<B: Default + Send, E>(
    threads: Option<NonZero<usize>>,
    mut read: impl FnMut(&mut B) -> Result<bool, E>,
    work: impl Fn(&mut B) + Sync,
    mut emit: impl FnMut(&mut B) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZero::get);
    if threads == 1 {
        let mut batch = B::default();
        while read(&mut batch)? {
            work(&mut batch);
            emit(&mut batch)?;
        }
        return Ok(());
    }
    let (jobs, queue) = mpsc::channel::<(usize, B)>();
    let (finished, results) = mpsc::channel::<(usize, B)>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (queue, work, finished) = (&queue, &work, finished.clone());
            scope.spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, mut batch)) = job else { return };
                    work(&mut batch);
                    if finished.send((number, batch)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(finished);
        // Dropped when this closure returns, which ends the threads.
        let jobs = jobs;
        let mut spare: Vec<B> = Vec::new();
        let mut waiting: BTreeMap<usize, B> = BTreeMap::new();
        let (mut sent, mut emitted) = (0, 0);
        let mut end = None;
        loop {
            // Two batches for each thread: one at work, one ready.
            while end.is_none() && sent - emitted < 2 * threads {
                let mut batch = spare.pop().unwrap_or_default();
                match read(&mut batch) {
                    Ok(true) => {
                        // Fails only if every thread has panicked, which ends the scope anyway.
                        let _ = jobs.send((sent, batch));
                        sent += 1;
                    }
                    Ok(false) => end = Some(Ok(())),
                    Err(error) => end = Some(Err(error)),
                }
            }
            if emitted == sent {
                return end.unwrap_or(Ok(()));
            }
            let Ok((number, batch)) = results.recv() else { return Ok(()) };
            waiting.insert(number, batch);
            while let Some(mut batch) = waiting.remove(&emitted) {
                emitted += 1;
                emit(&mut batch)?;
                spare.push(batch);
            }
        }
    })
}

/// Maps entries on all processors; the results are in their order.
pub fn map<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(all.len());
    if threads <= 1 {
        return all.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(at) else { return done };
            done.push((at, work(one)));
        }
    };
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_entries() {
        let all: Vec<u64> = (0..1000).collect();
        assert!(map(&all, |n| n * n).into_iter().eq(all.iter().map(|n| n * n)));
        assert!(map(&[] as &[u64], |n| *n).is_empty());
    }

    #[test]
    fn batches_come_out_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 7] {
            let (mut next, mut out) = (0_u64, Vec::new());
            let result: Result<(), &str> = run(
                NonZero::new(threads),
                |batch: &mut u64| {
                    next += 1;
                    *batch = next;
                    if next > 500 { Err("cut off") } else { Ok(true) }
                },
                |batch| {
                    // Later batches finish earlier.
                    std::thread::sleep(std::time::Duration::from_micros(500 - (*batch).min(500)));
                    *batch *= 2;
                },
                |batch| {
                    out.push(*batch);
                    Ok(())
                },
            );
            assert_eq!(result, Err("cut off"));
            assert!(out.iter().copied().eq((1..=500).map(|number| 2 * number)));
        }
    }

    #[test]
    fn an_error_of_the_consumer_ends_the_run() {
        let mut seen = 0;
        let result = run(
            NonZero::new(3),
            |_: &mut u64| Ok(true),
            |_| {},
            |_| {
                seen += 1;
                if seen == 10 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((result, seen), (Err("enough"), 10));
    }
}
