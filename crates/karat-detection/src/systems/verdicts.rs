//! Verdicts that were made elsewhere, in a file.
//!
//! Three kinds are read: own lines, or a list of them (`{"id", "verdict", "label"?, "detector"?, "severity"?,
//! "score"?, "findings"?}`, one for each entry and detector), the public scan-verdict file (`{detectors, entries:
//! [{id, label, category, verdicts: [{detector, flagged, max_severity, detections}]}]}`), and SARIF
//! 2.1.0. Labels in a verdict file are not used: where they contradict the corpus, that is an error.
//! A detector that is silent on an entry of which others speak has failed on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_io::input::{self, Format, InputError, Limits};
use karat_io::text::count;
use karat_io::{Failure, FailureClass};
use serde::Deserialize;
use serde_json::Value;

use super::sarif;
use crate::answer::{Answer, DetectorReport, Verdict};
use crate::dataset::Dataset;
use karat_core::error::EvalError;

/// The name of the detector of lines without one.
pub(crate) const DETECTOR: &str = "file";

/// The verdicts of a file, by entry.
#[derive(Debug, Default)]
pub struct Verdicts {
    answers: BTreeMap<String, Answer>,
    /// The detectors that the file declares or names, in its order.
    detectors: Vec<String>,
    /// Ids in the file that the corpus does not have.
    unknown: Vec<String>,
}

#[derive(Deserialize)]
struct OwnLine {
    id: String,
    label: Option<String>,
    detector: Option<String>,
    verdict: Verdict,
    severity: Option<String>,
    score: Option<f64>,
    #[serde(default)]
    findings: Vec<Value>,
}

#[derive(Deserialize)]
struct PublicFile {
    #[serde(default)]
    detectors: Vec<String>,
    entries: Vec<PublicEntry>,
}

#[derive(Deserialize)]
struct PublicEntry {
    id: String,
    label: Option<String>,
    verdicts: Vec<PublicVerdict>,
}

#[derive(Deserialize)]
struct PublicVerdict {
    detector: String,
    flagged: bool,
    max_severity: Option<String>,
    score: Option<f64>,
    #[serde(default)]
    detections: Vec<Value>,
}

/// Refuses a label that contradicts the corpus.
fn agrees(path: &Path, id: &str, label: Option<&str>, dataset: &Dataset) -> Result<(), InputError> {
    let truth = dataset.sample(id).map(|sample| sample.label.name());
    match (label, truth) {
        (Some(label), Some(truth)) if label != truth => {
            let message = format!("is {label} in the verdict file and {truth} in the corpus");
            Err(InputError::invalid(path, id, message))
        }
        _ => Ok(()),
    }
}

impl Verdicts {
    /// Reads a file and compares it with the corpus.
    ///
    /// # Errors
    /// If it is none of the known kinds, names a detector twice for one entry, or contradicts the
    /// labels of the corpus.
    pub(crate) fn load(path: &Path, dataset: &Dataset) -> Result<Verdicts, EvalError> {
        let limits = Limits::default();
        let text = input::read_text(path, &limits)?;
        let sarif_name =
            path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sarif"));
        let format = if sarif_name { Some(Format::Json) } else { Format::of(path) };
        let format = format.ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        Self::parse(path, &text, format, dataset)
    }

    /// The pure half of [`Verdicts::load`].
    ///
    /// # Errors
    /// See [`Verdicts::load`].
    pub(crate) fn parse(
        path: &Path,
        text: &str,
        format: Format,
        dataset: &Dataset,
    ) -> Result<Verdicts, EvalError> {
        let mut verdicts = Verdicts::default();
        if format.is_list(text) {
            let lines: Vec<OwnLine> = input::parse(path, text, format)?;
            for line in lines {
                agrees(path, &line.id, line.label.as_deref(), dataset)?;
                let report = DetectorReport {
                    detector: line.detector.unwrap_or_else(|| DETECTOR.to_owned()),
                    verdict: Some(line.verdict),
                    severity: line.severity,
                    score: line.score,
                    findings: line.findings.iter().map(super::evidence).collect(),
                    ..DetectorReport::default()
                };
                verdicts.add(path, &line.id, report)?;
            }
        } else {
            let value: Value = input::parse(path, text, format)?;
            if value.get("runs").is_some() {
                return Self::from_sarif(path, &value, dataset);
            }
            let file: PublicFile = input::parse(path, text, format)?;
            verdicts.detectors.clone_from(&file.detectors);
            verdicts.add_public(path, file, dataset)?;
        }
        verdicts.complete();
        verdicts.unknown =
            verdicts.answers.keys().filter(|id| dataset.sample(id).is_none()).cloned().collect();
        Ok(verdicts)
    }

