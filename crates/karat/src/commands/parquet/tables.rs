//! A build with the feature `parquet`.

use std::path::{Path, PathBuf};

use karat_agent::scores::Own;
use karat_agent::tasks::Tasks;
use karat_agent::traces::Config;
use karat_arrow::arrow_array::RecordBatch;
use karat_arrow::files::{self, MetricsWriter, RunColumns, Writer};
use karat_arrow::{Error, Kind, Options, Partial, Scorer};
use karat_core::error::EvalError;
use karat_core::report::Report;
use karat_history::Store;

use super::refuse;
use crate::cli::AgentScoreArgs;
use crate::commands::agent::here;
use crate::exit::Stop;

fn stop(error: Error) -> Stop {
    Stop::from(EvalError::from(error))
}

/// Nothing is missing.
pub(crate) fn ready(_: Option<&Path>) -> Result<(), Stop> {
    Ok(())
}

/// Scores files of traces.
pub(crate) fn traces(arguments: &AgentScoreArgs) -> Result<Report, Stop> {
    let not_kept = "the traces of a table are scored in one pass and not kept; export them as JSON \
                    Lines";
    refuse(
        &[
            ("--verdicts", arguments.verdicts.is_some()),
            ("--before", arguments.before.is_some()),
            ("--baseline", arguments.baseline.is_some()),
            ("--prices", arguments.prices.is_some()),
        ],
        not_kept,
    )?;
    refuse(&[("--per-item", arguments.per_item)], "--parquet DIR writes the items as a table")?;
    // As for other files: Karat's own scores, and those of peers that are named instead of the usual.
    let metrics = match arguments.metrics.is_empty() {
        true => Vec::new(),
        false => {
            let own = Own::IDS.iter().map(ToString::to_string);
            own.chain(arguments.metrics.iter().cloned()).collect()
        }
    };
    let options = Options {
        metrics,
        name: arguments.name.clone(),
        max_errors: arguments.max_errors,
        ..Options::default()
    };
    let root = here();
    let config = Config { tools: arguments.tools.clone(), ..Config::default() };
    let mut scorer = Scorer::new(Kind::Traces, options).map_err(stop)?;
    scorer = scorer.with_tools(config.load_tools(&root)?);
    if let Some(tasks) = Tasks::load_any(&arguments.read.tasks, &root)? {
        scorer = scorer.with_tasks(tasks);
    }
    score(&arguments.traces, &scorer, arguments.parquet.as_deref())
}

/// Scores a file of rankings that has the relevant ids too.
pub(crate) fn rankings(
    file: &Path,
    max_errors: f64,
    folder: Option<&Path>,
) -> Result<Report, Stop> {
    let options = Options { max_errors, name: stem(file), ..Options::default() };
    let scorer = Scorer::new(Kind::Rankings, options).map_err(stop)?;
    score(&[file.to_owned()], &scorer, folder)
}

/// Scores a file of verdicts that has the labels too.
pub(crate) fn verdicts(
    file: &Path,
    max_errors: f64,
    folder: Option<&Path>,
) -> Result<Report, Stop> {
    let options = Options { max_errors, name: stem(file), ..Options::default() };
    let scorer = Scorer::new(Kind::Verdicts, options).map_err(stop)?;
    score(&[file.to_owned()], &scorer, folder)
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Scores files in flat memory; `folder` gets the items and metrics as tables.
fn score(files: &[PathBuf], scorer: &Scorer, folder: Option<&Path>) -> Result<Report, Stop> {
    let mut partial = Partial::new(scorer.kind(), scorer.options()).map_err(stop)?;
    let items = folder.map(|folder| folder.join("items.parquet"));
    let items = items.map(|path| Writer::create(&path, scorer.schema()));
    let mut items = items.transpose().map_err(stop)?;
    let mut on_scored = |batch: &RecordBatch| match &mut items {
        Some(items) => items.write(batch),
        None => Ok(()),
    };
    files::score(files, scorer, &mut partial, &mut on_scored).map_err(stop)?;
    let report = partial.report().map_err(stop)?;
    if let (Some(items), Some(folder)) = (items, folder) {
        items.finish().map_err(stop)?;
        files::write_metrics(folder, &report).map_err(stop)?;
    }
    Ok(report)
}

/// Writes the items, observations and metrics of a report.
pub(crate) fn write(folder: &Path, report: &Report) -> Result<(), Stop> {
    // The rows of a table were written while they were scored.
    if report.items.is_empty() {
        return Ok(());
    }
    files::write_items(folder, report).map_err(stop)?;
    files::write_metrics(folder, report).map_err(stop)
}

/// Writes the metrics of one run of a history, or of all, and returns their number.
pub(crate) fn export(store: &Store, run: Option<i64>, path: &Path) -> Result<usize, Stop> {
    let runs = store.runs()?;
    let wanted: Vec<_> = runs.iter().filter(|one| run.is_none_or(|run| one.id == run)).collect();
    if let (Some(run), true) = (run, wanted.is_empty()) {
        // The store says what it has instead.
        store.document(run)?;
    }
    let mut writer = MetricsWriter::create(path).map_err(stop)?;
    for run in &wanted {
        let columns = RunColumns {
            run: Some(run.id),
            started: Some(&run.started),
            branch: run.branch.as_deref(),
            commit: run.commit.as_deref(),
        };
        for report in &store.check(run.id)?.reports {
            writer.add(columns, report).map_err(stop)?;
        }
    }
    writer.finish().map_err(stop)?;
    Ok(wanted.len())
}
