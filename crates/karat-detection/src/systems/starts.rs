//! The answers of a batch scanner, start by start, next to the journal.
//!
//! A batch scanner answers only when it ends, and where names repeat it is started many times. Each
//! finished start is one line here, so that a run that is interrupted after the 20th of 29 goes on with
//! the 21st. A line counts only if the very same start is due again: its key is a digest of the program,
//! the settings and the tools that it was shown. Lines end with a checksum, as in the journal;
//! a line that is torn or damaged is a start that was not made.
//!
//! They are not lines of the journal: one start answers for many entries, and a journal has one line for
//! each entry, which everything that reads journals relies on.

use std::collections::BTreeMap;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_core::journal::{check_sum, with_sum};
use karat_io::input::{self, Limits};
use serde::{Deserialize, Serialize};

use super::batch::{Answers, Tally};

/// One finished start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    /// The digest of what was started, and of what it was shown.
    key: String,
    /// The time it took, in nanoseconds.
    nanos: u64,
    pub(super) answers: Answers,
    pub(super) tally: Tally,
}

impl Finished {
    pub(super) fn new(key: &str, took: Duration, answers: Answers, tally: Tally) -> Finished {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        Finished { key: key.to_owned(), nanos, answers, tally }
    }

    pub(super) fn took(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

/// The finished starts of a run.
#[derive(Default)]
pub(super) struct Starts {
    path: Option<PathBuf>,
    known: BTreeMap<String, Finished>,
}

impl Starts {
    /// The starts that the file next to a journal holds, or none of them if the run is not resumed.
    pub(super) fn next_to(journal: Option<&Path>, resume: bool) -> Starts {
        let path = journal.map(|journal| journal.with_extension("starts"));
        let mut starts = Starts { path, known: BTreeMap::new() };
        let Some(path) = &starts.path else { return starts };
        if !resume {
            // Those of another run; a file that is not there is as good as one that is gone.
            let _ = std::fs::remove_file(path);
            return starts;
        }
        let text = input::read_text(path, &Limits::default()).unwrap_or_default();
        let finished = text.lines().filter_map(|line| {
            let object = check_sum(line.as_bytes()).ok()?;
            serde_json::from_slice::<Finished>(&object).ok()
        });
        starts.known = finished.map(|one| (one.key.clone(), one)).collect();
        starts
    }

    /// The start with this key, if it was made.
    pub(super) fn take(&mut self, key: &str) -> Option<Finished> {
        self.known.remove(key)
    }

    /// Notes a finished start, with a single write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn note(&self, finished: &Finished) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |error: &dyn std::fmt::Display| {
            format!("{}: the answers of the scanner cannot be kept: {error}", path.display())
        };
        // A line before it may be torn: it must not take this one with it.
        let line = serde_json::to_vec(finished).map_err(|error| failed(&error))?;
        let line = [b"\n", &with_sum(line)[..], b"\n"].concat();
        let mut file = input::open_for_writing(path).map_err(|error| failed(&error))?;
        file.seek(SeekFrom::End(0)).map_err(|error| failed(&error))?;
        file.write_all(&line).map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_start_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("run.jsonl");
        let starts = Starts::next_to(Some(&journal), false);
        for key in ["whole", "damaged"] {
            let took = Duration::from_nanos(7);
            starts.note(&Finished::new(key, took, Answers::new(), Tally::default())).unwrap();
        }
        let path = folder.path().join("run.starts");
        let text = std::fs::read_to_string(&path).unwrap();
        // Still JSON, with another number in it.
        let (first, second) = text.split_once("damaged").unwrap();
        let changed = format!("{first}damaged{}", second.replacen("\"nanos\":7", "\"nanos\":8", 1));
        assert_ne!(changed, text);
        std::fs::write(&path, changed).unwrap();
        let mut starts = Starts::next_to(Some(&journal), true);
        assert!(starts.take("whole").is_some() && starts.take("damaged").is_none());
    }
}
