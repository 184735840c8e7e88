//! A real optimiser over `karat retrieval serve-fitness`: GEPA 0.1.4 from PyPI, without a network and
//! with a function in the place of the model. `./test live` runs it.

use crate::common::live;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

const METRIC_CALLS: &str = "300";

#[test]
#[ignore = "installs gepa from PyPI; ./test live runs it"]
fn gepa_improves_the_train_score_the_same_way_twice_and_leaves_the_golden_queries_alone() {
    let python = live::python("gepa", &["gepa==0.1.4"]);
    let dataset = live::repository().join("datasets/tools/v1");
    let before = contents(&dataset.join("golden"));
    let optimise = || {
        live::run(
            Command::new(&python)
                .arg(live::repository().join("tests/live/gepa_descriptions.py"))
                .arg(env!("CARGO_BIN_EXE_karat"))
                .arg(&dataset)
                .arg(METRIC_CALLS),
        )
    };
    let first = optimise();
    assert_eq!(first, optimise(), "the rerun is identical");
    assert_eq!(before, contents(&dataset.join("golden")), "the golden files are unchanged");

    let found: Value = serde_json::from_str(&first).unwrap();
    let score = |part: &str, when: &str| found[part][when].as_f64().unwrap();
    println!(
        "ndcg@10 after {} metric calls: train {:.4} -> {:.4}, test {:.4} -> {:.4}",
        found["metric_calls"],
        score("train", "before"),
        score("train", "after"),
        score("test", "before"),
        score("test", "after")
    );
    let calls = found["metric_calls"].as_u64().unwrap();
    assert!((250..=350).contains(&calls), "{calls}");
    assert!(score("chosen", "after") > score("chosen", "before") + 0.3, "{found}");
    assert!(score("train", "after") > score("train", "before") + 0.01, "{found}");
    assert!((0.0..=1.0).contains(&score("test", "after")), "reported with the train score");
}

fn contents(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect()
}
