//! Every value that trec_eval and ir_measures gave on the vectors is reproduced: pytrec_eval's values
//! and both means (scores in single precision), the trec_eval 10 command line where it ranks
//! differently (double precision, printed to four decimals), and ir_measures, whose `RR@k` breaks
//! ties the other way round.

use karat_metrics::ranking::{Averages, JudgedRanking, Measure, Rules, ScorePrecision, TieRule};
use serde_json::Value;

use crate::peers::{Comparison, cases, object, vectors};

/// One of our measures under a peer's name, or one of the counts that the peer prints with them.
enum Asked {
    Measure(Measure),
    Count(fn(&JudgedRanking) -> usize),
}

/// Reads `P_5`, `map_cut_10`, `recip_rank` (trec_eval) or `nDCG@10` (ir_measures).
fn asked(peer_name: &str) -> Asked {
    let id = match peer_name {
        "num_ret" => return Asked::Count(JudgedRanking::retrieved_count),
        "num_rel" => return Asked::Count(JudgedRanking::relevant_count),
        "num_rel_ret" => return Asked::Count(JudgedRanking::relevant_retrieved_count),
        "recip_rank" | "RR" => "mrr".to_owned(),
        "Rprec" => "r_precision".to_owned(),
        "set_P" => "set_precision".to_owned(),
        "set_F" => "set_f1".to_owned(),
        "AP" => "map".to_owned(),
        "nDCG" => "ndcg".to_owned(),
        "map" | "ndcg" | "bpref" | "set_recall" => peer_name.to_owned(),
        _ => {
            let (stem, k) = peer_name.rsplit_once(['_', '@']).expect(peer_name);
            let stem = match stem {
                "P" => "p",
                "R" => "recall",
                "RR" => "mrr",
                "AP" | "map_cut" => "map",
                "nDCG" | "ndcg_cut" => "ndcg",
                "Success" => "success",
                "recall" | "success" => stem,
                other => panic!("no measure of ours is called {other}"),
            };
            format!("{stem}@{k}")
        }
    };
    Asked::Measure(id.parse().unwrap())
}

/// One case, evaluated under given rules.
struct Evaluated {
    /// The queries that are in both files, by id.
    queries: Vec<(String, JudgedRanking)>,
    /// The judged queries that the run does not have.
    missing: Vec<JudgedRanking>,
}

impl Evaluated {
    fn new(case: &Value, precision: ScorePrecision, ties: TieRule) -> Self {
        let rules = Rules {
            ties,
            precision,
            relevance_level: case["relevance_level"].as_u64().unwrap().try_into().unwrap(),
            judged_only: case["judged_docs_only"].as_bool().unwrap(),
        };
        let (mut queries, mut missing) = (Vec::new(), Vec::new());
        for (query, judgements) in object(&case["qrels"]) {
            let judgements =
                object(judgements).iter().map(|(id, grade)| (&**id, grade.as_i64().unwrap()));
            let results = case["run"].get(query).map(object);
            let scored =
                results.into_iter().flatten().map(|(id, score)| (&**id, score.as_f64().unwrap()));
            let ranking = JudgedRanking::from_scored(judgements, scored, &rules).unwrap();
            match results {
                Some(_) => queries.push((query.clone(), ranking)),
                None => missing.push(ranking),
            }
        }
        queries.sort_by(|left, right| left.0.cmp(&right.0));
        Self { queries, missing }
    }

    fn averages(&self, measure: Measure) -> Averages {
        let mut averages = Averages::new(&[measure]);
        for (_, ranking) in &self.queries {
            averages.add_evaluated(ranking);
        }
        for ranking in &self.missing {
            averages.add_missing(ranking);
        }
        averages
    }

    fn over_evaluated(&self, measure: Measure) -> f64 {
        self.averages(measure).over_evaluated()[0].value().unwrap()
    }

    fn over_qrels(&self, measure: Measure) -> f64 {
        self.averages(measure).over_all()[0].value().unwrap()
    }
}

