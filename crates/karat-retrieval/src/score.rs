//! From rankings to scored items. Pure: no system is asked here.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::journal::{Entry, Outcome};
use karat_core::observed::{self, Observed, RankedTool};
use karat_core::report::{Item, ItemError, Property, Scores};
use karat_io::text::count;
use karat_metrics::MetricId;
use karat_metrics::ranking::{JudgedRanking, Measure, Rules};

use crate::dataset::{Dataset, Query, Versions};
use crate::ranking::{Ranked, Ranking};
use karat_core::report::{CORPUS_VERSION, GOLDEN_VERSION};

/// The headline metrics, in the order of the report.
const MEASURES: [Measure; 12] = [
    Measure::known("recall@1"),
    Measure::known("recall@3"),
    Measure::known("recall@5"),
    Measure::known("recall@10"),
    Measure::known("success@5"),
    Measure::known("mrr"),
    Measure::known("mrr@10"),
    Measure::known("ndcg@10"),
    Measure::known("map"),
    Measure::known("map@10"),
    Measure::known("comprehensiveness@5"),
    Measure::known("hard_negative_rate"),
];

/// The tokens of the answers: the last metric, if they are counted.
pub(crate) const ANSWER_TOKENS: MetricId = MetricId::known("answer_tokens");

/// The metrics of a golden set that says where nothing should be found.
pub(crate) const TRIGGERS: [MetricId; 3] = [
    MetricId::known("trigger.recall"),
    MetricId::known("trigger.false_fire_rate"),
    MetricId::known("trigger.confusion_rate"),
];

/// The metrics over a dataset, with or without tokens.
pub(crate) fn metric_ids(dataset: &Dataset, tokens: bool) -> Vec<MetricId> {
    let triggers = dataset.has_triggers().then_some(TRIGGERS).into_iter().flatten();
    headline_ids().chain(triggers).chain(tokens.then_some(ANSWER_TOKENS)).collect()
}

/// The ids of the headline metrics, in the order of the report.
pub fn headline_ids() -> impl Iterator<Item = MetricId> {
    MEASURES.into_iter().map(Measure::id)
}

/// Returns whether tokens were counted.
pub(crate) fn counts_tokens(entries: &[Entry<Ranking>]) -> bool {
    entries.iter().any(|entry| tokens(entry).is_some())
}

/// The scores of [`TRIGGERS`]: the first result fires.
fn triggers(query: &Query, ranking: &Ranking) -> [Option<f64>; 3] {
    let fired = ranking.ranked.first();
    let grade = |ranked: &Ranked| {
        let label = query.labels.iter().find(|label| label.tool_id == ranked.tool_id);
        label.map(|label| label.relevance)
    };
    let share = |hit: bool| if hit { 1.0 } else { 0.0 };
    let should = query.should_trigger.unwrap_or(true);
    // Where no label is relevant, nothing that fires could be right, and the query says nothing of the search.
    let relevant = query.labels.iter().any(|label| label.relevance > 0);
    let adjacent = query.labels.iter().any(|label| label.relevance == 0);
    [
        (should && relevant).then(|| share(fired.and_then(grade).is_some_and(|grade| grade > 0))),
        (!should).then(|| share(fired.is_some())),
        adjacent.then(|| share(fired.and_then(grade) == Some(0))),
    ]
}

fn tokens(entry: &Entry<Ranking>) -> Option<u64> {
    match &entry.outcome {
        Outcome::Answer(ranking) => ranking.answer_tokens,
        Outcome::Failure { .. } => None,
    }
}

/// The metrics that look further than the results that are asked for, in a sentence.
pub(crate) fn beyond(limit: usize) -> Option<String> {
    let deeper: Vec<String> = MEASURES
        .iter()
        .filter(|measure| measure.cutoff().is_some_and(|k| k.get() as usize > limit))
        .map(ToString::to_string)
        .collect();
    (!deeper.is_empty()).then(|| {
        format!(
            "{} have a cutoff beyond the {limit} requested results: tools beyond these count as not found",
            deeper.join(", ")
        )
    })
}

/// The remark on answers that are all shorter than what was asked for: a search that silently gives
/// fewer cuts every metric that looks further.
pub(crate) fn short(limit: usize, possible: usize, longest: usize) -> Option<String> {
    if longest == 0 || longest >= possible {
        return None;
    }
    let cut: Vec<String> = MEASURES
        .iter()
        .filter(|measure| measure.cutoff().is_none_or(|k| k.get() as usize > longest))
        .map(ToString::to_string)
        .collect();
    Some(format!(
        "requested {limit} results, but never got more than {longest}: {} are cut off there; if the search \
         returns pages, set `page_size` and `next` of `answer`",
        cut.join(", ")
    ))
}

