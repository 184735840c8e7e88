//! Statistics of traces apart from their scores.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::error::EvalError;
use karat_core::run;
use karat_io::text::{clip, printable};

use crate::formats::TraceFormat;
use crate::trace::{Failed, Trace};

/// The number of characters of a message or an id that is quoted.
pub(crate) const QUOTED: usize = 200;

/// The number of distinct names that are counted one by one; they come from the files of others.
pub(crate) const MAX_NAMES: usize = 1000;

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
            let note = format!("files recognized as {} ({})", format.name(), format.about());
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
        run::Failures { failed, asked, id, message }.allow(allowed, "runs")
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
