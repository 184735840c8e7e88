//! Rankings that were made elsewhere.
//!
//! Four kinds of file are read: lines of `{"id", "ranked": [{"tool_id", "score"?}, …]}` (or
//! `{"id", "error"}`), a run journal, a report with its items, and a TREC run. The order of a list is
//! the ranking; only a TREC run is ordered by its scores, as trec_eval does. What a file does not say
//! is not made up: a query without a line was not answered, and has no score.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::journal::{self, Entry, Outcome};
use karat_core::observed::Observed;
use karat_core::report::{self, Evaluation, Report};
use karat_io::input::{self, Format, InputError, Limits};
use serde::Deserialize;

use crate::dataset::Dataset;
use crate::ranking::{Ranked, Ranking};
use crate::trec_files;
use karat_core::error::EvalError;

/// The most runs that a file may be of; as many as a project may ask for.
const MAX_RUNS: u32 = 10_000;

/// The meaning of a query without lines in a TREC run: the format does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Absent {
    /// It was not answered.
    #[default]
    Unanswered,
    /// It was answered with nothing, as `trec_eval -c` takes it.
    Empty,
}

/// The outcomes in a file, for each query and run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rankings {
    entries: Vec<Entry<Ranking>>,
    absent: Absent,
}

/// A line of rankings or of a journal; which of the two shows in its fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    schema: Option<String>,
    id: Option<String>,
    run: u32,
    nanos: u64,
    ranked: Option<Vec<Ranked>>,
    error: Option<String>,
    outcome: Option<Outcome<Ranking>>,
}

impl Rankings {
    /// Reads lines of rankings, a run journal, or a report.
    ///
    /// # Errors
    /// If the file is none of these, or answers a query twice in one run.
    pub fn load(path: &Path) -> Result<Rankings, EvalError> {
        match Format::of(path) {
            Some(Format::Json) => Self::from_report(path, &Report::load(path)?),
            Some(Format::JsonLines) => Self::from_lines(path),
            _ if path.exists() => Err(InputError::UnknownFormat { path: path.to_owned() }.into()),
            _ => Err(InputError::NotFound { path: path.to_owned() }.into()),
        }
    }

    /// Reads a TREC run.
    ///
    /// # Errors
    /// If the file is not a valid TREC run.
    pub fn load_trec(path: &Path, absent: Absent) -> Result<Rankings, EvalError> {
        let entries = trec::read_run(&trec_files::open(path)?)
            .map_err(EvalError::config)?
            .into_iter()
            .map(|of_query| {
                let ranked = of_query
                    .documents
                    .into_iter()
                    .map(|(tool_id, score)| Ranked { tool_id, score: Some(score) })
                    .collect();
                answered(0, of_query.query, Ranking::new(ranked))
            })
            .collect();
        Ok(Rankings { entries, absent })
    }

    fn from_lines(path: &Path) -> Result<Rankings, EvalError> {
        let mut entries: Vec<Entry<Ranking>> = Vec::new();
        let mut seen = BTreeMap::new();
        let mut is_journal = false;
        for record in input::records::<Line>(path, &Limits::default())? {
            let (number, line) = record?;
            let wrong =
                |message: &str| InputError::invalid(path, format!("line {number}"), message);
            let entry = match line {
                Line { schema: Some(schema), id: None, .. } if number == 1 => {
                    input::check_schema(path, Some(&schema), journal::SCHEMA)?;
                    check_sums(path)?;
                    is_journal = true;
                    continue;
                }
                Line { id: Some(id), outcome: Some(outcome), run, nanos, .. } => {
                    Entry { run, id, nanos, outcome }
                }
                Line { id: Some(id), ranked: Some(ranked), error: None, run, .. } => {
                    answered(run, id, Ranking::new(ranked))
                }
                Line { id: Some(id), ranked: None, error: Some(message), run, .. } => Entry {
                    run,
                    id,
                    nanos: 0,
                    outcome: Outcome::Failure { class: "refused".to_owned(), message },
                },
                _ => return Err(wrong("a line is {\"id\", \"ranked\": […]}").into()),
            };
            if entry.run >= MAX_RUNS {
                return Err(wrong(&format!("runs go from 0 to {}", MAX_RUNS - 1)).into());
            }
            match seen.entry((entry.run, entry.id.clone())) {
                Slot::Vacant(slot) => {
                    slot.insert(entries.len());
                    entries.push(entry);
                }
                // A resumed run asks again what failed.
                Slot::Occupied(slot) if is_journal && failed(&entries[*slot.get()]) => {
                    entries[*slot.get()] = entry;
                }
                Slot::Occupied(_) => {
                    return Err(wrong(&format!("query {} is ranked twice", entry.id)).into());
                }
            }
        }
        Ok(Rankings { entries, absent: Absent::Unanswered })
    }

