//! `karat corpus`: make, check, compare and serve corpora. One file for each subcommand.

pub(crate) mod capture;
mod diff;
mod freeze;
mod import;
mod lock;
mod proxy;
mod serve;
pub(crate) mod verify;
mod world;

use std::path::Path;

use karat_retrieval::snapshot::Snapshot;

use crate::bundled;
use crate::cli::CorpusCommand;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Runs the subcommand.
pub(crate) fn run(command: &CorpusCommand, terminal: &Terminal) -> Result<Exit, Stop> {
    match command {
        CorpusCommand::Capture(arguments) => capture::run(arguments, terminal),
        CorpusCommand::Serve(arguments) => serve::run(arguments, terminal),
        CorpusCommand::Import(arguments) => import::run(arguments, terminal),
        CorpusCommand::Freeze(arguments) => freeze::run(arguments, terminal),
        CorpusCommand::Verify(arguments) => verify::run(arguments, terminal),
        CorpusCommand::Lock(arguments) => lock::run(arguments, terminal),
        CorpusCommand::Diff(arguments) => diff::run(arguments, terminal),
    }
}

/// The definitions in a folder, a file, or `bundled:tools/v1`.
fn snapshot(path: &Path) -> Result<Snapshot, Stop> {
    match path.to_str().and_then(|text| text.strip_prefix("bundled:")) {
        Some(name) => Ok(Snapshot::of(bundled::named(name)?)?),
        None => Ok(Snapshot::open(path)?),
    }
}
