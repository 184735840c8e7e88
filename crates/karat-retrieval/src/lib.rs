//! Retrieval evaluation: does tool search find the right tools?
//!
//! [`Retrieval`] is the evaluation: [`dataset`] (frozen corpus and golden queries), [`system`]
//! (built-in [`engines`] and adapters under [`systems`]), [`score`] (rankings to scored items) and
//! `controls`. [`score_rankings`] scores [`rankings`] that were made elsewhere. [`snapshot`] holds
//! definitions as servers serve them: captured, compared, locked.

pub mod audit;
mod controls;
pub mod dataset;
pub mod engines;
pub mod fitness;
pub mod import;
mod ranking;
pub mod rankings;
pub mod ready;
pub mod score;
mod skills;
pub mod snapshot;
pub mod system;
pub mod systems;
mod tokens;
pub mod trec_files;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::adapter::mcp;
use karat_core::aggregate;
use karat_core::dataset::Contents;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    self, Answer, Common, Computes, Entry, Evaluation, OPTIONAL_KEYS, Observations, Questions,
    RenamedKey, RunContext, Scored, Start, latencies,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::project::{Root, own_datasets};
use karat_core::report::{Check, Control, DatasetRef, Item, Property, Report, SystemRef, Verdict};
use karat_io::text::{count, first_few};
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, Labels, Query};
use crate::ranking::{Question, Ranking};
use crate::rankings::Rankings;
use crate::ready::ReadyConfig;
use crate::system::{Probed, Search, Setting, SystemConfig};

/// The retrieval evaluation.
pub struct Retrieval;

/// A `[[retrieval]]` entry, apart from the settings that all entries share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// A dataset folder, or `bundled:tools/v1`.
    pub dataset: Option<String>,
    /// A corpus file, together with `golden`, instead of a folder.
    pub corpus: Option<PathBuf>,
    /// A golden file.
    pub golden: Option<PathBuf>,
    /// The search that is measured.
    pub system: SystemConfig,
    /// The number of results that are asked for.
    #[serde(default = "default_results")]
    pub results: usize,
    /// The proof that every tool is indexed before the first query.
    #[serde(default)]
    pub ready: ReadyConfig,
    /// Results with a lower score are not counted: the search abstains.
    pub min_score: Option<f64>,
    /// Set to count the tokens of answers; by default those of systems outside this process.
    pub answer_tokens: Option<bool>,
}

fn default_results() -> usize {
    20
}

impl Config {
    /// The settings for scoring a system with everything else at its default.
    pub fn of(system: SystemConfig) -> Config {
        Config {
            dataset: None,
            corpus: None,
            golden: None,
            system,
            results: default_results(),
            ready: ReadyConfig::default(),
            min_score: None,
            answer_tokens: None,
        }
    }

    fn counts_tokens(&self) -> bool {
        self.answer_tokens.unwrap_or(!self.system.is_builtin())
    }
}

/// Facts from the search apart from its answers.
#[derive(Default)]
pub struct Facts {
    warnings: Vec<String>,
    second_pass: Option<Control>,
    /// Tools that the search does not list by name, where that is to fail the gate.
    missing: Vec<String>,
}