/// The remark on answers that are all empty: every score of them is 0, as if the search were bad.
pub(crate) fn silent(entries: &[Entry<Ranking>]) -> Option<String> {
    let answers = entries.iter().filter_map(|entry| match &entry.outcome {
        Outcome::Answer(ranking) => Some(ranking.ranked.is_empty()),
        Outcome::Failure { .. } => None,
    });
    let (answered, empty) =
        answers.fold((0, 0), |(all, empty), is| (all + 1, empty + usize::from(is)));
    (answered > 0 && empty == answered).then(|| {
        format!(
            "{}: does the search read the right index, and is a limit of scores too high?",
            match answered {
                1 => "the only answer is empty".to_owned(),
                n => format!("all {n} answers are empty"),
            }
        )
    })
}

/// The remark on scores that increase down the list in most answers: perhaps the order is reversed.
pub(crate) fn rising(entries: &[Entry<Ranking>]) -> Option<String> {
    let scores = entries.iter().filter_map(|entry| match &entry.outcome {
        Outcome::Answer(ranking) => {
            let scores: Option<Vec<f64>> = ranking.ranked.iter().map(|one| one.score).collect();
            Some((&entry.id, scores.filter(|scores| scores.len() > 1)?))
        }
        Outcome::Failure { .. } => None,
    });
    let (mut scored, mut rising, mut first) = (0, 0, None);
    for (id, scores) in scores {
        scored += 1;
        if scores.first() < scores.last() && scores.is_sorted() {
            rising += 1;
            first.get_or_insert(id);
        }
    }
    let first = first.filter(|_| rising * 2 > scored)?;
    Some(format!(
        "in {rising} of {scored} answers the scores increase down the list (first: {first}); the order of \
         the list counts: is it worst first?"
    ))
}

/// Anomalies apart from the scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// Answered ids that are not in the corpus, and how often.
    pub unknown_ids: BTreeMap<String, usize>,
    /// Queries of which no label is relevant.
    pub unjudged: Vec<String>,
}

/// Scores every query from its outcomes, one for each run.
pub fn items(dataset: &Dataset, entries: &[Entry<Ranking>]) -> (Vec<Item>, Anomalies) {
    let mut by_id: BTreeMap<&str, Vec<&Entry<Ranking>>> = BTreeMap::new();
    for entry in entries {
        by_id.entry(&entry.id).or_default().push(entry);
    }
    let mut anomalies = Anomalies::default();
    let ids = metric_ids(dataset, counts_tokens(entries));
    let items = dataset
        .queries
        .iter()
        .filter_map(|query| {
            let runs = by_id.get(query.id.as_str())?;
            Some(item(dataset, query, runs, &ids, &mut anomalies))
        })
        .collect();
    (items, anomalies)
}

fn item(
    dataset: &Dataset,
    query: &Query,
    runs: &[&Entry<Ranking>],
    ids: &[MetricId],
    anomalies: &mut Anomalies,
) -> Item {
    let relevant = query.labels.iter().any(|label| label.relevance > 0);
    if !relevant && query.should_trigger != Some(false) {
        anomalies.unjudged.push(query.id.clone());
    }
    let mut per_run = Vec::with_capacity(runs.len());
    let mut observed = None;
    let mut error = None;
    for entry in runs {
        let mut scores = match &entry.outcome {
            Outcome::Answer(ranking) => {
                observed.get_or_insert_with(|| observe(query, ranking));
                note_unknown(dataset, ranking, anomalies);
                match judged(query, ranking) {
                    Ok(judged) if relevant => score(ids, &judged),
                    Ok(_) => undefined(ids),
                    Err(message) => {
                        error.get_or_insert(ItemError {
                            class: "invalid_answer".to_owned(),
                            message,
                        });
                        undefined(ids)
                    }
                }
            }
            Outcome::Failure { class, message } => {
                error.get_or_insert(ItemError { class: class.clone(), message: message.clone() });
                undefined(ids)
            }
        };
        let triggered = ids.contains(&TRIGGERS[0]);
        if let (true, Outcome::Answer(ranking)) = (triggered, &entry.outcome) {
            scores.extend(TRIGGERS.into_iter().zip(triggers(query, ranking)));
        }
        if ids.contains(&ANSWER_TOKENS) {
            // A cost is a cost whether or not the answer can be scored.
            scores.insert(ANSWER_TOKENS, tokens(entry).map(|tokens| tokens as f64));
        }
        per_run.push(scores);
    }
    let observed = observed.unwrap_or_else(|| observed::Ranking {
        query: query.query.clone(),
        ..observed::Ranking::default()
    });
    let metrics = ids
        .iter()
        .map(|id| {
            let defined: Vec<f64> =
                per_run.iter().filter_map(|run| run.get(id).copied().flatten()).collect();
            (id.clone(), karat_metrics::stats::mean(&defined).ok())
        })
        .collect();
    if per_run.len() == 1 {
        per_run.clear();
    }
    Item {
        id: query.id.clone(),
        group: group(query),
        tags: tags(query),
        metrics,
        per_run,
        observed: Some(Observed::Ranking(observed)),
        error,
    }
}

