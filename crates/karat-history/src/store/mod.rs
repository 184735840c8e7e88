//! The store: reports as they were written, and their numbers in tables. All of SQLite is in here.
//!
//! A document is kept whole (compressed) and comes back byte for byte. Adding the same bytes again
//! changes nothing. Runs are in the order of their start; ids rise and are never reused.

mod file;
mod read;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::dataset::Digest;
use karat_core::report::{Better, CheckReport, Kind};
use karat_io::input::Limits;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use self::file::failed;
use crate::document::{self, Document};
use crate::error::HistoryError;
use crate::model::{Entry, Run, Subject};

pub use read::Selection;

/// A history.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// The result of adding a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a new run.
    New(i64),
    /// It was already there, as this run.
    Known(i64),
}

/// The runs to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// All but this number of the latest.
    Keep(u32),
    /// Those that started before this day or time, such as `2026-08-01`.
    Before(String),
    /// Those that started more than a number of days ago.
    Days {
        /// The number of days.
        days: u32,
        /// The time to count from.
        now: String,
    },
}

impl Store {
    /// Opens a history that must exist.
    ///
    /// # Errors
    /// If there is none, or the file is something else, or of a later version of Karat.
    pub fn open(path: &Path) -> Result<Store, HistoryError> {
        Ok(Store { connection: file::open(path)?, path: path.to_owned() })
    }

    /// Opens a history that must exist, to read it alone: also where nothing can be written.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_to_read(path: &Path) -> Result<Store, HistoryError> {
        Ok(Store { connection: file::open_to_read(path)?, path: path.to_owned() })
    }

    /// Opens a history, or creates one.
    ///
    /// # Errors
    /// As [`Store::open`], and if the file cannot be created.
    pub fn open_or_create(path: &Path) -> Result<Store, HistoryError> {
        Ok(Store { connection: file::open_or_create(path)?, path: path.to_owned() })
    }

    /// Creates a history in memory.
    ///
    /// # Errors
    /// If SQLite cannot allocate it.
    pub fn in_memory() -> Result<Store, HistoryError> {
        let path = PathBuf::from("(in memory)");
        Ok(Store { connection: file::in_memory(&path)?, path })
    }

    /// Adds a document.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, document: &Document) -> Result<Added, HistoryError> {
        let failed = failed(&self.path);
        let change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&failed)?;
        let added = insert(&change, document).map_err(&failed)?;
        change.commit().map_err(&failed)?;
        Ok(added)
    }

    /// The document of a run, as it was added.
    ///
    /// # Errors
    /// If there is no such run, or its document is damaged.
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
            return Err(damaged("its document was changed after it was added".to_owned()));
        }
        Ok(bytes)
    }

    /// The document of a run as a check; a report by itself becomes a check of one entry.
    ///
    /// # Errors
    /// As [`Store::document`].
    pub fn check(&self, id: i64) -> Result<CheckReport, HistoryError> {
        Ok(document::parse(Path::new(&format!("run {id}")), &self.document(id)?)?)
    }

    /// The runs that a prune would remove.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn prunable(&self, prune: &Prune) -> Result<Vec<Run>, HistoryError> {
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
                // Null before the first year that SQLite knows: nothing is older than that.
                let moment = moment.unwrap_or_default();
                runs.partition_point(|run| run.started < moment)
            }
        };
        Ok(runs.into_iter().take(last).collect())
    }

    /// Removes runs with everything that belongs to them, and shrinks the file.
    ///
    /// # Errors
    /// If the file cannot be written.
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

fn insert(change: &Transaction<'_>, document: &Document) -> rusqlite::Result<Added> {
    let known = change
        .query_row("SELECT id FROM runs WHERE digest = ?1", [&document.digest], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(Added::Known(id));
    }
    change.execute(
        "INSERT INTO runs (digest, started, karat, commit_id, state, document, branch, commit_subject)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            document.digest,
            document.started,
            document.karat,
            document.commit,
            document.state.name(),
            document.compressed,
            document.branch,
            document.commit_subject,
        ],
    )?;
    let run = change.last_insert_rowid();
    for entry in &document.entries {
        insert_entry(change, run, entry)?;
    }
    Ok(Added::New(run))
}

fn insert_entry(change: &Transaction<'_>, run: i64, entry: &Entry) -> rusqlite::Result<()> {
    let headline = match &entry.headline {
        Some(metric) => Some(metric_id(change, metric)?),
        None => None,
    };
    let dataset = entry.dataset.as_ref();
    change.execute(
        "INSERT INTO entries (run, subject, state, reason, dataset, dataset_version,
                              dataset_digest, system, items, headline, kind)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            run,
            subject_id(change, &entry.subject)?,
            entry.state.name(),
            entry.reason,
            dataset.map(|dataset| &dataset.id),
            dataset.map(|dataset| &dataset.version),
            dataset.map(|dataset| &dataset.digest),
            entry.system,
            entry.items,
            headline,
            entry.kind.as_ref().map(Kind::name),
        ],
    )?;
    let id = change.last_insert_rowid();
    let mut insert = change.prepare(
        "INSERT INTO measured (entry, position, metric, value, n, better, low, high, level,
                               method, undefined)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (position, value) in (0_i64..).zip(&entry.values) {
        let interval = value.interval.as_ref();
        insert.execute(params![
            id,
            position,
            metric_id(change, &value.metric)?,
            value.value,
            value.n,
            match value.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            },
            interval.map(|interval| interval.low),
            interval.map(|interval| interval.high),
            interval.map(|interval| interval.level),
            interval.map(|interval| &interval.method),
            value.undefined,
        ])?;
    }
    Ok(())
}

fn subject_id(change: &Transaction<'_>, subject: &Subject) -> rusqlite::Result<i64> {
    let names = [&subject.evaluation, &subject.name];
    change.execute(
        "INSERT INTO subjects (evaluation, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        names,
    )?;
    let find = "SELECT id FROM subjects WHERE evaluation = ?1 AND name = ?2";
    change.query_row(find, names, |row| row.get(0))
}

fn metric_id(change: &Transaction<'_>, name: &str) -> rusqlite::Result<i64> {
    change.execute("INSERT INTO metrics (name) VALUES (?1) ON CONFLICT DO NOTHING", [name])?;
    change.query_row("SELECT id FROM metrics WHERE name = ?1", [name], |row| row.get(0))
}
