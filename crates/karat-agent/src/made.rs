//! How many runs were made and how many could not be.
//!
//! A run that could not be made (`failed`) has no scores. Were it only left out, an agent that cannot
//! be reached would score as well as one that is right, so beyond the share that is allowed nothing
//! is reported at all.

use karat_io::text::{clip, printable};

use crate::error::AgentError;
use crate::trace::Trace;

/// How much of the first failure is quoted.
const QUOTED: usize = 200;

/// Runs that were made, and runs that could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// All of them.
    pub runs: u64,
    /// Those that could not be made.
    pub failed: u64,
    /// The first of these, in words.
    first: Option<String>,
}

impl Made {
    /// Counts one run.
    pub fn count(&mut self, trace: &Trace) {
        self.runs += 1;
        let Some(failed) = &trace.failed else { return };
        self.failed += 1;
        self.first.get_or_insert_with(|| {
            let words =
                format!("{}, run {}: {}: {}", trace.id, trace.run, failed.class, failed.message);
            printable(&clip(&words, QUOTED)).into_owned()
        });
    }

    /// Holds them to the share that may fail.
    ///
    /// # Errors
    /// When more have failed, or all.
    pub fn within(&self, max_errors: f64) -> Result<(), AgentError> {
        let Some(first) = &self.first else { return Ok(()) };
        let Made { runs, failed, .. } = self;
        if failed < runs && *failed as f64 <= max_errors * *runs as f64 {
            return Ok(());
        }
        Err(AgentError::NotMeasured(format!(
            "{failed} of {runs} runs could not be made, and max_errors allows a share of \
             {max_errors}; the first: {first}"
        )))
    }
}

impl<'t> FromIterator<&'t Trace> for Made {
    fn from_iter<I: IntoIterator<Item = &'t Trace>>(traces: I) -> Self {
        let mut made = Made::default();
        traces.into_iter().for_each(|trace| made.count(trace));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(id: &str, failed: &str) -> Trace {
        Trace::parse(&format!(r#"{{"id":"{id}","calls":[]{failed}}}"#)).unwrap()
    }

    #[test]
    fn failed_runs_are_held_to_the_allowance() {
        let dead = r#","failed":{"class":"endpoint","message":"dead"}"#;
        let traces = [trace("a", ""), trace("b", dead), trace("c", dead), trace("d", "")];
        let made: Made = traces.iter().collect();
        assert_eq!((made.runs, made.failed), (4, 2));
        assert!(made.within(0.5).is_ok());
        let error = made.within(0.49).unwrap_err();
        assert!(error.is_not_measured());
        assert!(error.to_string().contains("2 of 4 runs"), "{error}");
        assert!(error.to_string().contains("the first: b, run 1: endpoint: dead"), "{error}");
        let none: Made = traces[1..3].iter().collect();
        assert!(none.within(1.0).is_err(), "all of them failed");
        assert!(Made::default().within(0.0).is_ok());
    }
}