    fn add(&mut self, path: &Path, id: &str, report: DetectorReport) -> Result<(), InputError> {
        let answer = self.answers.entry(id.to_owned()).or_default();
        if answer.reports.iter().any(|known| known.detector == report.detector) {
            let message = format!("{} gives two verdicts on this entry", report.detector);
            return Err(InputError::invalid(path, id, message));
        }
        if !self.detectors.contains(&report.detector) {
            self.detectors.push(report.detector.clone());
        }
        answer.reports.push(report);
        Ok(())
    }

    /// Marks the verdicts that some of several detectors have not given as missing: a detector does not
    /// speak for the others.
    fn complete(&mut self) {
        for answer in self.answers.values_mut() {
            let detectors = self.detectors.iter().map(String::as_str);
            answer.complete(
                detectors,
                Verdict::Error,
                "the file has no verdict of it on this entry",
            );
        }
    }

    fn add_public(
        &mut self,
        path: &Path,
        file: PublicFile,
        dataset: &Dataset,
    ) -> Result<(), EvalError> {
        let declared: BTreeSet<&str> = file.detectors.iter().map(String::as_str).collect();
        for entry in file.entries {
            agrees(path, &entry.id, entry.label.as_deref(), dataset)?;
            for verdict in entry.verdicts {
                if !declared.is_empty() && !declared.contains(verdict.detector.as_str()) {
                    let message = format!("{} is not among the file's detectors", verdict.detector);
                    return Err(InputError::invalid(path, entry.id.as_str(), message).into());
                }
                let report = DetectorReport {
                    detector: verdict.detector,
                    verdict: Some(if verdict.flagged { Verdict::Flag } else { Verdict::Pass }),
                    severity: verdict.max_severity.filter(|severity| !severity.is_empty()),
                    score: verdict.score,
                    findings: verdict.detections.iter().map(super::evidence).collect(),
                    ..DetectorReport::default()
                };
                self.add(path, &entry.id, report)?;
            }
        }
        Ok(())
    }

    fn from_sarif(path: &Path, log: &Value, dataset: &Dataset) -> Result<Verdicts, EvalError> {
        // A tool name is for an entry where only one entry has it.
        let mut by_name: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for sample in &dataset.samples {
            by_name
                .entry(&sample.tool.name)
                .and_modify(|known| *known = None)
                .or_insert(Some(&sample.id));
        }
        let name_of = |name: &str| {
            let known = dataset.sample(name).map(|sample| sample.id.clone());
            known.or_else(|| by_name.get(name).copied().flatten().map(str::to_owned))
        };
        let sarif = sarif::read(log, &[], name_of)
            .map_err(|message| InputError::invalid(path, "runs", message))?;
        if sarif.unmatched > 0 {
            let message = format!(
                "{} without the name of an entry of the corpus (as properties.id, logical location, \
                 fingerprint or file name)",
                count(sarif.unmatched, "result")
            );
            return Err(InputError::invalid(path, "results", message).into());
        }
        let answers = dataset
            .samples
            .iter()
            .map(|sample| (sample.id.clone(), Answer { reports: sarif.reports(&sample.id) }))
            .collect();
        Ok(Verdicts { answers, ..Verdicts::default() })
    }

    /// Remarks for the reader of the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let unknown = self.unknown.first().map(|first| {
            format!(
                "left out: verdicts on {} that the corpus does not have (first: {})",
                count(self.unknown.len(), "entry"),
                super::text(first)
            )
        });
        unknown.into_iter().collect()
    }

    /// The verdict on one entry. A missing one is a failure, never a pass.
    ///
    /// # Errors
    /// If the file has no verdict on it.
    pub(crate) fn answer(&self, id: &str) -> Result<Answer, Failure> {
        self.answers.get(id).cloned().ok_or_else(|| {
            Failure::new(FailureClass::InvalidAnswer, "the file has no verdict on this entry")
        })
    }
}
