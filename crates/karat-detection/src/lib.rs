//! Detection evaluation: does a scanner catch attacks and stay quiet otherwise?
//!
//! [`Detection`] is the evaluation: [`dataset`] (the labelled threat corpus, with its [`audit`] and the
//! search for [`shortcuts`]),
//! [`system`] (built-in [`detectors`] and adapters under `systems`), [`decision`] (what counts as
//! flagged), [`score`] (verdicts to scored entries) and `controls`. [`score_verdicts`] scores
//! verdicts that were made elsewhere.

pub mod aggregate_metrics;
mod answer;
pub mod audit;
mod controls;
pub mod dataset;
pub mod decision;
pub mod score;
pub mod shortcuts;
pub mod system;
mod systems;
pub mod tuning_guard;

pub use karat_detectors as detectors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::adapter::mcp;
use karat_core::dataset::Contents;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    self, Common, Computes, Entry, Evaluation, OPTIONAL_KEYS, Observations, Questions, RenamedKey,
    RunContext, Scored, Start,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::{Root, own_datasets};
use karat_core::report::{Control, DatasetRef, Measured, Property, Report};
use karat_core::run::Failures;
use karat_core::tool::Corpus;
use karat_io::text::count;
use karat_metrics::{MetricId, metric, stats};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Verdict};
use crate::dataset::{Dataset, Sample};
use crate::decision::Decision;
use crate::system::{ScanInput, Scanner, SystemConfig};
use crate::systems::batch::BatchContext;
use crate::systems::verdicts::Verdicts;

/// The detection evaluation.
pub struct Detection;

/// A `[[detection]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A dataset folder, or `bundled:threats/v2`.
    pub dataset: Option<String>,
    /// A corpus file instead of a folder.
    pub corpus: Option<PathBuf>,
    /// A tools dataset whose tools serve as plain benign entries.
    pub benign_from: Option<String>,
    /// The scanner that is measured.
    pub system: SystemConfig,
}

/// Facts from the scanner apart from its verdicts.
#[derive(Default)]
pub struct Facts {
    warnings: Vec<String>,
    second_pass: Option<Control>,
    /// The time that answers really took, where the journal does not know.
    times: Option<Vec<Duration>>,
}

