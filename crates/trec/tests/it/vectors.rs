//! The vectors of trec_eval through files: the results from the written files equal those that
//! pytrec_eval computes from the run, for each query and for both means.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use karat_metrics::ranking::{Measure, Rules, ScorePrecision, TieRule};
use serde_json::{Map, Value};
use trec::{Input, Options, QueryScores, Summary, score};

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// The measures of trec_eval that are printed by default there, and those with cut-offs.
fn ours(peer_name: &str) -> Option<Measure> {
    let id = match peer_name {
        "recip_rank" => "mrr".to_owned(),
        "Rprec" => "r_precision".to_owned(),
        "set_P" => "set_precision".to_owned(),
        "set_F" => "set_f1".to_owned(),
        "map" | "ndcg" | "bpref" | "set_recall" => peer_name.to_owned(),
        name if name.starts_with("num_") => return None,
        name => {
            let (stem, k) = name.rsplit_once('_').unwrap();
            format!("{}@{k}", stem.to_lowercase().trim_end_matches("_cut"))
        }
    };
    Some(id.parse().unwrap())
}

/// Ids that contain white space cannot be written to a file.
fn can_be_written(case: &Value) -> bool {
    let sides = [object(&case["qrels"]), object(&case["run"])];
    let queries = sides.into_iter().flatten();
    let ids = queries.flat_map(|(query, documents)| object(documents).keys().chain([query]));
    ids.into_iter().all(|id| !id.contains(char::is_whitespace))
}

/// A query with an empty list cannot be written to a file: there it is missing.
fn has_empty_list(case: &Value) -> bool {
    object(&case["run"]).values().any(|results| object(results).is_empty())
}

/// A case, written to files and scored.
struct Scored {
    summary: Summary,
    per_query: BTreeMap<String, BTreeMap<Measure, f64>>,
}

fn score_case(case: &Value, measures: Vec<Measure>) -> Scored {
    let (mut qrels, mut run) = (String::new(), String::new());
    for (query, judgements) in object(&case["qrels"]) {
        for (document, relevance) in object(judgements) {
            writeln!(qrels, "{query} 0 {document} {relevance}").unwrap();
        }
    }
    for (query, results) in object(&case["run"]) {
        for (document, score) in object(results) {
            writeln!(run, "{query} Q0 {document} 0 {score} tag").unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("qrels"), qrels).unwrap();
    std::fs::write(path("run"), run).unwrap();
    let (qrels, run) = (Input::file(path("qrels")), Input::file(path("run")));
    let rules = Rules {
        ties: TieRule::IdDescending,
        precision: ScorePrecision::F32,
        relevance_level: case["relevance_level"].as_u64().unwrap().try_into().unwrap(),
        judged_only: case["judged_docs_only"].as_bool().unwrap(),
    };
    let options = Options { rules, measures };
    let mut per_query = BTreeMap::new();
    let mut remember = |query: &QueryScores<'_>| {
        let values = query.scores.iter().map(|score| score.unwrap());
        let values = query.measures.iter().copied().zip(values).collect();
        assert_eq!(per_query.insert(query.query.to_owned(), values), None);
    };
    let summary = score(&qrels, &run, &options, Some(&mut remember)).unwrap();
    let without = score(&qrels, &run, &options, None).unwrap();
    assert_eq!(summary, without, "{}", case["id"]);
    Scored { summary, per_query }
}

#[test]
fn results_from_files_equal_those_of_pytrec_eval() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../karat-metrics/tests/vectors/trec_eval.json");
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let tolerance = vectors["meta"]["tolerance"].as_f64().unwrap();
    let close = |place: &str, ours: f64, peer: &Value| {
        let peer = peer.as_f64().unwrap();
        assert!(
            (ours - peer).abs() <= tolerance * peer.abs().max(1.0),
            "{place}: {ours}, peer {peer}"
        );
    };
    let mut compared = 0;
    for case in vectors["cases"].as_array().unwrap() {
        if !can_be_written(case) {
            continue;
        }
        let expected = &case["expected"];
        let names: Vec<_> = object(&expected["mean_over_qrels"]).keys().collect();
        let measures: Vec<_> = names.iter().map(|name| ours(name).unwrap()).collect();
        let scored = score_case(case, measures);
        for (name, means) in names.into_iter().zip(&scored.summary.means) {
            let place = format!("{} {name}", case["id"]);
            close(&place, means.over_all.value().unwrap(), &expected["mean_over_qrels"][name]);
            compared += 1;
            if !has_empty_list(case) {
                let mean = means.over_evaluated.value().unwrap();
                close(&place, mean, &expected["mean_over_evaluated"][name]);
                compared += 1;
            }
        }
        for (query, values) in object(&expected["per_query"]) {
            let Some(scores) = scored.per_query.get(query) else {
                assert!(object(&case["run"][query]).is_empty(), "{} {query}", case["id"]);
                continue;
            };
            for (name, peer) in object(values) {
                let Some(measure) = ours(name) else { continue };
                close(&format!("{} {query} {name}", case["id"]), scores[&measure], peer);
                compared += 1;
            }
        }
        let sum = |name: &str| -> f64 {
            let queries = object(&expected["per_query"]).iter();
            let written = queries.filter(|(query, _)| scored.per_query.contains_key(*query));
            written.map(|(_, values)| values[name].as_f64().unwrap()).sum()
        };
        for (name, count) in [
            ("num_ret", scored.summary.retrieved),
            ("num_rel", scored.summary.relevant),
            ("num_rel_ret", scored.summary.relevant_retrieved),
        ] {
            assert_eq!(count as f64, sum(name), "{} {name}", case["id"]);
        }
    }
    assert!(compared > 0);
}
