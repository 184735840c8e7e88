//! Every value that ranx gave on the vectors is reproduced, ties in the order of insertion. Where
//! ranx raised an error, our result is asserted instead, and an error of another kind fails.

use std::collections::BTreeSet;

use karat_metrics::ranking::{Averages, JudgedRanking, METRICS, Measure, Rules, TieRule};
use karat_metrics::stats::paired_t_test;
use serde_json::Value;

use crate::peers::{Comparison, Object, cases, object, vectors};

/// Reads `hit_rate@5` or `ndcg@10-l2`: our measure, and the relevance level.
fn asked(peer_name: &str) -> (Measure, u32) {
    let (name, level) = match peer_name.split_once("-l") {
        Some((name, level)) => (name, level.parse().unwrap()),
        None => (peer_name, 1),
    };
    let (stem, cut) = match name.split_once('@') {
        Some((stem, k)) => (stem, Some(k)),
        None => (name, None),
    };
    let stem = match (stem, cut.is_some()) {
        ("hit_rate", _) => "success",
        ("precision", true) => "p",
        ("precision", false) => "set_precision",
        ("recall", false) => "set_recall",
        ("f1", false) => "set_f1",
        ("ndcg_burges", _) => "ndcg_exp",
        ("r-precision", _) => "r_precision",
        ("rbp.80", _) => "ranx.rbp.80",
        (same, _) => same,
    };
    let id = cut.map_or_else(|| stem.to_owned(), |k| format!("{stem}@{k}"));
    (id.parse().unwrap(), level)
}

/// Each judged query, by id, with whether the run has it.
fn rankings(
    qrels: &Object,
    run: &Object,
    relevance_level: u32,
) -> Vec<(String, JudgedRanking, bool)> {
    let rules = Rules { ties: TieRule::Insertion, relevance_level, ..Rules::default() };
    let mut rankings: Vec<_> = qrels
        .iter()
        .map(|(query, judgements)| {
            // With a relevance level, ranx takes the gain of grades below it as 0.
            let grade = |grade: &Value| {
                let grade = grade.as_i64().unwrap();
                if grade < i64::from(relevance_level) { 0 } else { grade }
            };
            let judgements = object(judgements).iter().map(|(id, value)| (&**id, grade(value)));
            let results = run.get(query).map(object);
            let scored =
                results.into_iter().flatten().map(|(id, score)| (&**id, score.as_f64().unwrap()));
            let ranking = JudgedRanking::from_scored(judgements, scored, &rules).unwrap();
            (query.clone(), ranking, results.is_some())
        })
        .collect();
    rankings.sort_by(|left, right| left.0.cmp(&right.0));
    rankings
}

/// The values of a measure for every judged query, by query id; a missing query has an empty list.
fn values(qrels: &Object, run: &Object, peer_name: &str) -> Vec<(String, f64)> {
    let (measure, level) = asked(peer_name);
    let rankings = rankings(qrels, run, level);
    rankings
        .into_iter()
        .map(|(query, ranking, _)| (query, ranking.score(measure).unwrap()))
        .collect()
}

/// The mean over all judged queries.
fn mean(qrels: &Object, run: &Object, peer_name: &str) -> f64 {
    let (measure, level) = asked(peer_name);
    let mut averages = Averages::new(&[measure]);
    for (_, ranking, present) in rankings(qrels, run, level) {
        if present {
            averages.add_evaluated(&ranking);
        } else {
            averages.add_missing(&ranking);
        }
    }
    averages.over_all()[0].value().unwrap()
}

#[test]
fn every_kind_of_expectation_in_the_vectors_is_tested() {
    let tested = ["per_query", "mean", "std_population", "means", "pairs", "error"];
    for case in cases(&vectors("ranx")) {
        for kind in object(&case["expected"]).keys() {
            assert!(tested.contains(&kind.as_str()), "{}: {kind}", case["id"]);
        }
    }
}

#[test]
fn values_of_each_query_equal_those_of_ranx() {
    let vectors = vectors("ranx");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("per_query").map(object) else { continue };
        let (qrels, run) = (object(&case["qrels"]), object(&case["run"]));
        let judged: BTreeSet<_> = qrels.keys().collect();
        assert_eq!(judged, expected.keys().collect(), "{}", case["id"]);
        let names: BTreeSet<_> =
            expected.values().flat_map(|values| object(values).keys()).collect();
        for name in names {
            for (query, value) in values(qrels, run, name) {
                comparison.close(
                    &format!("{} {query} {name}", case["id"]),
                    value,
                    &expected[&query][name],
                );
            }
        }
    }
    comparison.finish();
}

#[test]
fn means_equal_those_of_ranx() {
    let vectors = vectors("ranx");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("mean").map(object) else { continue };
        let (qrels, run) = (object(&case["qrels"]), object(&case["run"]));
        for (name, peer) in expected {
            comparison.close(&format!("{} {name}", case["id"]), mean(qrels, run, name), peer);
        }
    }
    comparison.finish();
}

#[test]
fn spread_over_queries_equals_that_of_ranx() {
    let vectors = vectors("ranx");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("std_population").map(object) else { continue };
        let (qrels, run) = (object(&case["qrels"]), object(&case["run"]));
        for (name, peer) in expected {
            let values = values(qrels, run, name);
            let mean = mean(qrels, run, name);
            let squares: f64 = values.iter().map(|(_, value)| (value - mean).powi(2)).sum();
            let deviation = (squares / values.len() as f64).sqrt();
            comparison.close(&format!("{} std {name}", case["id"]), deviation, peer);
        }
    }
    comparison.finish();
}