    fn from_report(path: &Path, report: &Report) -> Result<Rankings, EvalError> {
        if report.evaluation != Evaluation::Retrieval {
            let message = format!("this is a report on {}, not on retrieval", report.evaluation);
            return Err(InputError::invalid(path, "evaluation", message).into());
        }
        if report.runs > 1 {
            let message = format!(
                "a report of {} runs has only the rankings of the first; use the journal of the run instead",
                report.runs
            );
            return Err(InputError::invalid(path, "runs", message).into());
        }
        let entries = report.items.iter().map(from_item).collect();
        Ok(Rankings { entries, absent: Absent::Unanswered })
    }

    /// The number of runs the file is of.
    pub fn runs(&self) -> u32 {
        self.entries.iter().map(|entry| entry.run + 1).max().unwrap_or(1)
    }

    /// One outcome for each query and run.
    ///
    /// # Errors
    /// If a query is ranked that the golden set does not have: the files do not belong together.
    pub fn outcomes(
        &self,
        path: &Path,
        dataset: &Dataset,
    ) -> Result<Vec<Entry<Ranking>>, InputError> {
        let known: BTreeSet<&str> = dataset.queries.iter().map(|query| query.id.as_str()).collect();
        let stranger = self.entries.iter().find(|entry| !known.contains(entry.id.as_str()));
        if let Some(stranger) = stranger {
            let message = "this query is not in the golden set; do the files belong together?";
            return Err(InputError::invalid(path, stranger.id.as_str(), message));
        }
        let mut found: std::collections::BTreeMap<(u32, &str), &Entry<Ranking>> =
            self.entries.iter().map(|entry| ((entry.run, entry.id.as_str()), entry)).collect();
        let mut outcomes = Vec::new();
        for run in 0..self.runs() {
            for id in &known {
                outcomes.push(match found.remove(&(run, id)) {
                    Some(entry) => entry.clone(),
                    None => self.absent(run, id),
                });
            }
        }
        Ok(outcomes)
    }

    fn absent(&self, run: u32, id: &str) -> Entry<Ranking> {
        match self.absent {
            Absent::Empty => answered(run, id.to_owned(), Ranking::new(Vec::new())),
            Absent::Unanswered => Entry {
                run,
                id: id.to_owned(),
                nanos: 0,
                outcome: Outcome::Failure {
                    class: "missing".to_owned(),
                    message: "the file has no ranking for this query".to_owned(),
                },
            },
        }
    }

    /// The answered queries of the first run, sorted by id: what a TREC run can hold.
    pub fn first_run(&self) -> Vec<(&str, Vec<&str>)> {
        let mut lists: Vec<(&str, Vec<&str>)> = self
            .entries
            .iter()
            .filter(|entry| entry.run == 0)
            .filter_map(|entry| match &entry.outcome {
                Outcome::Answer(ranking) => Some((
                    entry.id.as_str(),
                    ranking.ranked.iter().map(|ranked| ranked.tool_id.as_str()).collect(),
                )),
                Outcome::Failure { .. } => None,
            })
            .collect();
        lists.sort_unstable();
        lists
    }
}

/// Checks every line of a journal by its checksum.
fn check_sums(path: &Path) -> Result<(), EvalError> {
    let mut lines = input::lines(path, &Limits::default())?;
    while let Some((number, text)) = lines.next_line()? {
        if let Err(why) = journal::check_sum(text.as_bytes()) {
            return Err(InputError::invalid(path, format!("line {number}"), why).into());
        }
    }
    Ok(())
}

fn failed(entry: &Entry<Ranking>) -> bool {
    matches!(entry.outcome, Outcome::Failure { .. })
}

fn answered(run: u32, id: String, ranking: Ranking) -> Entry<Ranking> {
    Entry { run, id, nanos: 0, outcome: Outcome::Answer(ranking) }
}

/// The outcome of an item of a report.
fn from_item(item: &report::Item) -> Entry<Ranking> {
    let ranked = match &item.observed {
        Some(Observed::Ranking(observed)) => observed.ranked.as_ref(),
        _ => None,
    };
    match (ranked, &item.error) {
        (Some(ranked), None) => {
            let ranked = ranked
                .iter()
                .map(|tool| Ranked { tool_id: tool.tool_id.clone(), score: tool.score });
            answered(0, item.id.clone(), Ranking::new(ranked.collect()))
        }
        (_, error) => {
            let (class, message) = match error {
                Some(error) => (error.class.clone(), error.message.clone()),
                None => ("missing".to_owned(), "the report holds no ranking for it".to_owned()),
            };
            Entry {
                run: 0,
                id: item.id.clone(),
                nanos: 0,
                outcome: Outcome::Failure { class, message },
            }
        }
    }
}
