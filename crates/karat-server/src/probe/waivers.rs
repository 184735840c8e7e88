//! Known findings that are accepted for a time, with a reason.
//!
//! A waived finding becomes a note. A waiver that has expired, or that no finding needs, fails the
//! run: otherwise waivers would only accumulate.

use std::str::FromStr;

use karat_core::finding::{Finding, Severity};
use karat_core::provenance::is_day;
use karat_core::report::{Check, Verdict};
use serde::Deserialize;

/// A `waive` entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The rule of the findings.
    pub rule: String,
    /// The tool; every one if there is none.
    pub tool: Option<String>,
    /// The reason for accepting them.
    pub reason: String,
    /// The last day on which it counts.
    pub expires: Day,
}

/// A day, written as `2027-03-31`. Days compare as their texts do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Day(String);

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Day, String> {
        match is_day(text) {
            true => Ok(Day(text.to_owned())),
            false => Err(wrong(text)),
        }
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?}: write a day such as 2027-03-31")
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Day, String> {
        text.parse()
    }
}

impl Waiver {
    fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.tool.as_ref().is_none_or(|tool| *tool == finding.tool)
    }

    fn is_expired(&self, today: &str) -> bool {
        self.expires.0.as_str() < today
    }
}

/// Turns waived findings into notes. Returns which waivers were needed.
pub(crate) fn apply<'f>(
    waivers: &[Waiver],
    today: &str,
    findings: impl Iterator<Item = &'f mut Finding>,
) -> Vec<bool> {
    let mut needed = vec![false; waivers.len()];
    for finding in findings {
        for (waiver, needed) in waivers.iter().zip(&mut needed) {
            if !waiver.covers(finding) {
                continue;
            }
            *needed = true;
            if !waiver.is_expired(today) && finding.severity > Severity::Note {
                let Waiver { reason, expires, .. } = waiver;
                finding.severity = Severity::Note;
                finding.message.push_str(&format!(" (waived until {}: {reason})", expires.0));
            }
        }
    }
    needed
}

/// The check that every waiver still counts and is needed; none without waivers.
pub(crate) fn check(waivers: &[Waiver], needed: &[bool], today: &str) -> Option<Check> {
    let problem = |(waiver, needed): (&Waiver, &bool)| {
        let tool = waiver.tool.as_ref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        let name = format!("{}{tool}", waiver.rule);
        match (waiver.is_expired(today), needed) {
            (true, _) => Some(format!("the waiver for {name} expired on {}", waiver.expires.0)),
            (false, false) => Some(format!("no finding needs the waiver for {name}: remove it")),
            (false, true) => None,
        }
    };
    let problems: Vec<String> = waivers.iter().zip(needed).filter_map(problem).collect();
    let (verdict, reason) = match problems.is_empty() {
        true => (Verdict::Pass, format!("{} waivers count and are needed", waivers.len())),
        false => (Verdict::Fail, problems.join("; ")),
    };
    (!waivers.is_empty()).then(|| Check::of("findings", "waivers", verdict, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiver(tool: Option<&str>, expires: &str) -> Waiver {
        let (rule, reason) = ("r".to_owned(), "known".to_owned());
        let expires = expires.parse().unwrap();
        Waiver { rule, tool: tool.map(str::to_owned), reason, expires }
    }

    fn run(waiver: Waiver) -> (Severity, Verdict) {
        let (rule, tool) = ("r".to_owned(), "t".to_owned());
        let mut finding = Finding { rule, tool, severity: Severity::Error, ..Finding::default() };
        let waivers = [waiver];
        let needed = apply(&waivers, "2026-11-16", std::iter::once(&mut finding));
        (finding.severity, check(&waivers, &needed, "2026-11-16").unwrap().verdict)
    }

    #[test]
    fn a_waiver_counts_until_its_day_and_only_while_it_is_needed() {
        assert_eq!(run(waiver(None, "2026-11-16")), (Severity::Note, Verdict::Pass));
        assert_eq!(run(waiver(Some("t"), "2027-01-01")), (Severity::Note, Verdict::Pass));
        assert_eq!(run(waiver(Some("t"), "2026-11-15")), (Severity::Error, Verdict::Fail));
        assert_eq!(run(waiver(Some("u"), "2027-01-01")), (Severity::Error, Verdict::Fail));
        assert!(check(&[], &[], "2026-11-16").is_none());
        assert!("2026-13-01".parse::<Day>().is_err() && "soon".parse::<Day>().is_err());
    }
}