#[test]
fn comparisons_have_the_means_and_the_wins_ties_and_losses_of_ranx() {
    let vectors = vectors("ranx");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("means").map(object) else { continue };
        let qrels = object(&case["qrels"]);
        let run = |name: &str| object(&case["runs"][name]);
        for (run_name, means) in expected {
            for (name, peer) in object(means) {
                let place = format!("{} {run_name} {name}", case["id"]);
                comparison.close(&place, mean(qrels, run(run_name), name), peer);
            }
        }
        for pair in case["expected"]["pairs"].as_array().unwrap() {
            let (left, right) = (pair["a"].as_str().unwrap(), pair["b"].as_str().unwrap());
            for (name, peer) in object(&pair["win_tie_loss"]) {
                let left_values = values(qrels, run(left), name);
                let right_values = values(qrels, run(right), name);
                let (mut wins, mut ties, mut losses) = (0, 0, 0);
                for ((_, ours), (_, other)) in left_values.iter().zip(&right_values) {
                    match ours.total_cmp(other) {
                        std::cmp::Ordering::Greater => wins += 1,
                        std::cmp::Ordering::Equal => ties += 1,
                        std::cmp::Ordering::Less => losses += 1,
                    }
                }
                for (letter, count) in [("W", wins), ("T", ties), ("L", losses)] {
                    let place = format!("{} {left}/{right} {name} {letter}", case["id"]);
                    comparison.close(&place, f64::from(count), &peer[letter]);
                }
            }
        }
    }
    comparison.finish();
}

#[test]
fn comparisons_have_the_p_values_of_ranx() {
    let vectors = vectors("ranx");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(pairs) = case["expected"].get("pairs").and_then(Value::as_array) else { continue };
        let qrels = object(&case["qrels"]);
        for pair in pairs {
            for (name, peer) in object(&pair["p_value_student"]) {
                let scores = |side: &str| -> Vec<f64> {
                    let run = object(&case["runs"][pair[side].as_str().unwrap()]);
                    values(qrels, run, name).into_iter().map(|(_, value)| value).collect()
                };
                let place = format!("{} {}/{} {name}", case["id"], pair["a"], pair["b"]);
                let found = paired_t_test(&scores("a"), &scores("b")).map(|test| test.p_two_sided);
                // ranx gives NaN where no query differs; the test is undefined there.
                match peer.as_str() {
                    Some("NaN") => assert!(found.is_err(), "{place}: {found:?}"),
                    _ => comparison.close(&place, found.expect(&place), peer),
                }
                let significant = found.is_ok_and(|p| p <= 0.05);
                assert_eq!(
                    pair["significant_at_0.05"][name].as_bool(),
                    Some(significant),
                    "{place}"
                );
            }
        }
    }
    comparison.finish();
}

/// A situation in which ranx raises an error and we give a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deviation {
    /// The run has a query that was never judged: we leave it out.
    UnjudgedQuery,
    /// A query without a single judgement: every measure that is defined there is 0.
    NoJudgements,
}

fn deviation(case: &Value) -> Option<(&str, Deviation)> {
    let error = case["expected"]["error"].as_str()?;
    let (qrels, run) = (object(&case["qrels"]), object(&case["run"]));
    let found = if qrels.values().all(|judgements| object(judgements).is_empty()) {
        Deviation::NoJudgements
    } else if run.keys().any(|query| !qrels.contains_key(query)) {
        Deviation::UnjudgedQuery
    } else {
        panic!("{}: ranx raised {error}, and it is not listed what we do instead", case["id"])
    };
    Some((error, found))
}

/// The reciprocal rank by its definition, for scores without ties.
fn reciprocal_rank_by_hand(judgements: &Object, results: &Object) -> f64 {
    let is_relevant =
        |id: &str| judgements.get(id).is_some_and(|grade| grade.as_i64().unwrap() >= 1);
    let first =
        results.iter().filter(|(id, _)| is_relevant(id)).map(|(_, score)| score.as_f64().unwrap());
    let Some(best) = first.max_by(f64::total_cmp) else { return 0.0 };
    let rank = results.values().filter(|score| score.as_f64().unwrap() >= best).count();
    1.0 / rank as f64
}

#[test]
fn where_ranx_raises_an_error_we_give_the_listed_result() {
    let listed = BTreeSet::from([
        ("AssertionError", Deviation::UnjudgedQuery),
        ("ValueError", Deviation::NoJudgements),
    ]);
    let vectors = vectors("ranx");
    let mut seen = BTreeSet::new();
    for case in cases(&vectors) {
        let Some(found) = deviation(case) else { continue };
        assert!(listed.contains(&found), "{}: {found:?} is not listed", case["id"]);
        seen.insert(found);
        let (qrels, run) = (object(&case["qrels"]), object(&case["run"]));
        match found.1 {
            Deviation::UnjudgedQuery => {
                let ours = values(qrels, run, "mrr");
                assert_eq!(ours.len(), qrels.len(), "{}", case["id"]);
                for (query, value) in ours {
                    let by_hand =
                        reciprocal_rank_by_hand(object(&qrels[&query]), object(&run[&query]));
                    assert_eq!(value, by_hand, "{} {query}", case["id"]);
                }
            }
            Deviation::NoJudgements => {
                for metric in METRICS.iter().filter(|metric| metric.undefined.is_empty()) {
                    let measure: Measure = metric.id.replace("@k", "@10").parse().unwrap();
                    for (query, ranking, _) in rankings(qrels, run, 1) {
                        assert_eq!(
                            ranking.score(measure),
                            Ok(0.0),
                            "{} {query} {measure}",
                            case["id"]
                        );
                        assert_eq!(ranking.relevant_count(), 0);
                    }
                }
            }
        }
    }
    assert_eq!(seen, listed, "a listed deviation no longer occurs");
}
