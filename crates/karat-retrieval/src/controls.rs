//! The proofs that the harness can fail, on the same data as the measurement.
//!
//! An oracle must be perfect, a random ranking must score what chance gives, and the built-in engine
//! must not be better without descriptions than with them. The bounds are computed from the data, so
//! that they hold on a corpus of ten tools as well as on one of a thousand. The last one also depends on how
//! the descriptions are written: on data of others, under a search of others, it is a remark.

use karat_core::aggregate::better;
use karat_core::report::{Control, Measured};
use karat_metrics::metric;
use karat_metrics::ranking::Measure;
use karat_metrics::stats::random::Draws;
use karat_metrics::stats::{self, Alternative};

use crate::dataset::{Dataset, Label, Query};
use crate::engines::Engine;
use crate::engines::bm25::{Bm25, Fields};
use crate::ranking::{Ranked, Ranking};
use crate::score;

/// The metrics that every control is judged by.
const JUDGED: [Measure; 4] = [
    Measure::known("recall@5"),
    Measure::known("mrr"),
    Measure::known("ndcg@10"),
    Measure::known("map"),
];
/// The place of mrr among them.
const MRR: usize = 1;

/// One query's scores by the judged metrics. A control keeps no more than this of an answer, so its
/// memory does not grow with what was found.
type Scores = [Option<f64>; JUDGED.len()];

/// The number of random hits there that must be for their sum to be near enough to normal.
const ENOUGH_HITS: f64 = 200.0;
/// The most answers that are drawn for it.
const MAX_SHUFFLES: u32 = 100_000;

/// The significance at which an engine that is better without descriptions makes the harness doubtful.
const DOUBT: f64 = 0.01;

/// The most queries that an engine is asked again for a control: far more than a doubt needs.
pub(crate) const ENOUGH: usize = 1_000;

/// The demand on the built-in engine without descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It must not be better than with them: the engine is measured, or the data is known to suit it.
    MustHold,
    /// It may be, where descriptions name other tools and another search is measured.
    MayDiffer,
}

/// The controls, and a doubt that is none of the harness.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    pub(crate) controls: Vec<Control>,
    pub(crate) doubt: Option<String>,
}

/// Runs all controls. Where nothing is to be found, no ranking has a score, and there is nothing to hold
/// them to.
pub(crate) fn run(dataset: &Dataset, limit: usize, seed: u64, demand: Demand) -> Proofs {
    let mut labels = dataset.queries.iter().flat_map(|query| &query.labels);
    if !labels.any(|label| label.relevance > 0) {
        return Proofs::default();
    }
    let (degraded, doubt) = without_descriptions(dataset, limit, seed, demand);
    Proofs { controls: vec![oracle(dataset), random(dataset, limit, seed), degraded], doubt }
}

/// The right tools, best first: nothing can be better.
fn oracle(dataset: &Dataset) -> Control {
    let metrics = averages(&scored(dataset, |index| {
        let mut labels = dataset.queries[index].labels.clone();
        labels.retain(|label| label.relevance > 0);
        labels.sort_by(|a, b| b.relevance.cmp(&a.relevance).then(a.tool_id.cmp(&b.tool_id)));
        labels.into_iter().map(|label| ranked(&label.tool_id)).collect()
    }));
    Control {
        name: "oracle".to_owned(),
        expected: "mrr, ndcg@10 and map are 1".to_owned(),
        ok: [metric!("mrr"), metric!("ndcg@10"), metric!("map")]
            .iter()
            .all(|id| value(&metrics, id) == 1.0),
        metrics,
    }
}

/// Tools drawn at random: its mrr is what chance gives, within five standard errors.
fn random(dataset: &Dataset, limit: usize, seed: u64) -> Control {
    // A tool that the corpus does not have is never drawn, yet its query has a score.
    let there = |label: &&Label| dataset.tool(&label.tool_id).is_some();
    let chances: Vec<Chance> = dataset
        .queries
        .iter()
        .map(|query| query.labels.iter().filter(|label| label.relevance > 0))
        .filter(|relevant| relevant.clone().next().is_some())
        .map(|relevant| chance(dataset.tools.len(), relevant.filter(there).count(), limit))
        .collect();
    let n = chances.len() as f64;
    let rounds = rounds(&chances);
    let mean = chances.iter().map(|chance| chance.mean).sum::<f64>() / n;
    let variance = chances.iter().map(|chance| chance.variance).sum::<f64>() / f64::from(rounds);
    let error = variance.sqrt() / n;
    let metrics = averages(&shuffled(dataset, limit, rounds, seed));
    let (low, high) = (mean - 5.0 * error, mean + 5.0 * error);
    Control {
        name: "shuffled".to_owned(),
        expected: format!("mrr is what chance gives, {mean:.4} ± {:.4}", 5.0 * error),
        ok: (low..=high).contains(&value(&metrics, &metric!("mrr"))),
        metrics,
    }
}

