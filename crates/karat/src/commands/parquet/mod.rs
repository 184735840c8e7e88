//! Parquet in and out: rows that were recorded as tables are scored in one pass, and reports are written
//! as tables.

#[cfg(not(feature = "parquet"))]
mod missing;
#[cfg(feature = "parquet")]
mod tables;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::report::Report;

use crate::exit::Stop;

#[cfg(not(feature = "parquet"))]
pub(crate) use missing::{export, rankings, ready, traces, verdicts, write};
#[cfg(feature = "parquet")]
pub(crate) use tables::{export, rankings, ready, traces, verdicts, write};

/// The first bytes of every Parquet file.
const MAGIC: &[u8; 4] = b"PAR1";

/// Returns whether a file is Parquet, by its first bytes.
fn is_parquet(path: &Path) -> bool {
    // Before it is opened: a pipe would be waited for, and lose its first bytes.
    if !std::fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut start = [0; MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *MAGIC
}

/// Returns whether the files are Parquet.
///
/// # Errors
/// If some are and others are not.
pub(crate) fn are_parquet(files: &[PathBuf]) -> Result<bool, Stop> {
    let (parquet, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.iter().partition(|path| is_parquet(path));
    match (parquet.first(), others.first()) {
        (Some(one), Some(other)) => Err(Stop::bad_input(format!(
            "{} is Parquet and {} is not; score them separately",
            one.display(),
            other.display()
        ))),
        (parquet, _) => Ok(parquet.is_some()),
    }
}

/// Refuses flags that cannot be used with rows of a table.
///
/// # Errors
/// If one is given.
pub(crate) fn refuse(flags: &[(&str, bool)], reason: &str) -> Result<(), Stop> {
    match flags.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Stop::bad_input(format!("{flag} cannot be used with Parquet: {reason}")))
        }
    }
}

/// Writes reports below a folder: in it if there is one, in a folder each if there are several.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write_all(folder: Option<&Path>, reports: &[Report]) -> Result<(), Stop> {
    let Some(folder) = folder else { return Ok(()) };
    match reports {
        [report] => write(folder, report),
        reports => reports.iter().try_for_each(|report| {
            write(&folder.join(format!("{}-{}", report.evaluation, report.name)), report)
        }),
    }
}