impl Evaluation for Retrieval {
    const KIND: Kind = Kind::Ranking;
    const TABLE: &'static str = "retrieval";
    const TAKES: &'static [&'static str] = OPTIONAL_KEYS;
    const START_TIMEOUT_MS: u64 = mcp::START_TIMEOUT_MS;
    const RENAMED: &'static [RenamedKey] = &[
        RenamedKey::new(&["limit"], &["results"]),
        RenamedKey::new(&["ready", "limit"], &["ready", "results"]),
        mcp::EARLIER_START_TIMEOUT,
    ];
    const ITEMS: &'static str = "queries";
    const GROUPS: &'static str = "servers";

    type Config = Config;
    type Dataset = Dataset;
    type System = Probed;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        if !(1..=10_000).contains(&config.results) {
            return Err(EvalError::config("`results` must be between 1 and 10000"));
        }
        config.system.reference().map(drop)
    }

    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Dataset, EvalError> {
        match (&config.dataset, &config.corpus, &config.golden) {
            (Some(name), None, None) => Dataset::open(root.dataset(name)?),
            (None, Some(corpus), Some(golden)) => {
                Dataset::from_files(&root.path(corpus), &root.path(golden), Labels::MayDangle)
            }
            _ => Err(EvalError::config("give either `dataset`, or `corpus` and `golden`")),
        }
    }

    fn reference(data: &Dataset) -> DatasetRef {
        data.reference.clone()
    }

    fn contents(data: &Dataset) -> Option<Contents> {
        Some(data.contents.clone())
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        let mut reads = own_datasets(&config.dataset);
        reads.extend(config.corpus.iter().chain(&config.golden).cloned());
        reads
    }

    fn dangling(data: &Dataset) -> Vec<(String, String)> {
        let dangling = data.dangling.iter();
        dangling.map(|label| (label.query.clone(), label.tool_id.clone())).collect()
    }

    fn computes(config: &Config, data: &Dataset) -> Option<Computes> {
        let metrics = score::metric_ids(data, config.counts_tokens());
        Some(Computes { metrics, slices: score::slices(data), open: false })
    }

    async fn start(
        entry: &Entry<Retrieval>,
        context: &RunContext<'_>,
    ) -> Result<Start<Retrieval>, EvalError> {
        let Entry { common, config, data } = entry;
        let setting = Setting {
            dataset: data,
            folder: context.folder,
            common,
            count_tokens: config.counts_tokens(),
        };
        let mut reference = config.system.reference()?;
        let search = Arc::new(config.system.start(&setting).await?);
        let missing = match config.ready.probe.unwrap_or(config.system.is_live()) {
            true => {
                ready::wait(&search, data, &config.ready, config.results, common.timeout()).await?
            }
            false => Vec::new(),
        };
        reference.settings.extend(search.settings());
        reference.settings.insert("limit".to_owned(), config.results.to_string());
        let min_score = config.min_score.map(|score| ("min_score".to_owned(), score.to_string()));
        reference.settings.extend(min_score);
        Ok(Start::Live { system: Arc::new(Probed { search, missing }), reference })
    }

    fn questions(
        entry: &Entry<Retrieval>,
        _: &Probed,
        _: &mut Vec<Outcome<Ranking>>,
    ) -> Result<Questions<Retrieval>, EvalError> {
        let limit = entry.config.results;
        let question = |query: &Query| {
            let question = Question { id: query.id.clone(), query: query.query.clone(), limit };
            (query.id.clone(), Arc::new(question))
        };
        Ok(entry.data.queries.iter().map(question).collect())
    }

    async fn finish(
        entry: &Entry<Retrieval>,
        system: &Probed,
        questions: &Questions<Retrieval>,
        outcomes: &mut Vec<Outcome<Ranking>>,
    ) -> Result<Facts, EvalError> {
        let search = system.search.as_ref();
        let second_pass = match search {
            Search::Builtin { engine, .. } => {
                Some(second_pass(outcomes, questions, engine.as_ref()))
            }
            _ => None,
        };
        let limit = entry.config.results;
        let mut warnings = search.notes();
        above(entry.config.min_score, outcomes);
        warnings.extend(cut_to(limit, outcomes));
        warnings.extend(score::beyond(limit));
        if !entry.config.system.is_builtin() {
            let possible = limit.min(entry.data.tools.len());
            warnings.extend(score::short(limit, possible, longest(outcomes)));
        }
        warnings.extend(score::rising(outcomes));
        if entry.common.runs == 1 && !entry.config.system.is_builtin() {
            warnings.push(
                "one run: if the system's answers vary, set runs to 5 or more so that the gate accounts for \
                 the variation"
                    .to_owned(),
            );
        }
        Ok(Facts { warnings, second_pass, missing: system.missing.clone() })
    }

    fn unusable(entry: &Entry<Retrieval>, id: &str, ranking: &Ranking) -> Option<String> {
        let message = score::judged(entry.data.query(id)?, ranking).err()?;
        Some(format!("invalid_answer: {message}"))
    }

    fn score(observed: &Observations<'_, Retrieval>) -> Result<Scored, EvalError> {
        let Observations { entry, outcomes, facts, runs, .. } = *observed;
        let (data, seed) = (&entry.data, entry.common.seed);
        let (mut items, anomalies) = score::items(data, outcomes);
        // The bootstrap draws items by their place: that in the golden file, whatever their ids are.
        let places: HashMap<&str, usize> =
            data.queries.iter().map(|query| (query.id.as_str(), query.place)).collect();
        items.sort_by_key(|item| places.get(item.id.as_str()).copied());
        if data.has_triggers() && longest(outcomes) == 0 {
            return Err(EvalError::NothingMeasured(format!(
                "nothing ever fired: all answers to {} queries are empty; is the search connected, and \
                 is `min_score` not too high?",
                items.len()
            )));
        }
        if !items.iter().any(score::has_score) {
            return Err(EvalError::NothingMeasured(format!(
                "no query has a score: none of {} has a relevant label (1 or 2) and an answer; \
                 check the labels of the golden set",
                items.len()
            )));
        }
        let refs: Vec<&Item> = items.iter().collect();
        let counted = score::counts_tokens(outcomes);
        let ids = score::metric_ids(data, counted);
        let depth = match observed.recorded {
            true => longest(outcomes).max(1),
            false => entry.config.results,
        };
        let controls::Proofs { mut controls, doubt } =
            controls::run(data, depth, seed, demand(&entry.config));
        controls.extend(facts.second_pass.clone());
        let mut warnings = score::remarks(data, &items, &anomalies);
        warnings.extend(doubt);
        warnings.extend(score::silent(outcomes));
        warnings.extend(facts.warnings.iter().cloned());
        Ok(Scored {
            metrics: ids.iter().map(|id| aggregate::measure(id, &refs, runs, seed)).collect(),
            slices: [Property::Split, Property::Kind, Property::Server]
                .into_iter()
                .flat_map(|by| aggregate::slices(by, &ids, &items, runs, seed))
                .collect(),
            conventions: score::conventions(
                data,
                (!observed.recorded).then_some(entry.config.results),
                counted,
            ),
            latencies: latencies(outcomes),
            checks: dangling(data).into_iter().chain(vanished(&facts.missing)).collect(),
            items,
            controls,
            warnings,
            ..Scored::default()
        })
    }
}

