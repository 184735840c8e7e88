//! From the bytes of a report to what the history keeps of it. All errors of a document are found
//! here, before a history is opened or created.

use std::path::Path;

use karat_core::dataset::Digest;
use karat_core::report::{CheckReport, NotMeasured, Report, parse_check};
use karat_io::input::{self, InputError, Limits};

use crate::model::{Entry, State, Subject, Value};

/// The level of compression: documents are repetitive, and speed matters more than size.
const COMPRESSION: i32 = 6;

/// A document that can be added to a history.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) digest: String,
    pub(crate) started: String,
    pub(crate) karat: String,
    pub(crate) commit: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) commit_subject: Option<String>,
    pub(crate) state: State,
    /// The entries; their numbers in the history are not known yet.
    pub(crate) entries: Vec<Entry>,
    pub(crate) compressed: Vec<u8>,
}

impl Document {
    /// Reads a report or a check; messages call it `name`.
    ///
    /// # Errors
    /// If it is not a report or a check, or nothing was measured in it.
    pub fn read(name: &Path, bytes: &[u8]) -> Result<Document, InputError> {
        let check = parse(name, bytes)?;
        let started = started(name, &check)?;
        let first = check.reports.first().map(|report| &report.environment);
        Ok(Document {
            digest: Digest::of(bytes).to_string(),
            karat: first.map(|environment| environment.karat.clone()).unwrap_or_default(),
            commit: first.and_then(|environment| environment.commit.clone()),
            branch: check.source.as_ref().and_then(|source| source.branch.clone()),
            commit_subject: check.source.as_ref().and_then(|source| source.subject.clone()),
            state: State::of_check(&check),
            entries: check
                .reports
                .iter()
                .map(measured)
                .chain(check.not_measured.iter().map(not_measured))
                .collect(),
            compressed: zstd::bulk::compress(bytes, COMPRESSION)
                .map_err(|source| InputError::Io { path: name.to_owned(), line: None, source })?,
            started,
        })
    }
}

/// Parses a document as a check. Reports of version 1 are brought up to date.
pub(crate) fn parse(name: &Path, bytes: &[u8]) -> Result<CheckReport, InputError> {
    parse_check(name, &input::decode(&name.to_string_lossy(), bytes, &Limits::default())?)
}

/// The start of the first measurement. Runs are sorted by it, so it must be a time in UTC.
fn started(name: &Path, check: &CheckReport) -> Result<String, InputError> {
    let times = || check.reports.iter().map(|report| report.environment.started.as_str());
    if times().any(|time| !is_timestamp(time)) {
        let message = "is not a time such as 2026-11-15T03:04:05Z";
        return Err(InputError::invalid(name, "environment.started", message));
    }
    times().min().map(str::to_owned).ok_or_else(|| {
        let message = "is empty: nothing was measured";
        InputError::invalid(name, "reports", message)
    })
}

/// Returns whether a text looks like `2026-11-15T03:04:05Z`, which sorts as text in the order of time.
fn is_timestamp(text: &str) -> bool {
    let format = b"dddd-dd-ddTdd:dd:ddZ";
    text.len() == format.len()
        && text.bytes().zip(format).all(|(found, expected)| match expected {
            b'd' => found.is_ascii_digit(),
            other => found == *other,
        })
}

fn subject(evaluation: &str, name: &str) -> Subject {
    Subject { id: 0, evaluation: evaluation.to_owned(), name: name.to_owned() }
}

fn measured(report: &Report) -> Entry {
    Entry {
        subject: subject(report.evaluation.name(), &report.name),
        kind: Some(report.kind.clone()),
        state: State::of_report(report),
        dataset: Some(report.dataset.clone()),
        system: system(report),
        items: i64::try_from(report.items.len()).unwrap_or(i64::MAX),
        headline: headline(report).map(str::to_owned),
        values: report
            .metrics
            .iter()
            .map(|metric| Value {
                metric_id: 0,
                metric: metric.id.to_string(),
                value: metric.value,
                n: i64::try_from(metric.n).unwrap_or(i64::MAX),
                better: metric.better,
                interval: metric.interval.clone(),
                undefined: metric.undefined.clone(),
            })
            .collect(),
        ..Entry::default()
    }
}

fn not_measured(entry: &NotMeasured) -> Entry {
    Entry {
        subject: subject(entry.evaluation.name(), &entry.name),
        state: State::NotMeasured,
        reason: Some(entry.reason.clone()),
        ..Entry::default()
    }
}

/// The metric that represents a report: the first of its gate over all items, otherwise the first.
fn headline(report: &Report) -> Option<&str> {
    let checks = report.gate.iter().flat_map(|gate| &gate.checks);
    checks
        .filter(|check| check.slice.is_none())
        .find_map(|check| report.metric(&check.metric))
        .or_else(|| report.metrics.iter().find(|metric| metric.value.is_some()))
        .map(|metric| metric.id.as_str())
}

/// The kind, name and version of the measured system.
fn system(report: &Report) -> String {
    let system = &report.system;
    let mut text = system.title();
    if let Some(version) = &system.version {
        text.push(' ');
        text.push_str(version);
    }
    text
}
