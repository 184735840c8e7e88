//! The verdict as a shields.io endpoint badge: publish the file, point a badge at it.

use karat_core::report::{CheckReport, Verdict};
use karat_io::text::{clip, printable};
use serde_json::json;

/// A badge is a word or two; a longer message is cut.
const LONGEST: usize = 60;

/// The document that shields.io reads, with a newline at its end.
#[must_use]
pub fn endpoint(check: &CheckReport) -> String {
    let (message, color) = match check.verdict {
        Some(Verdict::Pass) => ("pass".to_owned(), "brightgreen"),
        Some(Verdict::Inconclusive) => ("inconclusive".to_owned(), "yellow"),
        Some(Verdict::Fail) => (failed(check), "red"),
        None => ("not measured".to_owned(), "lightgrey"),
    };
    let message = clip(&printable(&message), LONGEST).into_owned();
    let badge = json!({
        "schemaVersion": 1,
        "label": "karat",
        "message": message,
        "color": color,
        "isError": check.verdict != Some(Verdict::Pass),
    });
    format!("{badge:#}\n")
}

/// The first metric that failed, and how many more did.
fn failed(check: &CheckReport) -> String {
    let gates = check.reports.iter().filter_map(|report| report.gate.as_ref());
    let mut failed = gates
        .flat_map(|gate| &gate.checks)
        .filter(|check| check.verdict == Verdict::Fail)
        .map(|check| check.metric.as_str());
    let Some(first) = failed.next() else { return "fail".to_owned() };
    match failed.count() {
        0 => format!("fail: {first}"),
        more => format!("fail: {first} and {more} more"),
    }
}
