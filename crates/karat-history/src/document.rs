//! From the bytes of a report to what is kept of it. Everything that can be wrong with a document is
//! found here, before a history is opened or begun.

use std::path::Path;

use karat_core::dataset::Digest;
use karat_core::report::{CheckReport, NotMeasured, Report, parse_check};
use karat_io::input::{self, InputError, Limits};

use crate::model::{Entry, State, Subject, Value};

/// How hard documents are compressed: they are repetitive, and speed matters more than the rest.
const COMPRESSION: i32 = 6;

/// A document that can be added to a history.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) digest: String,
    pub(crate) started: String,
    pub(crate) karat: String,
    pub(crate) commit: Option<String>,
    pub(crate) state: State,
    /// The entries; their numbers in the history are not known yet.
    pub(crate) entries: Vec<Entry>,
    pub(crate) compressed: Vec<u8>,
}

impl Document {
    /// Reads a report or a check. `name` stands for it in messages.
    ///
    /// # Errors
    /// When it is not what it should be, or nothing was measured in it.
    pub fn read(name: &Path, bytes: &[u8]) -> Result<Document, InputError> {
        let check = parse(name, bytes)?;
        let started = started(name, &check)?;
        let first = check.reports.first().map(|report| &report.environment);
        Ok(Document {
            digest: Digest::of(bytes).to_string(),
            karat: first.map(|environment| environment.karat.clone()).unwrap_or_default(),
            commit: first.and_then(|environment| environment.commit.clone()),
            state: State::of_check(&check),
            entries: check
                .reports
                .iter()
                .map(measured)
                .chain(check.not_measured.iter().map(lost))
                .collect(),
            compressed: zstd::bulk::compress(bytes, COMPRESSION)
                .map_err(|source| InputError::Io { path: name.to_owned(), line: None, source })?,
            started,
        })
    }
}

/// The document as a check.
pub(crate) fn parse(name: &Path, bytes: &[u8]) -> Result<CheckReport, InputError> {
    parse_check(name, &input::decode(&name.to_string_lossy(), bytes, &Limits::default())?)
}

/// When the first measurement started. Runs are put in order by it, so it must be a moment in UTC.
fn started(name: &Path, check: &CheckReport) -> Result<String, InputError> {
    let times = || check.reports.iter().map(|report| report.environment.started.as_str());
    if times().any(|time| !is_moment(time)) {
        let message = "is not a time such as 2026-11-15T03:04:05Z";
        return Err(InputError::invalid(name, "environment.started", message));
    }
    times().min().map(str::to_owned).ok_or_else(|| {
        let message = "is empty: nothing was measured, so there is nothing to follow over time";
        InputError::invalid(name, "reports", message)
    })
}

/// Whether a text has the shape of `2026-11-15T03:04:05Z`, in which texts sort as times do.
fn is_moment(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:dd:ddZ";
    text.len() == shape.len()
        && text.bytes().zip(shape).all(|(found, expected)| match expected {
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
                metric: metric.id.clone(),
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

fn lost(entry: &NotMeasured) -> Entry {
    Entry {
        subject: subject(entry.evaluation.name(), &entry.name),
        state: State::NotMeasured,
        reason: Some(entry.reason.clone()),
        ..Entry::default()
    }
}

/// The metric that speaks for a report: the first that its gate judges over all items, else the first.
fn headline(report: &Report) -> Option<&str> {
    let judged = report.gate.iter().flat_map(|gate| &gate.checks);
    judged
        .filter(|check| check.slice.is_none())
        .find_map(|check| report.metric(&check.metric))
        .or_else(|| report.metrics.iter().find(|metric| metric.value.is_some()))
        .map(|metric| metric.id.as_str())
}

/// Kind, name and version of what was measured.
fn system(report: &Report) -> String {
    let system = &report.system;
    let mut text = format!("{} {}", system.kind, system.name);
    if let Some(version) = &system.version {
        text.push(' ');
        text.push_str(version);
    }
    text
}