/// The number of times the tools are shuffled for each query. The sum of a few reciprocal ranks is far from
/// normal: on a small set a single lucky draw would lie beyond any number of standard errors.
fn rounds(chances: &[Chance]) -> u32 {
    let hits: f64 = chances.iter().map(|chance| chance.hit).sum();
    if hits == 0.0 {
        return 1;
    }
    let queries = u32::try_from(chances.len().max(1)).unwrap_or(MAX_SHUFFLES);
    let most = (MAX_SHUFFLES / queries).max(1);
    (1..most).find(|rounds| f64::from(*rounds) * hits >= ENOUGH_HITS).unwrap_or(most)
}

/// The scores of each query, averaged over this many random orders.
fn shuffled(dataset: &Dataset, limit: usize, rounds: u32, seed: u64) -> Vec<Scores> {
    let mut draws = Draws::from_seed(seed);
    let mut order: Vec<&str> = dataset.tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    let mut sums: Vec<Scores> = Vec::new();
    for _ in 0..rounds {
        let found = scored(dataset, |_| {
            let drawn = limit.min(order.len());
            for place in 0..drawn {
                let other = place + draws.index(order.len() - place);
                order.swap(place, other);
            }
            order[..drawn].iter().map(|id| ranked(id)).collect()
        });
        if sums.is_empty() {
            sums = found;
            continue;
        }
        for (sum, found) in sums.iter_mut().flatten().zip(found.into_iter().flatten()) {
            *sum = sum.zip(found).map(|(sum, found)| sum + found);
        }
    }
    let average = |sum: Option<f64>| sum.map(|sum| sum / f64::from(rounds));
    sums.into_iter().map(|sums| sums.map(average)).collect()
}

/// The distribution of one query's score under chance.
struct Chance {
    /// The mean of 1/rank of the first relevant tool, 0 beyond the limit.
    mean: f64,
    /// Its variance.
    variance: f64,
    /// The way likely it is that there is one within the limit.
    hit: f64,
}

/// `relevant` among `tools` in random order: the rank of the first is r if the first r - 1 draws miss
/// and the next one hits.
fn chance(tools: usize, relevant: usize, limit: usize) -> Chance {
    let (mut missed, mut mean, mut square) = (1.0, 0.0, 0.0);
    for rank in 1..=limit.min(tools) {
        let left = (tools - rank + 1) as f64;
        let hit = (relevant as f64 / left).min(1.0);
        let reciprocal = 1.0 / rank as f64;
        mean += missed * hit * reciprocal;
        square += missed * hit * reciprocal * reciprocal;
        missed *= 1.0 - hit;
    }
    Chance { mean, variance: (square - mean * mean).max(0.0), hit: 1.0 - missed }
}

/// The built-in engine without descriptions must not beat itself with them. Of many queries, as many as
/// are enough are asked, spread evenly. Where it may, a remark says so instead.
fn without_descriptions(
    dataset: &Dataset,
    limit: usize,
    seed: u64,
    demand: Demand,
) -> (Control, Option<String>) {
    let search = |fields| {
        let engine = Bm25::build(&dataset.tools, fields);
        let queries = dataset.queries.iter().step_by(dataset.queries.len().div_ceil(ENOUGH).max(1));
        let score = |query: &Query| {
            let found = Ranking::new(engine.search(&query.query, limit));
            score::scores(query, &found, JUDGED)
        };
        queries.map(score).collect::<Vec<Scores>>()
    };
    let (with, without) = (search(Fields::All), search(Fields::NameOnly));
    let full = averages(&with);
    let losses: Vec<f64> = with
        .iter()
        .zip(&without)
        .filter_map(|(with, without)| Some(with[MRR]? - without[MRR]?))
        .collect();
    let better = stats::sign_flip(&losses, Alternative::Less, 20, 2_000, seed);
    let holds = better.is_ok_and(|test| test.p > DOUBT);
    let metrics = averages(&without);
    let mrr = JUDGED[MRR].to_string();
    let (with, without) = (value(&full, &mrr), value(&metrics, &mrr));
    let doubt = (!holds && demand == Demand::MayDiffer).then(|| {
        format!(
            "the built-in bm25 has mrr {without:.3} by names alone and {with:.3} with descriptions: the \
             descriptions lead it astray, as where they name other tools; other searches may be led astray too"
        )
    });
    let expected = match &doubt {
        None => format!("mrr is no better than with descriptions ({with:.3})"),
        Some(_) => format!("no demand on these descriptions; mrr is {with:.3} with them"),
    };
    let ok = holds || doubt.is_some();
    (Control { name: "descriptions-removed".to_owned(), expected, ok, metrics }, doubt)
}

fn ranked(id: &str) -> Ranked {
    Ranked { tool_id: id.to_owned(), score: None }
}

fn scored(dataset: &Dataset, mut answer: impl FnMut(usize) -> Vec<Ranked>) -> Vec<Scores> {
    let score = |(index, query)| score::scores(query, &Ranking::new(answer(index)), JUDGED);
    dataset.queries.iter().enumerate().map(score).collect()
}

