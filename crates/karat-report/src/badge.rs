//! The verdict as a shields.io endpoint badge: publish the file, point a badge at it.

use karat_core::report::{CheckReport, Verdict};
use karat_io::text::{clip, printable};
use serde_json::json;

use crate::format::verdict_name;
use crate::select;

/// The most columns of a message; a badge is a word or two.
const MESSAGE: usize = 60;

/// The document that shields.io reads, with a final newline.
pub(crate) fn endpoint(check: &CheckReport) -> String {
    let (message, color) = match check.verdict {
        Some(Verdict::Pass) => ("pass".to_owned(), "brightgreen"),
        Some(Verdict::Inconclusive) => ("inconclusive".to_owned(), "yellow"),
        Some(Verdict::Fail) => (failed(check), "red"),
        None => (verdict_name(check).to_owned(), "lightgrey"),
    };
    let message = clip(&printable(&message), MESSAGE).into_owned();
    let badge = json!({
        "schemaVersion": 1,
        "label": "karat",
        "message": message,
        "color": color,
        "isError": check.verdict != Some(Verdict::Pass),
    });
    format!("{badge:#}\n")
}

/// The first metric that failed, and the number of others.
fn failed(check: &CheckReport) -> String {
    let mut failed = select::failed(check).map(|(_, check)| check.metric.as_str());
    let Some(first) = failed.next() else { return "fail".to_owned() };
    match failed.count() {
        0 => format!("fail: {first}"),
        more => format!("fail: {first} and {more} more"),
    }
}
