//! The built-in detectors as a system: all together, with each listed, or one alone.

use karat_core::observed::DetectorFinding;
use karat_detectors::{self as detectors, Detector, Finding, ScanInput};

use crate::answer::{Answer, DetectorReport, Verdict};

/// All built-in detectors, or one of them.
pub struct Builtin {
    only: Option<&'static Detector>,
}

impl Builtin {
    /// `builtin` is for all.
    pub(crate) fn new(name: &str) -> Builtin {
        Builtin { only: detectors::find(name) }
    }

    /// The findings in a definition.
    pub(crate) fn inspect(&self, input: &ScanInput) -> Answer {
        if let Some(detector) = self.only {
            let findings = detector.findings(input);
            let flagged = detectors::flags(&findings);
            return Answer { reports: vec![reported(detector.name, &findings, flagged)] };
        }
        let scan = detectors::scan(input);
        let mut reports = vec![reported(detectors::COMBINED, &scan.findings, scan.flags())];
        // What each detector found is kept with that detector; the whole needs no second copy.
        reports[0].findings.clear();
        reports.extend(
            detectors::DETECTORS
                .iter()
                .enumerate()
                .map(|(number, detector)| (detector.name, scan.of(number)))
                .map(|(name, found)| reported(name, found, detectors::flags(found))),
        );
        Answer { reports }
    }
}

fn reported(name: &str, findings: &[Finding], flagged: bool) -> DetectorReport {
    DetectorReport {
        detector: name.to_owned(),
        verdict: Some(if flagged { Verdict::Flag } else { Verdict::Pass }),
        severity: findings
            .iter()
            .map(|finding| finding.tier)
            .max()
            .map(|tier| tier.name().to_owned()),
        score: Some(detectors::score(findings.iter())),
        findings: findings
            .iter()
            .map(|finding| DetectorFinding {
                rule: finding.rule.to_owned(),
                severity: finding.tier.name().to_owned(),
                message: finding.message.to_string(),
                place: finding.place.to_string(),
                excerpt: finding.excerpt.clone(),
                ..DetectorFinding::default()
            })
            .collect(),
        ..DetectorReport::default()
    }
}
