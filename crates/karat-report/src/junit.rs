//! Test cases for a CI server: a suite for each report, a case for each check of its gate.
//!
//! A failed check is a failure, an inconclusive one is skipped, and an entry that could not be
//! measured is an error; each carries its reason. Characters that XML cannot hold, or that a terminal
//! would interpret, are written as visible escapes. The scores are in the suite's output.

use std::fmt::Write as _;
use std::time::Duration;

use karat_core::report::{Check, CheckReport, NotMeasured, Report, Verdict};
use karat_io::text::{printable, printable_block};
use quick_junit::{NonSuccessKind, Report as Suites, TestCase, TestCaseStatus, TestSuite};

use crate::format::{bound, check_name, count, number};

/// The check as JUnit XML.
///
/// # Errors
/// If the document cannot be written.
pub(crate) fn xml(check: &CheckReport) -> Result<String, String> {
    let mut suites = Suites::new("karat");
    for report in &check.reports {
        suites.add_test_suite(suite(report));
    }
    for entry in &check.not_measured {
        suites.add_test_suite(not_measured(entry));
    }
    suites.to_string().map_err(|error| error.to_string())
}

fn suite(report: &Report) -> TestSuite {
    let class = class(report.evaluation.name(), &report.name);
    let mut suite = TestSuite::new(&class);
    suite.set_time(Duration::from_millis(report.environment.duration_ms));
    for (name, value) in [
        ("dataset", format!("{} {}", report.dataset.id, report.dataset.version)),
        ("digest", report.dataset.digest.clone()),
        ("system", report.system.title()),
        ("runs", report.runs.to_string()),
        ("seed", report.seed.to_string()),
    ] {
        suite.add_property((name, printable(&value).as_ref()));
    }
    for check in report.gate.iter().flat_map(|gate| &gate.checks) {
        suite.add_test_case(case(check, &class));
    }
    suite.set_system_out(scores(report));
    suite
}

fn class(evaluation: &str, name: &str) -> String {
    format!("karat.{}.{}", printable(evaluation), printable(name))
}

fn case(check: &Check, class: &str) -> TestCase {
    let mut status = match check.verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Inconclusive => TestCaseStatus::skipped(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(printable(&check.reason)).set_type(printable(&check.rule));
    if check.verdict == Verdict::Fail && !check.items.is_empty() {
        let names: Vec<_> = check.items.iter().map(|item| printable(item)).collect();
        let head = format!("{} behind it:", count(names.len(), "item"));
        status.set_description(format!("{head}\n{}", names.join("\n")));
    }
    let mut case = TestCase::new(printable(&check_name(check)), status);
    case.set_classname(class);
    case
}

fn not_measured(entry: &NotMeasured) -> TestSuite {
    let class = class(entry.evaluation.name(), &entry.name);
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status
        .set_message(printable(&entry.reason))
        .set_type("not_measured")
        .set_description(printable_block(&entry.reason));
    let mut case = TestCase::new("is measured", status);
    case.set_classname(&class);
    let mut suite = TestSuite::new(&class);
    suite.add_test_case(case);
    suite
}

/// The headline metrics and the warnings, one per line.
fn scores(report: &Report) -> String {
    let mut text = String::new();
    for metric in &report.metrics {
        let id = printable(&metric.id);
        let _ = match (&metric.value, &metric.interval) {
            (None, _) => {
                let reason = metric.undefined.as_deref().unwrap_or("no reason given");
                writeln!(text, "{id} undefined: {}", printable(reason))
            }
            (Some(value), None) => writeln!(text, "{id} {} (n = {})", number(*value), metric.n),
            (Some(value), Some(interval)) => writeln!(
                text,
                "{id} {} ({} to {} at {}, n = {})",
                number(*value),
                bound(interval.low),
                bound(interval.high),
                interval.level,
                metric.n
            ),
        };
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "note: {}", printable(warning));
    }
    text
}
