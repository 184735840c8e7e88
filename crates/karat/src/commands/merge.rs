//! `karat merge`: one report from the parts of a run, identical to the report of an undivided run.

use crate::cli::MergeArgs;
use crate::commands::check::{self, Origin};
use crate::commands::server::merge_loads;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Merges, gates, reports.
pub(crate) fn run(arguments: &MergeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if let Some(exit) = merge_loads(&arguments.parts, &arguments.check().check, terminal)? {
        return Ok(exit);
    }
    check::all_from(Origin::Parts(&arguments.parts), &arguments.check(), terminal)
}
