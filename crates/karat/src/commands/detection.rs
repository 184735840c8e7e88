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
use crate::bundled::{self, Embedded};
use crate::cli::{DetectionRunArgs, ThreatArgs, VerdictsArgs};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Measures the entries of the project, or the scanner that the command line names.
pub(crate) fn run(arguments: &DetectionRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let DetectionRunArgs { check, threats, scanner } = arguments;
    let ThreatArgs { dataset, corpus } = threats;
    let own = dataset.is_some() || corpus.is_some();
    let Some(program) = scanner.first() else {
        return match own {
            true => Err(Stop::bad_input("--dataset and --corpus require a scanner after `--`")),
            false => check::one(&Evaluation::Detection, check, terminal),
        };
    };
    let bundled = |name: &str| (!own).then(|| name.to_owned());
    let config = Config {
        dataset: dataset.clone().or_else(|| bundled("bundled:threats/v2")),
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

/// Scores every detector of the file.
pub(crate) fn score(arguments: &VerdictsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let VerdictsArgs { threats: ThreatArgs { dataset, corpus }, verdicts, score } = arguments;
    let (gate, folder) = check::scoring(score)?;
    let report = match parquet::are_parquet(std::slice::from_ref(verdicts))? {
        true => {
            parquet::refuse(
                &[("--dataset", dataset.is_some()), ("--corpus", corpus.is_some())],
                "the Parquet file has a column of labels",
            )?;
            parquet::verdicts(verdicts, score.max_errors, folder)?
        }
        false => {
            let data = match (dataset, corpus) {
                (Some(name), _) => Dataset::open(bundled::dataset(name)?)?,
                (None, Some(file)) => Dataset::from_file(file)?,
                (None, None) => {
                    return Err(Stop::bad_input(
                        "--dataset or --corpus is required: the entries with their labels",
                    ));
                }
            };
            let options = ScoreOptions { max_errors: score.max_errors, ..ScoreOptions::default() };
            let report = score_verdicts(data, verdicts, &options)?;
            parquet::write_all(folder, std::slice::from_ref(&report))?;
            report
        }
    };
    check::conclude_scores(report, &gate, &score.outputs, terminal)
}
