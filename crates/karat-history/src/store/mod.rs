//! The store: reports as they were written, and their numbers in tables.
//!
//! A document is kept whole (compressed) and comes back byte for byte. Adding the same bytes again
//! changes nothing. Runs are in the order of their start; ids rise and are never given twice.

mod file;
mod read;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::dataset::Digest;
use karat_core::input::{self, InputError, Limits};
use karat_core::report::{self, Better, CheckReport, Report, parse_reports};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde::Deserialize;

use crate::HistoryError;
use crate::model::{Run, State, headline, system};

pub use read::Selection;

/// How hard documents are compressed: reports are repetitive, and speed matters more than the rest.
const COMPRESSION: i32 = 6;

/// A history.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// What became of a document that should be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a new run.
    New(i64),
    /// It was there already, as this run.
    Known(i64),
}

/// Which runs to take out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// All but the latest so many.
    Keep(u32),
    /// Those that started before this day or moment, such as `2026-08-01`.
    Before(String),
    /// Those that started so many days before this moment.
    Days {
        /// How many days.
        days: u32,
        /// Counted from here.
        now: String,
    },
}

impl Store {
    /// Opens a history that must be there.
    ///
    /// # Errors
    /// When there is none, or the file is something else, or of a later Karat.
    pub fn open(path: &Path) -> Result<Store, HistoryError> {
        Ok(Store { connection: file::open(path)?, path: path.to_owned() })
    }

    /// Opens a history, or begins one.
    ///
    /// # Errors
    /// As [`Store::open`], and when the file cannot be made.
    pub fn open_or_begin(path: &Path) -> Result<Store, HistoryError> {
        Ok(Store { connection: file::open_or_begin(path)?, path: path.to_owned() })
    }

    /// A history that is gone when it is dropped.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> Result<Store, HistoryError> {
        let path = PathBuf::from("(in memory)");
        Ok(Store { connection: file::in_memory(&path)?, path })
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a document: a report or a check. `name` stands for it in messages.
    ///
    /// # Errors
    /// When it is not what it should be, or cannot be written.
    pub fn add(&mut self, name: &Path, bytes: &[u8]) -> Result<Added, HistoryError> {
        let check = parse(name, bytes)?;
        let started = started(name, &check)?;
        let digest = Digest::of(bytes).to_string();
        let document = zstd::bulk::compress(bytes, COMPRESSION)
            .map_err(|source| InputError::Io { path: name.to_owned(), source })?;
        let failed = failed(&self.path);
        let change = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(&failed)?;
        let added = insert(&change, &check, &Row { started, digest: &digest, document });
        let added = added.map_err(&failed)?;
        change.commit().map_err(&failed)?;
        Ok(added)
    }

    /// The document of a run, as it was added.
    ///
    /// # Errors
    /// When there is no such run, or its document is damaged.
    pub fn document(&self, id: i64) -> Result<Vec<u8>, HistoryError> {
        let found: Option<(String, Vec<u8>)> = self
            .connection
            .query_row("SELECT digest, document FROM runs WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(failed(&self.path))?;
        let Some((digest, compressed)) = found else { return Err(HistoryError::NoRun { id }) };
        let damaged = |why: String| HistoryError::Damaged { path: self.path.clone(), run: id, why };
        let mut bytes = Vec::new();
        let limit = Limits::default().bytes;
        zstd::stream::read::Decoder::new(compressed.as_slice())
            .and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes))
            .map_err(|error| damaged(error.to_string()))?;
        if Digest::of(&bytes).to_string() != digest {
            return Err(damaged("its document is not the one that was added".to_owned()));
        }
        Ok(bytes)
    }

    /// The document of a run as a check; a report by itself becomes a check of one entry.
    ///
    /// # Errors
    /// As [`Store::document`].
    pub fn check(&self, id: i64) -> Result<CheckReport, HistoryError> {
        Ok(parse(Path::new(&format!("run {id}")), &self.document(id)?)?)
    }

    /// Which runs would be taken out.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn condemned(&self, prune: &Prune) -> Result<Vec<Run>, HistoryError> {
        let runs = self.runs()?;
        let last = match prune {
            Prune::Keep(keep) => runs.len().saturating_sub(*keep as usize),
            Prune::Before(moment) => runs.partition_point(|run| run.started < *moment),
            Prune::Days { days, now } => {
                let moment: Option<String> = self
                    .connection
                    .query_row(
                        "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?1, ?2)",
                        params![now, format!("-{days} days")],
                        |row| row.get(0),
                    )
                    .map_err(failed(&self.path))?;
                // Before the first year that SQLite knows, nothing was measured.
                let moment = moment.unwrap_or_default();
                runs.partition_point(|run| run.started < moment)
            }
        };
        Ok(runs.into_iter().take(last).collect())
    }

    /// Takes runs out, with all that belongs to them, and gives the room back.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove(&mut self, runs: &[Run]) -> Result<(), HistoryError> {
        let failed = failed(&self.path);
        let change = self.connection.transaction().map_err(&failed)?;
        for run in runs {
            change.execute("DELETE FROM runs WHERE id = ?1", [run.id]).map_err(&failed)?;
        }
        let forgotten = "DELETE FROM subjects WHERE id NOT IN (SELECT subject FROM entries);
             DELETE FROM metrics WHERE id NOT IN (SELECT metric FROM measured)
               AND id NOT IN (SELECT headline FROM entries WHERE headline IS NOT NULL);";
        change.execute_batch(forgotten).map_err(&failed)?;
        change.commit().map_err(&failed)?;
        self.connection.execute_batch("VACUUM").map_err(&failed)
    }
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> HistoryError + use<> {
    let path = path.to_owned();
    move |source| HistoryError::Database { path: path.clone(), source }
}