fn undefined(ids: &[MetricId]) -> Scores {
    ids.iter().take(MEASURES.len()).map(|id| (id.clone(), None)).collect()
}

/// The headline metrics of a ranking; their ids come first in the list.
fn score(ids: &[MetricId], ranking: &JudgedRanking) -> Scores {
    ids.iter()
        .zip(MEASURES)
        .map(|(id, measure)| (id.clone(), ranking.score(measure).ok()))
        .collect()
}

/// The scores of one answer, undefined where no label is relevant or a tool is listed twice.
pub(crate) fn scores<const N: usize>(
    query: &Query,
    ranking: &Ranking,
    measures: [Measure; N],
) -> [Option<f64>; N] {
    let relevant = query.labels.iter().any(|label| label.relevance > 0);
    match judged(query, ranking) {
        Ok(judged) if relevant => measures.map(|measure| judged.score(measure).ok()),
        _ => [None; N],
    }
}

/// Returns whether an answer can be scored at all: a tool listed twice has no rank.
pub(crate) fn judged(query: &Query, ranking: &Ranking) -> Result<JudgedRanking, String> {
    JudgedRanking::from_ordered(
        query.labels.iter().map(|label| (label.tool_id.as_str(), i64::from(label.relevance))),
        ranking.ranked.iter().map(|ranked| ranked.tool_id.as_str()),
        &Rules::default(),
    )
    .map_err(|error| error.to_string())
}

/// The servers of the right tools: queries about one server succeed or fail together.
fn servers(query: &Query) -> BTreeSet<&str> {
    let best = query.labels.iter().map(|label| label.relevance).max().unwrap_or(0);
    let right = query.labels.iter().filter(|label| label.relevance == best && best > 0);
    right.map(|label| label.tool_id.split_once(':').map_or(&*label.tool_id, |(s, _)| s)).collect()
}

/// The slice of queries whose right tools are on several servers.
const SEVERAL: &str = "(several)";

/// Those that fail together: queries with the same right servers.
fn group(query: &Query) -> Option<String> {
    let servers = servers(query);
    (!servers.is_empty()).then(|| servers.into_iter().collect::<Vec<_>>().join("+"))
}

fn tags(query: &Query) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::new();
    let servers = servers(query);
    let server = match servers.len() {
        0 => None,
        1 => servers.first().map(|server| (*server).to_owned()),
        _ => Some(SEVERAL.to_owned()),
    };
    for (name, value) in [
        (Property::Kind, query.kind.clone()),
        (Property::Split, query.split.clone()),
        (Property::Server, server),
    ] {
        if let Some(value) = value {
            tags.insert(name.into(), value);
        }
    }
    tags
}

/// Every slice that a report over the dataset can have, as property and value.
pub(crate) fn slices(dataset: &Dataset) -> BTreeSet<(String, String)> {
    dataset.queries.iter().flat_map(tags).collect()
}

fn note_unknown(dataset: &Dataset, ranking: &Ranking, anomalies: &mut Anomalies) {
    for ranked in &ranking.ranked {
        if dataset.tool(&ranked.tool_id).is_none() {
            *anomalies.unknown_ids.entry(ranked.tool_id.clone()).or_default() += 1;
        }
    }
}

