//! Reads runs and their values.

use karat_core::report::{Better, DatasetRef, Interval, Kind};
use rusqlite::{OptionalExtension as _, Row, params};

use super::Store;
use super::file::failed;
use crate::error::HistoryError;
use crate::model::{Entry, Run, State, Subject, Value};

/// The entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those of this number of the latest runs.
    Latest(u32),
    /// Those of one run.
    Run(i64),
    /// Those of one subject, in this number of its latest runs.
    Subject(i64, u32),
}

impl Selection {
    /// The SQL condition and its parameters; −1 is any subject.
    fn condition(self) -> (&'static str, [i64; 2]) {
        match self {
            Selection::Latest(count) => (
                "run IN (SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT ?1) AND ?2 = -1",
                [i64::from(count), -1],
            ),
            Selection::Run(id) => ("run = ?1 AND ?2 = -1", [id, -1]),
            Selection::Subject(subject, count) => (
                "run IN (SELECT id FROM runs WHERE id IN (SELECT run FROM entries WHERE subject = ?2)
                         ORDER BY started DESC, id DESC LIMIT ?1) AND subject = ?2",
                [i64::from(count), subject],
            ),
        }
    }
}

impl Store {
    /// Every run, the earliest first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, HistoryError> {
        self.read_runs().map_err(failed(&self.path))
    }

    /// One run.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read.
    pub fn run(&self, id: i64) -> Result<Run, HistoryError> {
        self.runs()?.into_iter().find(|run| run.id == id).ok_or(HistoryError::NoRun { id })
    }

    /// Entries with their values, in the order of the runs and of the reports.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn entries(&self, selection: Selection) -> Result<Vec<Entry>, HistoryError> {
        self.read_entries(selection).map_err(failed(&self.path))
    }

    /// The subjects, sorted by evaluation and name.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn subjects(&self) -> Result<Vec<Subject>, HistoryError> {
        let sql = "SELECT id, evaluation, name FROM subjects ORDER BY evaluation, name";
        let read = || -> rusqlite::Result<Vec<Subject>> {
            self.connection.prepare(sql)?.query_map([], subject)?.collect()
        };
        read().map_err(failed(&self.path))
    }

    /// The names of all metrics, sorted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn metrics(&self) -> Result<Vec<String>, HistoryError> {
        let sql = "SELECT name FROM metrics ORDER BY name";
        let read = || -> rusqlite::Result<Vec<String>> {
            self.connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(failed(&self.path))
    }

    /// The name of a metric.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn metric_name(&self, id: i64) -> Result<Option<String>, HistoryError> {
        let sql = "SELECT name FROM metrics WHERE id = ?1";
        let found = self.connection.query_row(sql, [id], |row| row.get(0)).optional();
        found.map_err(failed(&self.path))
    }

    fn read_runs(&self) -> rusqlite::Result<Vec<Run>> {
        let mut runs: Vec<Run> = self
            .connection
            .prepare(
                "SELECT id, started, karat, commit_id, state, digest, branch, commit_subject FROM runs
                 ORDER BY started, id",
            )?
            .query_map([], |row| {
                Ok(Run {
                    id: row.get(0)?,
                    started: row.get(1)?,
                    karat: row.get(2)?,
                    commit: row.get(3)?,
                    state: state(row, 4)?,
                    digest: row.get(5)?,
                    branch: row.get(6)?,
                    commit_subject: row.get(7)?,
                    entries: Vec::new(),
                    states: Vec::new(),
                })
            })?
            .collect::<Result<_, _>>()?;
        let mut query = self.connection.prepare(
            "SELECT s.id, s.evaluation, s.name, e.run, e.state FROM entries e JOIN subjects s ON s.id = e.subject
             JOIN runs r ON r.id = e.run ORDER BY r.started, r.id, e.id",
        )?;
        let mut rows = query.query([])?;
        // Both lists are in the order of the runs, so one walk joins them.
        let mut at = 0;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(3)?;
            while runs.get(at).is_some_and(|run| run.id != id) {
                at += 1;
            }
            if let Some(run) = runs.get_mut(at) {
                run.entries.push(subject(row)?);
                run.states.push(state(row, 4)?);
            }
        }
        Ok(runs)
    }

    fn read_entries(&self, selection: Selection) -> rusqlite::Result<Vec<Entry>> {
        let (condition, [one, two]) = selection.condition();
        let from = format!(
            "FROM (SELECT * FROM entries WHERE {condition}) e
             JOIN runs r ON r.id = e.run JOIN subjects s ON s.id = e.subject"
        );
        let mut entries: Vec<(i64, Entry)> = self
            .connection
            .prepare(&format!(
                "SELECT s.id, s.evaluation, s.name, e.id, r.id, r.started, r.commit_id, e.state, e.reason,
                        e.dataset, e.dataset_version, e.dataset_digest, e.system, e.items, h.name,
                        e.kind, r.branch, r.commit_subject
                 {from} LEFT JOIN metrics h ON h.id = e.headline ORDER BY r.started, r.id, e.id"
            ))?
            .query_map(params![one, two], |row| Ok((row.get(3)?, entry(row)?)))?
            .collect::<Result<_, _>>()?;
        let mut query = self.connection.prepare(&format!(
            "SELECT e.id, m.id, m.name, v.value, v.n, v.better, v.low, v.high, v.level, v.method, v.undefined
             {from} JOIN measured v ON v.entry = e.id JOIN metrics m ON m.id = v.metric
             ORDER BY r.started, r.id, e.id, v.position"
        ))?;
        let mut rows = query.query(params![one, two])?;
        let mut at = 0;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            while entries.get(at).is_some_and(|(entry, _)| *entry != id) {
                at += 1;
            }
            if let Some((_, entry)) = entries.get_mut(at) {
                entry.values.push(value(row)?);
            }
        }
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }
}

fn subject(row: &Row<'_>) -> rusqlite::Result<Subject> {
    Ok(Subject { id: row.get(0)?, evaluation: row.get(1)?, name: row.get(2)? })
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let name: String = row.get(column)?;
    State::of_name(&name).ok_or_else(|| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::InvalidColumnType(column, "state".to_owned(), kind)
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let dataset = match (row.get(9)?, row.get(10)?, row.get(11)?) {
        (Some(id), Some(version), Some(digest)) => Some(DatasetRef { id, version, digest }),
        _ => None,
    };
    Ok(Entry {
        subject: subject(row)?,
        run: row.get(4)?,
        started: row.get(5)?,
        commit: row.get(6)?,
        state: state(row, 7)?,
        reason: row.get(8)?,
        dataset,
        system: row.get(12)?,
        items: row.get(13)?,
        headline: row.get(14)?,
        kind: row.get::<_, Option<String>>(15)?.map(Kind::from),
        branch: row.get(16)?,
        commit_subject: row.get(17)?,
        values: Vec::new(),
    })
}

fn value(row: &Row<'_>) -> rusqlite::Result<Value> {
    let better: String = row.get(5)?;
    let interval = match (row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?) {
        (Some(low), Some(high), Some(level), Some(method)) => {
            Some(Interval { low, high, level, method })
        }
        _ => None,
    };
    Ok(Value {
        metric_id: row.get(1)?,
        metric: row.get(2)?,
        value: row.get(3)?,
        n: row.get(4)?,
        better: if better == "lower" { Better::Lower } else { Better::Higher },
        interval,
        undefined: row.get(10)?,
    })
}
