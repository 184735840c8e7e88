//! `karat detection score`: verdicts that were made elsewhere, against a labelled corpus.

use karat_detection::dataset::Dataset;
use karat_detection::{ScoreOptions, score_verdicts};

use crate::cli::VerdictsArgs;
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// Scores every detector of the file; there is no gate.
pub(crate) fn score(arguments: &VerdictsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let dataset = Dataset::from_file(&arguments.corpus)?;
    let report = score_verdicts(dataset, &arguments.verdicts, &ScoreOptions::default())?;
    if terminal.json() {
        terminal.print_json(&report)?;
        return Ok(Exit::Pass);
    }
    let style = karat_report::terminal::Style { colors: terminal.colors() };
    terminal.print(&karat_report::terminal::scores(&report, style))?;
    Ok(Exit::Pass)
}
