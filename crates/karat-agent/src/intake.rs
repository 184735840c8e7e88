//! The bookkeeping of traces that are read: bad records, duplicate ids, runs that failed, tasks
//! without a trace. In bounded memory, whatever the number of traces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use karat_core::error::EvalError;
use karat_core::run;
use karat_io::text::{clip, printable};

use crate::error::{in_line, nothing_to_score};
use crate::formats::TraceFormat;
use crate::prices::Prices;
use crate::read::{Bad, TraceFiles};
use crate::tasks::Tasks;
use crate::trace::{Failed, Trace};

/// The number of distinct names that are counted one by one; they come from the files of others.
const MAX_NAMES: usize = 1000;
/// The number of characters of a message or an id that is quoted.
const QUOTED: usize = 200;

/// Traces to read, and the tasks that they are completed with.
#[derive(Clone, Copy, Debug)]
pub struct TraceSource<'a> {
    /// The files.
    pub files: TraceFiles<'a>,
    /// The tasks, for traces that have no expectation of their own.
    pub tasks: Option<&'a Tasks>,
    /// The share of records that may be bad.
    pub max_bad: f64,
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

/// A file's name without the extensions of traces.
pub(crate) fn file_stem(path: &Path) -> String {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for end in [".gz", ".zst", ".jsonl", ".json", ".eval", ".binpb"] {
        name = name.strip_suffix(end).unwrap_or(&name).to_owned();
    }
    name
}

/// Everything that is known about traces apart from their scores.
#[derive(Debug, Default)]
pub struct ReadStats {
    /// The number of traces, those that failed included.
    pub runs: u64,
    /// The runs that could not be made.
    pub failures: Failures,
    /// Bad records by class.
    pub bad: BTreeMap<&'static str, u64>,
    /// Unknown fields.
    pub unknown: Counts,
    /// The remarks of importers, with their counts.
    pub notes: BTreeMap<String, u64>,
    /// Traces for which there is no task.
    pub without_task: u64,
    /// The remark on tasks for which there is no trace.
    pub without_trace: Option<String>,
    /// The models.
    pub models: BTreeSet<String>,
    /// Ids that later ones were not compared with, because there were too many.
    pub unchecked_ids: u64,
    /// True if traces were completed with tasks.
    pub has_tasks: bool,
    /// The formats of the files.
    pub formats: BTreeSet<TraceFormat>,
}

impl ReadStats {
    /// Remarks which formats were recognized, if none was stated.
    pub fn note_recognized(&mut self, stated: TraceFormat, formats: &[TraceFormat]) {
        let recognized = formats.iter().filter(|format| **format != TraceFormat::Native);
        for format in recognized.filter(|_| stated == TraceFormat::Auto) {
            let note = format!("file(s) recognized as {} ({})", format.name(), format.about());
            *self.notes.entry(note).or_default() += 1;
        }
    }
}

/// Counts by name; further names beyond the limit are counted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Adds to the count of a name.
    pub(crate) fn add(&mut self, name: &str, count: u64) {
        if let Some(known) = self.0.get_mut(name) {
            *known += count;
        } else {
            let name = if self.0.len() < MAX_NAMES { name } else { "others" };
            *self.0.entry(name.to_owned()).or_default() += count;
        }
    }

    /// The names with their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

/// Runs that could not be made. They have no scores; if they were only left out, an agent that cannot
/// be reached would score as well as one that is right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failures {
    /// Their number.
    pub count: u64,
    /// Their number by class, and the first message of each.
    pub classes: BTreeMap<String, (u64, String)>,
    /// The first of them: its task and the reason.
    pub first: Option<(String, String)>,
}

impl Failures {
    pub(crate) fn add(&mut self, trace: &Trace, failed: &Failed) {
        self.count += 1;
        let message = clip(&failed.message, QUOTED);
        let full = self.classes.len() >= MAX_NAMES;
        match self.classes.get_mut(&failed.class) {
            Some((count, _)) => *count += 1,
            None if full => {}
            None => _ = self.classes.insert(failed.class.clone(), (1, message.to_string())),
        }
        self.first.get_or_insert_with(|| {
            let reason = format!("{}: {message}", failed.class);
            let id = clip(&trace.id, QUOTED);
            (printable(&id).into_owned(), printable(&reason).into_owned())
        });
    }

    /// Holds the failures to the share of runs that may fail.
    ///
    /// # Errors
    /// If more have failed, or all.
    pub fn check(&self, runs: u64, allowed: f64) -> Result<(), EvalError> {
        let Some((id, message)) = self.first.clone() else { return Ok(()) };
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (failed, asked) = (count(self.count), count(runs));
        match run::exceeds_allowance(failed, asked, allowed) {
            false => Ok(()),
            true => {
                let items = "runs";
                Err(EvalError::TooManyFailures { failed, asked, allowed, items, id, message })
            }
        }
    }
}

/// A number that is different for different keys of traces: 128 bits, so that two keys never share
/// one by chance.
pub(crate) fn fingerprint(key: &impl Hash) -> u128 {
    let hash = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, key).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(0) << 64 | hash(1)
}

/// Takes note of traces while they are read.
pub(crate) struct Intake<'a> {
    source: TraceSource<'a>,
    stats: ReadStats,
    first_bad: Option<(usize, Bad)>,
    /// The file and line of each key.
    seen: HashMap<u128, (usize, u64)>,
    /// The number of runs so far of traces that are not numbered, by their key.
    numbered: HashMap<u128, u32>,
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
            seen: HashMap::new(),
            numbered: HashMap::new(),
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
        if self.source.max_bad <= 0.0 {
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
        id: Option<(&str, u128)>,
    ) -> Result<(), EvalError> {
        self.stats.runs += 1;
        id.map_or(Ok(()), |(id, key)| self.key(at, key, id))
    }

    fn key(&mut self, at: (usize, u64), key: u128, id: &str) -> Result<(), EvalError> {
        let full = self.seen.len() >= self.max_keys;
        let first = match full {
            true => self.seen.get(&key).copied(),
            false => self.seen.insert(key, at),
        };
        let Some((file, line)) = first else {
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
            && bad as f64 / all as f64 > self.source.max_bad
        {
            let classes: Vec<String> =
                self.stats.bad.iter().map(|(class, count)| format!("{class} {count}")).collect();
            let message = format!(
                "{bad} of {all} records are bad ({}), more than --max-bad allows; first: {}",
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
    use super::*;

    #[test]
    fn failed_runs_are_held_to_the_allowance() {
        let failed = Failed { class: "endpoint".into(), message: "dead".into() };
        let mut failures = Failures::default();
        failures.add(&Trace::of("b"), &failed);
        failures.add(&Trace::of("c"), &failed);
        assert!(failures.check(4, 0.5).is_ok());
        let error = failures.check(4, 0.49).unwrap_err();
        assert!(error.is_not_measured());
        let text = error.to_string();
        assert!(text.contains("2 of 4 runs") && text.contains("b: endpoint: dead"), "{text}");
        assert!(failures.check(2, 1.0).is_err(), "all of them failed");
        assert!(Failures::default().check(0, 0.0).is_ok());
        assert_eq!(failures.classes["endpoint"], (2, "dead".to_owned()));
    }

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut counts = Counts::default();
        for number in 0..MAX_NAMES + 5 {
            counts.add(&number.to_string(), 1);
        }
        assert_eq!(counts.iter().find(|(name, _)| *name == "others"), Some(("others", 5)));
    }
}
