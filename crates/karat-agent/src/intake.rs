//! The bookkeeping of traces that are read: bad records, duplicate ids, runs that failed, tasks
//! without a trace. In bounded memory, whatever the number of traces.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher};
use std::path::{Path, PathBuf};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use hashbrown::HashTable;
use karat_core::error::EvalError;
use karat_io::text::clip;

use crate::error::{in_line, nothing_to_score};
use crate::formats::file_stem;
use crate::prices::Prices;
use crate::read::{Bad, TraceFiles};
pub use crate::read_stats::{Counts, Failures, ReadStats};
use crate::read_stats::{MAX_NAMES, QUOTED};
use crate::tasks::Tasks;
use crate::trace::Trace;

/// Traces to read, and the tasks that they are completed with.
#[derive(Clone, Copy, Debug)]
pub struct TraceSource<'a> {
    /// The files.
    pub files: TraceFiles<'a>,
    /// The tasks, for traces that have no expectation of their own.
    pub tasks: Option<&'a Tasks>,
    /// The share of records that may be bad.
    pub max_malformed: f64,
    /// The prices of models, for runs whose cost was not recorded.
    pub prices: Option<&'a Prices>,
}

impl TraceSource<'_> {
    /// Completes a trace with its task and its cost, and returns the number of the task.
    pub(crate) fn complete(&self, trace: &mut Trace) -> Option<usize> {
        if let Some(prices) = self.prices {
            prices.complete(trace);
        }
        self.tasks.and_then(|tasks| tasks.complete(trace))
    }

    /// The first file, which names the data.
    pub(crate) fn first_file(&self) -> &Path {
        self.files.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The first file's name without its extensions.
    pub(crate) fn name(&self) -> String {
        file_stem(self.first_file())
    }
}

/// A number that is different for different keys of traces: 128 bits, so that two keys never share
/// one by chance. The halves have nothing in common, and it is the same in every run.
pub(crate) type Fingerprint = (u64, u64);

pub(crate) fn fingerprint(key: &impl Hash) -> Fingerprint {
    static SEEDS: [SharedSeed; 2] = [SharedSeed::from_u64(0), SharedSeed::from_u64(1)];
    let half = |seed| SeedableRandomState::with_seed(0, seed).hash_one(key);
    (half(&SEEDS[0]), half(&SEEDS[1]))
}

/// The hash of a fingerprint, which is one already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = half;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
}

/// The first place of each fingerprint. The table that is looked up in no order has nothing but numbers, so that it
/// fits into the cache of a processor; and little memory is touched for the first time, which takes longer than
/// the looking up.
#[derive(Default)]
struct Places {
    numbers: HashTable<u32>,
    /// Each fingerprint and its line.
    lines: Vec<(Fingerprint, u64)>,
    /// The number of the first fingerprint of each file, and the file.
    files: Vec<(usize, usize)>,
}

impl Places {
    fn len(&self) -> usize {
        self.lines.len()
    }

    /// The place of a fingerprint; one that has none gets this one if there are less than `max`.
    fn get_or_insert(
        &mut self,
        key: Fingerprint,
        (file, line): (usize, u64),
        max: usize,
    ) -> Option<(usize, u64)> {
        let Places { numbers, lines, files } = self;
        let known = |number: &u32| lines[*number as usize];
        if let Some(number) = numbers.find(key.0, |number| known(number).0 == key) {
            let from = files.partition_point(|(first, _)| *first <= *number as usize);
            return Some((files[from - 1].1, known(number).1));
        }
        let next = lines.len();
        if let Ok(number) = u32::try_from(next)
            && next < max
        {
            numbers.insert_unique(key.0, number, |number| known(number).0.0);
            lines.push((key, line));
            if files.last().is_none_or(|(_, last)| *last != file) {
                files.push((next, file));
            }
        }
        None
    }
}

/// Takes note of traces while they are read.
pub(crate) struct Intake<'a> {
    source: TraceSource<'a>,
    stats: ReadStats,
    first_bad: Option<(usize, Bad)>,
    /// The place of each key.
    seen: Places,
    /// The number of runs so far of traces that are not numbered, by their key.
    numbered: HashMap<Fingerprint, u32, BuildHasherDefault<Hashed>>,
    max_keys: usize,
    /// The tasks that have a trace.
    done: Vec<bool>,
}

impl<'a> Intake<'a> {
    /// Compares later keys with the first `max_keys`: all repetitions in files up to that size, and
    /// files that were joined with themselves whatever their size.
    pub(crate) fn new(source: TraceSource<'a>, max_keys: usize) -> Self {
        Intake {
            source,
            stats: ReadStats::default(),
            first_bad: None,
            seen: Places::default(),
            numbered: HashMap::default(),
            max_keys,
            done: vec![false; source.tasks.map_or(0, Tasks::len)],
        }
    }

