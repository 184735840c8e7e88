//! The rule for what counts as flagged: part of a detector's definition, and stated in the report.
//!
//! A scanner reports findings with severities or scores; whether that flags an entry is a rule, and a
//! different rule is a different detector. The rule is applied to recorded answers, so the same answers
//! can be judged by another one.

use std::collections::BTreeMap;

use karat_core::observed::DetectorFinding;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, DetectorReport, Verdict};
use karat_core::error::EvalError;

/// The rule: `decision = { … }` of a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decision {
    /// The detectors whose flag flags the entry; all of them where empty.
    pub detectors: Vec<String>,
    /// The severities that count; as the detector itself says where empty.
    pub severities: Vec<String>,
    /// The lowest score that counts.
    pub min_score: Option<f64>,
}

/// The decision for one detector and one entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// The detector.
    pub detector: String,
    /// The verdict; `Error` with the reason in `problem` if there is none.
    pub outcome: Verdict,
    /// The highest severity that was reported, flagged or not.
    pub severity: Option<String>,
    /// The score.
    pub score: Option<f64>,
    /// The reason why there is no verdict, where there is none.
    pub problem: Option<String>,
}

impl Judged {
    /// Returns whether it was flagged, where there is a verdict.
    pub(crate) fn flagged(&self) -> Option<bool> {
        match self.outcome {
            Verdict::Flag => Some(true),
            Verdict::Pass => Some(false),
            Verdict::Unsupported | Verdict::Error => None,
        }
    }
}

/// The decisions for one answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decided {
    /// The verdict of the whole system.
    pub(crate) whole: Judged,
    /// The verdict of each of its detectors.
    pub(crate) each: Vec<Judged>,
}

/// The name of several detectors together, where one of them is enough.
pub(crate) const ANY: &str = "any";

/// The rank of a severity, by any name; higher is more severe.
pub(crate) fn rank(severity: &str) -> u8 {
    match severity.to_ascii_lowercase().as_str() {
        "critical" => 6,
        "high" | "error" | "block" | "danger" => 5,
        "medium" | "moderate" | "warning" | "warn" => 4,
        "low" | "note" => 3,
        "" | "none" | "safe" | "pass" | "ok" | "clean" | "0" => 0,
        // A word that we do not know is still a finding.
        _ => 2,
    }
}

/// The highest of several severities.
pub(crate) fn most_severe<'s>(severities: impl Iterator<Item = &'s str>) -> Option<&'s str> {
    let number = |severity: &str| severity.parse::<f64>().unwrap_or(f64::NEG_INFINITY);
    severities.max_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| number(a).total_cmp(&number(b))))
}

impl Decision {
    pub(crate) fn check(&self) -> Result<(), EvalError> {
        if !self.severities.is_empty() && self.min_score.is_some() {
            let message = "decision: give severities or min_score, not both";
            return Err(EvalError::config(format!("system: {message}")));
        }
        if self.min_score.is_some_and(|score| !score.is_finite()) {
            let message = "decision: min_score is not a finite number";
            return Err(EvalError::config(format!("system: {message}")));
        }
        Ok(())
    }

    /// The rule as used in the report.
    pub(crate) fn settings(&self, builtin: bool) -> BTreeMap<String, String> {
        let flagged = if let Some(score) = self.min_score {
            format!("a score of at least {score}")
        } else if !self.severities.is_empty() {
            format!("a finding of severity {}", self.severities.join(", "))
        } else if builtin {
            "as the detector's own rule says".to_owned()
        } else {
            "as the detector says".to_owned()
        };
        let mut settings = BTreeMap::from([("flagged".to_owned(), flagged)]);
        if !self.detectors.is_empty() {
            settings.insert("flagged by any of".to_owned(), self.detectors.join(", "));
        }
        settings
    }

