//! Runs under attack, as the resilience evaluation reads them: a file for each pipeline.

use std::collections::{BTreeMap, BTreeSet};

use karat_recordings::{Run, is_added_in_1_2};

use crate::ImportError;
use crate::writer::{Writer, quoted};

/// The runs that become one report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Those of a pipeline and an attack, and those of the pipeline without an attack.
    Attack,
    /// Those of a pipeline and a suite.
    Suite,
    /// Those of a pipeline.
    Pipeline,
}

/// The runs of a benchmark, written to its dataset.
pub(crate) struct Runs {
    report: Report,
    pipelines: BTreeMap<String, Pipeline>,
    /// The tasks with their goals, numbered.
    cases: BTreeMap<String, u32>,
}

/// The cases of a pipeline by what reports are about; `None` for those without an attack.
#[derive(Default)]
struct Pipeline {
    source: String,
    cases: BTreeMap<Option<String>, Cases>,
}

/// Cases of the first goals, and of those that a later version of the benchmark added, with the numbers
/// of their files.
#[derive(Default)]
struct Cases {
    first: BTreeMap<u32, u32>,
    added: BTreeMap<u32, u32>,
}

impl Runs {
    pub(crate) fn new(report: Report) -> Runs {
        Runs { report, pipelines: BTreeMap::new(), cases: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pipelines.is_empty()
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, writer: &mut Writer, run: &Run) -> Result<(), ImportError> {
        if run.pipeline.is_empty() {
            return Err(ImportError::Other(format!("run {} names no pipeline", run.id())));
        }
        let name = writer.name(&run.pipeline);
        let known = self.pipelines.entry(name.clone()).or_default();
        if known.cases.is_empty() {
            known.source.clone_from(&run.pipeline);
        }
        let of = match self.report {
            Report::Attack => run.attack.clone(),
            Report::Suite => Some(run.suite.clone()),
            Report::Pipeline => None,
        };
        let goal = run.goal.as_deref();
        let next = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        let case = format!("{} {}", run.cluster(), goal.unwrap_or_default());
        let case = *self.cases.entry(case).or_insert(next);
        let cases = known.cases.entry(of).or_default();
        let part =
            if is_added_in_1_2(&run.suite, goal) { &mut cases.added } else { &mut cases.first };
        let before = part.insert(case, writer.file_number());
        // Elsewhere an attack is tried several times.
        if let Some(first) = before.filter(|first| self.report == Report::Attack && *first > 0) {
            let run = format!("the run {} of {}", run.id(), run.pipeline);
            return Err(writer.twice(&run, first));
        }
        writer.count("runs", 1);
        writer.line(&format!("runs/{name}.jsonl"), run)
    }

    /// Adds an entry for each report. Pipelines must have run the same cases.
    pub(crate) fn finish(self, writer: &mut Writer) -> Result<(), ImportError> {
        if self.report == Report::Attack {
            self.compare(writer)?;
        }
        for (file, pipeline) in &self.pipelines {
            writer.count("pipelines", 1);
            let several = pipeline.cases.keys().flatten().count() > 1;
            let mut reports: Vec<_> = pipeline.cases.iter().collect();
            if self.report == Report::Attack && reports.len() > 1 {
                // Runs without an attack are part of the report on each attack.
                reports.retain(|(of, _)| of.is_some());
            }
            for (of, cases) in reports {
                let name = match of.as_ref().filter(|_| several) {
                    Some(of) => writer.name(&format!("{}.{of}", pipeline.source)),
                    None => file.clone(),
                };
                let mut keys = vec![
                    ("dataset", writer.dataset()),
                    ("recordings", quoted(&format!("runs/{file}.jsonl"))),
                    ("format", quoted("native")),
                ];
                let part = match self.report {
                    Report::Attack => Some("attacks"),
                    Report::Suite => Some("suites"),
                    Report::Pipeline => None,
                };
                if let (Some(part), Some(of)) = (part, of) {
                    keys.push((part, format!("[{}]", quoted(of))));
                }
                if self.report == Report::Attack && !cases.added.is_empty() {
                    // The published tables are about the first goals.
                    writer.entry("resilience", &format!("{name}.v1.2"), &keys);
                    keys.push(("benchmark", quoted("v1.1.2")));
                }
                writer.entry("resilience", &name, &keys);
            }
        }
        Ok(())
    }

    /// Refuses pipelines that lack cases which others have under the same attack.
    fn compare(&self, writer: &mut Writer) -> Result<(), ImportError> {
        let mut all: BTreeMap<&Option<String>, (BTreeSet<u32>, BTreeSet<u32>)> = BTreeMap::new();
        for (attack, cases) in self.pipelines.values().flat_map(|pipeline| &pipeline.cases) {
            let (first, added) = all.entry(attack).or_default();
            first.extend(cases.first.keys());
            added.extend(cases.added.keys());
        }
        for pipeline in self.pipelines.values() {
            for (attack, cases) in &pipeline.cases {
                let Some((first, added)) = all.get(attack) else { continue };
                // A pipeline that was run with no added goal follows the earlier version.
                let later = if cases.added.is_empty() { 0 } else { added.len() };
                let (expected, found) =
                    (first.len() + later, cases.first.len() + cases.added.len());
                if found < expected {
                    let under = attack.as_deref().unwrap_or("no attack");
                    let source = &pipeline.source;
                    writer.incomplete(format!(
                        "{source} under {under} has runs for {found} of {expected} cases"
                    ))?;
                }
            }
        }
        Ok(())
    }
}