impl Evaluation for Detection {
    const KIND: Kind = Kind::Verdicts;
    const TABLE: &'static str = "detection";
    const TAKES: &'static [&'static str] = OPTIONAL_KEYS;
    const START_TIMEOUT_MS: u64 = mcp::START_TIMEOUT_MS;
    const RENAMED: &'static [RenamedKey] = &[mcp::EARLIER_START_TIMEOUT];
    const ITEMS: &'static str = "entries";
    const GROUPS: &'static str = "servers";

    type Config = Config;
    type Dataset = Dataset;
    type System = Scanner;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        config.system.reference().map(drop)
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Dataset, EvalError> {
        let threats = match (&config.dataset, &config.corpus) {
            (Some(name), None) => Dataset::open(root.dataset(name)?)?,
            (None, Some(corpus)) => Dataset::from_file(&root.path(corpus))?,
            _ => return Err(EvalError::config("give either `dataset` or `corpus`")),
        };
        let Some(name) = &config.benign_from else { return Ok(threats) };
        let (corpus, from) = Corpus::open(root.dataset(name)?)?;
        let plain = corpus.tools.into_values().map(|tool| {
            Sample::plain(format!("plain-{}", tool.tool_id), tool.server.clone(), tool.definition())
        });
        threats.with_plain_benign(plain.collect(), &from)
    }

    fn reference(data: &Dataset) -> DatasetRef {
        data.reference.clone()
    }

    /// The entries; there is no corpus behind them.
    fn contents(data: &Dataset) -> Option<Contents> {
        Some(data.contents())
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        let mut reads = own_datasets(config.dataset.iter().chain(&config.benign_from));
        reads.extend(config.corpus.clone());
        reads
    }

    fn computes(_: &Config, data: &Dataset) -> Option<Computes> {
        let metrics = score::metric_ids();
        Some(Computes { metrics, slices: score::slices(data), open: true })
    }

    fn whole(entry: &Entry<Detection>) -> Option<&'static str> {
        entry.config.system.batch.is_some().then_some("its scanner reads the whole corpus at once")
    }

    async fn start(
        entry: &Entry<Detection>,
        context: &RunContext<'_>,
    ) -> Result<Start<Detection>, EvalError> {
        let Entry { common, config, data } = entry;
        let surroundings = BatchContext {
            journal: context.journal,
            resume: context.resume,
            progress: context.progress.as_ref(),
        };
        let started = config.system.start(data, context.folder, common, &surroundings);
        let reference = config.system.reference()?;
        Ok(Start::Live { system: Arc::new(started.await?), reference })
    }

    fn questions(
        entry: &Entry<Detection>,
        _: &Scanner,
        _: &mut Vec<Outcome<Answer>>,
    ) -> Result<Questions<Detection>, EvalError> {
        Ok(system::questions(&entry.data))
    }

    async fn finish(
        entry: &Entry<Detection>,
        scanner: &Scanner,
        questions: &Questions<Detection>,
        outcomes: &mut Vec<Outcome<Answer>>,
    ) -> Result<Facts, EvalError> {
        let system = &entry.config.system;
        let second_pass = system.is_builtin().then(|| {
            let by_id: BTreeMap<&str, &ScanInput> =
                questions.iter().map(|(id, input)| (id.as_str(), &**input)).collect();
            controls::second_pass(outcomes, |id| scanner.repeat(by_id.get(id)?))
        });
        let mut warnings = scanner.notes();
        if entry.common.runs == 1 && system.may_vary() {
            warnings.push(
                "one run: if the scanner's verdicts vary, set runs to 5 or more so that the gate accounts \
                 for the variation"
                    .to_owned(),
            );
        }
        let times = scanner.times().map(<[Duration]>::to_vec);
        Ok(Facts { warnings, second_pass, times })
    }

    fn unusable(entry: &Entry<Detection>, _: &str, answer: &Answer) -> Option<String> {
        problem(&entry.config.system.decision(), answer)
    }

    fn score(observed: &Observations<'_, Detection>) -> Result<Scored, EvalError> {
        let Observations { entry, outcomes, facts, runs, .. } = *observed;
        let data = &entry.data;
        let decision = entry.config.system.decision();
        let scored = score::score(data, outcomes, &decision, runs, entry.common.seed);
        if scored.verdicts == 0 {
            return Err(EvalError::NothingMeasured(format!(
                "the system gave no verdict on any of {} entries: {}",
                outcomes.len(),
                without_verdicts(outcomes, &decision)
            )));
        }
        let mut warnings = facts.warnings.clone();
        warnings.extend(remarks(data, &scored));
        let mut controls = controls::run(data);
        controls.extend(facts.second_pass.clone());
        let each = || outcomes.iter().map(|entry| Duration::from_nanos(entry.nanos)).collect();
        Ok(Scored {
            latencies: match observed.recorded {
                true => Vec::new(),
                false => facts.times.clone().unwrap_or_else(each),
            },
            metrics: scored.metrics,
            slices: scored.slices,
            items: scored.items,
            conventions: evaluation::conventions(CONVENTIONS),
            controls,
            warnings,
            ..Scored::default()
        })
    }
}

/// The settings for scoring verdicts that were made elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreOptions {
    /// The rule for what counts as flagged.
    pub decision: Decision,
    /// The largest share of entries that may have no verdict.
    pub max_errors: f64,
}

/// Scores a file of verdicts against a corpus; no system is asked.
///
/// # Errors
/// If the file is not valid, contradicts the corpus, or has too few verdicts.
pub fn score_verdicts(
    data: Dataset,
    verdicts: &Path,
    options: &ScoreOptions,
) -> Result<Report, EvalError> {
    let loaded = Verdicts::load(verdicts, &data)?;
    let outcome = |sample: &Sample| Outcome {
        run: 0,
        id: sample.id.clone(),
        nanos: 0,
        outcome: match loaded.answer(&sample.id) {
            Ok(answer) => Kept::Answer(answer),
            Err(failure) => {
                Kept::Failure { class: failure.class.name().to_owned(), message: failure.message }
            }
        },
    };
    let outcomes: Vec<Outcome<Answer>> = data.samples.iter().map(outcome).collect();
    if outcomes.is_empty() {
        return Err(evaluation::nothing_to_ask());
    }
    let stem = verdicts.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut common = Common::named(stem.unwrap_or_default());
    common.gate.max_errors = Some(options.max_errors);
    let system = SystemConfig {
        verdicts: Some(verdicts.to_owned()),
        decision: options.decision.clone(),
        ..SystemConfig::default()
    };
    let reference = system.reference()?;
    let config = Config { system, ..Config::default() };
    let entry = Entry::<Detection> { common, config, data };
    let mut report = evaluation::report_recorded(&entry, outcomes, reference, 1)?;
    report.warnings.splice(0..0, loaded.notes());
    Ok(report)
}