/// The document as a check.
fn parse(name: &Path, bytes: &[u8]) -> Result<CheckReport, InputError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let text = input::decode(&name.to_string_lossy(), bytes, &Limits::default())?;
    let mut reports = parse_reports(name, &text)?;
    let head: Head = input::parse(name, &text, input::Format::Json)?;
    if head.schema.starts_with("karat.check/") {
        return input::parse(name, &text, input::Format::Json);
    }
    let verdict = reports.first().and_then(|report| Some(report.gate.as_ref()?.verdict));
    Ok(CheckReport {
        schema: report::CHECK_SCHEMA.to_owned(),
        verdict,
        reports: std::mem::take(&mut reports),
        not_measured: Vec::new(),
        not_run: Vec::new(),
    })
}

/// When the first measurement started. Runs are put in order by it, so it must be a moment in UTC.
fn started<'a>(name: &Path, check: &'a CheckReport) -> Result<&'a str, InputError> {
    let mut first: Option<&str> = None;
    for report in &check.reports {
        let started = report.environment.started.as_str();
        if !is_moment(started) {
            let message = "is not a time such as 2026-11-15T03:04:05Z";
            return Err(InputError::invalid(name, "environment.started", message));
        }
        first = Some(first.map_or(started, |first| first.min(started)));
    }
    first.ok_or_else(|| {
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

/// What a row of `runs` needs beside the check.
struct Row<'a> {
    started: &'a str,
    digest: &'a str,
    document: Vec<u8>,
}

fn insert(change: &Transaction<'_>, check: &CheckReport, row: &Row<'_>) -> rusqlite::Result<Added> {
    let known = change
        .query_row("SELECT id FROM runs WHERE digest = ?1", [row.digest], |found| found.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(Added::Known(id));
    }
    let environment = check.reports.first().map(|report| &report.environment);
    change.execute(
        "INSERT INTO runs (digest, started, karat, commit_id, state, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            row.digest,
            row.started,
            environment.map_or("", |environment| environment.karat.as_str()),
            environment.and_then(|environment| environment.commit.as_deref()),
            State::of_check(check).word(),
            row.document,
        ],
    )?;
    let run = change.last_insert_rowid();
    for report in &check.reports {
        insert_report(change, run, report)?;
    }
    for lost in &check.not_measured {
        let subject = subject(change, lost.evaluation.name(), &lost.name)?;
        change.execute(
            "INSERT INTO entries (run, subject, state, reason, system, items) VALUES (?1, ?2, ?3, ?4, '', 0)",
            params![run, subject, State::NotMeasured.word(), lost.reason],
        )?;
    }
    Ok(Added::New(run))
}

fn insert_report(change: &Transaction<'_>, run: i64, report: &Report) -> rusqlite::Result<()> {
    let headline = match headline(report) {
        Some(metric) => Some(metric_id(change, metric)?),
        None => None,
    };
    change.execute(
        "INSERT INTO entries (run, subject, state, dataset, dataset_version, dataset_digest, system, items, headline)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            run,
            subject(change, report.evaluation.name(), &report.name)?,
            State::of_report(report).word(),
            report.dataset.id,
            report.dataset.version,
            report.dataset.digest,
            system(report),
            i64::try_from(report.items.len()).unwrap_or(i64::MAX),
            headline,
        ],
    )?;
    let entry = change.last_insert_rowid();
    let mut insert = change.prepare(
        "INSERT INTO measured (entry, position, metric, value, n, better, low, high, level, method, undefined)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (position, metric) in (0_i64..).zip(&report.metrics) {
        let interval = metric.interval.as_ref();
        insert.execute(params![
            entry,
            position,
            metric_id(change, &metric.id)?,
            metric.value,
            i64::try_from(metric.n).unwrap_or(i64::MAX),
            match metric.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            },
            interval.map(|interval| interval.low),
            interval.map(|interval| interval.high),
            interval.map(|interval| interval.level),
            interval.map(|interval| interval.method.as_str()),
            metric.undefined,
        ])?;
    }
    Ok(())
}

fn subject(change: &Transaction<'_>, evaluation: &str, name: &str) -> rusqlite::Result<i64> {
    change
        .prepare("INSERT INTO subjects (evaluation, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute([evaluation, name])?;
    change
        .prepare("SELECT id FROM subjects WHERE evaluation = ?1 AND name = ?2")?
        .query_row([evaluation, name], |row| row.get(0))
}

fn metric_id(change: &Transaction<'_>, name: &str) -> rusqlite::Result<i64> {
    change
        .prepare("INSERT INTO metrics (name) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([name])?;
    change.prepare("SELECT id FROM metrics WHERE name = ?1")?.query_row([name], |row| row.get(0))
}