    fn path(&self, file: usize) -> &'a Path {
        &self.source.files.files[file]
    }

    /// Counts a bad record.
    ///
    /// # Errors
    /// If no record may be bad.
    pub(crate) fn bad(&mut self, file: usize, bad: Bad) -> Result<(), EvalError> {
        if self.source.max_malformed <= 0.0 {
            let message = format!("{} ({})", bad.message, bad.class);
            return Err(in_line(self.path(file), bad.line, message));
        }
        *self.stats.bad.entry(bad.class).or_default() += 1;
        self.first_bad.get_or_insert((file, bad));
        Ok(())
    }

    /// Counts a trace; `task` is the number of its task. A run that is not numbered becomes the next
    /// one of its task.
    ///
    /// # Errors
    /// If its id is a duplicate.
    pub(crate) fn trace(
        &mut self,
        (file, line): (usize, u64),
        trace: &mut Trace,
        task: Option<usize>,
    ) -> Result<(), EvalError> {
        if trace.run == 0 {
            let key = fingerprint(&trace.key());
            let full = self.numbered.len() >= self.max_keys;
            trace.run = match self.numbered.get_mut(&key) {
                Some(runs) => {
                    *runs += 1;
                    *runs
                }
                None if full => 1,
                None => *self.numbered.entry(key).or_insert(1),
            };
        }
        self.key((file, line), fingerprint(&trace.key()), &trace.id)?;
        let stats = &mut self.stats;
        stats.runs += 1;
        match task {
            Some(task) => self.done[task] = true,
            None => stats.without_task += u64::from(self.source.tasks.is_some()),
        }
        for (name, count) in &trace.unknown {
            stats.unknown.add(name, *count);
        }
        if let Some(failed) = &trace.failed {
            stats.failures.add(trace, failed);
        }
        if let Some(model) = &trace.model
            && !stats.models.contains(model)
            && stats.models.len() < MAX_NAMES
        {
            stats.models.insert(model.clone());
        }
        Ok(())
    }

    /// Counts a sample, which has nothing but an id.
    ///
    /// # Errors
    /// If the id is a duplicate.
    pub(crate) fn sample(
        &mut self,
        at: (usize, u64),
        id: Option<(&str, Fingerprint)>,
    ) -> Result<(), EvalError> {
        self.stats.runs += 1;
        id.map_or(Ok(()), |(id, key)| self.key(at, key, id))
    }

    fn key(&mut self, at: (usize, u64), key: Fingerprint, id: &str) -> Result<(), EvalError> {
        let full = self.seen.len() >= self.max_keys;
        let Some((file, line)) = self.seen.get_or_insert(key, at, self.max_keys) else {
            self.stats.unchecked_ids += u64::from(full);
            return Ok(());
        };
        let place = match file == at.0 {
            true => format!("line {line}"),
            false => format!("{}:{line}", self.path(file).display()),
        };
        let id = clip(id, QUOTED);
        let message =
            format!("duplicate id {id:?} (first in {place}); number repeated runs with `run`");
        Err(in_line(self.path(at.0), at.1, message))
    }

    /// The statistics, once everything was read.
    ///
    /// # Errors
    /// If too many records are bad, or there is no trace.
    pub(crate) fn finish(mut self, notes: BTreeMap<String, u64>) -> Result<ReadStats, EvalError> {
        let bad: u64 = self.stats.bad.values().sum();
        let all = self.stats.runs + bad;
        if let Some((file, first)) = &self.first_bad
            && bad as f64 / all as f64 > self.source.max_malformed
        {
            let classes: Vec<String> =
                self.stats.bad.iter().map(|(class, count)| format!("{class} {count}")).collect();
            let message = format!(
                "{bad} of {all} records are bad ({}), more than --max-malformed allows; first: {}",
                classes.join(", "),
                first.message
            );
            return Err(in_line(self.path(*file), first.line, message));
        }
        if self.stats.runs == 0 {
            return Err(nothing_to_score(self.source.first_file(), &notes));
        }
        self.stats.notes = notes;
        self.stats.has_tasks = self.source.tasks.is_some();
        self.stats.formats = self.source.files.formats.iter().copied().collect();
        self.stats.without_trace =
            self.source.tasks.and_then(|tasks| tasks.without_trace(&self.done));
        Ok(self.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::{Places, fingerprint};

    #[test]
    fn a_key_is_found_in_the_file_and_line_where_it_was_first() {
        let mut places = Places::default();
        let ids: Vec<String> = (0..2_000).map(|number| format!("t{number}")).collect();
        // A file without keys (1) is between the others, and one is read in two pieces (2, 3, 2).
        let file = |number: usize| [0, 0, 2, 3, 2][number / 400];
        for (number, id) in ids.iter().enumerate() {
            let at = (file(number), number as u64 + 1);
            assert_eq!(places.get_or_insert(fingerprint(id), at, 2_000), None);
        }
        for (number, id) in ids.iter().enumerate() {
            let first = Some((file(number), number as u64 + 1));
            assert_eq!(places.get_or_insert(fingerprint(id), (9, 9), 2_000), first);
        }
        // Beyond the maximum nothing is added.
        assert_eq!(places.get_or_insert(fingerprint(&"new"), (4, 1), 2_000), None);
        assert_eq!(places.get_or_insert(fingerprint(&"new"), (4, 2), 2_000), None);
    }
}