/// Plain means: a control is compared by its value, so it needs no interval of its own.
fn averages(scores: &[Scores]) -> Vec<Measured> {
    let average = |(place, measure): (usize, &Measure)| {
        let values: Vec<f64> = scores.iter().filter_map(|scores| scores[place]).collect();
        let value = stats::mean(&values);
        Measured {
            better: better(&measure.id()),
            id: measure.id(),
            value: value.ok(),
            n: values.len() as u64,
            per_run: vec![value.ok()],
            interval: None,
            count: None,
            undefined: value.err().map(|reason| reason.to_string()),
            left_out: (scores.len() - values.len()) as u64,
        }
    };
    JUDGED.iter().enumerate().map(average).collect()
}

fn value(metrics: &[Measured], id: &str) -> f64 {
    let found = metrics.iter().find(|metric| metric.id == id).and_then(|metric| metric.value);
    // NaN compares false with everything, so an undefined control metric never passes.
    found.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;
    use serde_json::json;

    use super::*;
    use crate::dataset::{RawQuery, Tool};

    #[test]
    fn chance_is_the_mean_over_all_orders() {
        // Three tools, one relevant: ranks 1, 2 and 3 are equally likely.
        let found = chance(3, 1, 3);
        let all = [1.0, 0.5, 1.0 / 3.0];
        let expected = all.iter().sum::<f64>() / 3.0;
        let spread = all.iter().map(|x| (x - expected) * (x - expected)).sum::<f64>() / 3.0;
        assert!((found.mean - expected).abs() < 1e-12 && (found.variance - spread).abs() < 1e-12);
        assert!((found.hit - 1.0).abs() < 1e-12);
        // Cut at one: a hit with probability 1/3.
        let found = chance(3, 1, 1);
        assert!((found.mean - 1.0 / 3.0).abs() < 1e-12 && (found.hit - 1.0 / 3.0).abs() < 1e-12);
        // All relevant: certain.
        let found = chance(4, 4, 2);
        assert_eq!((found.mean, found.variance, found.hit), (1.0, 0.0, 1.0));
    }

    #[test]
    fn a_lucky_shuffle_on_a_small_set_does_not_fail_the_control() {
        // In the order of the ids, as a dataset holds them.
        let tool = |number: usize| Tool {
            tool_id: format!("s:t{number:02}"),
            server: "s".to_owned(),
            tool: format!("t{number:02}"),
            input_schema: json!({}),
            ..Tool::default()
        };
        let query =
            json!({"id": "q", "query": "x", "labels": [{"tool_id": "s:t07", "relevance": 2}]});
        let dataset = Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: (0..100).map(tool).collect(),
            queries: vec![serde_json::from_value::<RawQuery>(query).unwrap().at(0)],
            ..Dataset::default()
        };
        for seed in 100..160 {
            let control = random(&dataset, 10, seed);
            assert!(control.ok, "{seed}: {:?}", control.metrics);
        }
    }

    /// Tools whose descriptions name one another, and queries that name the right one.
    fn misleading() -> Dataset {
        let name = |number: usize| {
            let letter = char::from(b"abcdefghijklmnop"[number % 16]);
            format!("{letter}{letter}kob")
        };
        let tool = |number: usize| Tool {
            tool_id: format!("s:{}", name(number)),
            server: "s".to_owned(),
            tool: name(number),
            title: Some(format!("After {}", name(number + 1))),
            description: format!("Not for {0}, {0}, {0} or {0}.", name(number + 1)),
            input_schema: json!({}),
            output_schema: None,
            annotations: None,
        };
        let query = |number: usize| {
            let id = format!("q{number:02}");
            let labels = json!([{"tool_id": format!("s:{}", name(number)), "relevance": 2}]);
            let query = json!({"id": id, "query": name(number), "labels": labels});
            serde_json::from_value::<RawQuery>(query).unwrap().at(number)
        };
        Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: (0..16).map(tool).collect(),
            queries: (0..16).map(query).collect(),
            groups: Vec::new(),
            dangling: Vec::new(),
            versions: Default::default(),
            contents: Default::default(),
        }
    }

    #[test]
    fn descriptions_that_mislead_bm25_do_not_fail_another_search() {
        let dataset = misleading();
        let (control, doubt) = without_descriptions(&dataset, 10, 1, Demand::MustHold);
        assert!(!control.ok && doubt.is_none(), "{control:?}");
        let (control, doubt) = without_descriptions(&dataset, 10, 1, Demand::MayDiffer);
        assert!(control.ok && control.expected.starts_with("no demand"), "{control:?}");
        assert!(doubt.unwrap().contains("they name other tools"));
        // The other controls are as hard as before.
        let proofs = run(&dataset, 10, 1, Demand::MayDiffer);
        assert_eq!(proofs.controls.iter().filter(|control| control.ok).count(), 3);
        assert!(proofs.controls[0].expected.contains("mrr, ndcg@10 and map are 1"));
    }
}