/// The demand on the engine without descriptions. Where it is measured, or suits the data, a better value
/// shows a fault of the harness; elsewhere it only shows how the descriptions are written.
fn demand(config: &Config) -> controls::Demand {
    let bundled = config.dataset.as_ref().is_some_and(|name| name.starts_with("bundled:"));
    match bundled || config.system.builtin.as_deref() == Some("bm25") {
        true => controls::Demand::MustHold,
        false => controls::Demand::MayDiffer,
    }
}

/// The names that a check lists.
const NAMED: usize = 5;

/// The check that fails where labels name tools that the corpus does not have: what they ask for
/// cannot be found, and nothing can be compared over them.
fn dangling(data: &Dataset) -> Option<Check> {
    let all = &data.dangling;
    let named = all.iter().map(|label| format!("{} labels {}", label.query, label.tool_id));
    let named: Vec<String> = named.collect();
    let label = match all.len() {
        0 => return None,
        1 => "1 label names a tool that is".to_owned(),
        n => format!("{n} labels name tools that are"),
    };
    let reason = format!(
        "{label} not in the corpus ({}); rules that compare with the baseline were not evaluated",
        first_few(&named, NAMED)
    );
    let items = all.iter().map(|label| label.query.clone()).collect();
    Some(Check { items, ..Check::of("labels", "invariant", Verdict::Fail, reason) })
}