#[test]
fn every_kind_of_expectation_in_the_vectors_is_tested_here() {
    let tested =
        ["per_query", "mean_over_evaluated", "mean_over_qrels", "ir_measures", "trec_eval_10_cli"];
    for case in cases(&vectors("trec_eval")) {
        for kind in object(&case["expected"]).keys() {
            assert!(tested.contains(&kind.as_str()), "{}: {kind}", case["id"]);
        }
    }
}

#[test]
fn values_of_each_query_equal_those_of_pytrec_eval() {
    let vectors = vectors("trec_eval");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let evaluated = Evaluated::new(case, ScorePrecision::F32, TieRule::IdDescending);
        let expected = object(&case["expected"]["per_query"]);
        let mut queries: Vec<_> = expected.keys().map(String::as_str).collect();
        queries.sort_unstable();
        let ours: Vec<_> = evaluated.queries.iter().map(|(query, _)| query.as_str()).collect();
        assert_eq!(ours, queries, "{}", case["id"]);
        for (query, ranking) in &evaluated.queries {
            for (name, peer) in object(&expected[query]) {
                let place = format!("{} {query} {name}", case["id"]);
                let value = match asked(name) {
                    Asked::Measure(measure) => ranking.score(measure).unwrap(),
                    Asked::Count(count) => count(ranking) as f64,
                };
                comparison.close(&place, value, peer);
            }
        }
    }
    comparison.finish();
}

/// Compares one block of means, name by name.
fn compare_means(kind: &str, mean: fn(&Evaluated, Measure) -> f64) {
    let vectors = vectors("trec_eval");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let evaluated = Evaluated::new(case, ScorePrecision::F32, TieRule::IdDescending);
        for (name, peer) in object(&case["expected"][kind]) {
            let Asked::Measure(measure) = asked(name) else { panic!("{name} has no mean") };
            comparison.close(
                &format!("{} {kind} {name}", case["id"]),
                mean(&evaluated, measure),
                peer,
            );
        }
    }
    comparison.finish();
}

#[test]
fn means_over_evaluated_queries_equal_those_of_pytrec_eval() {
    compare_means("mean_over_evaluated", Evaluated::over_evaluated);
}

#[test]
fn means_over_all_judged_queries_equal_those_of_pytrec_eval() {
    compare_means("mean_over_qrels", Evaluated::over_qrels);
}

#[test]
fn aggregates_equal_those_of_ir_measures() {
    let vectors = vectors("trec_eval");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("ir_measures") else { continue };
        let by_trec_eval = Evaluated::new(case, ScorePrecision::F32, TieRule::IdDescending);
        // RR@k comes from another provider there, with doubles and ties by ascending id.
        let by_other = Evaluated::new(case, ScorePrecision::F64, TieRule::IdAscending);
        for (name, peer) in object(expected) {
            let Asked::Measure(measure) = asked(name) else { panic!("{name} has no mean") };
            let evaluated =
                if measure.definition().id == "mrr@k" { &by_other } else { &by_trec_eval };
            comparison.close(
                &format!("{} {name}", case["id"]),
                evaluated.over_qrels(measure),
                peer,
            );
        }
    }
    comparison.finish();
}

#[test]
fn double_precision_prints_what_the_trec_eval_10_command_line_prints() {
    let vectors = vectors("trec_eval");
    let mut comparison = Comparison::new(&vectors);
    for case in cases(&vectors) {
        let Some(expected) = case["expected"].get("trec_eval_10_cli") else { continue };
        let evaluated = Evaluated::new(case, ScorePrecision::F64, TieRule::IdDescending);
        for (query, values) in object(expected) {
            for (name, peer) in object(values) {
                let Asked::Measure(measure) = asked(name) else {
                    panic!("{name} is not a measure")
                };
                let value = match query.as_str() {
                    "all" => evaluated.over_qrels(measure),
                    _ => {
                        let found = evaluated.queries.iter().find(|(id, _)| id == query);
                        found.expect(query).1.score(measure).unwrap()
                    }
                };
                comparison.same_when_printed(
                    &format!("{} {query} {name}", case["id"]),
                    value,
                    peer,
                );
            }
        }
    }
    comparison.finish();
}