    /// Applies the rule to what was answered.
    pub(crate) fn judge(&self, answer: &Answer) -> Decided {
        let each: Vec<Judged> =
            answer.reports.iter().map(|report| self.judge_one(report)).collect();
        let chosen: Vec<&Judged> = each
            .iter()
            .filter(|judged| self.detectors.is_empty() || self.detectors.contains(&judged.detector))
            .collect();
        let whole = match chosen.as_slice() {
            [] => Judged {
                detector: self.detectors.first().cloned().unwrap_or_else(|| ANY.to_owned()),
                outcome: Verdict::Error,
                severity: None,
                score: None,
                problem: Some("the answer has no report of this detector".to_owned()),
            },
            [one] => (*one).clone(),
            several => together(several),
        };
        Decided { whole, each }
    }

    fn judge_one(&self, report: &DetectorReport) -> Judged {
        let outcome = match report.verdict {
            Some(stated @ (Verdict::Unsupported | Verdict::Error)) => Ok(stated),
            stated => self.decide(report, stated),
        };
        let (outcome, mut problem) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(problem) => (Verdict::Error, Some(problem)),
        };
        if outcome == Verdict::Error && problem.is_none() {
            let said = report.findings.iter().map(|finding| finding.message.as_str()).next();
            problem = Some(said.unwrap_or("the detector answered that it failed").to_owned());
        }
        Judged {
            detector: report.detector.clone(),
            outcome,
            severity: severity(report).map(str::to_owned),
            score: report.score.filter(|score| score.is_finite()),
            problem,
        }
    }

    fn decide(&self, report: &DetectorReport, stated: Option<Verdict>) -> Result<Verdict, String> {
        if let Some(least) = self.min_score {
            return match report.score {
                Some(score) if score >= least && score.is_finite() => Ok(Verdict::Flag),
                Some(score) if score.is_finite() && !report.lacks.score => Ok(Verdict::Pass),
                // Scanners that list findings only give scores to what they found, and to nothing else.
                None if stated == Some(Verdict::Pass) && is_silent(report) => Ok(Verdict::Pass),
                _ => Err("the answer has no score to decide by".to_owned()),
            };
        }
        if !self.severities.is_empty() {
            let counts = |found: &str| {
                self.severities.iter().any(|counts| counts.eq_ignore_ascii_case(found))
            };
            let of_findings = || report.findings.iter().map(|finding| finding.severity.as_str());
            let own = report.severity.iter().chain(&report.severities).map(String::as_str);
            // A severity of the whole is that of its most severe finding; otherwise each finding has to have one.
            let known = report.severity.is_some()
                || !report.findings.is_empty() && of_findings().all(|found| !found.is_empty());
            return if own.chain(of_findings()).any(counts) {
                Ok(Verdict::Flag)
            } else if stated == Some(Verdict::Pass) || known && !report.lacks.severity {
                Ok(Verdict::Pass)
            } else {
                // Silence about severities is not a finding of none: the scanner may have failed.
                Err("the answer has no severity to decide by".to_owned())
            };
        }
        stated.ok_or_else(|| "the answer has no verdict".to_owned())
    }
}

/// Returns whether a report has no findings, but for notes that there was none.
fn is_silent(report: &DetectorReport) -> bool {
    let is_note =
        |found: &DetectorFinding| !found.severity.is_empty() && rank(&found.severity) == 0;
    report.findings.iter().all(is_note)
}

/// The highest severity of a report.
fn severity(report: &DetectorReport) -> Option<&str> {
    let of_findings =
        report.findings.iter().map(|DetectorFinding { severity, .. }| severity.as_str());
    let all = of_findings.chain(report.severity.as_deref());
    most_severe(all.filter(|severity| rank(severity) > 0))
}

