//! The answer of a scanner about one entry.

use karat_core::observed::DetectorFinding;
use karat_io::redact::Redactor;
use serde::{Deserialize, Serialize};

/// The verdict of a detector on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Suspicious.
    Flag,
    /// Nothing found.
    Pass,
    /// It does not judge entries of this kind.
    Unsupported,
    /// It tried and failed.
    Error,
}

impl Verdict {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Flag => "flag",
            Verdict::Pass => "pass",
            Verdict::Unsupported => "unsupported",
            Verdict::Error => "error",
        }
    }
}

/// The parts of an answer that are not where its paths lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lacks {
    /// Something that was found has no severity.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub severity: bool,
    /// Something that was found has no score.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub score: bool,
}

impl Lacks {
    fn is_nothing(&self) -> bool {
        *self == Lacks::default()
    }
}

/// The report of one detector on one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DetectorReport {
    /// The detector.
    pub detector: String,
    /// Its verdict, where it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The highest severity of its findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The severities of its findings, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub severities: Vec<String>,
    /// The score, if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The parts that are missing for a decision by severity or score.
    #[serde(default, skip_serializing_if = "Lacks::is_nothing")]
    pub lacks: Lacks,
    /// The findings, without the name of the detector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<DetectorFinding>,
}

/// The answer of a system on one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// One report for each of its detectors.
    pub reports: Vec<DetectorReport>,
}

impl Answer {
    /// Hides secrets in every string, which journals and reports keep.
    pub(crate) fn hide(&mut self, redactor: &Redactor) {
        for report in &mut self.reports {
            let DetectorReport { detector, severity, severities, findings, .. } = report;
            let of_findings = findings.iter_mut().flat_map(|finding| {
                let DetectorFinding { detector, rule, severity, message, place, excerpt } = finding;
                [detector, rule, severity, message, place, excerpt]
            });
            let of_report = std::iter::once(detector).chain(severity).chain(severities);
            for text in of_report.chain(of_findings) {
                *text = redactor.hidden(std::mem::take(text));
            }
        }
    }

    /// Adds this verdict for each detector that has given none, with the reason as text where there is
    /// one.
    pub(crate) fn complete<'d>(
        &mut self,
        detectors: impl Iterator<Item = &'d str>,
        verdict: Verdict,
        reason: &str,
    ) {
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let evidence = reason
            .map(|said| DetectorFinding { message: said.to_owned(), ..DetectorFinding::default() });
        for detector in detectors {
            if self.reports.iter().any(|known| known.detector == detector) {
                continue;
            }
            self.reports.push(DetectorReport {
                detector: detector.to_owned(),
                verdict: Some(verdict),
                findings: evidence.iter().cloned().collect(),
                ..DetectorReport::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_a_scanner_writes_them() {
        const SECRET: &str = "k3y-0f-a-scanner";
        let text = || format!("by {SECRET}");
        let finding = DetectorFinding {
            detector: text(),
            rule: text(),
            severity: text(),
            message: text(),
            place: text(),
            excerpt: text(),
        };
        let report = DetectorReport {
            detector: text(),
            severity: Some(text()),
            severities: vec![text(), "low".to_owned()],
            findings: vec![finding],
            ..DetectorReport::default()
        };
        let mut answer = Answer { reports: vec![report] };
        let mut redactor = Redactor::default();
        redactor.add(SECRET);
        answer.hide(&redactor);
        let kept = serde_json::to_string(&answer).unwrap();
        assert!(!kept.contains(SECRET) && kept.matches("by [redacted]").count() == 9, "{kept}");
    }
}
