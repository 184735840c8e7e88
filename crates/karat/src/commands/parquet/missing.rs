//! A build without the feature `parquet`: every use is an error that names it.

use std::path::Path;

use karat_core::report::Report;
use karat_history::Store;

use crate::cli::AgentScoreArgs;
use crate::exit::Stop;

/// Refuses to begin what would end without a table.
pub(crate) fn ready(folder: Option<&Path>) -> Result<(), Stop> {
    folder.map_or(Ok(()), |_| Err(missing()))
}

pub(crate) fn traces(_: &AgentScoreArgs) -> Result<Report, Stop> {
    Err(missing())
}

pub(crate) fn rankings(_: &Path, _: f64, _: Option<&Path>) -> Result<Report, Stop> {
    Err(missing())
}

pub(crate) fn verdicts(_: &Path, _: f64, _: Option<&Path>) -> Result<Report, Stop> {
    Err(missing())
}

pub(crate) fn write(_: &Path, _: &Report) -> Result<(), Stop> {
    Err(missing())
}

pub(crate) fn export(_: &Store, _: Option<i64>, _: &Path) -> Result<usize, Stop> {
    Err(missing())
}

fn missing() -> Stop {
    Stop::bad_input(
        "this build of karat does not support Parquet; use a release, or build with `--features parquet`",
    )
}