/// The reason for which an answer holds no verdict. An abstention is a verdict of its own kind.
fn problem(decision: &Decision, answer: &Answer) -> Option<String> {
    let whole = decision.judge(answer).whole;
    (whole.outcome == Verdict::Error)
        .then(|| format!("error: {}", whole.problem.unwrap_or_default()))
}

/// The answers of a run without a single verdict: nothing was measured then, however many failures
/// are allowed.
fn without_verdicts(outcomes: &[Outcome<Answer>], decision: &Decision) -> String {
    match Failures::of(outcomes, |_, answer| problem(decision, answer)) {
        Some(Failures { failed, id, message, .. }) => {
            format!("{failed} failed (first: {id}: {message})")
        }
        None => "all are unsupported".to_owned(),
    }
}

/// The rules behind the numbers.
const CONVENTIONS: [(&str, &str); 11] = [
    ("positive", "an entry labelled malicious"),
    ("fpr_hard", "over benign entries of category hard_negative; fpr is over all benign ones"),
    ("unsupported", "an abstention: no score, counted in coverage, not an error"),
    ("no verdict", "error, time-out or missing: no score, counted, and fatal beyond max_errors"),
    ("undefined", "a quotient without a denominator is null, never 0"),
    (
        Property::DetectorCategory.name(),
        "attacks of the category and the hard negatives that resemble it; benign ones by themselves",
    ),
    (Property::Tier.name(), "flagged if only findings of at least this severity counted"),
    ("threshold", "flagged if only scores of at least this value counted"),
    (
        Property::Agreement.name(),
        "kappa and Jaccard of two detectors' flags, whatever the truth; first run",
    ),
    (
        Property::Adds.name(),
        "share of attacks (recall) and benign entries (fpr) that only this detector flags",
    ),
    ("interval", "Wilson for rates, bootstrap for the rest, 95 %; both by server"),
];

/// A remark on a scanner that judges nearly everything alike: it may never have seen the tools.
fn constant(metrics: &[Measured]) -> Option<String> {
    let share =
        |id: MetricId| metrics.iter().find(|metric| metric.id == id && metric.n >= 20)?.value;
    let (recall, fpr) = (share(metric!("recall"))?, share(metric!("fpr"))?);
    let alike = match (recall, fpr) {
        (recall, fpr) if recall >= 0.9 && fpr >= 0.9 => "is it the wrapper that is flagged?",
        (0.0, 0.0) => "does it see the tools at all?",
        _ => return None,
    };
    Some(format!(
        "the scanner flags {:.0} % of the attacks and {:.0} % of the benign entries: {alike}",
        100.0 * recall,
        100.0 * fpr
    ))
}

/// Remarks for a careful reader.
fn remarks(dataset: &Dataset, scored: &score::Scored) -> Vec<String> {
    let mut remarks = Vec::new();
    let hard = dataset.samples.iter().filter(|sample| sample.is_hard_negative()).count() as u64;
    match stats::clopper_pearson_upper(0, hard, 0.95) {
        Ok(best) if best > 0.01 => remarks.push(format!(
            "{} can certify a false-positive rate of {:.1} % at best; 299 without a false alarm would \
             certify 1 %",
            count(hard, "hard negative"),
            100.0 * best
        )),
        Ok(_) => {}
        Err(_) => remarks.push("no hard negatives, so fpr_hard is undefined".to_owned()),
    }
    let mut attacks: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in dataset.samples.iter().filter(|sample| sample.is_malicious()) {
        *attacks.entry(&sample.category).or_default() += 1;
    }
    let small: Vec<String> = attacks
        .iter()
        .filter(|(_, count)| **count < 10)
        .map(|(category, attacks)| match *category {
            "" => format!("no category ({attacks})"),
            category => format!("{category} ({attacks})"),
        })
        .collect();
    if !small.is_empty() {
        remarks.push(format!(
            "few attacks in: {}; read their recall with its interval",
            small.join(", ")
        ));
    }
    remarks.extend(constant(&scored.metrics));
    if scored.unsupported > 0 {
        remarks.push(format!(
            "{} left out of the rates, which are over the other verdicts",
            count(scored.unsupported, "abstention")
        ));
    }
    let failed = scored.items.iter().filter(|item| item.error.is_some()).count();
    if failed > 0 {
        let entries = count(failed, "entry");
        remarks.push(format!("{entries} without a verdict, and so without a score"));
    }
    remarks
}
