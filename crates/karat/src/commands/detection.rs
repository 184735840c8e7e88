//! `karat detection run`: the entries of a project, or a scanner without a project; and
//! `karat detection score`: existing verdicts, against a labelled corpus.

use std::path::Path;

use karat_core::evaluation::{Common, Entry, Evaluation as _};
use karat_core::project::Root;
use karat_core::report::Evaluation;
use karat_detection::dataset::Dataset;
use karat_detection::system::SystemConfig;
use karat_detection::{Config, Detection, ScoreOptions, score_verdicts};

use super::{check, parquet};
use crate::bundled::Embedded;
use crate::cli::{DetectionRunArgs, VerdictsArgs};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Measures the entries of the project, or the scanner that the command line names.
pub(crate) fn run(arguments: &DetectionRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let DetectionRunArgs { check, corpus, scanner } = arguments;
    let Some(program) = scanner.first() else {
        return check::one(&Evaluation::Detection, check, terminal);
    };
    let bundled = |name: &str| corpus.is_none().then(|| name.to_owned());
    let config = Config {
        dataset: bundled("bundled:threats/v2"),
        benign_from: bundled("bundled:tools/v1"),
        corpus: corpus.clone(),
        system: SystemConfig { command: Some(scanner.clone()), ..SystemConfig::default() },
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let stem = Path::new(program).file_stem().unwrap_or_default().to_string_lossy();
    let common = Common::named(stem.chars().map(plain).collect::<String>());
    let data = Detection::load(&config, &common, &Root::in_folder(".", &Embedded))?;
    let plan = project::of_any(Entry::<Detection> { common, config, data });
    check::carry_out(&plan, check, terminal)
}

/// Scores every detector of the file, without a gate.
pub(crate) fn score(arguments: &VerdictsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let folder = arguments.parquet.as_deref();
    parquet::ready(folder)?;
    let report = match parquet::are_parquet(std::slice::from_ref(&arguments.verdicts))? {
        true => {
            parquet::refuse(
                &[("--corpus", arguments.corpus.is_some())],
                "the Parquet file has a column of labels",
            )?;
            parquet::verdicts(&arguments.verdicts, folder)?
        }
        false => {
            let corpus = arguments.corpus.as_ref();
            let corpus = corpus
                .ok_or_else(|| Stop::bad_input("--corpus is required: the file with the labels"))?;
            let dataset = Dataset::from_file(corpus)?;
            let report = score_verdicts(dataset, &arguments.verdicts, &ScoreOptions::default())?;
            parquet::write_all(folder, std::slice::from_ref(&report))?;
            report
        }
    };
    if terminal.json() {
        terminal.print_json(&report)?;
        return Ok(Exit::Pass);
    }
    let style = terminal.style();
    terminal.print(&karat_report::terminal::scores(&report, style))?;
    Ok(Exit::Pass)
}