/// The check that fails where the search has stopped listing tools.
fn vanished(missing: &[String]) -> Option<Check> {
    let tools = match missing.len() {
        0 => return None,
        1 => "1 tool of the corpus is".to_owned(),
        n => format!("{n} tools of the corpus are"),
    };
    let reason = format!("{tools} not found by name: {}", first_few(missing, NAMED));
    Some(Check::of("ready", "missing", Verdict::Fail, reason))
}

/// Takes out results whose score is too low; one without a score stays.
fn above(min_score: Option<f64>, outcomes: &mut [Outcome<Ranking>]) {
    let Some(least) = min_score else { return };
    for entry in outcomes {
        if let Kept::Answer(ranking) = &mut entry.outcome {
            ranking.ranked.retain(|ranked| ranked.score.is_none_or(|score| score >= least));
        }
    }
}

/// Cuts each answer to the number of results that was asked for: a system that answers more would
/// otherwise be scored deeper than others. Its tokens are counted in full.
fn cut_to(limit: usize, outcomes: &mut [Outcome<Ranking>]) -> Option<String> {
    let mut longer = 0;
    let mut first = None;
    for entry in outcomes {
        let Kept::Answer(ranking) = &mut entry.outcome else { continue };
        if ranking.ranked.len() > limit {
            longer += 1;
            first.get_or_insert((entry.id.clone(), ranking.ranked.len()));
            ranking.ranked.truncate(limit);
        }
    }
    let (id, results) = first?;
    Some(format!(
        "{} with more results than the {limit} requested (first: {id} with {results}); the rest is not \
         scored",
        count(longer, "answer")
    ))
}

/// The length of the longest ranking.
fn longest(outcomes: &[Outcome<Ranking>]) -> usize {
    let lengths = outcomes.iter().map(|entry| match &entry.outcome {
        Kept::Answer(ranking) => ranking.ranked.len(),
        Kept::Failure { .. } => 0,
    });
    lengths.max().unwrap_or(0)
}

/// The proof that a built-in engine is deterministic: asked again, it answers the same. Of many
/// queries, as many as are enough are asked again.
fn second_pass(
    outcomes: &[Outcome<Ranking>],
    questions: &Questions<Retrieval>,
    engine: &dyn engines::Engine,
) -> Control {
    let asked: BTreeMap<&str, &Question> =
        questions.iter().map(|(id, question)| (id.as_str(), question.as_ref())).collect();
    let step = outcomes.len().div_ceil(controls::ENOUGH).max(1);
    let same = outcomes.iter().step_by(step).all(|entry| {
        match (&entry.outcome, asked.get(entry.id.as_str())) {
            (Kept::Answer(ranking), Some(question)) => {
                engine.search(&question.query, question.limit) == ranking.ranked
            }
            _ => false,
        }
    });
    Control {
        name: "second-pass".to_owned(),
        expected: "a second pass gives identical rankings".to_owned(),
        metrics: Vec::new(),
        ok: same,
    }
}

/// The settings for scoring rankings that were made elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreOptions {
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The largest share of queries that may have no ranking.
    pub max_errors: f64,
}

/// Scores rankings against the golden queries; no system is asked. `path` is their file.
///
/// # Errors
/// If they do not belong to these queries, or too many queries have none.
pub fn score_rankings(
    data: Dataset,
    rankings: &Rankings,
    path: &Path,
    options: &ScoreOptions,
) -> Result<Report, EvalError> {
    let outcomes: Vec<Outcome<Answer<Retrieval>>> = rankings.outcomes(path, &data)?;
    if outcomes.is_empty() {
        return Err(evaluation::nothing_to_ask());
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut common = Common { seed: options.seed, ..Common::named(name.unwrap_or_default()) };
    common.gate.max_errors = Some(options.max_errors);
    let system = SystemRef {
        kind: "file".to_owned(),
        name: common.name.clone(),
        version: None,
        settings: BTreeMap::new(),
    };
    let entry = Entry::<Retrieval> { common, config: Config::of(SystemConfig::default()), data };
    evaluation::report_recorded(&entry, outcomes, system, rankings.runs())
}