/// Several detectors as one: one flag is enough, a pass needs at least one that could judge, and a
/// failure among silent ones is a failure.
fn together(several: &[&Judged]) -> Judged {
    let has = |outcome: Verdict| several.iter().find(|judged| judged.outcome == outcome);
    let (outcome, problem) = if has(Verdict::Flag).is_some() {
        (Verdict::Flag, None)
    } else if let Some(failed) = has(Verdict::Error) {
        (Verdict::Error, failed.problem.as_ref().map(|why| format!("{}: {why}", failed.detector)))
    } else if has(Verdict::Pass).is_some() {
        (Verdict::Pass, None)
    } else {
        (Verdict::Unsupported, None)
    };
    Judged {
        detector: ANY.to_owned(),
        outcome,
        severity: most_severe(several.iter().filter_map(|judged| judged.severity.as_deref()))
            .map(str::to_owned),
        score: highest(several),
        problem,
    }
}

/// The highest score of those that judged. Where one of them gave none there is no score of the whole:
/// its flags would rank below the low scores of others.
fn highest(several: &[&Judged]) -> Option<f64> {
    let judging = several.iter().filter(|judged| judged.flagged().is_some());
    let scores = judging.map(|judged| judged.score).collect::<Option<Vec<f64>>>()?;
    scores.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Lacks;

    fn report(
        detector: &str,
        verdict: Verdict,
        severity: &str,
        score: Option<f64>,
    ) -> DetectorReport {
        DetectorReport {
            detector: detector.to_owned(),
            verdict: Some(verdict),
            severity: (!severity.is_empty()).then(|| severity.to_owned()),
            score,
            ..DetectorReport::default()
        }
    }

    fn outcome(decision: &Decision, reports: Vec<DetectorReport>) -> Verdict {
        decision.judge(&Answer { reports }).whole.outcome
    }

    #[test]
    fn the_same_answer_is_flagged_or_not_by_the_rule() {
        let low = || vec![report("a", Verdict::Flag, "low", Some(0.3))];
        assert_eq!(outcome(&Decision::default(), low()), Verdict::Flag);
        let grave = Decision {
            severities: vec!["High".to_owned(), "critical".to_owned()],
            ..Decision::default()
        };
        assert_eq!(outcome(&grave, low()), Verdict::Pass);
        let scored = Decision { min_score: Some(0.3), ..Decision::default() };
        assert_eq!(outcome(&scored, low()), Verdict::Flag);
        assert_eq!(outcome(&scored, vec![report("a", Verdict::Flag, "", None)]), Verdict::Error);
    }

    #[test]
    fn a_scoreless_pass_stays_a_pass_under_min_score() {
        let scored = Decision { min_score: Some(0.3), ..Decision::default() };
        let mut silent = report("a", Verdict::Pass, "", None);
        assert_eq!(outcome(&scored, vec![silent.clone()]), Verdict::Pass);
        silent.findings.push(DetectorFinding::default());
        assert_eq!(outcome(&scored, vec![silent]), Verdict::Error);
    }

    #[test]
    fn a_flag_without_a_severity_does_not_pass_a_rule_about_severities() {
        let rule = Decision { severities: vec!["high".to_owned()], ..Decision::default() };
        let flag = |severity| report("a", Verdict::Flag, severity, None);
        let unknown = DetectorReport { verdict: None, ..flag("") };
        for silent in [flag(""), unknown.clone()] {
            let decided = rule.judge(&Answer { reports: vec![silent] }).whole;
            assert_eq!(decided.outcome, Verdict::Error);
            assert_eq!(decided.problem.as_deref(), Some("the answer has no severity to decide by"));
        }
        // A pass needs no severity, and an answer may say that it found none.
        assert_eq!(outcome(&rule, vec![report("a", Verdict::Pass, "", None)]), Verdict::Pass);
        let none = DetectorReport { severity: Some("none".to_owned()), ..unknown };
        assert_eq!(outcome(&rule, vec![none]), Verdict::Pass);
        // One that counts is enough; otherwise each has to be known.
        let lacks = Lacks { severity: true, score: false };
        let partly = |severity| DetectorReport { lacks, ..flag(severity) };
        assert_eq!(outcome(&rule, vec![partly("high")]), Verdict::Flag);
        assert_eq!(outcome(&rule, vec![partly("low")]), Verdict::Error);
        let finding = |severity: &str| DetectorFinding {
            severity: severity.to_owned(),
            ..DetectorFinding::default()
        };
        let listed = |severities: &[&str]| {
            let findings = severities.iter().map(|severity| finding(severity)).collect();
            DetectorReport { findings, ..flag("") }
        };
        assert_eq!(outcome(&rule, vec![listed(&["low", "medium"])]), Verdict::Pass);
        assert_eq!(outcome(&rule, vec![listed(&["low", ""])]), Verdict::Error);
        assert_eq!(outcome(&rule, vec![listed(&["", "high"])]), Verdict::Flag);
        let whole = DetectorReport { severity: Some("low".to_owned()), ..listed(&["low", ""]) };
        assert_eq!(outcome(&rule, vec![whole]), Verdict::Pass);
        // The highest is not the only one that counts.
        let severities = vec!["critical".to_owned(), "high".to_owned()];
        let several = DetectorReport { severities, ..flag("critical") };
        assert_eq!(outcome(&rule, vec![several]), Verdict::Flag);
    }

    #[test]
    fn a_finding_without_a_score_does_not_pass_a_rule_about_scores() {
        let rule = Decision { min_score: Some(5.0), ..Decision::default() };
        let lacks = Lacks { severity: false, score: true };
        let partly =
            |score| DetectorReport { lacks, ..report("a", Verdict::Flag, "", Some(score)) };
        assert_eq!(outcome(&rule, vec![partly(9.0)]), Verdict::Flag);
        assert_eq!(outcome(&rule, vec![partly(1.0)]), Verdict::Error);
    }

    #[test]
    fn severities_may_be_names_or_numbers() {
        assert_eq!(most_severe(["10", "9", "3"].into_iter()), Some("10"));
        assert_eq!(most_severe(["9", "low", "0"].into_iter()), Some("low"));
        assert_eq!(most_severe([].into_iter()), None);
    }

    #[test]
    fn several_have_a_score_where_each_that_judges_has_one() {
        let score = |other| {
            let reports = vec![report("a", Verdict::Pass, "", Some(0.1)), other];
            Decision::default().judge(&Answer { reports }).whole.score
        };
        assert_eq!(score(report("b", Verdict::Flag, "", Some(0.5))), Some(0.5));
        assert_eq!(score(report("b", Verdict::Flag, "", None)), None);
        assert_eq!(score(report("b", Verdict::Unsupported, "", None)), Some(0.1));
    }

    #[test]
    fn abstentions_and_errors_do_not_pass() {
        let rule = Decision::default();
        let of = |a, b| vec![report("a", a, "", None), report("b", b, "", None)];
        assert_eq!(outcome(&rule, of(Verdict::Unsupported, Verdict::Pass)), Verdict::Pass);
        assert_eq!(
            outcome(&rule, of(Verdict::Unsupported, Verdict::Unsupported)),
            Verdict::Unsupported
        );
        assert_eq!(outcome(&rule, of(Verdict::Error, Verdict::Pass)), Verdict::Error);
        assert_eq!(outcome(&rule, of(Verdict::Error, Verdict::Flag)), Verdict::Flag);
        assert_eq!(outcome(&rule, Vec::new()), Verdict::Error);
    }

    #[test]
    fn only_the_chosen_detectors_decide() {
        let rule = Decision { detectors: vec!["b".to_owned()], ..Decision::default() };
        let reports =
            vec![report("a", Verdict::Flag, "", None), report("b", Verdict::Pass, "", None)];
        let decided = rule.judge(&Answer { reports });
        assert_eq!((decided.whole.detector.as_str(), decided.whole.outcome), ("b", Verdict::Pass));
        assert_eq!(decided.each.len(), 2);
    }
}