/// The observation of one query: the tools that were found, those that were
/// missed, and those above the first relevant one.
fn observe(query: &Query, ranking: &Ranking) -> observed::Ranking {
    let relevance: BTreeMap<&str, u8> =
        query.labels.iter().map(|label| (label.tool_id.as_str(), label.relevance)).collect();
    let ids = || ranking.ranked.iter().map(|ranked| ranked.tool_id.as_str());
    let found: BTreeSet<&str> = ids().collect();
    let missed = query
        .labels
        .iter()
        .filter(|label| label.relevance > 0 && !found.contains(label.tool_id.as_str()))
        .map(|label| label.tool_id.clone());
    let first_right = ids().position(|id| relevance.get(id).is_some_and(|grade| *grade > 0));
    observed::Ranking {
        query: query.query.clone(),
        first_right: first_right.map(|index| index + 1),
        outranked_by: ids()
            .take(first_right.unwrap_or(ranking.ranked.len()))
            .map(str::to_owned)
            .collect(),
        missed: missed.collect(),
        ranked: Some(
            ranking
                .ranked
                .iter()
                .map(|ranked| RankedTool {
                    tool_id: ranked.tool_id.clone(),
                    score: ranked.score,
                    relevance: relevance.get(ranked.tool_id.as_str()).copied(),
                })
                .collect(),
        ),
    }
}

/// Returns whether an item has any score.
pub(crate) fn has_score(item: &Item) -> bool {
    item.metrics.iter().any(|(id, score)| score.is_some() && *id != ANSWER_TOKENS)
}

