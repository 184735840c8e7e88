//! From what was observed to the report: counts what went wrong against the allowance, scores,
//! averages, and says what a careful reader should know. The same for a system that was asked here
//! and for rankings from a file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use karat_core::aggregate;
use karat_core::journal::Entry;
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, Control, Evaluation, Report, SystemRef};
use karat_core::run::{self, Excess};

use crate::RetrievalError;
use crate::dataset::{Dataset, Query};
use crate::score;
use crate::system::Ranking;

/// What was observed, ready to be scored.
pub(crate) struct Measurement<'a> {
    pub(crate) name: &'a str,
    pub(crate) dataset: &'a Dataset,
    pub(crate) system: SystemRef,
    /// How many results were asked for; none where a file says what there is.
    pub(crate) limit: Option<usize>,
    pub(crate) runs: u32,
    pub(crate) seed: u64,
    pub(crate) max_errors: f64,
    pub(crate) entries: &'a [Entry<Ranking>],
    pub(crate) controls: Vec<Control>,
    pub(crate) warnings: Vec<String>,
}

impl Measurement<'_> {
    /// Scores and averages.
    pub(crate) fn report(
        self,
        stopwatch: &Stopwatch,
        folder: Option<&Path>,
    ) -> Result<Report, RetrievalError> {
        allow(self.entries, self.dataset, self.max_errors)?;
        let (mut items, anomalies) = score::items(self.dataset, self.entries);
        // A sum of floating-point numbers depends on their order in its last digit: that of the
        // golden file, so that other tools that read it get the same number.
        let places: HashMap<&str, usize> =
            self.dataset.queries.iter().map(|query| (query.id.as_str(), query.place)).collect();
        items.sort_by_key(|item| places.get(item.id.as_str()).copied());
        if !items.iter().any(has_score) {
            return Err(RetrievalError::NothingScored { queries: items.len() });
        }
        let refs: Vec<&report::Item> = items.iter().collect();
        let specs = score::specs(self.entries);
        let metrics = specs
            .iter()
            .map(|spec| aggregate::measure(*spec, &refs, self.runs, self.seed))
            .collect();
        let slices = ["split", "kind", "server"]
            .iter()
            .flat_map(|by| aggregate::slices(by, &specs, &items, self.runs, self.seed))
            .collect();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        let latencies: Vec<Duration> = self
            .entries
            .iter()
            .filter(|entry| entry.nanos > 0)
            .map(|entry| Duration::from_nanos(entry.nanos))
            .collect();
        let mut warnings = remarks(self.dataset, &items, &anomalies);
        warnings.extend(self.warnings);
        Ok(Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Retrieval,
            name: self.name.to_owned(),
            dataset: self.dataset.reference.clone(),
            system: self.system,
            runs: self.runs,
            seed: self.seed,
            conventions: conventions(self.limit, specs.len() > score::SPECS.len()),
            metrics,
            slices,
            items,
            controls: self.controls,
            comparison: None,
            gate: None,
            warnings,
            environment: stopwatch.environment(&latencies, folder),
        })
    }
}

/// Counts unanswered and unusable answers against the allowance.
fn allow(
    entries: &[Entry<Ranking>],
    dataset: &Dataset,
    allowed: f64,
) -> Result<(), RetrievalError> {
    let queries: BTreeMap<&str, &Query> =
        dataset.queries.iter().map(|query| (query.id.as_str(), query)).collect();
    let excess = run::beyond_allowance(entries, allowed, |id, ranking| {
        let message = score::judged(queries.get(id)?, ranking).err()?;
        Some(format!("invalid_answer: {message}"))
    });
    match excess {
        Some(Excess { failed, asked, id, message }) => {
            Err(RetrievalError::TooManyFailures { failed, asked, allowed, id, message })
        }
        None => Ok(()),
    }
}

fn has_score(item: &report::Item) -> bool {
    score::SPECS.iter().any(|spec| item.metrics.get(spec.id).copied().flatten().is_some())
}

fn conventions(limit: Option<usize>, tokens_counted: bool) -> BTreeMap<String, String> {
    let depth = match limit {
        Some(limit) => format!("map and mrr are over the {limit} results asked for"),
        None => "map and mrr are over all results of the file".to_owned(),
    };
    let tokens =
        format!("of the whole answer, by the vocabulary {}", karat_core::tokens::VOCABULARY);
    [
        ("order", "as answered; no tie rule is applied".to_owned()),
        (
            "relevant",
            "labels 1 and 2; a label 0 is a hard negative; unlabelled is not relevant".to_owned(),
        ),
        ("gain", "linear".to_owned()),
        ("depth", depth),
        (
            "public baseline",
            "its mrr is mrr@10, its map is map@10, its ndcg_at_10 is ndcg@10".to_owned(),
        ),
        ("unanswered", "no score, counted, and fatal beyond max_errors".to_owned()),
        ("interval", "bootstrap over servers for means, Wilson for rates, 95 %".to_owned()),
    ]
    .into_iter()
    .chain(tokens_counted.then_some(("answer_tokens", tokens)))
    .map(|(name, rule)| (name.to_owned(), rule))
    .collect()
}

fn remarks(dataset: &Dataset, items: &[report::Item], anomalies: &score::Anomalies) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(dangling) = dataset.dangling.first() {
        remarks.push(format!(
            "{} labels name tools that the corpus does not have (first: {} labels {}); such a tool \
             cannot be found",
            dataset.dangling.len(),
            dangling.query,
            dangling.tool_id
        ));
    }
    if let Some((id, _)) = anomalies.unknown_ids.first_key_value() {
        let times: usize = anomalies.unknown_ids.values().sum();
        remarks.push(format!(
            "{} answered ids are not in the corpus ({times} times; first: {id}); they count as \
             wrong results",
            anomalies.unknown_ids.len()
        ));
    }
    if let Some(first) = anomalies.unjudged.first() {
        remarks.push(format!(
            "{} queries have no relevant label and no score (first: {first})",
            anomalies.unjudged.len()
        ));
    }
    let failed = items.iter().filter(|item| item.error.is_some());
    let (partly, never): (Vec<_>, Vec<_>) = failed.partition(|item| has_score(item));
    if let Some(first) = never.first() {
        let count = never.len();
        remarks.push(format!(
            "{count} queries have no score because they were not answered (first: {})",
            first.id
        ));
    }
    if let Some(first) = partly.first() {
        remarks.push(format!(
            "{} queries were not answered in some of the runs (first: {}); their scores are over the \
             other runs",
            partly.len(),
            first.id
        ));
    }
    remarks
}
