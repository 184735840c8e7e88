//! One finding for one cause: tools that share it are listed in the finding of the first.

use std::collections::BTreeMap;

use karat_core::finding::Finding;
use karat_io::text::first_few;

use super::result::ToolResult;

/// The number of tools that a finding names.
const NAMED: usize = 12;

/// The findings of each tool, in the order of the tools, without those that an earlier finding covers.
pub(super) fn by_cause(fuzzed: &[(&str, &ToolResult)]) -> Vec<Vec<Finding>> {
    let mut kept: Vec<Vec<Finding>> = Vec::with_capacity(fuzzed.len());
    // The place of the finding for a cause, and the places that it covers, such as `tool /inputSchema/…`.
    let mut known: BTreeMap<&str, ((usize, usize), Vec<String>)> = BTreeMap::new();
    for (tool, result) in fuzzed {
        let mut own = Vec::new();
        for (at, finding) in result.observed.findings.iter().enumerate() {
            let cause = result.causes.get(at).and_then(Option::as_deref);
            let place = match finding.at.strip_prefix("/inputSchema") {
                Some(within) if !within.is_empty() => format!("{tool} {within}"),
                _ => (*tool).to_owned(),
            };
            let Some((first, places)) = cause.and_then(|cause| known.get_mut(cause)) else {
                if let Some(cause) = cause {
                    known.insert(cause, ((kept.len(), own.len()), vec![place]));
                }
                own.push(finding.clone());
                continue;
            };
            places.push(place);
            let covering = match first.0 == kept.len() {
                true => own.get_mut(first.1),
                false => kept.get_mut(first.0).and_then(|findings| findings.get_mut(first.1)),
            };
            if let Some(covering) = covering {
                cover(covering, finding);
            }
        }
        kept.push(own);
    }
    for ((tool, at), mut places) in known.into_values().filter(|(_, places)| places.len() > 1) {
        places.dedup();
        if let Some(finding) = kept.get_mut(tool).and_then(|findings| findings.get_mut(at)) {
            let listed = first_few(&places, NAMED);
            finding.message.push_str(&format!("; {} places: {listed}", places.len()));
        }
    }
    kept
}

/// Lets a finding cover another one of the same cause. A reproduced example is shown rather than one that was
/// seen once.
fn cover(finding: &mut Finding, other: &Finding) {
    let seen = finding.seen + other.seen;
    if other.reproduced && !finding.reproduced {
        let tool = std::mem::take(&mut finding.tool);
        let message = match other.tool == tool {
            true => other.message.clone(),
            false => format!("{} (in {})", other.message, other.tool),
        };
        *finding = Finding { tool, message, ..other.clone() };
    }
    finding.severity = finding.severity.max(other.severity);
    finding.seen = seen;
}

#[cfg(test)]
mod tests {
    use karat_core::finding::Severity;

    use super::*;

    fn result(findings: &[(&str, &str, bool)]) -> ToolResult {
        let mut result = ToolResult::default();
        for (cause, at, reproduced) in findings {
            result.causes.push((!cause.is_empty()).then(|| (*cause).to_owned()));
            result.observed.findings.push(Finding {
                rule: "r".to_owned(),
                severity: Severity::Warning,
                at: (*at).to_owned(),
                message: "accepted".to_owned(),
                seen: 1,
                reproduced: *reproduced,
                ..Finding::default()
            });
        }
        result
    }

    #[test]
    fn tools_that_share_a_cause_are_listed_once() {
        let first = result(&[("text", "", true), ("", "", true)]);
        let second = result(&[("text", "/inputSchema/properties/a", true), ("", "", true)]);
        let found = by_cause(&[("one", &first), ("two", &second)]);
        assert_eq!((found[0].len(), found[1].len()), (2, 1));
        assert_eq!(found[0][0].message, "accepted; 2 places: one, two /properties/a");
        assert_eq!((found[0][0].seen, found[0][1].seen), (2, 1));
    }

    #[test]
    fn a_reproduced_example_is_preferred() {
        let (once, again) = (result(&[("c", "", false)]), result(&[("c", "", true)]));
        let found = by_cause(&[("one", &once), ("two", &again)]);
        assert!(found[0][0].reproduced && found[1].is_empty());
    }
}