/// The rules behind the numbers; `limit` is `None` where a file holds the rankings.
pub(crate) fn conventions(
    dataset: &Dataset,
    limit: Option<usize>,
    tokens_counted: bool,
) -> BTreeMap<String, String> {
    let depth = match limit {
        Some(limit) => format!("map and mrr are over the {limit} requested results"),
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
    .chain(dataset.versions.corpus.clone().map(|version| (CORPUS_VERSION, version)))
    .chain(dataset.versions.golden.clone().map(|version| (GOLDEN_VERSION, version)))
    .map(|(name, rule)| (name.to_owned(), rule))
    .collect()
}

/// Remarks for a careful reader.
pub(crate) fn remarks(dataset: &Dataset, items: &[Item], anomalies: &Anomalies) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(dangling) = dataset.dangling.first() {
        remarks.push(format!(
            "{} that the corpus does not have (first: {} labels {}); such a tool cannot be found",
            match dataset.dangling.len() {
                1 => "1 label names a tool".to_owned(),
                n => format!("{n} labels name tools"),
            },
            dangling.query,
            dangling.tool_id
        ));
    }
    if let Versions { corpus: Some(is), made_for: Some(should), .. } = &dataset.versions
        && is != should
    {
        remarks.push(format!(
            "the golden set is for the corpus {should:?}, and this one is {is:?}; labels may not fit it"
        ));
    }
    if let Some((id, _)) = anomalies.unknown_ids.first_key_value() {
        let times: usize = anomalies.unknown_ids.values().sum();
        remarks.push(format!(
            "{} that the corpus does not have ({}; first: {id}), counted as wrong results",
            count(anomalies.unknown_ids.len(), "answered id"),
            count(times, "time")
        ));
    }
    if let Some(first) = anomalies.unjudged.first() {
        remarks.push(format!(
            "{} without a relevant label, and so without a score (first: {first})",
            count(anomalies.unjudged.len(), "query")
        ));
    }
    let failed = items.iter().filter(|item| item.error.is_some());
    let (partly, never): (Vec<_>, Vec<_>) = failed.partition(|item| has_score(item));
    if let Some(first) = never.first() {
        remarks.push(format!(
            "{} without an answer that can be scored (first: {})",
            count(never.len(), "query"),
            first.id
        ));
    }
    if let Some(first) = partly.first() {
        remarks.push(format!(
            "{} not answered in some of the runs (first: {}), and scored over the others",
            count(partly.len(), "query"),
            first.id
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;

    use super::*;
    use crate::dataset::Label;

    fn query(labels: &[(&str, u8)]) -> Query {
        Query {
            id: "q".to_owned(),
            query: "text".to_owned(),
            labels: labels
                .iter()
                .map(|(id, relevance)| Label { tool_id: (*id).to_owned(), relevance: *relevance })
                .collect(),
            kind: Some("direct".to_owned()),
            ..Query::default()
        }
    }

    fn entry(run: u32, ids: &[&str]) -> Entry<Ranking> {
        let ranked =
            ids.iter().map(|id| Ranked { tool_id: (*id).to_owned(), score: None }).collect();
        Entry { run, id: "q".to_owned(), nanos: 1, outcome: Outcome::Answer(Ranking::new(ranked)) }
    }

    fn dataset(query: Query) -> Dataset {
        Dataset {
            reference: DatasetRef {
                id: "d".to_owned(),
                version: "v1".to_owned(),
                digest: "sha256:0".to_owned(),
            },
            queries: vec![query],
            ..Dataset::default()
        }
    }

    #[test]
    fn tools_that_outrank_the_right_one_are_reported() {
        let dataset = dataset(query(&[("a:right", 2), ("b:gone", 1), ("c:trap", 0)]));
        let (items, _) = items(&dataset, &[entry(0, &["c:trap", "x:other", "a:right"])]);
        let item = &items[0];
        assert_eq!(item.metrics["mrr"], Some(1.0 / 3.0));
        assert_eq!(item.metrics["recall@5"], Some(0.5));
        assert_eq!(item.metrics["hard_negative_rate"], Some(1.0));
        let Some(Observed::Ranking(observed)) = &item.observed else { panic!("{item:?}") };
        assert_eq!(observed.outranked_by, ["c:trap", "x:other"]);
        assert_eq!(observed.missed, ["b:gone"]);
        assert_eq!(item.group.as_deref(), Some("a"));
    }

    #[test]
    fn a_failed_query_has_no_score_rather_than_zero() {
        let dataset = dataset(query(&[("a:right", 2)]));
        let failed = Entry {
            run: 0,
            id: "q".to_owned(),
            nanos: 1,
            outcome: Outcome::Failure { class: "timeout".to_owned(), message: "30s".to_owned() },
        };
        let (items, _) = items(&dataset, &[failed]);
        assert!(items[0].metrics.values().all(Option::is_none));
        assert_eq!(items[0].error.as_ref().unwrap().class, "timeout");
    }

    #[test]
    fn what_fires_is_right_wrong_or_the_neighbour() {
        let mut right = query(&[("s:pdf", 2), ("s:doc", 0)]);
        right.should_trigger = Some(true);
        let mut none = query(&[("s:pdf", 0)]);
        none.should_trigger = Some(false);
        let ranking = |ids: &[&str]| match entry(0, ids).outcome {
            Outcome::Answer(ranking) => ranking,
            Outcome::Failure { .. } => unreachable!(),
        };
        let (yes, no) = (Some(1.0), Some(0.0));
        for (query, ids, expected) in [
            (&right, &["s:pdf"][..], [yes, None, no]),
            (&right, &["s:doc", "s:pdf"], [no, None, yes]),
            (&right, &[], [no, None, no]),
            (&none, &[], [None, no, no]),
            (&none, &["s:pdf"], [None, yes, yes]),
            (&none, &["s:other"], [None, yes, no]),
            // Without a right tool there is no miss.
            (&query(&[]), &["s:pdf"], [None, None, None]),
            (&query(&[("s:pdf", 0)]), &["s:pdf"], [None, None, yes]),
        ] {
            assert_eq!(triggers(query, &ranking(ids)), expected, "{ids:?}");
        }
    }

    #[test]
    fn answers_that_are_all_empty_are_said() {
        let said = silent(&[entry(0, &[]), entry(1, &[])]).unwrap();
        assert!(said.starts_with("all 2 answers are empty: "), "{said}");
        assert_eq!(silent(&[entry(0, &[]), entry(1, &["a:right"])]), None);
        assert_eq!(silent(&[]), None);
    }

    #[test]
    fn a_tool_listed_twice_makes_the_answer_invalid() {
        let dataset = dataset(query(&[("a:right", 2)]));
        let (items, _) = items(&dataset, &[entry(0, &["a:right", "a:right"])]);
        assert_eq!(items[0].error.as_ref().unwrap().class, "invalid_answer");
        assert_eq!(items[0].metrics["mrr"], None);
    }

    #[test]
    fn runs_are_averaged_and_kept() {
        let dataset = dataset(query(&[("a:right", 2)]));
        let entries = [entry(0, &["a:right"]), entry(1, &["x:other", "a:right"])];
        let (items, _) = items(&dataset, &entries);
        assert_eq!(items[0].metrics["mrr"], Some(0.75));
        assert_eq!(items[0].per_run[1]["mrr"], Some(0.5));
    }
}
